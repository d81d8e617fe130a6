/* Verification beside the traffic, on a real store: sound while it is written, damage told, one at
 * a time, ended by a stop. And what damage in one stream means for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/frame/block.h"
#include "server/engine/processors.h"
#include "server/engine/stream_internal.h"
#include "server/engine/testing.h"
#include "server/engine/testing_burst.h"
#include "server/engine/verify.h"
#include "storage/engine_internal.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/store_internal.h"

struct run {
  struct hb_verification verification;
  struct rig *rig;
  bool back; /* protected by rig->mutex */
  size_t findings;
  char first[HB_FINDING_LINE_SIZE];
};

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static void step_done(struct hb_verification *verification) {
  struct run *run = verification->context;
  pthread_mutex_lock(&run->rig->mutex);
  run->back = true;
  pthread_cond_broadcast(&run->rig->changed);
  pthread_mutex_unlock(&run->rig->mutex);
}

static enum hb_code begin(struct rig *rig, struct run *run, const struct hb_stream *stream) {
  struct hb_err err;
  *run = (struct run){.rig = rig};
  run->verification.done = step_done;
  run->verification.context = run;
  return hb_engine_verify_begin(rig->engine, &run->verification, stream, &err);
}

static void step(struct run *run) {
  run->back = false;
  hb_engine_verify_step(run->rig->engine, &run->verification);
  pthread_mutex_lock(&run->rig->mutex);
  while (!run->back) pthread_cond_wait(&run->rig->changed, &run->rig->mutex);
  pthread_mutex_unlock(&run->rig->mutex);
  for (size_t i = 0; i < run->verification.findings_count; i++) {
    if (!run->findings++) hb_finding_line(&run->verification.findings[i], run->first);
  }
}

/* Findings; `run` keeps counts and the first. */
static size_t verify(struct rig *rig, struct run *run, const struct hb_stream *stream) {
  assert_int_equal(begin(rig, run, stream), HB_OK);
  do step(run);
  while (!run->verification.finished && !run->verification.error.code);
  assert_int_equal(run->verification.error.code, HB_OK);
  assert_int_equal(run->verification.counts.findings, run->findings);
  struct hb_verify_counts counts = run->verification.counts;
  hb_engine_verify_end(rig->engine, &run->verification);
  run->verification.counts = counts;
  return run->findings;
}

static void put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 7);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  rig_free(sent);
}

static void processor_job(struct rig *rig, enum hb_job_kind kind, const char *stream,
                          const char *processor) {
  struct hb_processor_request request = {.key_status = HB_KEY_STATUS_EVERY_EVENT};
  (void)snprintf(request.name, sizeof request.name, "%s", processor);
  (void)snprintf(request.processor, sizeof request.processor, "%s", processor);
  struct hb_job job = {.kind = kind, .processor = &request};
  (void)snprintf(job.config.name, sizeof job.config.name, "%s", stream);
  assert_int_equal(rig_job(rig, &job), HB_OK);
}

static void attach(struct rig *rig, const char *stream, const char *processor) {
  processor_job(rig, HB_JOB_ATTACH_PROCESSOR, stream, processor);
}

static void drop(struct rig *rig, const char *stream, const char *processor) {
  processor_job(rig, HB_JOB_DETACH_PROCESSOR, stream, processor);
}

static void wait_results(struct rig *rig, struct hb_stream *stream, const char *processor,
                         int64_t count) {
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, processor);
  rig_until(rig, results, rig_frontier_at_least, count);
  hb_stream_unref(results);
}

/* Whatever a server writes in the normal course is sound: released, held behind gaps, indexed as a
 * file and as rows, refused, processed, and streams and processors deleted. */
static void what_the_server_writes_is_sound(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_file_entries = 100;
  rig->tuning.index_idle_ms = 1;
  rig->tuning.index_age_ms = 1;
  rig->tuning.index_nap_ms = 1;
  rig->tuning.find_processor = burst_find;
  rig_open(rig);
  struct hb_stream *one = rig_stream(rig, "one");
  struct hb_stream *two = rig_stream(rig, "two");
  struct hb_stream *gone = rig_stream(rig, "gone");
  put_range(rig, one, 1, 1001);
  put_range(rig, one, 1010, 1100);
  put_range(rig, one, 1200, 1300);
  put_range(rig, two, 1, 20);
  put_range(rig, gone, 1, 100);
  assert_int_equal(rig_put(rig, one, 5, "k5", "another"), HB_OUTCOME_CONFLICT);
  attach(rig, "one", "burst"); /* some events fail */
  attach(rig, "one", "count");
  attach(rig, "two", "sum"); /* all of them fail */
  wait_results(rig, one, "burst", 1000);
  wait_results(rig, one, "count", 1000);
  drop(rig, "one", "count");
  assert_int_equal(rig_delete(rig, "gone"), HB_OK);
  rig_until(rig, one, rig_indexed_at_least, 1001);
  rig_until(rig, two, rig_indexed_at_least, 20);
  hb_engine_wait_deletions(rig->engine);
  struct run run;
  size_t findings = verify(rig, &run, NULL);
  if (findings) fail_msg("%s", run.first);
  assert_int_equal(run.verification.counts.events, 1019);
  assert_int_equal(run.verification.counts.held_events, 190);
  assert_int_equal(run.verification.counts.index_entries, 1019);
  findings = verify(rig, &run, two);
  assert_int_equal(findings, 0);
  assert_int_equal(run.verification.counts.events, 19);
  hb_stream_unref(one);
  hb_stream_unref(two);
  hb_stream_unref(gone);
}

