#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ordering/moments.h"

/* Served time is exact; wall time comes back within a second, across steps of the clock. */
static void keeps_both_times(void **state) {
  (void)state;
  struct hb_moments moments = {0};
  const uint64_t times[][2] = {{0, 1700000000000},
                               {5000, 1700000005400},
                               {6000, 1600000000000},
                               {7000, 1700000007000},
                               {9, 3}};
  for (int i = 0; i < 5; i++) {
    uint64_t moment = hb_moment_of(&moments, times[i][0], times[i][1]);
    assert_int_equal(hb_moment_served_ms(moment), times[i][0]);
    int64_t off = (int64_t)(hb_moment_wall_ms(&moments, moment) - times[i][1]);
    assert_true(off > -1000 && off < 1000);
  }
  assert_int_equal(moments.count, 3);
  assert_true(hb_moment_of(&moments, 1, 0) < hb_moment_of(&moments, 2, 1700000000000));
  hb_moments_done(&moments);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_both_times)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
