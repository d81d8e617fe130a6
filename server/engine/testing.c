/* Helpers of the engine's tests. */
#include "server/engine/testing.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/frame/block.h"
#include "base/frame/wire.h"

static void on_fatal(void *context, const struct hb_err *err) {
  struct rig *rig = context;
  pthread_mutex_lock(&rig->mutex);
  rig->fatal++;
  rig->fatal_err = *err;
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

static bool disk_free(void *context, const char *path, uint64_t *out) {
  (void)path;
  *out = atomic_load(&((struct rig *)context)->disk_free);
  return true;
}

void rig_init_at(struct rig *rig, const char *path) {
  memset(rig, 0, sizeof *rig);
  (void)snprintf(rig->path, sizeof rig->path, "%s", path);
  rig->limits = hb_limits_default();
  atomic_init(&rig->disk_free, UINT64_C(1) << 40);
  rig->tuning.free_bytes = disk_free;
  rig->tuning.free_context = rig;
  rig->tuning.disk_look_ms = 1;
  rig->tuning.reopen_retry_ms = 10;
  rig->tuning.tick_ms = 50;
  rig->tuning.index_idle_ms = 20;
  rig->tuning.index_nap_ms = 5;
  rig->tuning.fly_bytes = 1; /* whatever holds an event goes by way of the writer */
  pthread_mutex_init(&rig->mutex, NULL);
  pthread_cond_init(&rig->changed, NULL);
}

void rig_init(struct rig *rig) {
  char path[64];
  (void)snprintf(
      path, sizeof path, "%s/hb-engine-XXXXXX",
      getenv("TEST_TMPDIR") && strlen(getenv("TEST_TMPDIR")) < 40 ? getenv("TEST_TMPDIR") : "/tmp");
  assert_non_null(mkdtemp(path));
  rig_init_at(rig, path);
}

void rig_open(struct rig *rig) {
  struct hb_engine_options options = {.data_dir = rig->path,
                                      .processor_dir = rig->processor_dir,
                                      .limits = rig->limits,
                                      .async_sync_ms = rig->async_sync_ms,
                                      .on_fatal = on_fatal,
                                      .context = rig};
  struct hb_err err = {0};
  enum hb_code code = hb_engine_open_tuned(&options, &rig->tuning, &rig->engine, &err);
  if (code != HB_OK) fail_msg("open: %s", err.message);
}

void rig_close(struct rig *rig) {
  if (!rig->engine) return;
  hb_engine_stop(rig->engine);
  hb_engine_close(rig->engine);
  rig->engine = NULL;
}

void rig_reopen(struct rig *rig) {
  rig_close(rig);
  rig_open(rig);
}

static int remove_one(const char *path, const struct stat *stat, int flag, struct FTW *ftw) {
  (void)stat;
  (void)flag;
  (void)ftw;
  return remove(path);
}

void rig_done(struct rig *rig) {
  rig_close(rig);
  (void)nftw(rig->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  pthread_cond_destroy(&rig->changed);
  pthread_mutex_destroy(&rig->mutex);
}

/* ---- batches */

static void put_event(struct hb_buf *out, const struct ev *event) {
  struct hb_buf body = {0};
  char payload[32];
  (void)snprintf(payload, sizeof payload, "v%lld", (long long)event->sequence);
  hb_wire_append_varint(&body, 1, (uint64_t)event->sequence);
  hb_wire_append_bytes(&body, 2, hb_slice_text(event->key ? event->key : ""));
  if (event->seconds) {
    struct hb_buf time = {0};
    hb_wire_append_varint(&time, 1, (uint64_t)event->seconds);
    hb_wire_append_bytes(&body, 3, hb_buf_view(&time));
    hb_buf_done(&time);
  }
  hb_wire_append_bytes(&body, 5, hb_slice_text(event->payload ? event->payload : payload));
  hb_wire_append_bytes(out, 1, hb_buf_view(&body));
  hb_buf_done(&body);
}

static void answered(struct hb_append *append) {
  static uint64_t orders; /* protected by the rig's mutex: one rig at a time */
  struct sent *sent = (struct sent *)append;
  struct rig *rig = sent->rig;
  pthread_mutex_lock(&rig->mutex);
  sent->order = ++orders;
  sent->answered = true;
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

struct waiter {
  struct hb_room room;
  struct rig *rig;
  bool called;
};

static void room_called(struct hb_room *room) {
  struct waiter *waiter = (struct waiter *)room;
  pthread_mutex_lock(&waiter->rig->mutex);
  waiter->called = true;
  pthread_cond_broadcast(&waiter->rig->changed);
  pthread_mutex_unlock(&waiter->rig->mutex);
}

static void wait_for_room(struct rig *rig) {
  struct waiter waiter = {.room = {.room = room_called}, .rig = rig};
  hb_engine_on_room(rig->engine, &waiter.room);
  pthread_mutex_lock(&rig->mutex);
  while (!waiter.called) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
}

struct sent *rig_send(struct rig *rig, struct hb_stream *stream, uint64_t call,
                      const struct ev *events, size_t count) {
  static uint64_t calls = 1 << 20;
  struct sent *sent = hb_calloc(1, sizeof *sent);
  sent->rig = rig;
  for (size_t i = 0; i < count; i++) put_event(&sent->bytes, &events[i]);
  struct hb_err err = {0};
  struct hb_limits limits = hb_limits_default();
  if (hb_scan_batch(hb_buf_view(&sent->bytes), &limits, &sent->events, &err) != HB_OK) {
    fail_msg("scan: %s", err.message);
  }
  struct hb_append *append = &sent->append;
  append->batch.call = call ? call : ++calls;
  append->batch.events = sent->events.items;
  append->batch.count = (uint32_t)count;
  append->batch.decisions = hb_calloc(count, sizeof *append->batch.decisions);
  append->batch.bytes = sent->bytes.size;
  append->target = stream;
  append->answered = answered;
  while (!hb_engine_try_append(rig->engine, append)) wait_for_room(rig);
  return sent;
}

void rig_wait(struct sent *sent) {
  struct rig *rig = sent->rig;
  pthread_mutex_lock(&rig->mutex);
  while (!sent->answered) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
}

void rig_free(struct sent *sent) {
  free(sent->append.batch.decisions);
  hb_events_done(&sent->events);
  hb_buf_done(&sent->bytes);
  free(sent);
}

int rig_put(struct rig *rig, struct hb_stream *stream, int64_t sequence, const char *key,
            const char *payload) {
  struct ev event = {.sequence = sequence, .key = key, .payload = payload};
  struct sent *sent = rig_send(rig, stream, 0, &event, 1);
  rig_wait(sent);
  if (sent->append.batch.error.code != HB_OK) {
    fail_msg("append: %s", sent->append.batch.error.message);
  }
  int outcome = sent->append.batch.decisions[0].outcome;
  rig_free(sent);
  return outcome;
}

struct sent *rig_send_range(struct rig *rig, struct hb_stream *stream, uint64_t call, int64_t from,
                            int64_t to, int keys) {
  size_t count = (size_t)(to - from);
  struct ev *events = hb_calloc(count, sizeof *events);
  char(*names)[16] = hb_calloc(count, sizeof *names);
  for (size_t i = 0; i < count; i++) {
    (void)snprintf(names[i], sizeof names[i], "k%d", (int)((from + (int64_t)i) % keys));
    events[i] = (struct ev){.sequence = from + (int64_t)i, .key = names[i]};
  }
  struct sent *sent = rig_send(rig, stream, call, events, count);
  free(names);
  free(events);
  return sent;
}

/* ---- jobs and reads */

struct done {
  struct rig *rig;
  bool done;
};

static void set_done(struct done *done) {
  pthread_mutex_lock(&done->rig->mutex);
  done->done = true;
  pthread_cond_broadcast(&done->rig->changed);
  pthread_mutex_unlock(&done->rig->mutex);
}

static void wait_done(struct done *done) {
  pthread_mutex_lock(&done->rig->mutex);
  while (!done->done) pthread_cond_wait(&done->rig->changed, &done->rig->mutex);
  pthread_mutex_unlock(&done->rig->mutex);
}

static void job_done(struct hb_job *job) { set_done(job->context); }
static void read_done(struct hb_read *read) { set_done(read->context); }

enum hb_code rig_job(struct rig *rig, struct hb_job *job) {
  struct done done = {.rig = rig};
  job->done = job_done;
  job->context = &done;
  hb_engine_submit_job(rig->engine, job);
  wait_done(&done);
  return job->error.code;
}

struct hb_stream *rig_stream(struct rig *rig, const char *name) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 1}};
  (void)snprintf(job.config.name, sizeof job.config.name, "%s", name);
  if (rig_job(rig, &job) != HB_OK) fail_msg("create: %s", job.error.message);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, name);
  assert_non_null(stream);
  return stream;
}

