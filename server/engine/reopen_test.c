/* A write that meets a full disk: what is told, what still works, and that all goes on in the same
 * process, with the same streams, once there is room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "server/engine/testing.h"
#include "server/engine/verify.h"

#define PLENTY (UINT64_C(1) << 40)

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  /* The write that fails should be the test's. */
  rig->tuning.index_idle_ms = rig->tuning.index_age_ms = rig->tuning.save_ms = 1000000;
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static enum hb_code put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 10);
  rig_wait(sent);
  enum hb_code code = sent->append.batch.error.code;
  rig_free(sent);
  return code;
}

/* ---- writes that fail. Seams have no context: one test at a time. */

static struct rig *failing;     /* whose disk is full afterwards; NULL: it stays as it is */
static _Atomic int writes_left; /* until one fails; negative: none does any more */

static int steps_done; /* of a verification; protected by the rig's mutex */

static bool is_its_turn(void) { return atomic_fetch_sub(&writes_left, 1) == 0; }

static enum hb_code no_space(struct hb_err *err) {
  if (failing) atomic_store(&failing->disk_free, 0);
  return hb_err_set(err, HB_NO_SPACE, NULL, "write: injected");
}

static enum hb_code fail_one(struct hb_store *store, struct hb_write *write, uint64_t commit,
                             bool sync, struct hb_err *err) {
  if (is_its_turn()) return no_space(err);
  return hb_store_write(store, write, commit, sync, err);
}

/* Written all the same: what a failed write left is not known. */
static enum hb_code write_and_fail_one(struct hb_store *store, struct hb_write *write,
                                       uint64_t commit, bool sync, struct hb_err *err) {
  bool fails = is_its_turn();
  enum hb_code code = hb_store_write(store, write, commit, sync, err);
  return code == HB_OK && fails ? no_space(err) : code;
}

static void fail_after(struct rig *rig, hb_store_write_fn *how, int writes) {
  atomic_store(&writes_left, writes);
  atomic_store(&rig->engine->store_write, how);
}

static void make_room(struct rig *rig) {
  atomic_store(&rig->disk_free, PLENTY);
  rig_until_disk(rig, HB_DISK_OK);
}

/* ---- */

static void count_change(struct hb_watch *watch) {
  atomic_fetch_add((_Atomic int *)watch->context, 1);
}

/* Everyone of the failed commit, and everyone who waits, is told that the outcome is unknown; who
 * comes later is refused. Reading goes on. With room again: the same stream, the same watch,
 * nothing lost, nothing twice (I5, I6). */
static void goes_on_when_there_is_room(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101), HB_OK);
  assert_int_equal(put_range(rig, stream, 301, 401), HB_OK);
  _Atomic int changes = 0;
  struct hb_watch watch = {.changed = count_change, .context = &changes};
  hb_watch_start(&watch, stream);
  failing = rig;
  fail_after(rig, fail_one, 0);
  struct sent *sent[8];
  for (int i = 0; i < 8; i++) {
    int64_t from = i % 2 ? 1 + 100 * i : 1; /* new ones, and ones to be compared */
    sent[i] = rig_send_range(rig, stream, 0, from, from + 100, i % 2 ? 10 : 7);
  }
  int unknown = 0;
  for (int i = 0; i < 8; i++) {
    rig_wait(sent[i]);
    enum hb_code code = sent[i]->append.batch.error.code;
    assert_true(code == HB_UNAVAILABLE || code == HB_NO_SPACE || code == HB_OK);
    /* Before the failing write only what has nothing new could be answered. */
    if (i % 2) assert_int_not_equal(code, HB_OK);
    unknown += code == HB_UNAVAILABLE;
    assert_int_equal(sent[i]->append.status.record.frontier, 101);
    rig_free(sent[i]);
  }
  assert_true(unknown > 0);
  rig_until_disk(rig, HB_DISK_LOST);
  assert_false(hb_engine_is_ingesting(rig->engine));
  assert_int_equal(put_range(rig, stream, 101, 201), HB_NO_SPACE);
  struct hb_job job = {.kind = HB_JOB_DELETE_STREAM, .config = {.name = "s"}};
  assert_int_equal(rig_job(rig, &job), HB_NO_SPACE);
  assert_int_equal(rig_check_log(rig, stream, 1), 100);
  struct hb_read held = {
      .kind = HB_READ_KEY, .stream = stream, .key = hb_slice_text("k1"), .page_size = 100};
  assert_int_equal(rig_read(rig, &held), HB_OK);
  assert_int_equal(held.entries_count, 20);
  hb_read_done(&held);
  assert_int_equal(changes, 0);
  make_room(rig);
  assert_true(hb_engine_is_ingesting(rig->engine));
  assert_int_equal(changes, 1);
  struct hb_stream *same = hb_engine_find_stream(rig->engine, "s");
  assert_ptr_equal(same, stream);
  hb_stream_unref(same);
  assert_int_equal(put_range(rig, stream, 101, 301), HB_OK);
  rig_until(rig, stream, rig_frontier_at_least, 401);
  assert_int_equal(rig_check_log(rig, stream, 1), 400);
  hb_watch_stop(&watch);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(rig_check_log(rig, stream, 1), 400);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
}

