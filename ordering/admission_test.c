#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/model/driver.h"

#define EVENT(n) \
  { .sequence = (n), .content = 7, .size = 40 }
#define OTHER(n) \
  { .sequence = (n), .content = 8, .size = 40 }
#define SUBMIT(driver, call, ...)                                       \
  hb_driver_submit(                                                     \
      (driver), 1, (call), (const struct hb_test_event[]){__VA_ARGS__}, \
      sizeof((const struct hb_test_event[]){__VA_ARGS__}) / sizeof(struct hb_test_event))

static struct hb_driver driver;

static void start(struct hb_stream_config config) {
  hb_driver_start(&driver, NULL);
  hb_driver_add(&driver, 1, &config);
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* Within a commit the first to arrive is stored; equal content is a duplicate, other content a
 * conflict, across batches and calls. */
static void first_to_arrive_wins(void **state) {
  (void)state;
  start(hb_driver_config(1));
  struct hb_test_batch *a = SUBMIT(&driver, 1, EVENT(5), EVENT(5), OTHER(5));
  struct hb_test_batch *b = SUBMIT(&driver, 2, OTHER(5), EVENT(5), EVENT(6));
  assert_true(hb_driver_commit(&driver));
  hb_driver_collect(&driver);
  hb_driver_expect(a, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(a, 1, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(a, 2, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  hb_driver_expect(b, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  hb_driver_expect(b, 1, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(b, 2, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_int_equal(driver.last.unprocessed_count, 2);
  assert_int_equal(hb_driver_status(&driver, 1).held_events, 2);
}

/* A copy of a refused event is refused for the same reason, whatever its content. */
static void copies_share_the_refusal(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.ahead_max = 10;
  start(config);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(11), EVENT(11), OTHER(11), EVENT(10));
  hb_driver_settle(&driver);
  for (uint32_t i = 0; i < 3; i++) {
    hb_driver_expect(batch, i, HB_OUTCOME_WINDOW_FULL, HB_REASON_AHEAD);
  }
  hb_driver_expect(batch, 3, HB_OUTCOME_STORED, HB_REASON_NONE);
}

/* The window counts from complete_to as it is at the end of the commit, whatever arrived first. */
static void ahead_counts_from_the_end_state(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(0);
  config.limits.ahead_max = 10;
  start(config);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(11), EVENT(12), EVENT(1), EVENT(0));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_WINDOW_FULL, HB_REASON_AHEAD);
}

/* complete_to + ahead_max saturates, and the highest sequence can be stored and released. */
static void window_saturates(void **state) {
  (void)state;
  start(hb_driver_config(INT64_MAX - 2));
  struct hb_test_batch *batch =
      SUBMIT(&driver, 1, EVENT(INT64_MAX - 1), EVENT(INT64_MAX), EVENT(INT64_MIN));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_NONE);
  hb_driver_expect(batch, 2, HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE);
  assert_int_equal(hb_driver_status(&driver, 1).window_end, INT64_MAX);
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(INT64_MAX - 2));
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, INT64_MAX);
  assert_int_equal(hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(INT64_MAX - 1)).outcome,
                   HB_OUTCOME_DUPLICATE);
}

/* A sealed stream takes what is below its end, gaps included, and nothing else, also after a
 * restart; its window ends there. */
static void seal_refuses_what_is_beyond(void **state) {
  (void)state;
  start(hb_driver_config(1));
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(1));
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(4));
  struct hb_err err;
  assert_int_equal(hb_ordering_check_seal(driver.core, 1, 4, &err), HB_PRECONDITION);
  assert_string_equal(err.reason, "SEAL_BELOW_HIGHEST");
  assert_int_equal(hb_ordering_check_seal(driver.core, 1, 6, &err), HB_OK);
  hb_ordering_seal(driver.core, 1, 6);
  assert_int_equal(hb_ordering_check_seal(driver.core, 1, 6, &err), HB_OK);
  assert_int_equal(hb_ordering_check_seal(driver.core, 1, 7, &err), HB_PRECONDITION);
  assert_string_equal(err.reason, "ALREADY_SEALED");
  struct hb_test_batch *batch = SUBMIT(&driver, 2, EVENT(5), EVENT(6), EVENT(4), EVENT(7));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_SEALED);
  hb_driver_expect(batch, 2, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(batch, 3, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_SEALED);
  assert_int_equal(hb_driver_status(&driver, 1).window_end, 6);
  hb_driver_restart(&driver);
  struct hb_test_batch *later = SUBMIT(&driver, 3, EVENT(6), EVENT(2), EVENT(3));
  hb_driver_settle(&driver);
  hb_driver_expect(later, 0, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_SEALED);
  hb_driver_expect(later, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, 6);
  assert_true(status.record.sealed && status.record.seal_end == 6);
}

