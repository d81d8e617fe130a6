/* Decides what counts as told: an answer when the core hands it out, a number when the commit it
 * comes from was fsynced. */
#include "tests/faults/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/frame/block.h"
#include "storage/keys.h"
#include "tests/faults/shell.h"
#include "tests/lib/faultfs.h"

enum { SECONDS_MAX = 60, EXIT_WRONG = 2, SYNC_EVERY = 3 };

struct hb_told *hb_told_create(void) {
  void *memory =
      mmap(NULL, sizeof(struct hb_told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

void hb_told_destroy(struct hb_told *told) { munmap(told, sizeof *told); }

void hb_told_clear(struct hb_told *told) { memset(told, 0, sizeof *told); }

_Noreturn static void wrong(struct hb_told *told, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

_Noreturn static void wrong(struct hb_told *told, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(told->message, sizeof told->message, format, arguments);
  va_end(arguments);
  _exit(EXIT_WRONG);
}

static void stopped(struct hb_told *told, enum hb_code code, const struct hb_err *err) {
  told->code = code;
  snprintf(told->message, sizeof told->message, "%s", err->message);
}

/* ---- the input */

struct worker {
  const struct hb_input *input;
  struct hb_told *told;
  struct hb_shell shell;
};

static void take_answer(struct worker *worker, const struct hb_test_batch *batch) {
  if (batch->batch.error.code) return;
  for (uint32_t i = 0; i < batch->batch.count; i++) {
    uint8_t outcome = batch->batch.decisions[i].outcome;
    if (outcome == HB_OUTCOME_STORED || outcome == HB_OUTCOME_DUPLICATE) continue;
    wrong(worker->told, "stream %" PRIu64 ", sequence %" PRId64 ": outcome %d", batch->batch.stream,
          batch->batch.events[i].sequence, outcome);
  }
  worker->told->streams[batch->batch.stream - 1].acked[batch->number] = true;
}

static void take_answers(struct worker *worker) {
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(worker->shell.core))) {
    take_answer(worker, (struct hb_test_batch *)batch);
    hb_test_batch_destroy((struct hb_test_batch *)batch);
  }
}

/* Nothing is unsynced: what was answered is durable, and numbers may be shown. */
static void tell(struct worker *worker) {
  if (worker->shell.unsynced) return;
  for (uint64_t id = 1; id <= HB_INPUT_STREAMS; id++) {
    struct hb_told_stream *told = &worker->told->streams[id - 1];
    struct hb_stream_status status;
    for (int i = 0; i < HB_INPUT_BATCHES; i++) told->durable[i] |= told->acked[i];
    if (!hb_ordering_status(worker->shell.core, id, worker->shell.now, &status)) {
      wrong(worker->told, "stream %" PRIu64 " is gone", id);
    }
    if (status.record.frontier < told->frontier || status.record.complete_to < told->complete_to) {
      wrong(worker->told, "stream %" PRIu64 ": frontier or complete_to went back (I5)", id);
    }
    told->frontier = status.record.frontier;
    told->complete_to = status.record.complete_to;
  }
}

static void submit(struct worker *worker, uint32_t stream, uint32_t number) {
  struct hb_test_event events[HB_INPUT_PER_BATCH];
  hb_input_events(worker->input, stream, number, events);
  struct hb_test_batch *batch =
      hb_test_batch_create(stream + 1, stream + 1, events, HB_INPUT_PER_BATCH);
  batch->number = number;
  worker->told->streams[stream].begun[number] = true;
  hb_ordering_submit(worker->shell.core, &batch->batch);
}

static enum hb_code settle(struct worker *worker, struct hb_err *err) {
  for (bool worked = true; worked;) {
    enum hb_code code = hb_shell_step(&worker->shell, &worked, err);
    take_answers(worker);
    if (code) return code;
    tell(worker);
  }
  return HB_OK;
}

static enum hb_code send_all(struct worker *worker, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (uint32_t number = 0; !code && number < HB_INPUT_BATCHES; number++) {
    for (uint32_t i = 0; !code && i < HB_INPUT_STREAMS; i++) {
      submit(worker, (number + i) % HB_INPUT_STREAMS, number);
      code = settle(worker, err);
    }
    if (!code && number % SYNC_EVERY == 0) code = hb_shell_sync(&worker->shell, err);
    if (!code) tell(worker);
  }
  return code ? code : hb_shell_sync(&worker->shell, err);
}

/* I6: whatever failed, no later write may succeed. */
static void try_to_go_on(struct worker *worker) {
  hb_write_put_peer(worker->shell.write, 1, hb_slice_text("after"));
  enum hb_code code =
      hb_store_write(worker->shell.store, worker->shell.write, UINT64_MAX, true, NULL);
  worker->told->wrote_after_failure = code == HB_OK;
}

static void run_input(const struct hb_input *input, const char *path, struct hb_told *told) {
  struct worker worker = {.input = input, .told = told};
  struct hb_err err = {0};
  enum hb_code code = hb_shell_open(&worker.shell, path, &err);
  if (!code) {
    code = send_all(&worker, &err);
    if (!code) tell(&worker);
    if (code) try_to_go_on(&worker);
    take_answers(&worker);
    hb_shell_close(&worker.shell);
  }
  stopped(told, code, &err);
}

/* ---- looking */

struct look {
  const struct hb_input *input;
  struct hb_told *told;
  struct hb_shell shell;
  uint32_t stream; /* from 0 */
};

static void find(struct look *look, int64_t sequence, struct hb_slice frame) {
  struct hb_found_stream *found = &look->told->found[look->stream];
  if (sequence < 0 || sequence >= HB_INPUT_EVENTS) {
    wrong(look->told, "sequence %" PRId64 " was never sent", sequence);
  }
  if (found->stored[sequence]) {
    wrong(look->told, "stream %u: sequence %" PRId64 " is there twice (I10)", look->stream + 1,
          sequence);
  }
  struct hb_event event;
  if (hb_scan_frame(frame, &event, NULL) || event.sequence != sequence ||
      hb_test_content(&event) != hb_input_content(look->input, look->stream, sequence)) {
    wrong(look->told, "stream %u: sequence %" PRId64 " has other content", look->stream + 1,
          sequence);
  }
  found->stored[sequence] = true;
}

static void find_in_block(struct look *look, struct hb_slice bytes, int64_t from) {
  struct hb_block block;
  if (hb_block_decode(bytes, &block, NULL)) wrong(look->told, "a block that is none");
  for (uint32_t i = hb_block_find(&block, from); i < block.count; i++) {
    find(look, hb_block_sequence(&block, i), hb_block_frame(&block, i));
  }
}

static bool find_in_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct look *look = context;
  (void)id;
  find_in_block(look, bytes, look->told->found[look->stream].frontier);
  return true;
}

/* Blocks without a hole from the first sequence to the frontier (I4), every event in its place. */
static enum hb_code look_at_log(struct look *look, struct hb_err *err) {
  struct hb_log_reader *reader = NULL;
  enum hb_code code = hb_log_reader_open(look->shell.store, look->stream + 1, 0, &reader, err);
  if (code) return code;
  int64_t at = 0;
  for (;;) {
    struct hb_bytes *bytes = NULL;
    struct hb_block block;
    code = hb_log_reader_next(reader, &bytes, err);
    if (code || !bytes) break;
    if (hb_block_decode(hb_bytes_view(bytes), &block, NULL) || block.from != at ||
        block.to - block.from != block.count) {
      wrong(look->told, "stream %u: the log has a hole at %" PRId64 " (I4)", look->stream + 1, at);
    }
    at = block.to;
    find_in_block(look, hb_bytes_view(bytes), block.from);
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  if (!code && at != look->told->found[look->stream].frontier) {
    wrong(look->told, "stream %u: the log ends at %" PRId64 " (I4)", look->stream + 1, at);
  }
  return code;
}

/* ---- the PER_KEY stream: each key's released events are its lowest ones, in order (I3), exactly
 * those that its row says; what waits lies above them, once (I10) */

struct keyed {
  struct look *look;
  int64_t next[HB_INPUT_KEYS];
  int64_t first_position[HB_INPUT_KEYS];
  int64_t last_position[HB_INPUT_KEYS];
};

static uint32_t key_of(const struct look *look, const struct hb_event *event) {
  for (uint32_t key = 0; key < HB_INPUT_KEYS; key++) {
    if (hb_slice_equal(hb_event_key(event), hb_slice_text(hb_input_key(key)))) return key;
  }
  wrong(look->told, "a key that was never sent");
}

static void find_keyed(struct keyed *keyed, struct hb_slice frame, bool held, int64_t position) {
  struct look *look = keyed->look;
  struct hb_found_stream *found = &look->told->found[HB_INPUT_KEYED];
  struct hb_event event;
  if (hb_scan_frame(frame, &event, NULL)) wrong(look->told, "a frame that is none");
  uint32_t key = key_of(look, &event);
  if (held && event.sequence < keyed->next[key]) return; /* released, its bundle is still there */
  if (!held && event.sequence != keyed->next[key]) {
    wrong(look->told, "key %u: sequence %" PRId64 " is released, not %" PRId64 " (I3)", key,
          event.sequence, keyed->next[key]);
  }
  int64_t number = event.sequence * HB_INPUT_KEYS + key;
  if (number < 0 || number >= HB_INPUT_EVENTS || found->stored[number]) {
    wrong(look->told, "key %u: sequence %" PRId64 " is there twice, or was never sent (I10)", key,
          event.sequence);
  }
  if (hb_test_content(&event) != hb_input_content(look->input, HB_INPUT_KEYED, number)) {
    wrong(look->told, "key %u: sequence %" PRId64 " has other content", key, event.sequence);
  }
  found->stored[number] = true;
  if (held) return;
  if (!keyed->next[key]++) keyed->first_position[key] = position;
  keyed->last_position[key] = position;
}

static bool find_in_keyed_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct keyed *keyed = context;
  struct hb_block block;
  (void)id;
  if (hb_block_decode(bytes, &block, NULL)) wrong(keyed->look->told, "a bundle that is none");
  for (uint32_t i = 0; i < block.count; i++) {
    find_keyed(keyed, hb_block_frame(&block, i), true, 0);
  }
  return true;
}

static enum hb_code find_in_keyed_log(struct keyed *keyed, int64_t frontier, struct hb_err *err) {
  struct look *look = keyed->look;
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  int64_t at = 0;
  enum hb_code code = hb_log_reader_open(look->shell.store, HB_INPUT_KEYED + 1, 0, &reader, err);
  while (!code) {
    struct hb_block block;
    code = hb_log_reader_next(reader, &bytes, err);
    if (code || !bytes) break;
    if (hb_block_decode(hb_bytes_view(bytes), &block, NULL) || block.from != at) {
      wrong(look->told, "the PER_KEY log has a hole at %" PRId64 " (I4)", at);
    }
    for (uint32_t i = 0; i < block.count; i++) {
      find_keyed(keyed, hb_block_frame(&block, i), false, at++);
    }
    if (block.to != at) wrong(look->told, "the PER_KEY log has a hole at %" PRId64 " (I4)", at);
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  if (!code && at != frontier) wrong(look->told, "the PER_KEY log ends at %" PRId64 " (I4)", at);
  return code;
}

static enum hb_code check_rows(const struct keyed *keyed, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (uint32_t key = 0; !code && key < HB_INPUT_KEYS; key++) {
    bool found = false;
    struct hb_key_record record = {0};
    code = hb_key_record_read(keyed->look->shell.store, HB_INPUT_KEYED + 1,
                              hb_slice_text(hb_input_key(key)), &found, &record, err);
    if (code) break;
    bool well = found ? record.first == 0 && record.next == keyed->next[key] &&
                            record.first_position == keyed->first_position[key] &&
                            record.last_position == keyed->last_position[key]
                      : keyed->next[key] == 0;
    if (!well) {
      wrong(keyed->look->told, "key %u: its row says %" PRId64 ", the log has %" PRId64 " (I4)",
            key, record.next, keyed->next[key]);
    }
  }
  return code;
}

static enum hb_code look_at_keyed(struct look *look, int64_t frontier, struct hb_err *err) {
  struct keyed keyed = {.look = look};
  enum hb_code code = find_in_keyed_log(&keyed, frontier, err);
  if (!code) {
    code = hb_bundle_each(look->shell.store, HB_INPUT_KEYED + 1, NULL, find_in_keyed_bundle, &keyed,
                          err);
  }
  return code ? code : check_rows(&keyed, err);
}

static enum hb_code look_at_stream(struct look *look, struct hb_err *err) {
  struct hb_found_stream *found = &look->told->found[look->stream];
  struct hb_stream_status status;
  if (!hb_ordering_status(look->shell.core, look->stream + 1, look->shell.now, &status)) {
    wrong(look->told, "stream %u is gone", look->stream + 1);
  }
  found->frontier = status.record.frontier;
  found->complete_to = status.record.complete_to;
  if (look->stream == HB_INPUT_KEYED) return look_at_keyed(look, found->frontier, err);
  enum hb_code code = look_at_log(look, err);
  if (code) return code;
  return hb_bundle_each(look->shell.store, look->stream + 1, NULL, find_in_bundle, look, err);
}

static void run_look(const struct hb_input *input, const char *path, struct hb_told *told) {
  struct look look = {.input = input, .told = told};
  struct hb_err err = {0};
  memset(told->found, 0, sizeof told->found);
  enum hb_code code = hb_shell_open(&look.shell, path, &err);
  if (!code) {
    for (; !code && look.stream < HB_INPUT_STREAMS; look.stream++) {
      code = look_at_stream(&look, &err);
    }
    hb_shell_close(&look.shell);
  }
  stopped(told, code, &err);
}

/* ---- children */

typedef void run(const struct hb_input *input, const char *path, struct hb_told *told);

static enum hb_end in_child(run *what, const struct hb_input *input, const char *path,
                            struct hb_told *told) {
  told->code = HB_OK;
  told->message[0] = 0;
  told->wrote_after_failure = false;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(SECONDS_MAX);
    what(input, path, told);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return HB_END_OK;
  if (WIFEXITED(status) && WEXITSTATUS(status) == HB_FAULT_EXIT) return HB_END_CRASHED;
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_WRONG) return HB_END_WRONG;
  snprintf(told->message, sizeof told->message, "the child ended with status %#x",
           (unsigned)status);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? HB_END_ABORTED : HB_END_STUCK;
}

enum hb_end hb_run_input(const struct hb_input *input, const char *path, struct hb_told *told) {
  return in_child(run_input, input, path, told);
}

enum hb_end hb_run_look(const struct hb_input *input, const char *path, struct hb_told *told) {
  return in_child(run_look, input, path, told);
}
