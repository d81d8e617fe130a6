/* Copies, retries, late and odd numbers, as other systems got them wrong. Each test is named after
 * its row in tests/README.md. The core alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/model/driver.h"

static struct hb_driver driver;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 20};
}

static void add(uint64_t stream, const struct hb_stream_config *config) {
  hb_driver_add(&driver, stream, config);
}

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  struct hb_stream_config config = hb_driver_config(1);
  add(1, &config);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

static void expect(struct hb_test_event sent, enum hb_outcome outcome) {
  assert_int_equal(hb_driver_send(&driver, 1, sent).outcome, outcome);
}

static struct hb_test_batch *submit(uint64_t call, int64_t sequence) {
  struct hb_test_event one = event(sequence);
  return hb_driver_submit(&driver, 1, call, &one, 1);
}

/* The write of what is decided fails; the core is made again from what is stored. */
static void fail_the_write(void) {
  assert_non_null(hb_ordering_decide(driver.core, driver.now));
  hb_driver_restart(&driver);
}

/* D3, Pulsar 5218: the write failed after the event was taken for new: sent again it is new still,
 * in order as out of order. */
static void d3_a_failed_write_is_forgotten(void **state) {
  (void)state;
  static const int64_t sequences[] = {1, 5};
  for (int i = 0; i < 2; i++) {
    struct hb_test_batch *lost = submit(1, sequences[i]);
    fail_the_write();
    assert_true(lost->answered);
    assert_int_equal(lost->batch.error.code, HB_UNAVAILABLE);
    expect(event(sequences[i]), HB_OUTCOME_STORED);
    expect(event(sequences[i]), HB_OUTCOME_DUPLICATE);
  }
}

/* D5, Pulsar 21892: a copy comes while the first is being written: it waits for that write and is
 * answered then: a duplicate, or unknown as the first is. Never before, and nobody is stuck. */
