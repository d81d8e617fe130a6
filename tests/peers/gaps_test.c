/* Gaps, as other systems got them wrong: ones that never fill, ones that were passed, ones that
 * cost too much. Each test is named after its row in tests/README.md. The core alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>

#include "tests/model/driver.h"

enum { HOUR_MS = 3600000 };

static struct hb_driver driver;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 20};
}

static void add(uint64_t stream, int64_t first) {
  struct hb_stream_config config = hb_driver_config(first);
  hb_driver_add(&driver, stream, &config);
}

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  add(1, 1);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

static void send_range(int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    assert_int_equal(hb_driver_send(&driver, 1, event(i)).outcome, HB_OUTCOME_STORED);
  }
}

/* Time passes; true: the core wrote something because of it. */
static bool pass(uint64_t ms) {
  driver.now.served_ms += ms;
  driver.now.wall_ms += ms;
  return hb_driver_commit(&driver);
}

static int64_t frontier(void) { return hb_driver_status(&driver, 1).record.frontier; }

/* G1, Marten 2681: a hole with nothing above it, then one that blocks: no work, however long. */
static void g1_a_hole_makes_no_work(void **state) {
  (void)state;
  send_range(1, 11);
  assert_false(hb_ordering_has_work(driver.core));
  assert_false(pass(HOUR_MS));
  assert_int_equal(hb_driver_status(&driver, 1).gaps_total, 0);
  send_range(12, 13);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.gaps_total, 1);
  assert_int_equal(status.gaps[0].start, 11);
  assert_int_equal(status.gaps[0].end, 12);
  assert_true(pass(HOUR_MS)); /* the gap's row, once */
  for (int i = 0; i < 1000; i++) {
    assert_false(hb_ordering_has_work(driver.core));
    assert_false(pass(1000));
  }
}

/* G2, Marten 2245: a number that was burned holds what follows, for ever, and its age is told. */
static void g2_a_burned_number_holds(void **state) {
  (void)state;
  send_range(1, 11);
  uint64_t seen_ms = driver.now.served_ms;
  send_range(12, 13);
  for (int day = 0; day < 400; day++) (void)pass(24 * HOUR_MS);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, 11);
  assert_int_equal(status.held_events, 1);
  assert_int_equal(status.gaps[0].first_seen_served_ms, seen_ms);
  send_range(11, 12);
  assert_int_equal(frontier(), 13);
}

/* G7, Marten 5091: the first number is missing: a gap like any other, wherever numbers begin. */
static void g7_the_origin_can_be_missing(void **state) {
  (void)state;
  static const int64_t firsts[] = {0, 1, -1, INT64_MIN, INT64_C(1) << 62, INT64_MAX - 2};
  for (uint64_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
    int64_t first = firsts[i];
    add(10 + i, first);
    (void)hb_driver_send(&driver, 10 + i, event(first + 1));
    struct hb_stream_status status = hb_driver_status(&driver, 10 + i);
    assert_int_equal(status.record.frontier, first);
    assert_int_equal(status.gaps_total, 1);
    assert_int_equal(status.gaps[0].start, first);
    assert_int_equal(status.gaps[0].end, first + 1);
    (void)hb_driver_send(&driver, 10 + i, event(first));
    assert_int_equal(hb_driver_status(&driver, 10 + i).record.frontier, first + 2);
  }
}

/* G8, Axon 2771: a hundred old gaps and little traffic: each still has its age, none was tidied
 * away, and a commit writes no more than without them. */
static void g8_old_gaps_stay_and_cost_nothing(void **state) {
  (void)state;
  for (int64_t i = 0; i < 100; i++) send_range(2 + 2 * i, 3 + 2 * i);
  uint64_t last_ms = driver.now.served_ms;
  while (pass(21 * 24 * (uint64_t)HOUR_MS)) continue;
  send_range(1000, 1001);
  assert_int_equal(driver.last.bundles_count, 1);
  assert_int_equal(driver.last.gaps_count, 0);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.gaps_total, 101);
  assert_int_equal(status.gaps_count, HB_STATUS_GAPS_MAX);
  for (uint32_t i = 0; i < status.gaps_count; i++) {
    assert_true(status.gaps[i].first_seen_served_ms <= last_ms);
  }
}

/* G10, Eventuous 588: looking at a gap does not make it young. */
static void g10_polling_does_not_touch_the_age(void **state) {
  (void)state;
  send_range(2, 3);
  uint64_t seen_ms = hb_driver_status(&driver, 1).gaps[0].first_seen_served_ms;
  for (int i = 0; i < 300; i++) {
    (void)pass(100);
    assert_int_equal(hb_driver_status(&driver, 1).gaps[0].first_seen_served_ms, seen_ms);
  }
  assert_int_equal(hb_fake_find(&driver.store, 1)->gaps[0].first_seen_served_ms, seen_ms);
}

