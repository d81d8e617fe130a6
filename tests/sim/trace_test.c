/* A seed says everything: nothing of a simulation comes from anywhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/sim/simulation.h"

static uint64_t trace_of(uint64_t seed) {
  bool keep[HB_SIM_STEPS];
  memset(keep, true, sizeof keep);
  struct hb_sim_tally tally = {0};
  return hb_simulate(seed, keep, false, &tally);
}

/* The same seed gives the same trace, with other simulations in between. */
static void one_seed_one_trace(void **state) {
  (void)state;
  uint64_t first[4];
  for (uint64_t i = 0; i < 4; i++) first[i] = trace_of(101 + i);
  for (uint64_t i = 0; i < 4; i++) assert_int_equal(trace_of(101 + i), first[i]);
}

/* Another seed gives another one. */
static void other_seeds_other_traces(void **state) {
  (void)state;
  uint64_t traces[8];
  for (uint64_t i = 0; i < 8; i++) {
    traces[i] = trace_of(201 + i);
    for (uint64_t k = 0; k < i; k++) assert_int_not_equal(traces[i], traces[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_seed_one_trace),
                                     cmocka_unit_test(other_seeds_other_traces)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
