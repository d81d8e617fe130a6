/* Decides what the engine is put through, and when it counts as told: an answer when its callback
 * is called, a number when it is published. Besides the input there is a stream that lives briefly,
 * again and again: `brief`, whose events say which life they belong to. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "server/engine/testing.h"
#include "tests/faults/run_internal.h"

enum { BRIEF_EVERY = 6, ROOM_SECONDS = 2, PATIENCE_SECONDS = 1, STUCK_SECONDS = 20 };

/* The PER_KEY stream is left to the other subject. */
enum { ENGINE_STREAMS = HB_INPUT_KEYED };

static const char *const NAMES[ENGINE_STREAMS] = {"durable", "async"};

struct worker {
  const struct hb_input *input;
  struct hb_told *told;
  struct rig rig;
  struct hb_stream *streams[ENGINE_STREAMS];
  int64_t delivered[ENGINE_STREAMS];
};

/* Small, so that a short run has many blocks, bundles, index files, and releases that go on. */
static void tune(struct rig *rig, uint64_t seed) {
  rig->limits.wal_bytes_max = 96 << 10;
  rig->async_sync_ms = 3;
  rig->tuning.core = (struct hb_ordering_options){.release_stream_bytes = 16 << 10,
                                                  .release_bytes = 16 << 10,
                                                  .block_bytes = 4 << 10,
                                                  .bundle_bytes = 4 << 10};
  rig->tuning.index_entries = 60;
  rig->tuning.index_file_entries = 24;
  rig->tuning.index_idle_ms = 2;
  rig->tuning.index_nap_ms = 1;
  rig->tuning.index_retry_ms = 5;
  rig->tuning.save_ms = 50;
  if (seed % 2 == 0) rig->tuning.fly_bytes = UINT32_MAX; /* every write by the sequencer itself */
}

/* As main does: the process ends. */
static void on_fatal(void *context, const struct hb_err *err) {
  hb_run_stopped(context, err->code, err);
  _exit(0);
}

static enum hb_code open_engine(struct worker *worker, const char *path, struct hb_err *err) {
  rig_init_at(&worker->rig, path);
  tune(&worker->rig, worker->input->seed);
  struct hb_engine_options options = {.data_dir = worker->rig.path,
                                      .limits = worker->rig.limits,
                                      .async_sync_ms = worker->rig.async_sync_ms,
                                      .on_fatal = on_fatal,
                                      .context = worker->told};
  return hb_engine_open_tuned(&options, &worker->rig.tuning, &worker->rig.engine, err);
}

static void close_engine(struct worker *worker) {
  for (int i = 0; i < ENGINE_STREAMS; i++) hb_stream_unref(worker->streams[i]);
  rig_close(&worker->rig);
}

/* ---- a disk that is full for a moment */

