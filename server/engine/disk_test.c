/* What is taken and what is refused with so much of the disk free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/engine/testing.h"

#define MIB (UINT64_C(1) << 20)

/* By default: 64 MiB + wal_bytes_max, and 64 MiB more. */
#define FLOOR (320 * MIB)
#define RESERVE (384 * MIB)
#define PLENTY (1024 * MIB)

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  atomic_store(&rig->disk_free, PLENTY);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static void set_free(struct rig *rig, uint64_t bytes, enum hb_disk_state state) {
  atomic_store(&rig->disk_free, bytes);
  rig_until_disk(rig, state);
}

static struct hb_err put_range(struct rig *rig, struct hb_stream *stream, int64_t from,
                               int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 10);
  rig_wait(sent);
  struct hb_err err = sent->append.batch.error;
  rig_free(sent);
  return err;
}

/* Outcome and reason of one event. */
static void check_put(struct rig *rig, struct hb_stream *stream, int64_t sequence,
                      enum hb_outcome outcome, enum hb_reason reason) {
  struct ev event = {.sequence = sequence, .key = "k"};
  struct sent *sent = rig_send(rig, stream, 0, &event, 1);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  assert_int_equal(sent->append.batch.decisions[0].outcome, outcome);
  assert_int_equal(sent->append.batch.decisions[0].reason, reason);
  rig_free(sent);
}

/* Below the reserve what would have to wait is refused; what is released at once is taken, and what
 * was held comes out. */
static void reserve_refuses_held(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  check_put(rig, stream, 5, HB_OUTCOME_STORED, HB_REASON_NONE);
  set_free(rig, RESERVE - 1, HB_DISK_RESERVE);
  assert_true(hb_engine_is_ingesting(rig->engine));
  check_put(rig, stream, 6, HB_OUTCOME_WINDOW_FULL, HB_REASON_DISK_RESERVE);
  check_put(rig, stream, 5, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  check_put(rig, stream, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_int_equal(put_range(rig, stream, 2, 5).code, HB_OK);
  rig_until(rig, stream, rig_frontier_at_least, 6);
  assert_int_equal(rig_check_log(rig, stream, 1), 5);
  set_free(rig, PLENTY, HB_DISK_OK);
  check_put(rig, stream, 7, HB_OUTCOME_STORED, HB_REASON_NONE);
  check_put(rig, stream, 6, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_int_equal(rig_check_log(rig, stream, 1), 7);
  hb_stream_unref(stream);
}

/* The reserve grows by twice what is held, over all streams, and shrinks when it is released or
 * its stream deleted. */
static void reserve_counts_held(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_stream *other = rig_stream(rig, "other");
  char *payload = hb_alloc(1000001);
  memset(payload, 'p', 1000000);
  payload[1000000] = 0;
  for (int64_t i = 2; i < 6; i++) {
    assert_int_equal(rig_put(rig, stream, i, "k", payload), HB_OUTCOME_STORED);
    assert_int_equal(rig_put(rig, other, i, "k", payload), HB_OUTCOME_STORED);
  }
  assert_true(rig->engine->disk.held >= 8000000 && rig->engine->disk.held < 8100000);
  set_free(rig, RESERVE + 15000000, HB_DISK_RESERVE);
  set_free(rig, RESERVE + 40000000, HB_DISK_OK);
  set_free(rig, RESERVE + 15000000, HB_DISK_RESERVE);
  check_put(rig, stream, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  rig_until(rig, stream, rig_frontier_at_least, 6);
  assert_int_equal(rig_delete(rig, "other"), HB_OK);
  assert_int_equal(rig->engine->disk.held, 0);
  /* A sixteenth more than where it was entered: enough to leave. */
  set_free(rig, RESERVE + 16 * MIB, HB_DISK_OK);
  set_free(rig, RESERVE + 1, HB_DISK_OK);
  free(payload);
  hb_stream_unref(other);
  hb_stream_unref(stream);
}

/* A reserve that is set above the floor's holds as it is. */
static void reserve_is_settable(void **state) {
  struct rig *rig = *state;
  rig->limits.disk_reserve = 900 * MIB;
  rig->limits.wal_bytes_max = 8 * MIB;
  rig_open(rig);
  set_free(rig, 900 * MIB - 1, HB_DISK_RESERVE);
  set_free(rig, 72 * MIB, HB_DISK_RESERVE);
  set_free(rig, 72 * MIB - 1, HB_DISK_FLOOR);
}

static void count_call(void *context) { atomic_fetch_add((_Atomic int *)context, 1); }

/* Below the floor nothing is written and the refusal says why; reading goes on; with more room all
 * goes on by itself, also after a restart down there. */
static void floor_stops_writes(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  _Atomic int changes = 0;
  hb_engine_on_ingest(rig->engine, count_call, &changes);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101).code, HB_OK);
  check_put(rig, stream, 150, HB_OUTCOME_STORED, HB_REASON_NONE);
  set_free(rig, FLOOR - 1, HB_DISK_FLOOR);
  assert_false(hb_engine_is_ingesting(rig->engine));
  assert_int_equal(changes, 1);
  struct hb_err err = put_range(rig, stream, 101, 102);
  assert_int_equal(err.code, HB_NO_SPACE);
  assert_string_equal(err.reason, "DISK_FLOOR");
  assert_non_null(strstr(err.message, rig->path));
  assert_non_null(strstr(err.message, "335544319 bytes are free"));
  assert_non_null(strstr(err.message, "writing needs 335544320"));
  struct hb_job create = {.kind = HB_JOB_CREATE_STREAM,
                          .config = {.mode = HB_MODE_GLOBAL, .name = "new"}};
  assert_int_equal(rig_job(rig, &create), HB_NO_SPACE);
  struct hb_job again = {.kind = HB_JOB_CREATE_STREAM,
                         .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 1, .name = "s"}};
  assert_int_equal(rig_job(rig, &again), HB_OK); /* it asks for nothing new */
  struct hb_job update = {.kind = HB_JOB_UPDATE_STREAM, .config = {.name = "s"}};
  assert_int_equal(rig_job(rig, &update), HB_NO_SPACE);
  assert_int_equal(rig_check_log(rig, stream, 1), 100);
  hb_stream_unref(stream);
  rig_reopen(rig);
  assert_false(hb_engine_is_ingesting(rig->engine));
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(put_range(rig, stream, 101, 102).code, HB_NO_SPACE);
  hb_engine_on_ingest(rig->engine, count_call, &changes);
  set_free(rig, PLENTY, HB_DISK_OK);
  assert_int_equal(changes, 2);
  hb_engine_on_ingest(rig->engine, NULL, NULL);
  assert_int_equal(put_range(rig, stream, 101, 150).code, HB_OK);
  rig_until(rig, stream, rig_frontier_at_least, 151);
  assert_int_equal(rig_check_log(rig, stream, 1), 150);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
}

/* A little more than the floor isn't enough to come back, so that the state does not flicker. */
static void floor_has_slack(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  set_free(rig, FLOOR - 1, HB_DISK_FLOOR);
  atomic_store(&rig->disk_free, FLOOR + 16 * MIB - 1);
  rig_until_disk(rig, HB_DISK_FLOOR);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "default");
  assert_int_equal(put_range(rig, stream, 1, 2).code, HB_NO_SPACE);
  set_free(rig, FLOOR + 16 * MIB, HB_DISK_RESERVE);
  assert_int_equal(put_range(rig, stream, 1, 2).code, HB_OK);
  hb_stream_unref(stream);
}