/* Batches that come between and during its steps change nothing. */
static void traffic_meanwhile_is_no_damage(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_file_entries = 50;
  rig->tuning.index_idle_ms = 1;
  rig->tuning.index_nap_ms = 1;
  rig->tuning.find_processor = burst_find;
  rig->tuning.processing.results = 20;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 2001);
  attach(rig, "s", "burst");
  int64_t next = 2001;
  for (int round = 0; round < 5; round++) {
    struct run run;
    attach(rig, "s", "count");
    assert_int_equal(begin(rig, &run, NULL), HB_OK);
    while (!run.verification.finished) {
      struct sent *held = rig_send_range(rig, stream, 1, next + 50, next + 100, 7);
      struct sent *rest = rig_send_range(rig, stream, 2, next, next + 50, 7);
      next += 100;
      step(&run);
      rig_wait(held);
      rig_wait(rest);
      rig_free(held);
      rig_free(rest);
      if (run.verification.counts.rows % 3 == 0) { /* while its rows are looked at, or before */
        drop(rig, "s", "count");
        attach(rig, "s", "count");
      }
    }
    drop(rig, "s", "count");
    if (run.findings) fail_msg("%s", run.first);
    hb_engine_verify_end(rig->engine, &run.verification);
  }
  hb_stream_unref(stream);
}

/* One at a time, and a new one after the end of the one before. */
static void one_at_a_time(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct run first;
  struct run second;
  assert_int_equal(begin(rig, &first, NULL), HB_OK);
  assert_int_equal(begin(rig, &second, NULL), HB_LIMIT);
  hb_engine_verify_end(rig->engine, &second.verification); /* it did not begin: allowed */
  assert_int_equal(begin(rig, &second, NULL), HB_LIMIT);
  hb_engine_verify_end(rig->engine, &first.verification);
  assert_int_equal(begin(rig, &second, NULL), HB_OK);
  hb_engine_verify_end(rig->engine, &second.verification);
}

/* After a stop a step ends at once, UNAVAILABLE. */
static void a_stopped_engine_ends_it(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct run run;
  assert_int_equal(begin(rig, &run, NULL), HB_OK);
  hb_engine_stop(rig->engine);
  step(&run);
  assert_int_equal(run.verification.error.code, HB_UNAVAILABLE);
  hb_engine_verify_end(rig->engine, &run.verification);
}

/* ---- damage in one stream */

/* A block with a wrong byte in the place of the one at `position`, written past the server. */
static void damage_block(struct rig *rig, uint64_t stream, int64_t position) {
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  assert_int_equal(hb_log_reader_open(rig->engine->store, stream, position, &reader, NULL), HB_OK);
  assert_int_equal(hb_log_reader_next(reader, &bytes, NULL), HB_OK);
  hb_log_reader_close(reader);
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
  uint8_t *copy = malloc(bytes->size);
  memcpy(copy, bytes->data, bytes->size);
  copy[bytes->size / 2] ^= 1;
  struct hb_key key = hb_key_position(stream, block.from);
  struct hb_batch_writer *batch = hb_rocks_batch_create(rig->engine->store->engine);
  hb_rocks_put(batch, HB_FAMILY_LOG, hb_key_view(&key), hb_slice_of(copy, bytes->size));
  assert_int_equal(hb_rocks_write(rig->engine->store->engine, batch, true, NULL), HB_OK);
  hb_rocks_batch_destroy(batch);
  hb_bytes_unref(bytes);
  free(copy);
}

static enum hb_code read_at(struct rig *rig, struct hb_stream *stream, int64_t position,
                            char *message) {
  struct hb_read read = {
      .kind = HB_READ_LOG, .stream = stream, .position = position, .bytes_max = 1 << 20};
  enum hb_code code = rig_read(rig, &read);
  if (message) strcpy(message, read.error.message);
  hb_read_done(&read);
  return code;
}

/* A damaged block is told to who reads it, with stream and position; the stream itself goes on, and
 * so do the others: reading, appending, and their indexes, after a restart too. */
