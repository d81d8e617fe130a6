#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ordering/held_index.h"

static struct hb_held_run run_at(int64_t start, uint32_t length, uint32_t slot, uint32_t index) {
  return (struct hb_held_run){.start = start, .length = length, .slot = slot, .index = index};
}

/* Consecutive events of one bundle are one run; another bundle or a hole begins a new one. */
static void joins_consecutive_events(void **state) {
  (void)state;
  size_t bytes = 0;
  struct hb_held_index index;
  hb_held_init(&index, &bytes);
  assert_true(hb_held_insert(&index, run_at(10, 2, 1, 0)));
  assert_true(hb_held_insert(&index, run_at(12, 3, 1, 2)));
  assert_int_equal(index.runs.spans, 1);
  assert_true(hb_held_insert(&index, run_at(15, 1, 2, 0)));
  assert_true(hb_held_insert(&index, run_at(17, 1, 2, 1)));
  assert_true(hb_held_insert(&index, run_at(18, 1, 2, 3)));
  assert_int_equal(index.runs.spans, 4);
  assert_int_equal(index.events, 8);
  struct hb_held_run found;
  assert_true(hb_held_find(&index, 14, &found));
  assert_int_equal(found.start, 10);
  assert_int_equal(found.length, 5);
  assert_false(hb_held_find(&index, 16, &found));
  assert_false(hb_held_find(&index, 9, &found));
  hb_held_done(&index);
  assert_int_equal(bytes, 0);
}

/* A sequence that is held can't be held twice, wherever the overlap lies. */
static void refuses_overlap(void **state) {
  (void)state;
  size_t bytes = 0;
  struct hb_held_index index;
  hb_held_init(&index, &bytes);
  assert_true(hb_held_insert(&index, run_at(10, 5, 1, 0)));
  assert_false(hb_held_insert(&index, run_at(10, 1, 2, 0)));
  assert_false(hb_held_insert(&index, run_at(14, 1, 2, 0)));
  assert_false(hb_held_insert(&index, run_at(8, 3, 2, 0)));
  assert_false(hb_held_insert(&index, run_at(0, 100, 2, 0)));
  assert_true(hb_held_insert(&index, run_at(8, 2, 2, 0)));
  assert_true(hb_held_insert(&index, run_at(15, 1, 2, 2)));
  assert_int_equal(index.events, 8);
  hb_held_done(&index);
}

/* Popping takes part of a run and keeps where the rest lies in the bundle. */
static void pops_from_the_front(void **state) {
  (void)state;
  size_t bytes = 0;
  struct hb_held_index index;
  hb_held_init(&index, &bytes);
  assert_true(hb_held_insert(&index, run_at(INT64_MIN, 4, 1, 7)));
  assert_true(hb_held_insert(&index, run_at(INT64_MAX - 1, 1, 3, 0)));
  hb_held_pop(&index, 3);
  struct hb_held_run front;
  assert_true(hb_held_front(&index, &front));
  struct hb_held_run ahead;
  assert_true(hb_held_ahead(&index, 0, &ahead));
  assert_int_equal(ahead.start, front.start);
  assert_true(hb_held_ahead(&index, 1, &ahead));
  assert_int_equal(ahead.start, INT64_MAX - 1);
  assert_false(hb_held_ahead(&index, 2, &ahead));
  assert_int_equal(front.start, INT64_MIN + 3);
  assert_int_equal(front.index, 10);
  assert_int_equal(front.length, 1);
  hb_held_pop(&index, 1);
  assert_true(hb_held_front(&index, &front));
  assert_int_equal(front.start, INT64_MAX - 1);
  hb_held_pop(&index, 1);
  assert_false(hb_held_front(&index, &front));
  assert_int_equal(index.events, 0);
  hb_held_done(&index);
}

/* Scattered events inserted in any order, some removed, are found where they lie. */
static void finds_what_was_inserted(void **state) {
  (void)state;
  enum { COUNT = 50021, STEP = 7919 };
  size_t bytes = 0;
  struct hb_held_index index;
  hb_held_init(&index, &bytes);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t at = (uint32_t)((uint64_t)i * STEP % COUNT);
    assert_true(hb_held_insert(&index, run_at((int64_t)at * 3, 1, at, at + 1)));
  }
  assert_int_equal(index.runs.spans, COUNT);
  assert_true(bytes < COUNT * 40u);
  for (uint32_t at = 0; at < COUNT; at += 2) hb_held_remove(&index, (int64_t)at * 3);
  struct hb_held_run found;
  for (uint32_t at = 0; at < COUNT; at++) {
    bool there = hb_held_find(&index, (int64_t)at * 3, &found);
    assert_int_equal(there, at % 2);
    if (there) assert_int_equal(found.slot, at);
    assert_false(hb_held_find(&index, (int64_t)at * 3 + 1, &found));
  }
  assert_int_equal(index.events, COUNT / 2);
  int64_t reach = hb_held_reach(&index, 1000);
  assert_true(reach > 4000 && reach < 8000);
  assert_int_equal(hb_held_reach(&index, COUNT), INT64_MAX);
  while (index.events) hb_held_pop(&index, 1);
  hb_held_done(&index);
  assert_int_equal(bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_consecutive_events),
      cmocka_unit_test(refuses_overlap),
      cmocka_unit_test(pops_from_the_front),
      cmocka_unit_test(finds_what_was_inserted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