/* Deleting a stream is how space comes back: it goes on below the floor, to its last step. */
static void floor_deletes(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t i = 0; i < 40; i++) {
    assert_int_equal(put_range(rig, stream, 1 + i * 5000, 1 + (i + 1) * 5000).code, HB_OK);
  }
  hb_stream_unref(stream);
  set_free(rig, FLOOR - 1, HB_DISK_FLOOR);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  hb_engine_wait_deletions(rig->engine);
  assert_null(hb_engine_find_stream(rig->engine, "s"));
  rig_reopen(rig);
  assert_true(rig_folder_bytes(rig) < 2 * MIB);
}

/* Ends the space after some looks, each of which is before a write. */
struct countdown {
  struct rig *rig;
  _Atomic int looks;
};

static bool count_down(void *context, const char *path, uint64_t *out) {
  (void)path;
  struct countdown *countdown = context;
  bool over = atomic_fetch_sub(&countdown->looks, 1) <= 0;
  *out = over ? atomic_load(&countdown->rig->disk_free) : PLENTY;
  return true;
}

/* A long release stops where the floor is met and goes on from there. */
static void floor_stops_release(void **state) {
  struct rig *rig = *state;
  /* The engine looks until the rig is taken down, which is after this function. */
  static struct countdown countdown;
  countdown.rig = rig;
  atomic_store(&countdown.looks, INT32_MAX);
  rig->tuning.core.release_stream_bytes = 64 << 10;
  rig->tuning.core.block_bytes = 16 << 10;
  rig->tuning.free_bytes = count_down;
  rig->tuning.free_context = &countdown;
  rig->tuning.disk_look_bytes = 1;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 2, 40001).code, HB_OK);
  atomic_store(&rig->disk_free, FLOOR - 1);
  atomic_store(&countdown.looks, 5);
  assert_int_equal(put_range(rig, stream, 1, 2).code, HB_OK);
  rig_until_disk(rig, HB_DISK_FLOOR);
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.record.complete_to, 40001);
  assert_true(status.record.frontier < 40001);
  assert_int_equal(rig_check_log(rig, stream, 1), status.record.frontier - 1);
  atomic_store(&rig->disk_free, PLENTY);
  rig_until(rig, stream, rig_frontier_at_least, 40001);
  assert_int_equal(rig_check_log(rig, stream, 1), 40000);
  hb_stream_unref(stream);
}

