/* Rewrites of bundles and rows of gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/model/driver.h"

static struct hb_driver driver;
static struct hb_fake_stream *stored;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 40};
}

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  stored = hb_fake_find(&driver.store, 1);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* Hundreds of bundles of one event become one; counters don't count them again. */
static void tiny_bundles_are_put_together(void **state) {
  (void)state;
  for (int i = 0; i < 600; i++) hb_driver_send(&driver, 1, event(3 + 2 * i));
  assert_true(stored->bundles_count < 256);
  hb_fake_check(stored);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.held_events, 600);
  assert_int_equal(status.record.counters.held, 600);
  assert_int_equal(status.held_bytes, hb_fake_held_bytes(stored));
}

/* Sixteen bundles of which a single event still waits become one. */
static void sparse_bundles_are_put_together(void **state) {
  (void)state;
  enum { BUNDLES = 16, EACH = 100 };
  for (int i = 0; i < BUNDLES; i++) {
    struct hb_test_event events[EACH];
    for (int k = 0; k < EACH - 1; k++) events[k] = event(2 + i * (EACH - 1) + k);
    events[EACH - 1] = event(100000 + i);
    hb_driver_submit(&driver, 1, 1, events, EACH);
    hb_driver_settle(&driver);
  }
  assert_int_equal(stored->bundles_count, BUNDLES);
  hb_driver_send(&driver, 1, event(1));
  assert_int_equal(stored->bundles_count, 1);
  assert_int_equal(hb_driver_status(&driver, 1).held_events, BUNDLES);
  hb_fake_check(stored);
}

enum { DRAINED_BUNDLES = 40, DRAINED_EACH = 100, DRAINED_LEFT = 12 };

/* Of each of 40 bundles one event in eight waits on: more than a sixteenth, less than a quarter. */
static void drain_bundles(void) {
  enum { GONE = DRAINED_EACH - DRAINED_LEFT };
  for (int i = 0; i < DRAINED_BUNDLES; i++) {
    struct hb_test_event events[DRAINED_EACH];
    for (int k = 0; k < GONE; k++) events[k] = event(2 + i * GONE + k);
    for (int k = GONE; k < DRAINED_EACH; k++)
      events[k] = event(100000 + 2 * (i * DRAINED_EACH + k));
    hb_driver_submit(&driver, 1, 1, events, DRAINED_EACH);
    hb_driver_settle(&driver);
  }
  hb_driver_send(&driver, 1, event(1));
}

/* Where what is gone takes more than twice of what waits, bundles of which an eighth waits become
 * one. */
static void waste_is_bounded(void **state) {
  (void)state;
  drain_bundles();
  assert_true(stored->bundles_count < DRAINED_BUNDLES / 4);
  assert_int_equal(hb_driver_status(&driver, 1).held_events, DRAINED_BUNDLES * DRAINED_LEFT);
  hb_fake_check(stored);
}

/* Beside much that waits they stay as they are: a rewrite now would be one for many events. */
static void little_waste_is_left(void **state) {
  (void)state;
  enum { MORE = 40 };
  for (int i = 0; i < MORE; i++) {
    struct hb_test_event events[DRAINED_EACH];
    for (int k = 0; k < DRAINED_EACH; k++) events[k] = event(200000 + 2 * (i * DRAINED_EACH + k));
    hb_driver_submit(&driver, 1, 1, events, DRAINED_EACH);
    hb_driver_settle(&driver);
  }
  drain_bundles();
  assert_true(stored->bundles_count >= DRAINED_BUNDLES);
  hb_fake_check(stored);
}

/* ---- gaps */

static void pass(uint64_t ms) {
  driver.now.served_ms += ms;
  driver.now.wall_ms += ms;
  (void)hb_driver_commit(&driver);
}

/* A gap gets its row when it is ten seconds old, not before, and only once. */
static void a_gap_gets_a_row_at_ten_seconds(void **state) {
  (void)state;
  hb_driver_send(&driver, 1, event(5));
  pass(9999);
  assert_int_equal(stored->gaps_count, 0);
  pass(1000);
  assert_int_equal(stored->gaps_count, 1);
  assert_int_equal(stored->gaps[0].start, 1);
  assert_int_equal(stored->gaps[0].end, 5);
  assert_int_equal(stored->gaps[0].first_seen_served_ms, 1000);
  assert_int_equal(stored->gaps[0].first_seen_wall_ms, 1700000001000);
  uint64_t number = driver.last.number;
  pass(20000);
  assert_int_equal(driver.last.number, number);
}