static void d5_a_copy_waits_for_the_first(void **state) {
  (void)state;
  struct hb_test_batch *first = submit(1, 1);
  const struct hb_commit *commit = hb_ordering_decide(driver.core, driver.now);
  struct hb_test_batch *copy = submit(2, 1);
  assert_null(hb_ordering_take_answered(driver.core));
  hb_fake_apply(&driver.store, commit);
  hb_ordering_committed(driver.core, commit);
  hb_driver_settle(&driver);
  hb_driver_expect(first, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(copy, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  struct hb_test_batch *lost = submit(1, 2);
  assert_non_null(hb_ordering_decide(driver.core, driver.now));
  struct hb_test_batch *lost_copy = submit(2, 2);
  hb_driver_restart(&driver);
  assert_int_equal(lost->batch.error.code, HB_UNAVAILABLE);
  assert_int_equal(lost_copy->batch.error.code, HB_UNAVAILABLE);
  expect(event(2), HB_OUTCOME_STORED);
}

/* D6, Pulsar 23697 and RabbitMQ's streams: a lower number after a higher one is new, whoever sends
 * it, before and after a restart. */
static void d6_a_lower_number_is_new(void **state) {
  (void)state;
  struct hb_test_batch *ten = submit(1, 10);
  hb_driver_settle(&driver);
  struct hb_test_batch *four = submit(2, 4);
  hb_driver_settle(&driver);
  hb_driver_expect(ten, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(four, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_restart(&driver);
  expect(event(3), HB_OUTCOME_STORED);
  expect(event(4), HB_OUTCOME_DUPLICATE);
  expect(event(10), HB_OUTCOME_DUPLICATE);
}

/* D8, NATS 7302: the same again is a duplicate after a second, a year, and a restart; released or
 * waiting. There is no window, so no every-second copy that passes. */
static void d8_there_is_no_window_of_time(void **state) {
  (void)state;
  static const uint64_t later_ms[] = {0, 1000, 120000, 31536000000};
  expect(event(1), HB_OUTCOME_STORED);
  expect(event(9), HB_OUTCOME_STORED);
  for (size_t i = 0; i < sizeof later_ms / sizeof *later_ms; i++) {
    driver.now.served_ms += later_ms[i];
    driver.now.wall_ms += later_ms[i];
    for (int twice = 0; twice < 2; twice++) {
      expect(event(1), HB_OUTCOME_DUPLICATE);
      expect(event(9), HB_OUTCOME_DUPLICATE);
    }
    hb_driver_restart(&driver);
  }
  struct hb_test_event other = event(1);
  other.content = 8;
  expect(other, HB_OUTCOME_CONFLICT);
}

/* D11, Streamstone 11: batches that overlap in part: each event has its own answer. */
static void d11_overlap_is_answered_per_event(void **state) {
  (void)state;
  struct hb_test_event first[] = {event(1), event(3), event(7)};
  struct hb_test_event second[] = {event(2), event(7), event(14)};
  hb_driver_submit(&driver, 1, 1, first, 3);
  hb_driver_settle(&driver);
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, second, 3);
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(batch, 2, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 4);
}

/* D14, Pulsar 7345: what is kept aside for people counts against no limit of what may be sent. */
static void d14_bookkeeping_takes_no_room(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.held_events_max = 10;
  config.limits.held_bytes_max = 4000;
  add(2, &config);
  (void)hb_driver_send(&driver, 2, event(1));
  for (uint32_t i = 0; i < 300; i++) {
    struct hb_test_event other = event(1);
    other.content = 100 + i;
    other.size = 1000;
    assert_int_equal(hb_driver_send(&driver, 2, other).outcome, HB_OUTCOME_CONFLICT);
  }
  assert_int_equal(hb_driver_status(&driver, 2).held_bytes, 0);
  for (int64_t i = 0; i < 10; i++) {
    assert_int_equal(hb_driver_send(&driver, 2, event(3 + i)).outcome, HB_OUTCOME_STORED);
  }
  assert_int_equal(hb_driver_send(&driver, 2, event(2)).outcome, HB_OUTCOME_STORED);
  assert_int_equal(hb_driver_status(&driver, 2).record.frontier, 13);
}

/* N1, Redis 6539: at the ends of the numbers it is accepted or refused by rule; nothing wraps. */
static void n1_numbers_do_not_wrap(void **state) {
  (void)state;
  struct hb_stream_config low = hb_driver_config(INT64_MIN);
  struct hb_stream_config high = hb_driver_config(INT64_MAX - 2);
  add(2, &low);
  add(3, &high);
  static const struct {
    uint64_t stream;
    int64_t sequence;
    enum hb_outcome outcome;
    int64_t frontier;
  } rows[] = {
      {2, INT64_MAX - 1, HB_OUTCOME_WINDOW_FULL, INT64_MIN}, /* further than ahead_max */
      {2, INT64_MAX, HB_OUTCOME_OUT_OF_RANGE, INT64_MIN},
      {2, -1, HB_OUTCOME_WINDOW_FULL, INT64_MIN},
      {2, INT64_MIN, HB_OUTCOME_STORED, INT64_MIN + 1},
      {2, INT64_MIN, HB_OUTCOME_DUPLICATE, INT64_MIN + 1},
      {3, INT64_MAX, HB_OUTCOME_OUT_OF_RANGE, INT64_MAX - 2},
      {3, INT64_MIN, HB_OUTCOME_BEFORE_FIRST, INT64_MAX - 2},
      {3, INT64_MAX - 1, HB_OUTCOME_STORED, INT64_MAX - 2},
      {3, INT64_MAX - 2, HB_OUTCOME_STORED, INT64_MAX},
      {3, INT64_MAX, HB_OUTCOME_OUT_OF_RANGE, INT64_MAX},
      {3, INT64_MAX - 1, HB_OUTCOME_DUPLICATE, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct hb_decision decision = hb_driver_send(&driver, rows[i].stream, event(rows[i].sequence));
    if (decision.outcome != rows[i].outcome) fail_msg("row %zu: %d", i, decision.outcome);
    assert_int_equal(hb_driver_status(&driver, rows[i].stream).record.frontier, rows[i].frontier);
  }
}

/* N5, Misskey 10482 and Redis 7835: one of a hundred comes ten seconds late, five thousand behind
 * the others: all are taken, nothing stays behind. */
static void n5_slightly_older_is_what_this_is_for(void **state) {
  (void)state;
  enum { ALL = 20000, LATE = 5000, EACH = 100 };
  static struct hb_test_event events[2 * EACH];
  for (int64_t at = 0; at < ALL + LATE; at += EACH) {
    size_t count = 0;
    for (int64_t i = at; i < at + EACH; i++) {
      if (i < ALL && i % 100 != 50) events[count++] = event(1 + i);
      if (i >= LATE && (i - LATE) % 100 == 50) events[count++] = event(1 + i - LATE);
    }
    struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, count);
    driver.now.served_ms += 200;
    hb_driver_settle(&driver);
    for (uint32_t i = 0; i < count; i++) hb_driver_expect(batch, i, HB_OUTCOME_STORED, 0);
  }
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, ALL + 1);
  assert_int_equal(status.held_events, 0);
}

/* F2, NATS 7654: little room on the disk: what would wait is refused with that reason, what is
 * there stays, what fills the gap comes in and takes the rest out. */
static void f2_a_nearly_full_disk_lets_the_gap_be_filled(void **state) {
  (void)state;
  expect(event(2), HB_OUTCOME_STORED);
  hb_ordering_set_disk_reserve(driver.core, true);
  struct hb_decision refused = hb_driver_send(&driver, 1, event(4));
  assert_int_equal(refused.outcome, HB_OUTCOME_WINDOW_FULL);
  assert_int_equal(refused.reason, HB_REASON_DISK_RESERVE);
  expect(event(2), HB_OUTCOME_DUPLICATE);
  expect(event(1), HB_OUTCOME_STORED);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 3);
  hb_ordering_set_disk_reserve(driver.core, false);
  expect(event(4), HB_OUTCOME_STORED);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(d3_a_failed_write_is_forgotten),
      TEST(d5_a_copy_waits_for_the_first),
      TEST(d6_a_lower_number_is_new),
      TEST(d8_there_is_no_window_of_time),
      TEST(d11_overlap_is_answered_per_event),
      TEST(d14_bookkeeping_takes_no_room),
      TEST(n1_numbers_do_not_wrap),
      TEST(n5_slightly_older_is_what_this_is_for),
      TEST(f2_a_nearly_full_disk_lets_the_gap_be_filled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