enum hb_code rig_delete(struct rig *rig, const char *name) {
  struct hb_job job = {.kind = HB_JOB_DELETE_STREAM};
  (void)snprintf(job.config.name, sizeof job.config.name, "%s", name);
  return rig_job(rig, &job);
}

enum hb_code rig_read(struct rig *rig, struct hb_read *read) {
  struct done done = {.rig = rig};
  read->done = read_done;
  read->context = &done;
  hb_engine_read(rig->engine, read);
  wait_done(&done);
  return read->error.code;
}

/* ---- looking */

static void watch_changed(struct hb_watch *watch) {
  struct rig *rig = watch->context;
  pthread_mutex_lock(&rig->mutex);
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

void rig_until(struct rig *rig, struct hb_stream *stream, rig_condition *condition,
               int64_t number) {
  struct hb_watch watch = {.changed = watch_changed, .context = rig};
  hb_watch_start(&watch, stream);
  for (;;) {
    struct hb_stream_status status;
    pthread_mutex_lock(&rig->mutex);
    hb_stream_get_status(stream, &status);
    bool passed = condition(&status, number);
    /* The watch's callback takes this lock, so it can't come between the look and the wait. */
    if (!passed && !hb_watch_arm(&watch)) pthread_cond_wait(&rig->changed, &rig->mutex);
    pthread_mutex_unlock(&rig->mutex);
    if (passed) break;
  }
  hb_watch_stop(&watch);
}

bool rig_frontier_at_least(const struct hb_stream_status *status, int64_t number) {
  return status->record.frozen && status->record.frontier >= number;
}

bool rig_indexed_at_least(const struct hb_stream_status *status, int64_t number) {
  return status->record.frozen && status->indexed_to >= number;
}

/* Makes the sequencer turn, and look; what a look before this call began is done when it returns.
 */
static void turn_once(struct rig *rig) {
  struct hb_job job = {.kind = HB_JOB_DELETE_STREAM, .config = {.name = "no-such-stream"}};
  (void)rig_job(rig, &job);
}

void rig_until_disk(struct rig *rig, enum hb_disk_state state) {
  uint64_t until_ms = hb_clock_mono_ms() + 20000;
  do {
    assert_true(hb_clock_mono_ms() < until_ms);
    turn_once(rig);
  } while (atomic_load(&rig->engine->disk.state) != state);
  turn_once(rig);
}

static void check_block(struct hb_bytes *bytes, int64_t *position, int64_t *count) {
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
  assert_true(block.from <= *position && *position < block.to);
  for (uint32_t i = hb_block_find(&block, *position); i < block.count; i++) {
    assert_int_equal(hb_block_sequence(&block, i), *position);
    *position += 1;
    *count += 1;
  }
  *position = block.to;
}

int64_t rig_check_log(struct rig *rig, struct hb_stream *stream, int64_t position) {
  int64_t count = 0;
  for (;;) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = stream, .position = position, .bytes_max = 1 << 20};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    bool any = read.blocks_count > 0;
    for (uint32_t i = 0; i < read.blocks_count; i++) check_block(read.blocks[i], &position, &count);
    hb_read_done(&read);
    if (!any) return count;
  }
}

static uint64_t folder_bytes; /* nftw has no context */

static int add_one(const char *path, const struct stat *stat, int flag, struct FTW *ftw) {
  (void)path;
  (void)ftw;
  if (flag == FTW_F) folder_bytes += (uint64_t)stat->st_size;
  return 0;
}

uint64_t rig_folder_bytes(const struct rig *rig) {
  folder_bytes = 0;
  (void)nftw(rig->path, add_one, 16, FTW_PHYS);
  return folder_bytes;
}
