/* The heap of timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "server/rpc/timers.h"

enum { COUNT = 500 };

/* Whatever is set, moved and cleared, timers come out in the order of their deadlines. */
static void come_out_in_order(void **state) {
  (void)state;
  struct hb_timers timers = {0};
  struct hb_timer list[COUNT] = {0};
  unsigned seed = 7;
  size_t expected = 0;
  for (size_t i = 0; i < COUNT; i++) hb_timers_set(&timers, &list[i], (uint64_t)rand_r(&seed));
  for (size_t i = 0; i < COUNT; i += 3) hb_timers_set(&timers, &list[i], (uint64_t)rand_r(&seed));
  for (size_t i = 0; i < COUNT; i += 5) hb_timers_clear(&timers, &list[i]);
  for (size_t i = 0; i < COUNT; i++) expected += list[i].place != 0;
  uint64_t last = 0;
  size_t count = 0;
  struct hb_timer *due;
  while ((due = hb_timers_take_due(&timers, UINT64_MAX))) {
    assert_true(due->at_ns >= last);
    assert_int_equal(due->place, 0);
    last = due->at_ns;
    count++;
  }
  assert_int_equal(count, expected);
  hb_timers_done(&timers);
}

/* A timer is due at its deadline, not before. */
static void is_due_at_its_deadline(void **state) {
  (void)state;
  struct hb_timers timers = {0};
  struct hb_timer timer = {0};
  assert_true(hb_timers_next_ns(&timers) == UINT64_MAX);
  hb_timers_set(&timers, &timer, 100);
  assert_int_equal(hb_timers_next_ns(&timers), 100);
  assert_null(hb_timers_take_due(&timers, 99));
  assert_ptr_equal(hb_timers_take_due(&timers, 100), &timer);
  hb_timers_done(&timers);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(come_out_in_order),
                                     cmocka_unit_test(is_due_at_its_deadline)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