static void wake(struct rig *rig) {
  pthread_mutex_lock(&rig->mutex);
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

static void ingest_changed(void *context) { wake(context); }
static void watch_changed(struct hb_watch *watch) { wake(watch->context); }

static struct timespec in_seconds(time_t seconds) {
  struct timespec until;
  timespec_get(&until, TIME_UTC);
  until.tv_sec += seconds;
  return until;
}

/* Ends the run where it stays full. */
static void wait_for_room(struct worker *worker, const struct hb_err *err) {
  struct rig *rig = &worker->rig;
  struct timespec until = in_seconds(ROOM_SECONDS);
  hb_engine_on_ingest(rig->engine, ingest_changed, rig);
  pthread_mutex_lock(&rig->mutex);
  int code = 0;
  while (!hb_engine_is_ingesting(rig->engine) && code != ETIMEDOUT) {
    code = pthread_cond_timedwait(&rig->changed, &rig->mutex, &until);
  }
  pthread_mutex_unlock(&rig->mutex);
  hb_engine_on_ingest(rig->engine, NULL, NULL);
  if (hb_engine_is_ingesting(rig->engine)) return;
  hb_run_stopped(worker->told, HB_NO_SPACE, err);
  _exit(0);
}

/* rig_until, for a while. */
static bool until(struct worker *worker, struct hb_stream *stream, rig_condition *condition,
                  int64_t number) {
  struct rig *rig = &worker->rig;
  struct hb_stream_status status;
  struct hb_watch watch = {.changed = watch_changed, .context = rig};
  struct timespec deadline = in_seconds(PATIENCE_SECONDS);
  bool passed = false;
  hb_watch_start(&watch, stream);
  for (int code = 0; !passed && code != ETIMEDOUT;) {
    pthread_mutex_lock(&rig->mutex);
    hb_stream_get_status(stream, &status);
    passed = condition(&status, number);
    if (!passed && !hb_watch_arm(&watch)) {
      code = pthread_cond_timedwait(&rig->changed, &rig->mutex, &deadline);
    }
    pthread_mutex_unlock(&rig->mutex);
  }
  hb_watch_stop(&watch);
  return passed;
}

/* Ends the run where it is stuck, or the disk stays full. */
static void must_reach(struct worker *worker, struct hb_stream *stream, rig_condition *condition,
                       int64_t number) {
  struct hb_err err = {0};
  for (int tries = 0; !until(worker, stream, condition, number); tries++) {
    if (tries == STUCK_SECONDS / PATIENCE_SECONDS) {
      hb_run_wrong(worker->told, "%s does not get to %" PRId64, stream->name, number);
    }
    wait_for_room(worker, &err); /* returns at once where the disk is not full */
  }
}

/* ---- appending */

struct sending {
  struct hb_append append; /* first */
  struct worker *worker;
  struct hb_test_batch *batch;
  uint32_t number; /* of the input's batch; of `brief`: of its life */
  uint32_t stream; /* ENGINE_STREAMS: `brief` */
  bool answered;   /* protected by the rig's mutex */
};

static void take_outcomes(const struct sending *sending) {
  const struct hb_batch *batch = &sending->append.batch;
  struct hb_told *told = sending->worker->told;
  for (uint32_t i = 0; i < batch->count; i++) {
    uint8_t outcome = batch->decisions[i].outcome;
    if (outcome == HB_OUTCOME_STORED || outcome == HB_OUTCOME_DUPLICATE) continue;
    hb_run_wrong(told, "stream %u, sequence %" PRId64 ": outcome %d", sending->stream + 1,
                 batch->events[i].sequence, outcome);
  }
  if (sending->stream == ENGINE_STREAMS) {
    told->brief.filled = sending->number;
  } else {
    told->streams[sending->stream].acked[sending->number] = true;
  }
}

static void answered(struct hb_append *append) {
  struct sending *sending = (struct sending *)append;
  struct rig *rig = &sending->worker->rig;
  if (!append->batch.error.code) take_outcomes(sending);
  pthread_mutex_lock(&rig->mutex);
  sending->answered = true;
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

static struct sending *send(struct worker *worker, uint32_t stream, uint32_t number,
                            struct hb_stream *target, const struct hb_test_event *events) {
  struct sending *sending = hb_calloc(1, sizeof *sending);
  sending->worker = worker;
  sending->stream = stream;
  sending->number = number;
  sending->batch = hb_test_batch_create(stream + 1, stream + 1, events, HB_INPUT_PER_BATCH);
  sending->append.batch = sending->batch->batch;
  sending->append.target = target;
  sending->append.answered = answered;
  if (!hb_engine_try_append(worker->rig.engine, &sending->append)) {
    hb_run_wrong(worker->told, "no room for a batch");
  }
  return sending;
}

/* False: it has to be sent again. */
static bool wait_and_free(struct worker *worker, struct sending *sending) {
  struct rig *rig = &worker->rig;
  pthread_mutex_lock(&rig->mutex);
  while (!sending->answered) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
  struct hb_err err = sending->append.batch.error;
  hb_test_batch_destroy(sending->batch);
  free(sending);
  if (err.code) wait_for_room(worker, &err);
  return err.code == HB_OK;
}

static void send_batch(struct worker *worker, uint32_t number) {
  struct hb_test_event events[HB_INPUT_PER_BATCH];
  bool done[ENGINE_STREAMS] = {false};
  while (!done[0] || !done[1]) {
    struct sending *sent[ENGINE_STREAMS] = {NULL};
    for (uint32_t i = 0; i < ENGINE_STREAMS; i++) {
      if (done[i]) continue;
      hb_input_events(worker->input, i, number, events);
      worker->told->streams[i].begun[number] = true;
      sent[i] = send(worker, i, number, worker->streams[i], events);
    }
    for (uint32_t i = 0; i < ENGINE_STREAMS; i++) {
      if (sent[i]) done[i] = wait_and_free(worker, sent[i]);
    }
  }
}

/* ---- what is shown */

static bool is_below(const struct worker *worker, uint32_t stream, uint32_t number,
                     int64_t frontier) {
  struct hb_test_event events[HB_INPUT_PER_BATCH];
  hb_input_events(worker->input, stream, number, events);
  for (int i = 0; i < HB_INPUT_PER_BATCH; i++) {
    if (events[i].sequence >= frontier) return false;
  }
  return true;
}

static void deliver_block(struct worker *worker, uint32_t stream, struct hb_bytes *bytes) {
  struct hb_block block;
  if (hb_block_decode(hb_bytes_view(bytes), &block, NULL)) {
    hb_run_wrong(worker->told, "%s: a block that is none", NAMES[stream]);
  }
  int64_t *next = &worker->delivered[stream];
  for (uint32_t i = hb_block_find(&block, *next); i < block.count; i++) {
    if (hb_block_sequence(&block, i) != *next) {
      hb_run_wrong(worker->told, "%s: %" PRId64 " is delivered, and not %" PRId64 " (I3)",
                   NAMES[stream], hb_block_sequence(&block, i), *next);
    }
    ++*next;
  }
}

/* All that is released; the next one and no other (I3). */
static void deliver(struct worker *worker, uint32_t stream) {
  for (bool more = true; more;) {
    struct hb_read read = {.kind = HB_READ_LOG,
                           .stream = worker->streams[stream],
                           .position = worker->delivered[stream],
                           .bytes_max = 1 << 20};
    more = rig_read(&worker->rig, &read) != HB_OK;
    struct hb_err err = read.error;
    for (uint32_t i = 0; i < read.blocks_count; i++) deliver_block(worker, stream, read.blocks[i]);
    more = more || read.blocks_count > 0;
    hb_read_done(&read);
    if (err.code && err.code != HB_UNAVAILABLE) hb_run_wrong(worker->told, "read: %s", err.message);
    if (err.code) wait_for_room(worker, &err);
  }
}

/* Published numbers never go back; what is released is durable, and a reader gets it in order. */
static void look_at_published(struct worker *worker, uint32_t stream) {
  struct hb_told_stream *told = &worker->told->streams[stream];
  struct hb_stream_status status;
  hb_stream_get_status(worker->streams[stream], &status);
  if (status.record.frontier < told->frontier || status.record.complete_to < told->complete_to) {
    hb_run_wrong(worker->told, "%s: frontier or complete_to went back (I5)", NAMES[stream]);
  }
  deliver(worker, stream);
  told->complete_to = status.record.complete_to;
  told->frontier = status.record.frontier;
  if (worker->delivered[stream] > told->frontier) told->frontier = worker->delivered[stream];
  if (told->complete_to < told->frontier) told->complete_to = told->frontier;
  for (uint32_t i = 0; i < HB_INPUT_BATCHES; i++) {
    if (told->acked[i] && is_below(worker, stream, i, told->frontier)) told->durable[i] = true;
  }
}

/* ---- streams */

/* A job that the disk refused is done again; `also` is what it says when it had been done. */
static void must_job(struct worker *worker, const struct hb_job *wanted, enum hb_code also) {
  for (;;) {
    struct hb_job job = *wanted;
    enum hb_code code = rig_job(&worker->rig, &job);
    if (code == HB_OK || code == also) return;
    if (code != HB_NO_SPACE && code != HB_UNAVAILABLE) {
      hb_run_wrong(worker->told, "job %d of %s: %s", (int)job.kind, job.config.name,
                   job.error.message);
    }
    wait_for_room(worker, &job.error);
  }
}

static struct hb_stream *make_stream(struct worker *worker, const char *name, enum hb_ack ack) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.mode = HB_MODE_GLOBAL, .ack = ack, .first_sequence = 0}};
  snprintf(job.config.name, sizeof job.config.name, "%s", name);
  must_job(worker, &job, HB_OK);
  struct hb_stream *stream = hb_engine_find_stream(worker->rig.engine, name);
  if (!stream) hb_run_wrong(worker->told, "%s was made and is not there", name);
  return stream;
}

