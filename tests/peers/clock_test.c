/* N4 and G5 of tests/README.md: the wall clock steps, the machine sleeps, the server restarts with
 * a gap open. Nothing is decided by it, and an age goes on from where it was.
 *
 * The engine as it is, but with this file's clocks: they win over base/clock.c's, whose object the
 * linker never takes up then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "server/engine/testing.h"

#define HOUR_MS INT64_C(3600000)

static _Atomic int64_t wall_ms = 1700000000000;
static _Atomic int64_t leaps_ms; /* of the monotonic clock */

uint64_t hb_clock_wall_ms(void) { return (uint64_t)atomic_load(&wall_ms); }
uint64_t hb_clock_mono_ms(void) { return hb_clock_mono_ns() / 1000000; }
uint64_t hb_clock_mono_coarse_ms(void) { return hb_clock_mono_ms(); }
uint64_t hb_clock_mono_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec +
         (uint64_t)atomic_load(&leaps_ms) * 1000000;
}

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  atomic_store(&leaps_ms, 0);
  rig_open(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static struct hb_stream_status status_of(struct hb_stream *stream) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  return status;
}

/* One released event, one held, a gap between them; then a copy. */
static void check_outcomes(struct rig *rig, struct hb_stream *stream, int64_t at) {
  assert_int_equal(rig_put(rig, stream, at, "k", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, at + 2, "k", NULL), HB_OUTCOME_STORED);
  assert_int_equal(status_of(stream).record.frontier, at + 1);
  assert_int_equal(status_of(stream).gaps_total, 1);
  assert_int_equal(rig_put(rig, stream, at, "k", NULL), HB_OUTCOME_DUPLICATE);
  assert_int_equal(rig_put(rig, stream, at + 2, "k", NULL), HB_OUTCOME_DUPLICATE);
  assert_int_equal(rig_put(rig, stream, at + 1, "k", NULL), HB_OUTCOME_STORED);
  assert_int_equal(status_of(stream).record.frontier, at + 3);
}

/* N4: an hour back, an hour forward, back to 1970: outcomes, order and served time are what they
 * are without; each step over a restart too. */
static void n4_the_wall_clock_steps(void **state) {
  struct rig *rig = *state;
  static const int64_t steps[] = {-HOUR_MS, HOUR_MS, 2 * HOUR_MS, -1700000000000};
  struct hb_stream *stream = rig_stream(rig, "s");
  uint64_t served_before = hb_engine_served_ms(rig->engine);
  int64_t next = 1;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    atomic_fetch_add(&wall_ms, steps[i]);
    check_outcomes(rig, stream, next);
    next += 3;
    hb_stream_unref(stream);
    rig_reopen(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
    assert_int_equal(rig_put(rig, stream, next - 1, "k", NULL), HB_OUTCOME_DUPLICATE);
  }
  assert_int_equal(rig_check_log(rig, stream, 1), next - 1);
  uint64_t served = hb_engine_served_ms(rig->engine) - served_before;
  assert_true(served < (uint64_t)HOUR_MS); /* not a step's worth */
  atomic_store(&wall_ms, 1700000000000);
  hb_stream_unref(stream);
}

/* N4: the monotonic clock leaps, as after a pause of the machine: the gap is older and still a
 * gap, nothing was skipped, and the stream goes on. */
static void n4_the_machine_sleeps(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  (void)rig_put(rig, stream, 1, "k", NULL);
  (void)rig_put(rig, stream, 3, "k", NULL);
  uint64_t seen_ms = status_of(stream).gaps[0].first_seen_served_ms;
  int64_t seen_wall_ms = (int64_t)status_of(stream).gaps[0].first_seen_wall_ms;
  assert_true(llabs(seen_wall_ms - atomic_load(&wall_ms)) < 1000); /* this file's clocks are used */
  for (int64_t i = 0; i < 5; i++) {
    atomic_fetch_add(&leaps_ms, 10 * HOUR_MS);
    (void)rig_put(rig, stream, 4 + i, "k", NULL);
    struct hb_stream_status status = status_of(stream);
    assert_int_equal(status.record.frontier, 2);
    assert_int_equal(status.gaps_total, 1);
    assert_int_equal(status.gaps[0].first_seen_served_ms, seen_ms);
  }
  uint64_t age_ms = hb_engine_served_ms(rig->engine) - seen_ms;
  assert_true(age_ms >= 50 * (uint64_t)HOUR_MS && age_ms < 51 * (uint64_t)HOUR_MS);
  assert_int_equal(rig_put(rig, stream, 2, "k", NULL), HB_OUTCOME_STORED);
  assert_int_equal(status_of(stream).record.frontier, 9);
  assert_int_equal(rig_check_log(rig, stream, 1), 8);
  hb_stream_unref(stream);
}

/* G5, Marten 5108: restarts with a gap open, the wall clock wrong after each: it was first seen
 * when it was, and its age only grows; what passed while nobody served is not in it. */
static void g5_a_gap_keeps_its_age(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  (void)rig_put(rig, stream, 3, "k", NULL);
  uint64_t seen_ms = status_of(stream).gaps[0].first_seen_served_ms;
  atomic_fetch_add(&leaps_ms, 60000);       /* older than ten seconds: it gets its row ... */
  (void)rig_put(rig, stream, 4, "k", NULL); /* ... with this commit */
  uint64_t served_ms = hb_engine_served_ms(rig->engine);
  for (int i = 0; i < 5; i++) {
    hb_stream_unref(stream);
    rig_close(rig);
    atomic_fetch_add(&leaps_ms, HOUR_MS);
    atomic_fetch_add(&wall_ms, i % 2 ? HOUR_MS : -HOUR_MS);
    rig_open(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
    struct hb_stream_status status = status_of(stream);
    assert_int_equal(status.gaps_total, 1);
    assert_int_equal(status.gaps[0].start, 1);
    assert_int_equal(status.gaps[0].end, 3);
    assert_int_equal(status.gaps[0].first_seen_served_ms, seen_ms);
    assert_true(hb_engine_served_ms(rig->engine) >= seen_ms + 60000);
  }
  assert_true(hb_engine_served_ms(rig->engine) < served_ms + (uint64_t)HOUR_MS);
  hb_stream_unref(stream);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(n4_the_wall_clock_steps),
      TEST(n4_the_machine_sleeps),
      TEST(g5_a_gap_keeps_its_age),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