/* What a failed write left is seen when the store is opened again, whichever way it is: an append,
 * a stream that was made, one that was deleted. */
static void unknown_outcomes_are_looked_up(void **state) {
  struct rig *rig = *state;
  failing = NULL;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 2, 101), HB_OK);
  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(put_range(rig, stream, 1, 2), HB_UNAVAILABLE);
  rig_until(rig, stream, rig_frontier_at_least, 101);
  assert_int_equal(rig_put(rig, stream, 1, "k1", NULL), HB_OUTCOME_DUPLICATE);
  assert_int_equal(rig_check_log(rig, stream, 1), 100);

  fail_after(rig, write_and_fail_one, 0);
  struct hb_job create = {.kind = HB_JOB_CREATE_STREAM,
                          .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 7, .name = "new"}};
  assert_int_equal(rig_job(rig, &create), HB_UNAVAILABLE);
  make_room(rig);
  struct hb_stream *made = hb_engine_find_stream(rig->engine, "new");
  assert_non_null(made);
  assert_int_equal(rig_put(rig, made, 7, "k", NULL), HB_OUTCOME_STORED);

  fail_after(rig, write_and_fail_one, 0);
  struct hb_job update = {.kind = HB_JOB_UPDATE_STREAM,
                          .config = {.limits = {.ahead_max = 10}, .name = "new"}};
  assert_int_equal(rig_job(rig, &update), HB_UNAVAILABLE);
  make_room(rig);
  assert_int_equal(rig_put(rig, made, 100, "k", NULL), HB_OUTCOME_WINDOW_FULL);

  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(rig_delete(rig, "s"), HB_UNAVAILABLE);
  make_room(rig);
  assert_null(hb_engine_find_stream(rig->engine, "s"));
  assert_true(hb_stream_is_deleted(stream));
  hb_engine_wait_deletions(rig->engine);
  assert_int_equal(put_range(rig, stream, 101, 102), HB_NOT_FOUND);
  hb_stream_unref(stream);

  /* Not written: as if it had never been asked for. */
  fail_after(rig, fail_one, 0);
  create.config.name[0] = 'x';
  assert_int_equal(rig_job(rig, &create), HB_UNAVAILABLE);
  make_room(rig);
  assert_null(hb_engine_find_stream(rig->engine, create.config.name));
  assert_int_equal(rig_job(rig, &create), HB_OK);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(made);
}

/* ASYNC answers come before the fsync: what they answered is there after the store was opened
 * again, and is shown then, without a hole between what was shared before and after. */
static void async_answers_hold(void **state) {
  struct rig *rig = *state;
  failing = rig;
  rig->async_sync_ms = 1000000;
  rig_open(rig);
  struct hb_job job = {
      .kind = HB_JOB_CREATE_STREAM,
      .config = {.mode = HB_MODE_GLOBAL, .ack = HB_ACK_ASYNC, .first_sequence = 1, .name = "a"}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "a");
  for (int64_t i = 0; i < 10; i++) {
    assert_int_equal(put_range(rig, stream, 1 + i * 100, 101 + i * 100), HB_OK);
  }
  fail_after(rig, fail_one, 0);
  assert_int_equal(put_range(rig, stream, 1001, 1101), HB_UNAVAILABLE);
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.record.frontier, 1); /* nothing of it was fsynced (I2) */
  make_room(rig);
  rig_until(rig, stream, rig_frontier_at_least, 1001);
  assert_int_equal(rig_check_log(rig, stream, 1), 1000);
  job =
      (struct hb_job){.kind = HB_JOB_UPDATE_STREAM, .config = {.ack = HB_ACK_DURABLE, .name = "a"}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  assert_int_equal(put_range(rig, stream, 1001, 1101), HB_OK);
  assert_int_equal(rig_check_log(rig, stream, 1), 1100);
  hb_stream_unref(stream);
}