static void make_streams(struct worker *worker) {
  for (int i = 0; i < ENGINE_STREAMS; i++) {
    worker->streams[i] = make_stream(worker, NAMES[i], i ? HB_ACK_ASYNC : HB_ACK_DURABLE);
    worker->told->streams[i].made = true;
  }
}

static void brief_events(const struct worker *worker, uint32_t life,
                         struct hb_test_event events[HB_INPUT_PER_BATCH]) {
  for (uint32_t i = 0; i < HB_INPUT_PER_BATCH; i++) {
    uint32_t content = hb_input_content(worker->input, 1000 + life, i);
    events[i] = (struct hb_test_event){.sequence = i, .content = content, .size = 4 + content % 99};
  }
}

static void drop_brief(struct worker *worker) {
  struct hb_told_brief *told = &worker->told->brief;
  struct hb_job job = {.kind = HB_JOB_DELETE_STREAM, .config = {.name = "brief"}};
  told->dropping = told->begun;
  must_job(worker, &job, HB_NOT_FOUND);
  told->dropped = told->begun;
}

/* Every other life is long enough for the index, and its data is gone before the next one. */
static void live_briefly(struct worker *worker) {
  struct hb_told_brief *told = &worker->told->brief;
  struct hb_test_event events[HB_INPUT_PER_BATCH];
  uint32_t life = ++told->begun;
  struct hb_stream *stream = make_stream(worker, "brief", HB_ACK_DURABLE);
  told->made = life;
  brief_events(worker, life, events);
  while (!wait_and_free(worker, send(worker, ENGINE_STREAMS, life, stream, events))) continue;
  if (life % 2) must_reach(worker, stream, rig_indexed_at_least, HB_INPUT_PER_BATCH);
  hb_stream_unref(stream);
  drop_brief(worker);
  if (life % 2) hb_engine_wait_deletions(worker->rig.engine);
}