/* INT64_MIN can be first: the whole range of numbers is one gap then, and costs one. */
static void lowest_number_can_be_first(void **state) {
  (void)state;
  start(hb_driver_config(INT64_MIN));
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(INT64_MIN), EVENT(-1));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_WINDOW_FULL, HB_REASON_AHEAD); /* 2^63 - 2 ahead */
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(INT64_MIN / 2));
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.gaps_total, 1);
  assert_int_equal(status.record.frontier, INT64_MIN + 1);
}

/* From first seen: the first batch decides, later batches of the commit are judged by it. */
static void first_seen_comes_from_the_first_batch(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(0);
  config.first_seen = true;
  start(config);
  struct hb_test_batch *none = SUBMIT(&driver, 1, EVENT(INT64_MAX));
  struct hb_test_batch *first = SUBMIT(&driver, 2, EVENT(9), EVENT(INT64_MAX), EVENT(7));
  struct hb_test_batch *later = SUBMIT(&driver, 3, EVENT(6), EVENT(8));
  assert_true(hb_driver_commit(&driver));
  hb_driver_collect(&driver);
  hb_driver_expect(none, 0, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_NONE);
  hb_driver_expect(first, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(first, 2, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(later, 0, HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE);
  hb_driver_expect(later, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.first_sequence, 7);
  assert_int_equal(status.record.frontier, 10);
}

/* A batch without a valid sequence freezes nothing and writes nothing. */
static void out_of_range_freezes_nothing(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(0);
  config.first_seen = true;
  start(config);
  (void)SUBMIT(&driver, 1, EVENT(INT64_MAX));
  const struct hb_commit *commit = hb_ordering_decide(driver.core, driver.now);
  assert_non_null(commit);
  assert_true(hb_commit_is_empty(commit));
  hb_ordering_committed(driver.core, commit);
  hb_driver_collect(&driver);
  assert_false(hb_driver_status(&driver, 1).record.frozen);
  assert_null(hb_ordering_decide(driver.core, driver.now));
}

/* ---- limits, each at and over */

static void held_events_at_and_over(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.held_events_max = 2;
  start(config);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(7), EVENT(5), EVENT(3));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 2, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 0, HB_OUTCOME_WINDOW_FULL, HB_REASON_HELD_EVENTS);
}

/* Only an event that makes a gap more is refused for gaps; one beside what is held is not. */
static void gaps_at_and_over(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.gaps_max = 2;
  start(config);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(7), EVENT(5), EVENT(3), EVENT(6));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE); /* beside 6 by then */
  hb_driver_expect(batch, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 3, HB_OUTCOME_STORED, HB_REASON_NONE);
  struct hb_decision more = hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(9));
  assert_int_equal(more.reason, HB_REASON_GAPS);
  assert_int_equal(hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(4)).outcome,
                   HB_OUTCOME_STORED);
  assert_int_equal(hb_driver_status(&driver, 1).gaps_total, 1);
}

static void held_bytes_are_never_passed(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits.held_bytes_max = 2000;
  start(config);
  unsigned stored = 0;
  for (int64_t i = 3; i < 60; i += 2) {
    struct hb_decision decision = hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(i));
    stored += decision.outcome == HB_OUTCOME_STORED;
    if (decision.outcome != HB_OUTCOME_STORED) {
      assert_int_equal(decision.reason, HB_REASON_HELD_BYTES);
    }
    assert_true(hb_driver_status(&driver, 1).held_bytes <= 2000);
  }
  assert_true(stored > 8 && stored < 20);
}

static void server_memory_refuses(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.held_index_max = 100000;
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  struct hb_test_event events[4000];
  for (int i = 0; i < 4000; i++) events[i] = (struct hb_test_event)EVENT(3 + 2 * i);
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, 4000);
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 3999, HB_OUTCOME_WINDOW_FULL, HB_REASON_SERVER_MEMORY);
  assert_int_equal(hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(1)).outcome,
                   HB_OUTCOME_STORED);
}