/* ---- each write of a workload fails in turn */

static void check_key(struct rig *rig, struct hb_stream *stream, const char *key, size_t count) {
  struct hb_read read = {
      .kind = HB_READ_KEY, .stream = stream, .key = hb_slice_text(key), .page_size = 1000};
  assert_int_equal(rig_read(rig, &read), HB_OK);
  assert_int_equal(read.entries_count, count);
  hb_read_done(&read);
}

/* Until it is answered well; a producer does no other. */
static void put_surely(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  for (;;) {
    enum hb_code code = put_range(rig, stream, from, to);
    if (code == HB_OK) return;
    assert_true(code == HB_UNAVAILABLE || code == HB_NO_SPACE);
    make_room(rig);
  }
}

static void run_workload(struct rig *rig, hb_store_write_fn *how, int fails_at) {
  rig_init(rig);
  rig->tuning.index_file_entries = 150;
  rig->tuning.index_idle_ms = 1;
  rig->tuning.index_nap_ms = 1;
  rig->limits.shared_blocks_max = 1 << 20;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  uint32_t peer = hb_engine_intern_peer(rig->engine, hb_slice_text("before"));
  fail_after(rig, how, fails_at);
  uint32_t other = hb_engine_intern_peer(rig->engine, hb_slice_text("after"));
  for (int64_t i = 0; i < 10; i++) {
    int64_t from = 1 + 100 * (i ^ 1); /* each second batch waits for the next */
    put_surely(rig, stream, from, from + 100);
    if (i % 3 == 2) rig_until(rig, stream, rig_indexed_at_least, 1 + 100 * (i & ~1));
  }
  make_room(rig);
  rig_until(rig, stream, rig_frontier_at_least, 1001);
  rig_until(rig, stream, rig_indexed_at_least, 1001);
  assert_int_equal(rig_check_log(rig, stream, 1), 1000);
  check_key(rig, stream, "k3", 100);
  assert_true(atomic_load(&writes_left) < 0); /* one did fail */
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(rig_check_log(rig, stream, 1), 1000);
  check_key(rig, stream, "k3", 100);
  assert_int_equal(hb_engine_intern_peer(rig->engine, hb_slice_text("before")), peer);
  assert_int_equal(hb_engine_intern_peer(rig->engine, hb_slice_text("after")), other);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
  rig_done(rig);
}

/* Whatever is on its way when the disk is full, index rows, senders, a release: all of it is there
 * in the end, whether the write that failed left something or not. */
static void every_write_fails_once(void **state) {
  enum { WRITES = 14 }; /* the workload makes a few more */
  (void)state;
  struct rig *rig = calloc(1, sizeof *rig);
  failing = NULL; /* nobody would make room while an index row is waited for */
  for (int i = 0; i < WRITES; i++) {
    run_workload(rig, i % 2 ? write_and_fail_one : fail_one, i);
  }
  free(rig);
}

/* ---- opening again fails */

static _Atomic int opens_left;

static enum hb_code open_later(const struct hb_store_options *options, struct hb_store **out,
                               struct hb_err *err) {
  if (atomic_fetch_sub(&opens_left, 1) > 0) {
    return hb_err_set(err, HB_NO_SPACE, NULL, "open: injected");
  }
  return hb_store_open(options, out, err);
}

/* Somebody takes the space between the look and the opening: readers are told to come again, and it
 * is tried again until it works. */