/* ---- a run */

static void send_all(struct worker *worker) {
  struct hb_stream *left = hb_engine_find_stream(worker->rig.engine, "brief");
  if (left) drop_brief(worker);
  hb_stream_unref(left);
  make_streams(worker);
  for (uint32_t number = 0; number < HB_INPUT_BATCHES; number++) {
    send_batch(worker, number);
    for (uint32_t i = 0; i < ENGINE_STREAMS; i++) look_at_published(worker, i);
    if (number % BRIEF_EVERY == 0) live_briefly(worker);
  }
  for (uint32_t i = 0; i < ENGINE_STREAMS; i++) {
    must_reach(worker, worker->streams[i], rig_frontier_at_least, HB_INPUT_EVENTS);
    look_at_published(worker, i);
    must_reach(worker, worker->streams[i], rig_indexed_at_least, HB_INPUT_EVENTS);
  }
}

static void run_input(const struct hb_input *input, const char *path, struct hb_told *told) {
  static struct worker worker;
  struct hb_err err = {0};
  worker = (struct worker){.input = input, .told = told};
  told->streams_count = ENGINE_STREAMS;
  enum hb_code code = open_engine(&worker, path, &err);
  if (!code) {
    send_all(&worker);
    close_engine(&worker);
  }
  hb_run_stopped(told, code, &err);
}

/* ---- a look */

