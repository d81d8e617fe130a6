/* Beam's cases for ranges (AC, AM, CD, X1 to X3), by their ids, on what Holdback has in the place
 * of its accumulator: the core that derives complete_to from what is stored, and the rows that it
 * is built from again. docs/CONFORMANCE.md tells what each shows.
 *
 * An accumulator that is merged with another is a stream that gets the events of two producers: in
 * one order or the other, with the core built anew from the store in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "ordering/interval_set.h"
#include "storage/record_internal.h"
#include "tests/model/driver.h"

static struct hb_driver driver;

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* ---- sets of adds */

enum { ADDS_MAX = 10, NONE = -1000 };

struct add {
  int64_t sequence; /* NONE ends the list */
  int64_t seconds;  /* event time */
};

struct range_case {
  const char *id;
  int64_t first; /* the initial one */
  struct add sets[2][ADDS_MAX];
  int64_t end;     /* of the contiguous range; `first`: it is empty */
  int64_t seconds; /* its largest event time; 0: none */
  size_t ranges;   /* disjoint ones, the contiguous one included */
};

/* The n-th add has time n, but where the table says otherwise. */
static const struct range_case CASES[] = {
    {"AC1", 1, {{{1, 1}, {2, 2}, {3, 3}, {NONE, 0}}, {{NONE, 0}}}, 4, 3, 1},
    {"AC2", 1, {{{3, 1}, {2, 2}, {1, 3}, {NONE, 0}}, {{NONE, 0}}}, 4, 3, 1},
    {"AC3", 1, {{{1, 1}, {2, 2}, {3, 3}, {5, 4}, {7, 5}, {NONE, 0}}, {{NONE, 0}}}, 4, 3, 3},
    {"AC4", 1, {{{1, 1}, {2, 2}, {3, 3}, {5, 4}, {7, 5}, {6, 6}, {NONE, 0}}, {{NONE, 0}}}, 4, 3, 2},
    {"AC7", 7, {{{2, 1}, {3, 2}, {1, 3}, {5, 4}, {6, 5}, {7, 6}, {NONE, 0}}, {{NONE, 0}}}, 8, 6, 1},
    /* 7 comes twice: the second is a duplicate, and a duplicate moves no time (Beam: 8). */
    {"AC8",
     7,
     {{{2, 1}, {3, 2}, {1, 3}, {5, 4}, {6, 5}, {7, 6}, {8, 7}, {7, 8}, {NONE, 0}}, {{NONE, 0}}},
     9,
     7,
     1},
    {"AM1", 1, {{{NONE, 0}}, {{NONE, 0}}}, 1, 0, 0},
    {"AM2", 1, {{{3, 1}, {2, 2}, {1, 3}, {NONE, 0}}, {{NONE, 0}}}, 4, 3, 1},
    {"AM3", 1, {{{1, 1}, {2, 2}, {NONE, 0}}, {{4, 3}, {5, 4}, {6, 5}, {NONE, 0}}}, 3, 2, 2},
    {"AM5", 1, {{{1, 1}, {2, 2}, {NONE, 0}}, {{3, 3}, {4, 4}, {5, 5}, {6, 6}, {NONE, 0}}}, 7, 6, 1},
    {"AM6", 3, {{{1, 1}, {2, 2}, {NONE, 0}}, {{3, 3}, {4, 4}, {5, 5}, {6, 6}, {NONE, 0}}}, 7, 6, 1},
    {"AM7",
     1,
     {{{1, 1}, {2, 2}, {3, 3}, {5, 4}, {NONE, 0}}, {{3, 3}, {4, 6}, {5, 4}, {6, 8}, {NONE, 0}}},
     7,
     8,
     1},
    {"AM9",
     1,
     {{{1, 1}, {2, 10000}, {NONE, 0}}, {{3, 3}, {4, 4}, {5, 5}, {6, 6}, {NONE, 0}}},
     7,
     10000,
     1},
    {"X1", 1, {{{2, 10}, {NONE, 0}}, {{1, 5}, {NONE, 0}}}, 3, 10, 1},
    {"X2", 1, {{{2, 10}, {NONE, 0}}, {{1, 5}, {3, 11}, {NONE, 0}}}, 4, 11, 1},
    {"X3", 1, {{{1, 1}, {2, 2}, {5, 50}, {NONE, 0}}, {{3, 3}, {4, 4}, {NONE, 0}}}, 6, 50, 1},
};

static void add_all(uint64_t stream, int64_t first, const struct add *adds) {
  for (; adds->sequence != NONE; adds++) {
    struct hb_test_event event = {
        .sequence = adds->sequence, .content = 7, .size = 20, .seconds = adds->seconds};
    enum hb_outcome outcome = hb_driver_send(&driver, stream, event).outcome;
    if (adds->sequence < first) {
      assert_int_equal(outcome, HB_OUTCOME_BEFORE_FIRST);
    } else {
      assert_true(outcome == HB_OUTCOME_STORED || outcome == HB_OUTCOME_DUPLICATE);
    }
  }
}

static size_t ranges_of(const struct hb_stream_status *status) {
  const struct hb_frontier *record = &status->record;
  return (record->complete_to > record->first_sequence) + status->gaps_total;
}

