/* A part of the sweep, as a test; `crash_sweep` is the program for more. The arguments are the seed
 * and, where it is not the shell, the subject: BUILD has a few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "tests/faults/run.h"
#include "tests/faults/sweep.h"

static uint64_t seed = 1;

/* Whatever call a crash meets, and whatever a power loss takes of what was not synced: what was
 * acknowledged is there, in whole batches, without holes, and numbers never go back. */
static void a_crash_at_any_call_loses_nothing_acknowledged(void **state) {
  (void)state;
  struct hb_sweep sweep = {.subject = &hb_subject_shell, .seed = seed, .points = 125};
  assert_true(hb_sweep_crashes(&sweep));
  assert_true(sweep.calls > 300);
  assert_true(sweep.crashes > 80);
  assert_true(sweep.second > 5);
  assert_true(sweep.power_losses > 30);
}

/* The same of the engine with all of its threads, while the index takes files in and streams are
 * made and deleted: in the end verification finds nothing, and nothing of a deleted stream. */
static void a_crash_of_the_engine_loses_nothing_acknowledged(void **state) {
  (void)state;
  struct hb_sweep sweep = {.subject = &hb_subject_engine, .seed = seed, .points = 40};
  assert_true(hb_sweep_crashes(&sweep));
  assert_true(sweep.calls > 300);
  assert_true(sweep.crashes > 20);
  assert_true(sweep.power_losses > 10);
}

int main(int argc, char **argv) {
  if (argc > 1) seed = strtoull(argv[1], NULL, 10);
  print_message("seed %llu\n", (unsigned long long)seed);
  const struct CMUnitTest engine[] = {
      cmocka_unit_test(a_crash_of_the_engine_loses_nothing_acknowledged),
  };
  if (argc > 2) return cmocka_run_group_tests(engine, NULL, NULL) ? 1 : 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_crash_at_any_call_loses_nothing_acknowledged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