static void check_brief_events(struct worker *worker, struct hb_stream *stream) {
  struct hb_test_event events[HB_INPUT_PER_BATCH];
  struct hb_read read = {.kind = HB_READ_LOG, .stream = stream, .bytes_max = 1 << 20};
  brief_events(worker, worker->told->brief.begun, events);
  if (rig_read(&worker->rig, &read)) hb_run_wrong(worker->told, "brief: %s", read.error.message);
  int64_t next = 0;
  for (uint32_t i = 0; i < read.blocks_count; i++) {
    struct hb_block block;
    if (hb_block_decode(hb_bytes_view(read.blocks[i]), &block, NULL)) {
      hb_run_wrong(worker->told, "brief: a block that is none");
    }
    for (uint32_t k = 0; k < block.count; k++, next++) {
      if (hb_block_sequence(&block, k) != next || next >= HB_INPUT_PER_BATCH ||
          hb_test_frame_content(hb_block_frame(&block, k)) != events[next].content) {
        hb_run_wrong(worker->told, "brief: sequence %" PRId64 " is not of life %u", next,
                     worker->told->brief.begun);
      }
    }
  }
  hb_read_done(&read);
  if (worker->told->brief.filled == worker->told->brief.begun && next != HB_INPUT_PER_BATCH) {
    hb_run_wrong(worker->told, "brief: acknowledged events of life %u are gone (I1)",
                 worker->told->brief.begun);
  }
}

static void check_brief(struct worker *worker) {
  const struct hb_told_brief *told = &worker->told->brief;
  struct hb_stream *stream = hb_engine_find_stream(worker->rig.engine, "brief");
  if (stream && (!told->begun || told->dropped == told->begun)) {
    hb_run_wrong(worker->told, "brief: life %u was deleted and is there", told->begun);
  }
  if (!stream && told->begun && told->made == told->begun && told->dropping != told->begun) {
    hb_run_wrong(worker->told, "brief: life %u was made and is gone", told->begun);
  }
  /* Of two lives the first is gone for everyone before the second begins; what its making left half
   * done may be the second's. */
  if (stream && told->made == told->begun) check_brief_events(worker, stream);
  hb_stream_unref(stream);
}

static uint64_t look_at_stream(struct worker *worker, uint32_t i) {
  struct hb_stream *stream = hb_engine_find_stream(worker->rig.engine, NAMES[i]);
  if (!stream && worker->told->streams[i].made) {
    hb_run_wrong(worker->told, "%s was made and is gone", NAMES[i]);
  }
  if (!stream) return 0;
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  must_reach(worker, stream, rig_indexed_at_least, status.record.frontier);
  worker->streams[i] = stream;
  return stream->id;
}

/* The engine recovers, goes on with what was left half done, and ends; then the store is read. */
static void run_look(const struct hb_input *input, const char *path, struct hb_told *told) {
  static struct worker worker;
  struct hb_err err = {0};
  uint64_t ids[HB_INPUT_STREAMS] = {0};
  worker = (struct worker){.input = input, .told = told};
  enum hb_code code = open_engine(&worker, path, &err);
  if (!code) {
    check_brief(&worker);
    for (uint32_t i = 0; i < ENGINE_STREAMS; i++) ids[i] = look_at_stream(&worker, i);
    hb_engine_wait_deletions(worker.rig.engine);
    close_engine(&worker);
    struct hb_store_options options = {.path = path, .read_only = true};
    struct hb_store *store = NULL;
    code = hb_store_open(&options, &store, &err);
    if (!code) code = hb_look_at_store(input, told, store, ids, &err);
    if (!code) hb_look_verify(told, store);
    hb_store_close(store);
  }
  hb_run_stopped(told, code, &err);
}

static enum hb_end engine_run(const struct hb_input *input, const char *path,
                              struct hb_told *told) {
  return hb_run_in_child(run_input, input, path, told);
}

static enum hb_end engine_look(const struct hb_input *input, const char *path,
                               struct hb_told *told) {
  return hb_run_in_child(run_look, input, path, told);
}

const struct hb_subject hb_subject_engine = {"engine", engine_run, engine_look};