static void check(const struct range_case *row, uint64_t stream) {
  struct hb_stream_status status = hb_driver_status(&driver, stream);
  const struct hb_frontier *record = &status.record;
  if (record->first_sequence != row->first || record->complete_to != row->end ||
      record->frontier != row->end || record->max_event_time.seconds != row->seconds ||
      ranges_of(&status) != row->ranges) {
    fail_msg("%s: [%lld, %lld), time %lld, %zu ranges", row->id, (long long)record->first_sequence,
             (long long)record->complete_to, (long long)record->max_event_time.seconds,
             ranges_of(&status));
  }
}

/* Accumulating and merging, both ways round, as one core and as one that was built anew. */
static void test_ranges(void **state) {
  (void)state;
  uint64_t stream = 0;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const struct range_case *row = &CASES[i];
    struct hb_stream_config config = hb_driver_config(row->first);
    for (int way = 0; way < 4; way++) {
      stream++;
      hb_driver_add(&driver, stream, &config);
      add_all(stream, row->first, row->sets[way % 2]);
      if (way / 2) hb_driver_restart(&driver);
      add_all(stream, row->first, row->sets[1 - way % 2]);
      check(row, stream);
      hb_fake_remove_stream(&driver.store, stream);
      hb_ordering_remove_stream(driver.core, stream);
    }
  }
}

/* AC5, AC6, AM4: nothing is complete where no start is known. A stream of ours always knows where
 * it starts, once it has an event; the interval set itself need not. */
static void test_no_start(void **state) {
  (void)state;
  static const int64_t AC5[] = {2, 3, 1, 5};
  static const int64_t AM4[] = {1, 2, 4, 5, 6};
  size_t account = 0;
  struct hb_interval_set set;
  hb_intervals_init(&set, INT64_MIN, &account); /* AC6 */
  assert_int_equal(hb_intervals_gaps(&set), 0);
  for (size_t i = 0; i < 4; i++) hb_intervals_insert(&set, AC5[i], AC5[i] + 1, 1);
  assert_int_equal(hb_intervals_gaps(&set), 2);
  assert_true(set.base == INT64_MIN);
  hb_intervals_done(&set);
  hb_intervals_init(&set, INT64_MIN, &account);
  for (size_t i = 0; i < 5; i++) hb_intervals_insert(&set, AM4[i], AM4[i] + 1, 1);
  assert_int_equal(hb_intervals_gaps(&set), 2);
  assert_true(set.base == INT64_MIN);
  hb_intervals_done(&set);
}

/* ---- CD: what is stored of a range is what is read back */

static void check_round_trip(uint64_t stream) {
  struct hb_stream_status before = hb_driver_status(&driver, stream);
  struct hb_buf row = {0};
  struct hb_frontier record;
  hb_record_put_frontier(&row, &before.record);
  assert_int_equal(hb_record_get_frontier(hb_buf_view(&row), &record, NULL), HB_OK);
  assert_int_equal(record.frozen, before.record.frozen);
  assert_int_equal(record.first_sequence, before.record.first_sequence);
  assert_int_equal(record.complete_to, before.record.complete_to);
  assert_int_equal(record.max_event_time.seconds, before.record.max_event_time.seconds);
  for (uint32_t i = 0; i < before.gaps_count; i++) {
    struct hb_gap gap = {.start = before.gaps[i].start};
    hb_buf_clear(&row);
    hb_record_put_gap(&row, &before.gaps[i]);
    assert_int_equal(hb_record_get_gap(hb_buf_view(&row), &gap, NULL), HB_OK);
    assert_int_equal(gap.start, before.gaps[i].start);
    assert_int_equal(gap.end, before.gaps[i].end);
    assert_int_equal(gap.first_seen_served_ms, before.gaps[i].first_seen_served_ms);
  }
  hb_buf_done(&row);
  hb_driver_restart(&driver); /* and the core that is built from them is the same */
  struct hb_stream_status after = hb_driver_status(&driver, stream);
  assert_int_equal(after.record.complete_to, before.record.complete_to);
  assert_int_equal(after.gaps_total, before.gaps_total);
  for (uint32_t i = 0; i < before.gaps_count; i++) {
    assert_int_equal(after.gaps[i].start, before.gaps[i].start);
    assert_int_equal(after.gaps[i].end, before.gaps[i].end);
  }
}

/* CD1 empty; CD2 without a start that is known (our nearest: the first one is missing); CD3 with.
 */
static void test_cd(void **state) {
  (void)state;
  static const struct add NOTHING[] = {{NONE, 0}};
  static const struct add WITHOUT[] = {{2, 2}, {3, 3}, {5, 4}, {6, 5}, {NONE, 0}};
  static const struct add WITH[] = {{1, 1}, {2, 2}, {3, 3}, {5, 4}, {6, 5}, {NONE, 0}};
  static const struct add *const SETS[] = {NOTHING, WITHOUT, WITH};
  struct hb_stream_config config = hb_driver_config(1);
  for (uint64_t i = 0; i < 3; i++) {
    hb_driver_add(&driver, i + 1, &config);
    add_all(i + 1, 1, SETS[i]);
    check_round_trip(i + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_ranges, start, stop),
      cmocka_unit_test(test_no_start),
      cmocka_unit_test_setup_teardown(test_cd, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