static void opening_is_tried_again(void **state) {
  struct rig *rig = *state;
  failing = rig;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101), HB_OK);
  atomic_store(&opens_left, 1000000);
  atomic_store(&rig->engine->store_open, open_later);
  fail_after(rig, fail_one, 0);
  assert_int_equal(put_range(rig, stream, 101, 201), HB_UNAVAILABLE);
  atomic_store(&rig->disk_free, PLENTY);
  enum hb_code code;
  do {
    struct hb_read read = {.kind = HB_READ_LOG, .stream = stream, .position = 1, .bytes_max = 1};
    code = rig_read(rig, &read);
    hb_read_done(&read);
  } while (code == HB_OK); /* the old store, until it is closed */
  assert_int_equal(code, HB_UNAVAILABLE);
  assert_int_equal(put_range(rig, stream, 101, 201), HB_UNAVAILABLE);
  atomic_store(&opens_left, 0);
  rig_until_disk(rig, HB_DISK_OK);
  assert_int_equal(put_range(rig, stream, 101, 201), HB_OK);
  assert_int_equal(rig_check_log(rig, stream, 1), 200);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
}

static enum hb_code open_damaged(const struct hb_store_options *options, struct hb_store **out,
                                 struct hb_err *err) {
  (void)options;
  (void)out;
  return hb_err_set(err, HB_CORRUPT, NULL, "open: injected");
}

/* Any other failure to open it ends the process. */
static void damage_is_fatal(void **state) {
  struct rig *rig = *state;
  failing = NULL;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  atomic_store(&rig->engine->store_open, open_damaged);
  fail_after(rig, fail_one, 0);
  assert_int_equal(put_range(rig, stream, 1, 101), HB_UNAVAILABLE);
  pthread_mutex_lock(&rig->mutex);
  while (!rig->fatal) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
  assert_int_equal(rig->fatal_err.code, HB_CORRUPT);
  assert_int_equal(put_range(rig, stream, 1, 101), HB_UNAVAILABLE);
  assert_int_equal(rig->fatal, 1);
  hb_stream_unref(stream);
}

static void shell(const char *first, const char *path, const char *then) {
  char command[512];
  (void)snprintf(command, sizeof command, "cd %s && %s && %s", path, first, then);
  assert_int_equal(system(command), 0);  // NOLINT(cert-env33-c): a test's own folder
}

static enum hb_code open_older(const struct hb_store_options *options, struct hb_store **out,
                               struct hb_err *err) {
  shell("rm -r db", options->path, "mv db.older db");
  return hb_store_open(options, out, err);
}

/* A store that has lost what was shown is not served: nothing goes back (I5). */
static void going_back_is_fatal(void **state) {
  struct rig *rig = *state;
  failing = NULL;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101), HB_OK);
  hb_stream_unref(stream);
  rig_close(rig);
  shell("mkdir ../$(basename $PWD).older", rig->path, "cp -a db ../$(basename $PWD).older/");
  rig_open(rig);
  shell("mv ../$(basename $PWD).older/db db.older", rig->path, "rmdir ../$(basename $PWD).older");
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(put_range(rig, stream, 101, 201), HB_OK);
  atomic_store(&rig->engine->store_open, open_older);
  fail_after(rig, fail_one, 0);
  assert_int_equal(put_range(rig, stream, 201, 202), HB_UNAVAILABLE);
  pthread_mutex_lock(&rig->mutex);
  while (!rig->fatal) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
  assert_int_equal(rig->fatal_err.code, HB_CORRUPT);
  assert_non_null(strstr(rig->fatal_err.message, "201"));
  hb_stream_get_status(stream, &(struct hb_stream_status){0});
  hb_stream_unref(stream);
}

/* An engine that waits for room can be stopped, and what was answered is there afterwards. */
static void stops_while_lost(void **state) {
  struct rig *rig = *state;
  failing = rig;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101), HB_OK);
  fail_after(rig, fail_one, 0);
  assert_int_equal(put_range(rig, stream, 101, 201), HB_UNAVAILABLE);
  hb_stream_unref(stream);
  rig_close(rig);
  atomic_store(&rig->disk_free, PLENTY);
  rig_open(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(rig_check_log(rig, stream, 1), 100);
  hb_stream_unref(stream);
}

/* ---- readers all the while */

struct reader {
  struct rig *rig;
  struct hb_stream *stream;
  _Atomic bool stop;
  int64_t position;
};