/* S3, Marten 2189: nothing happens, for months: nothing is skipped, over a restart too. */
static void s3_idle_time_skips_nothing(void **state) {
  (void)state;
  send_range(1, 4);
  send_range(5, 8);
  for (int i = 0; i < 100; i++) {
    (void)pass(24 * HOUR_MS);
    assert_int_equal(frontier(), 4);
    if (i % 10 == 0) hb_driver_restart(&driver);
  }
}

enum { PLACES = 7 };

/* One layout of holes, filled from the bottom or from the top: the frontier is the first hole. */
static void check_layout(uint64_t stream, unsigned layout, bool from_top) {
  add(stream, 1);
  unsigned there = 0;
  for (int i = 0; i < PLACES; i++) {
    int place = from_top ? PLACES - 1 - i : i;
    if (!(layout & 1U << place)) continue;
    (void)hb_driver_send(&driver, stream, event(1 + place));
    there |= 1U << place;
    int64_t first_hole = 1;
    while (there & 1U << (first_hole - 1)) first_hole++;
    struct hb_stream_status status = hb_driver_status(&driver, stream);
    assert_int_equal(status.record.frontier, first_hole);
    assert_int_equal(status.record.complete_to, first_hole);
  }
  hb_ordering_remove_stream(driver.core, stream);
  hb_fake_remove_stream(&driver.store, stream);
}

/* S4, Marten 4972: whatever lies where, also with the edge of a hole right at the frontier: it is
 * never crossed, and never stops short. Every layout of seven places, from both sides. */
static void s4_every_layout_of_holes(void **state) {
  (void)state;
  uint64_t stream = 100;
  for (unsigned layout = 0; layout < 1U << PLACES; layout++) {
    check_layout(stream++, layout, false);
    check_layout(stream++, layout, true);
  }
}

static size_t heap(void) { return mallinfo2().uordblks; }

/* M1, Akka JDBC 155: the first number is enormous: one gap, and not a byte per missing number.
 * (A sanitizer's malloc counts nothing; the plain build does.) */
static void m1_width_costs_nothing(void **state) {
  (void)state;
  size_t before = heap();
  send_range(INT64_C(1) << 62, (INT64_C(1) << 62) + 1);
  assert_true(heap() < before + 100000);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.gaps_total, 1);
  assert_int_equal(status.gaps[0].end, INT64_C(1) << 62);
  for (int i = 0; i < 20; i++) (void)pass(HOUR_MS);
  assert_int_equal(hb_fake_find(&driver.store, 1)->gaps_count, 1);
  assert_true(heap() < before + 100000);
}

/* M2, Axon 1241: a gap at each insert: so many bytes per gap, and an end to it. */
static void m2_alternating_holes_are_bounded(void **state) {
  (void)state;
  enum { HOLES = 200000, EACH = 2000 };
  static struct hb_test_event events[EACH];
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.held_memory_max = 16 << 20;
  hb_driver_stop(&driver);
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.gaps_max = HOLES;
  hb_driver_add(&driver, 1, &config);
  for (int64_t at = 0; at < HOLES; at += EACH) {
    for (int64_t i = 0; i < EACH; i++) events[i] = event(2 + 2 * (at + i));
    hb_driver_submit(&driver, 1, 1, events, EACH);
    hb_driver_settle(&driver);
  }
  assert_int_equal(hb_driver_status(&driver, 1).gaps_total, HOLES);
  struct hb_decision decision = hb_driver_send(&driver, 1, event(2 + 2 * (int64_t)HOLES));
  assert_int_equal(decision.outcome, HB_OUTCOME_WINDOW_FULL);
  assert_int_equal(decision.reason, HB_REASON_GAPS);
  decision = hb_driver_send(&driver, 1, event(1)); /* what fills the lowest one always fits */
  assert_int_equal(decision.outcome, HB_OUTCOME_STORED);
  assert_int_equal(frontier(), 3);
  size_t before = heap();
  for (size_t i = 0; i < driver.batches_count; i++) hb_test_batch_destroy(driver.batches[i]);
  driver.batches_count = 0;
  size_t batches = before - heap();
  hb_ordering_fail(driver.core);
  hb_ordering_destroy(driver.core);
  size_t core = before - batches - heap();
  driver.core = hb_ordering_create(&driver.options);
  print_message("%d gaps: the core had %zu bytes, %zu each\n", HOLES, core, core / HOLES);
  /* 24 for the event, 24 for the gap, 40 for its frame, vectors that doubled. */
  assert_true(core < HOLES * 120);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(g1_a_hole_makes_no_work),
      TEST(g2_a_burned_number_holds),
      TEST(g7_the_origin_can_be_missing),
      TEST(g8_old_gaps_stay_and_cost_nothing),
      TEST(g10_polling_does_not_touch_the_age),
      TEST(s3_idle_time_skips_nothing),
      TEST(s4_every_layout_of_holes),
      TEST(m1_width_costs_nothing),
      TEST(m2_alternating_holes_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