static void damage_in_one_stream_is_its_own(void **state) {
  struct rig *rig = *state;
  rig->limits.shared_blocks_max = 1 << 20;
  rig->tuning.index_idle_ms = 3600000; /* nothing is indexed before the damage */
  rig->tuning.index_age_ms = 3600000;
  rig_open(rig);
  struct hb_stream *bad = rig_stream(rig, "bad");
  struct hb_stream *good = rig_stream(rig, "good");
  for (int64_t from = 1; from < 301; from += 100) put_range(rig, bad, from, from + 100);
  put_range(rig, good, 1, 101);
  damage_block(rig, bad->id, 150);
  hb_stream_unref(bad);
  hb_stream_unref(good);
  rig->tuning.index_idle_ms = rig->tuning.index_age_ms = rig->tuning.index_nap_ms = 1;
  rig_reopen(rig);
  bad = hb_engine_find_stream(rig->engine, "bad");
  good = hb_engine_find_stream(rig->engine, "good");
  char message[HB_ERR_MESSAGE_SIZE];
  assert_int_equal(read_at(rig, bad, 1, NULL), HB_OK);
  assert_int_equal(read_at(rig, bad, 101, message), HB_CORRUPT);
  assert_non_null(strstr(message, "stream 'bad'"));
  assert_non_null(strstr(message, "position 101"));
  assert_int_equal(read_at(rig, bad, 201, NULL), HB_OK);
  for (int64_t next = 101; next < 1101; next += 100) {
    put_range(rig, good, next, next + 100);
    put_range(rig, bad, next + 200, next + 300);
    rig_until(rig, good, rig_indexed_at_least, next + 100);
  }
  struct run run;
  assert_true(verify(rig, &run, NULL) == 1);
  assert_non_null(strstr(run.first, "stream 'bad' (id "));
  assert_non_null(strstr(run.first, "log [101, 201): block: checksum"));
  /* One key's list meets it as well; the other stream's does not. */
  struct hb_read read = {
      .kind = HB_READ_KEY, .stream = bad, .key = hb_slice_text("k1"), .page_size = 1000};
  assert_int_equal(rig_read(rig, &read), HB_CORRUPT);
  assert_non_null(strstr(read.error.message, "stream 'bad'"));
  hb_read_done(&read);
  struct hb_read other = {
      .kind = HB_READ_KEY, .stream = good, .key = hb_slice_text("k1"), .page_size = 1000};
  assert_int_equal(rig_read(rig, &other), HB_OK);
  hb_read_done(&other);
  hb_stream_unref(bad);
  hb_stream_unref(good);
}

static bool is_damaged(struct hb_stream *stream, struct hb_err *err) {
  return hb_stream_get_damage(stream, err);
}

/* A bundle that is spilled and damaged on disk stops the release of its stream there: who waits is
 * told, and no event is passed over. Another stream goes on. */
static void a_damaged_bundle_stops_its_stream(void **state) {
  struct rig *rig = *state;
  rig->limits.held_memory_max = 1; /* nothing stays in memory */
  rig->tuning.tick_ms = 10;
  rig_open(rig);
  struct hb_stream *bad = rig_stream(rig, "bad");
  struct hb_stream *good = rig_stream(rig, "good");
  put_range(rig, bad, 2, 102);
  struct hb_rocks *store = rig->engine->store->engine;
  struct hb_rocks_iter *iter = hb_store_iter(rig->engine->store, HB_FAMILY_HELD, bad->id);
  hb_rocks_iter_first(iter);
  assert_true(hb_rocks_iter_valid(iter));
  struct hb_batch_writer *batch = hb_rocks_batch_create(store);
  hb_rocks_put(batch, HB_FAMILY_HELD, hb_rocks_iter_key(iter), hb_slice_text("junk"));
  assert_int_equal(hb_rocks_write(store, batch, true, NULL), HB_OK);
  hb_rocks_batch_destroy(batch);
  hb_rocks_iter_destroy(iter);
  put_range(rig, bad, 1, 2);
  struct hb_err err = {0};
  uint64_t until = hb_clock_mono_ms() + 20000;
  do { /* what can't be read is tried again with each commit */
    assert_true(rig_put(rig, good, 1, "k", "x") > 0);
  } while (!is_damaged(bad, &err) && hb_clock_mono_ms() < until);
  assert_int_equal(err.code, HB_CORRUPT);
  assert_non_null(strstr(err.message, "stream 'bad': the event at position 2 is held"));
  put_range(rig, good, 2, 100);
  rig_until(rig, good, rig_frontier_at_least, 100);
  assert_false(is_damaged(good, &err));
  hb_stream_unref(bad);
  hb_stream_unref(good);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(what_the_server_writes_is_sound),
      TEST(traffic_meanwhile_is_no_damage),
      TEST(one_at_a_time),
      TEST(a_stopped_engine_ends_it),
      TEST(damage_in_one_stream_is_its_own),
      TEST(a_damaged_bundle_stops_its_stream),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
