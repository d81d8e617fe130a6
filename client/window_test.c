/* Refused events: which goes again first, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "client/window.h"

static void add(struct hbc_window *window, int64_t sequence, uint64_t index, uint64_t now_ms) {
  struct hbc_refused refused = {
      .sequence = sequence, .index = index, .frame = (uint8_t *)"frame", .size = 5};
  hbc_window_add(window, &refused, now_ms);
}

static uint64_t take_index(struct hbc_window *window) {
  struct hbc_refused refused = hbc_window_take(window);
  free(refused.frame);
  return refused.index;
}

/* Lowest sequence first; copies of one sequence in the order in which they were refused. */
static void lowest_first(void **state) {
  (void)state;
  static const int64_t sequences[] = {50, -3, 7, 50, INT64_MIN, 7, 1000, 8};
  static const uint64_t order[] = {4, 1, 2, 5, 7, 0, 3, 6};
  struct hbc_window window = {0};
  for (size_t i = 0; i < 8; i++) add(&window, sequences[i], i, 1);
  for (size_t i = 0; i < 8; i++) assert_int_equal(take_index(&window), order[i]);
  assert_int_equal(window.bytes, 0);
  hbc_window_done(&window);
}

/* Any order of refusals comes out sorted. */
static void random_orders(void **state) {
  (void)state;
  uint32_t seed = 12345;
  struct hbc_window window = {0};
  for (size_t i = 0; i < 1000; i++) {
    seed = seed * 1664525u + 1013904223u;
    add(&window, (int64_t)(seed >> 20), i, 1);
  }
  int64_t before = INT64_MIN;
  while (window.count) {
    struct hbc_refused refused = hbc_window_take(&window);
    assert_true(refused.sequence >= before);
    before = refused.sequence;
    free(refused.frame);
  }
  hbc_window_done(&window);
}

/* Nothing is sent again before there is a reason: complete_to moved, or a try was taken. */
static void no_retry_without_hope(void **state) {
  (void)state;
  struct hbc_window window = {0};
  hbc_window_saw_complete_to(&window, 10, 1);
  add(&window, 20, 0, 2);
  assert_false(hbc_window_may_retry(&window));
  hbc_window_saw_complete_to(&window, 10, 3);
  assert_false(hbc_window_may_retry(&window));
  hbc_window_saw_complete_to(&window, 11, 4);
  assert_true(hbc_window_may_retry(&window));
  window.hope = false;
  hbc_window_taken(&window, 5);
  assert_true(hbc_window_may_retry(&window));
  hbc_window_done(&window);
}

/* What moved before an event was refused is no reason to send it again. */
static void old_hope_is_forgotten(void **state) {
  (void)state;
  struct hbc_window window = {0};
  hbc_window_saw_complete_to(&window, 10, 1);
  hbc_window_saw_complete_to(&window, 11, 1);
  add(&window, 20, 0, 2);
  assert_false(hbc_window_may_retry(&window));
  hbc_window_done(&window);
}

/* A sequence at or above the window's end would only be refused as AHEAD again. */
static void not_beyond_the_end(void **state) {
  (void)state;
  struct hbc_window window = {0};
  hbc_window_saw_complete_to(&window, 1, 1);
  hbc_window_saw_end(&window, 20);
  add(&window, 20, 0, 2);
  hbc_window_saw_complete_to(&window, 2, 3);
  assert_false(hbc_window_may_retry(&window));
  hbc_window_saw_end(&window, 21);
  assert_true(hbc_window_may_retry(&window));
  hbc_window_done(&window);
}

/* The time without movement counts from the first refusal, and an event that is refused again
 * does not begin it anew. */
static void time_without_movement(void **state) {
  (void)state;
  struct hbc_window window = {0};
  hbc_window_saw_complete_to(&window, 1, 100);
  add(&window, 20, 0, 5000);
  assert_int_equal(window.moved_ms, 5000);
  (void)take_index(&window);
  add(&window, 20, 0, 0);
  assert_int_equal(window.moved_ms, 5000);
  hbc_window_saw_complete_to(&window, 2, 6000);
  assert_int_equal(window.moved_ms, 6000);
  hbc_window_done(&window);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lowest_first),          cmocka_unit_test(random_orders),
      cmocka_unit_test(no_retry_without_hope), cmocka_unit_test(old_hope_is_forgotten),
      cmocka_unit_test(not_beyond_the_end),    cmocka_unit_test(time_without_movement),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