/* Space that comes and goes under load, with batches that have to be compared: each batch is
 * answered, and what was answered well is there, in order, once. */
static void comes_and_goes(void **state) {
  enum { BATCHES = 400, EVENTS = 50 };
  struct rig *rig = *state;
  rig->limits.shared_blocks_max = MIB;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  bool *stored = hb_calloc(BATCHES, sizeof *stored);
  int refused = 0;
  struct sent *sent[8];
  for (int64_t i = 0; i < BATCHES; i += 4) {
    for (int64_t k = 0; k < 8; k++) {
      /* Four that are new, and four that were sent before. */
      int64_t batch = k < 4 ? i + k : (i * 7 + k) % (i + 1);
      if (k % 3 == 1) atomic_store(&rig->disk_free, i / 4 % 3 ? PLENTY : FLOOR - 1);
      int64_t from = 1 + batch * EVENTS;
      sent[k] = rig_send_range(rig, stream, (uint64_t)(1 + k % 2), from, from + EVENTS, 10);
    }
    for (int64_t k = 0; k < 8; k++) {
      rig_wait(sent[k]);
      enum hb_code code = sent[k]->append.batch.error.code;
      assert_true(code == HB_OK || code == HB_NO_SPACE);
      if (code == HB_OK) stored[(sent[k]->append.batch.events[0].sequence - 1) / EVENTS] = true;
      refused += code == HB_NO_SPACE;
      rig_free(sent[k]);
    }
  }
  assert_true(refused > 0);
  set_free(rig, PLENTY, HB_DISK_OK);
  for (int64_t i = 0; i < BATCHES; i++) {
    int64_t from = 1 + i * EVENTS;
    struct sent *again = rig_send_range(rig, stream, 0, from, from + EVENTS, 10);
    rig_wait(again);
    assert_int_equal(again->append.batch.error.code, HB_OK);
    int outcome = again->append.batch.decisions[0].outcome;
    assert_true(outcome == HB_OUTCOME_DUPLICATE || (outcome == HB_OUTCOME_STORED && !stored[i]));
    rig_free(again);
  }
  rig_until(rig, stream, rig_frontier_at_least, 1 + BATCHES * EVENTS);
  assert_int_equal(rig_check_log(rig, stream, 1), BATCHES * EVENTS);
  free(stored);
  hb_stream_unref(stream);
}

/* No index is written below the reserve, and all of it when there is room. */
static void index_stops_first(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_file_entries = 100;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  set_free(rig, RESERVE - 1, HB_DISK_RESERVE);
  assert_int_equal(put_range(rig, stream, 1, 5001).code, HB_OK);
  /* Ten times as long as an index takes that may be written. */
  uint64_t until_ms = hb_clock_mono_ms() + 10 * rig->tuning.index_idle_ms;
  struct hb_stream_status status;
  do {
    rig_until_disk(rig, HB_DISK_RESERVE);
    hb_stream_get_status(stream, &status);
    assert_int_equal(status.indexed_to, 1);
  } while (hb_clock_mono_ms() < until_ms);
  set_free(rig, PLENTY, HB_DISK_OK);
  rig_until(rig, stream, rig_indexed_at_least, 5001);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(reserve_refuses_held, setup, teardown),
      cmocka_unit_test_setup_teardown(reserve_counts_held, setup, teardown),
      cmocka_unit_test_setup_teardown(reserve_is_settable, setup, teardown),
      cmocka_unit_test_setup_teardown(floor_stops_writes, setup, teardown),
      cmocka_unit_test_setup_teardown(floor_has_slack, setup, teardown),
      cmocka_unit_test_setup_teardown(floor_deletes, setup, teardown),
      cmocka_unit_test_setup_teardown(floor_stops_release, setup, teardown),
      cmocka_unit_test_setup_teardown(comes_and_goes, setup, teardown),
      cmocka_unit_test_setup_teardown(index_stops_first, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