/* What the walk writes to the log is stored whatever is full, and so opens the window again. */
static void released_events_are_always_admitted(void **state) {
  (void)state;
  struct hb_stream_config config = hb_driver_config(1);
  config.limits = (struct hb_stream_limits){
      .ahead_max = 3, .held_bytes_max = 300, .held_events_max = 1, .gaps_max = 1};
  start(config);
  hb_ordering_set_disk_reserve(driver.core, false);
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(3));
  hb_ordering_set_disk_reserve(driver.core, true);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(1), EVENT(2), EVENT(4), EVENT(6));
  hb_driver_settle(&driver);
  for (uint32_t i = 0; i < 3; i++) hb_driver_expect(batch, i, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 3, HB_OUTCOME_WINDOW_FULL, HB_REASON_DISK_RESERVE);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 5);
}

/* ---- what is kept aside */

/* The same refusal again is one row that counts up and costs no quota; beyond the quota refusals
 * are told and not kept. */
static void refusals_are_kept_within_the_quota(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.unprocessed_bytes_max = 300;
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(100);
  hb_driver_add(&driver, 1, &config);
  for (int i = 0; i < 3; i++) {
    struct hb_decision again = hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(1));
    assert_int_equal(again.outcome, HB_OUTCOME_BEFORE_FIRST);
    assert_int_equal(again.reason, HB_REASON_NONE);
  }
  struct hb_fake_stream *stored = hb_fake_find(&driver.store, 1);
  assert_int_equal(stored->refusals_count, 1);
  assert_int_equal(stored->refusals[0].count, 3);
  uint64_t one = stored->record.counters.unprocessed_bytes;
  hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(2)); /* the same content elsewhere */
  assert_int_equal(stored->record.counters.unprocessed_bytes, 2 * one);
  assert_int_equal(hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(3)).reason,
                   HB_REASON_QUOTA);
  assert_int_equal(stored->refusals_count, 2);
  hb_driver_restart(&driver);
  assert_int_equal(hb_driver_send(&driver, 1, (struct hb_test_event)EVENT(2)).reason,
                   HB_REASON_NONE);
  assert_int_equal(stored->refusals[1].count, 2);
  assert_int_equal(stored->record.counters.unprocessed_bytes, 2 * one);
}

/* ---- streams */

static void an_unknown_stream_is_told(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  struct hb_test_batch *batch = SUBMIT(&driver, 1, EVENT(1));
  hb_driver_collect(&driver);
  assert_int_equal(batch->batch.error.code, HB_NOT_FOUND);
}

/* fsync is left out only where every batch is of an ASYNC stream. */
static void one_durable_batch_makes_the_commit_durable(void **state) {
  (void)state;
  start(hb_driver_config(1));
  struct hb_stream_config config = hb_driver_config(1);
  config.ack = HB_ACK_ASYNC;
  hb_driver_add(&driver, 2, &config);
  struct hb_test_event event = EVENT(1);
  hb_driver_submit(&driver, 2, 2, &event, 1);
  assert_true(hb_driver_commit(&driver));
  assert_false(driver.last.durable);
  event.sequence = 2;
  hb_driver_submit(&driver, 2, 2, &event, 1);
  hb_driver_submit(&driver, 1, 1, &event, 1);
  assert_true(hb_driver_commit(&driver));
  assert_true(driver.last.durable);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, stop)
  const struct CMUnitTest tests[] = {
      TEST(first_to_arrive_wins),
      TEST(copies_share_the_refusal),
      TEST(ahead_counts_from_the_end_state),
      TEST(window_saturates),
      TEST(seal_refuses_what_is_beyond),
      TEST(lowest_number_can_be_first),
      TEST(first_seen_comes_from_the_first_batch),
      TEST(out_of_range_freezes_nothing),
      TEST(held_events_at_and_over),
      TEST(gaps_at_and_over),
      TEST(held_bytes_are_never_passed),
      TEST(server_memory_refuses),
      TEST(released_events_are_always_admitted),
      TEST(refusals_are_kept_within_the_quota),
      TEST(an_unknown_stream_is_told),
      TEST(one_durable_batch_makes_the_commit_durable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