/* Parts of a split gap keep the time of the whole, over a restart too; the row of a gap that is
 * filled goes when the parts have their own. */
static void parts_inherit_and_left_over_rows_go(void **state) {
  (void)state;
  hb_driver_send(&driver, 1, event(20));
  pass(12000);
  hb_driver_send(&driver, 1, event(10));
  hb_driver_restart(&driver);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.gaps_total, 2);
  assert_int_equal(status.gaps[0].first_seen_served_ms, 1000);
  assert_int_equal(status.gaps[1].first_seen_served_ms, 1000);
  struct hb_test_event events[9];
  for (int i = 0; i < 9; i++) events[i] = event(1 + i);
  hb_driver_submit(&driver, 1, 1, events, 9);
  hb_driver_settle(&driver);
  pass(12000);
  pass(12000);
  assert_int_equal(stored->gaps_count, 1);
  assert_int_equal(stored->gaps[0].start, 11);
  assert_int_equal(stored->gaps[0].first_seen_served_ms, 1000);
}

/* A gap without a row is first seen anew after a restart; what is filled leaves no row. */
static void young_gaps_start_anew(void **state) {
  (void)state;
  hb_driver_send(&driver, 1, event(3));
  driver.now.served_ms += 5000;
  hb_driver_restart(&driver);
  assert_int_equal(hb_driver_status(&driver, 1).gaps[0].first_seen_served_ms, 6000);
  pass(10000);
  assert_int_equal(stored->gaps_count, 1);
  hb_driver_send(&driver, 1, event(1));
  hb_driver_send(&driver, 1, event(2));
  pass(12000);
  assert_int_equal(stored->gaps_count, 0);
}

/* At most a thousand rows in a commit, the oldest first. */
static void a_thousand_rows_in_a_commit(void **state) {
  (void)state;
  static struct hb_test_event events[1500];
  for (int i = 0; i < 1500; i++) events[i] = event(100000 + 2 * i);
  hb_driver_submit(&driver, 1, 1, events, 1500);
  hb_driver_settle(&driver);
  pass(2000);
  for (int i = 0; i < 500; i++) events[i] = event(200000 + 2 * i);
  hb_driver_submit(&driver, 1, 1, events, 500);
  hb_driver_settle(&driver);
  pass(11000);
  assert_int_equal(driver.last.gaps_count, 1000);
  for (size_t i = 0; i < stored->gaps_count; i++) {
    assert_int_equal(stored->gaps[i].first_seen_served_ms, 1000);
  }
  pass(1000);
  assert_int_equal(stored->gaps_count, 2000);
}

/* A left-over row stays while it is the only record of some part of its gap. */
static void left_over_rows_wait_for_the_parts(void **state) {
  (void)state;
  hb_driver_send(&driver, 1, event(5000));
  pass(12000);
  assert_int_equal(stored->gaps_count, 1);
  static struct hb_test_event events[1500];
  events[0] = event(1);
  for (int i = 1; i < 1500; i++) events[i] = event(1 + 3 * i);
  hb_driver_submit(&driver, 1, 1, events, 1500);
  hb_driver_settle(&driver);
  pass(12000);
  assert_int_equal(driver.last.gaps_count, 1000);
  assert_int_equal(driver.last.gone_gaps_count, 0);
  hb_driver_restart(&driver);
  pass(12000);
  assert_int_equal(driver.last.gaps_count, 500);
  assert_int_equal(driver.last.gone_gaps_count, 1);
  assert_int_equal(stored->gaps_count, 1500);
  for (size_t i = 0; i < stored->gaps_count; i++) {
    assert_int_equal(stored->gaps[i].first_seen_served_ms, 1000);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(tiny_bundles_are_put_together),
      TEST(sparse_bundles_are_put_together),
      TEST(waste_is_bounded),
      TEST(little_waste_is_left),
      TEST(a_gap_gets_a_row_at_ten_seconds),
      TEST(parts_inherit_and_left_over_rows_go),
      TEST(young_gaps_start_anew),
      TEST(a_thousand_rows_in_a_commit),
      TEST(left_over_rows_wait_for_the_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