static void *read_on(void *context) {
  struct reader *reader = context;
  while (!atomic_load(&reader->stop)) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = reader->stream, .position = 1, .bytes_max = 1 << 20};
    assert_int_equal(rig_read(reader->rig, &read), HB_OK);
    hb_read_done(&read);
    struct hb_read key = {
        .kind = HB_READ_KEY, .stream = reader->stream, .key = hb_slice_text("k1"), .page_size = 10};
    assert_int_equal(rig_read(reader->rig, &key), HB_OK);
    hb_read_done(&key);
  }
  return NULL;
}

/* Readers never see a store that is gone: they wait a moment and go on. */
static void readers_live_through_it(void **state) {
  enum { ROUNDS = 6, READERS = 3 };
  struct rig *rig = *state;
  failing = rig;
  rig->limits.shared_blocks_max = 1 << 20;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_surely(rig, stream, 1, 1001);
  struct reader readers[READERS];
  pthread_t threads[READERS];
  for (int i = 0; i < READERS; i++) {
    readers[i] = (struct reader){.rig = rig, .stream = stream};
    assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
  }
  for (int64_t i = 0; i < ROUNDS; i++) {
    fail_after(rig, fail_one, (int)(i % 3));
    for (int64_t k = 0; k < 4; k++) {
      int64_t from = 1001 + (i * 4 + (k ^ 1)) * 100;
      put_surely(rig, stream, from, from + 100);
    }
  }
  for (int i = 0; i < READERS; i++) {
    atomic_store(&readers[i].stop, true);
    pthread_join(threads[i], NULL);
  }
  assert_int_equal(rig_check_log(rig, stream, 1), 1000 + ROUNDS * 400);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
}

/* ---- verification */

static void step_done(struct hb_verification *verification) {
  struct rig *rig = verification->context;
  pthread_mutex_lock(&rig->mutex);
  steps_done++;
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

static void step(struct rig *rig, struct hb_verification *verification) {
  int before = steps_done;
  hb_engine_verify_step(rig->engine, verification);
  pthread_mutex_lock(&rig->mutex);
  while (steps_done == before) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
}

/* A verification that is under way holds nothing of a store that is closed: it is told so, and a
 * new one looks at the store that was opened instead. */
static void a_verification_ends_with_its_store(void **state) {
  struct rig *rig = *state;
  rig->tuning.verify_step_bytes = 2000;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t from = 2; from < 1002; from += 100) {
    assert_int_equal(put_range(rig, stream, from, from + 100), HB_OK);
  }
  struct hb_verification verification = {.done = step_done, .context = rig};
  assert_int_equal(hb_engine_verify_begin(rig->engine, &verification, NULL, NULL), HB_OK);
  step(rig, &verification);
  assert_int_equal(verification.error.code, HB_OK);
  assert_int_equal(verification.counts.bundles, 1); /* amid what is held: a view is open */
  failing = rig;
  fail_after(rig, fail_one, 0);
  assert_int_not_equal(put_range(rig, stream, 60000, 60010), HB_OK);
  make_room(rig);
  step(rig, &verification);
  assert_int_equal(verification.error.code, HB_UNAVAILABLE);
  assert_string_equal(verification.error.reason, "STORE_REOPENED");
  hb_engine_verify_end(rig->engine, &verification);
  verification.done = step_done;
  verification.context = rig;
  assert_int_equal(hb_engine_verify_begin(rig->engine, &verification, stream, NULL), HB_OK);
  while (!verification.finished) step(rig, &verification);
  assert_int_equal(verification.error.code, HB_OK);
  assert_int_equal(verification.counts.findings, 0);
  assert_int_equal(verification.counts.held_events, 1000);
  hb_engine_verify_end(rig->engine, &verification);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(goes_on_when_there_is_room, setup, teardown),
      cmocka_unit_test_setup_teardown(a_verification_ends_with_its_store, setup, teardown),
      cmocka_unit_test_setup_teardown(unknown_outcomes_are_looked_up, setup, teardown),
      cmocka_unit_test_setup_teardown(async_answers_hold, setup, teardown),
      cmocka_unit_test(every_write_fails_once),
      cmocka_unit_test_setup_teardown(opening_is_tried_again, setup, teardown),
      cmocka_unit_test_setup_teardown(damage_is_fatal, setup, teardown),
      cmocka_unit_test_setup_teardown(going_back_is_fatal, setup, teardown),
      cmocka_unit_test_setup_teardown(stops_while_lost, setup, teardown),
      cmocka_unit_test_setup_teardown(readers_live_through_it, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
