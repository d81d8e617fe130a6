/* The search for the fewest steps, on failures whose steps are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/shrink.h"

enum { STEPS = 300, TRIALS = 400 };

struct steps {
  bool keep[STEPS];
};

static struct steps all(void) {
  struct steps steps;
  memset(steps.keep, true, sizeof steps.keep);
  return steps;
}

static int three_together(void *context, const bool *keep, size_t count) {
  (void)context;
  (void)count;
  return keep[3] && keep[77] && keep[250];
}

/* Steps that only together fail are what is left, and nothing else. */
static void the_cause_is_left(void **state) {
  (void)state;
  struct steps steps = all();
  assert_int_equal(hbt_shrink(three_together, NULL, steps.keep, STEPS, TRIALS), 3);
  assert_string_equal(hbt_steps_text(steps.keep, STEPS), "3,77,250");
}

static int dies(void *context, const bool *keep, size_t count) {
  (void)context;
  (void)count;
  if (keep[299]) raise(SIGKILL);
  return 0;
}

/* A child that dies is a failure like any other. */
static void a_child_may_die(void **state) {
  (void)state;
  struct steps steps = all();
  assert_int_equal(hbt_shrink(dies, NULL, steps.keep, STEPS, TRIALS), 1);
  assert_true(steps.keep[299]);
}

static int always(void *context, const bool *keep, size_t count) {
  (void)context;
  (void)keep;
  (void)count;
  return 1;
}

/* What fails by itself needs no step; and the search keeps to its trials. */
static void it_ends(void **state) {
  (void)state;
  struct steps steps = all();
  assert_int_equal(hbt_shrink(always, NULL, steps.keep, STEPS, TRIALS), 0);
  steps = all();
  size_t kept = hbt_shrink(three_together, NULL, steps.keep, STEPS, 8);
  assert_true(kept > 3 && kept < STEPS);
  assert_true(steps.keep[3] && steps.keep[77] && steps.keep[250]);
}

/* A list that was printed reads back; what is none is refused. */
static void lists_read_back(void **state) {
  (void)state;
  struct steps steps = all();
  assert_true(hbt_steps_parse("0,17,299", steps.keep, STEPS));
  assert_string_equal(hbt_steps_text(steps.keep, STEPS), "0,17,299");
  assert_true(hbt_steps_parse("", steps.keep, STEPS));
  assert_string_equal(hbt_steps_text(steps.keep, STEPS), "");
  assert_false(hbt_steps_parse("300", steps.keep, STEPS));
  assert_false(hbt_steps_parse("1;2", steps.keep, STEPS));
  assert_false(hbt_steps_parse("x", steps.keep, STEPS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cause_is_left),
      cmocka_unit_test(a_child_may_die),
      cmocka_unit_test(it_ends),
      cmocka_unit_test(lists_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
