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

#include "tests/faults/run_internal.h"
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

_Noreturn void hb_run_wrong(struct hb_told *told, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(told->message, sizeof told->message, format, arguments);
  va_end(arguments);
  _exit(EXIT_WRONG);
}

void hb_run_stopped(struct hb_told *told, enum hb_code code, const struct hb_err *err) {
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
    hb_run_wrong(worker->told, "stream %" PRIu64 ", sequence %" PRId64 ": outcome %d",
                 batch->batch.stream, batch->batch.events[i].sequence, outcome);
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
      hb_run_wrong(worker->told, "stream %" PRIu64 " is gone", id);
    }
    if (status.record.frontier < told->frontier || status.record.complete_to < told->complete_to) {
      hb_run_wrong(worker->told, "stream %" PRIu64 ": frontier or complete_to went back (I5)", id);
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
  told->streams_count = HB_INPUT_STREAMS;
  enum hb_code code = hb_shell_open(&worker.shell, path, &err);
  if (!code) {
    code = send_all(&worker, &err);
    if (!code) tell(&worker);
    if (code) try_to_go_on(&worker);
    take_answers(&worker);
    hb_shell_close(&worker.shell);
  }
  hb_run_stopped(told, code, &err);
}

/* ---- looking */

static void run_look(const struct hb_input *input, const char *path, struct hb_told *told) {
  static const uint64_t ids[HB_INPUT_STREAMS] = {1, 2, 3};
  struct hb_shell shell;
  struct hb_err err = {0};
  enum hb_code code = hb_shell_open(&shell, path, &err);
  if (!code) {
    code = hb_look_at_store(input, told, shell.store, ids, &err);
    if (!code) hb_look_verify(told, shell.store);
    hb_shell_close(&shell);
  }
  hb_run_stopped(told, code, &err);
}

/* ---- children */

enum hb_end hb_run_in_child(hb_in_child *what, const struct hb_input *input, const char *path,
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

static enum hb_end shell_run(const struct hb_input *input, const char *path, struct hb_told *told) {
  return hb_run_in_child(run_input, input, path, told);
}

static enum hb_end shell_look(const struct hb_input *input, const char *path,
                              struct hb_told *told) {
  return hb_run_in_child(run_look, input, path, told);
}

const struct hb_subject hb_subject_shell = {"shell", shell_run, shell_look};
