/* The tests are tested: with a bug planted, the program that should find it must fail, and say how
 * to see it again; without one, the same program built the same way must pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/shrink.h"

enum { TIMEOUT_MS = 120000 };

static const char *const MODEL[] = {"tests/planted/model", NULL};
static const char *const SIM[] = {"tests/planted/sim", NULL};
static const char *const SWEEP[] = {"tests/planted/crash_sweep", "--points=20", NULL};
static const char *const STORED[] = {"tests/planted/stored_model", NULL};
/* These end at the first point that fails. */
static const char *const ENGINE_SWEEP[] = {"tests/planted/crash_sweep", "--subject=engine",
                                           "--points=100", NULL};
static const char *const LONG_SWEEP[] = {"tests/planted/crash_sweep", "--points=300", NULL};

static struct hbt_run run_with(const char *bug, const char *const *arguments) {
  setenv("HB_PLANTED_BUG", bug, 1);
  struct hbt_run run = hbt_run(arguments, NULL, 0, TIMEOUT_MS);
  unsetenv("HB_PLANTED_BUG");
  return run;
}

static void passes(const char *const *arguments) {
  struct hbt_run run = run_with("", arguments);
  if (run.code) print_message("%s%s\n", run.out, run.err);
  assert_int_equal(run.code, 0);
  hbt_run_done(&run);
}

/* It fails, and one of its lines has the command that shows it again. */
static void finds(const char *bug, const char *const *arguments, const char *again) {
  struct hbt_run run = run_with(bug, arguments);
  bool told = strstr(run.out, again) || strstr(run.err, again);
  if (run.code != 1 || !told) print_message("%s: code %d\n%s%s\n", bug, run.code, run.out, run.err);
  assert_int_equal(run.code, 1);
  assert_true(told);
  hbt_run_done(&run);
}

static int few_seeds(void **state) {
  (void)state;
  return setenv("HB_SEEDS", "10", 1);
}

static void without_a_bug_all_pass(void **state) {
  (void)state;
  passes(MODEL);
  passes(SIM);
  passes(SWEEP);
}

/* The power fails, and what was answered was only written (I1). */
static void an_ack_before_the_sync(void **state) {
  (void)state;
  finds("ack_before_sync", LONG_SWEEP, "--point=");
  finds("ack_before_sync", ENGINE_SWEEP, "--point=");
}

/* The record says more than the log has (I4). */
static void a_frontier_ahead_of_the_data(void **state) {
  (void)state;
  finds("frontier_ahead_of_data", MODEL, "again: HB_SEED=");
  finds("frontier_ahead_of_data", SIM, "again: HB_SEED=");
  finds("frontier_ahead_of_data", STORED, "HB_STEPS=");
}

/* The file was synced, its name was not. */
static void a_skipped_sync_of_a_directory(void **state) {
  (void)state;
  finds("skipped_directory_sync", LONG_SWEEP, "--point=");
  finds("skipped_directory_sync", ENGINE_SWEEP, "--point=");
}

/* A gap that is one sequence wide counts as filled. */
static void an_off_by_one_at_the_edge_of_a_gap(void **state) {
  (void)state;
  finds("off_by_one_at_gap_edge", MODEL, "again: HB_SEED=");
  finds("off_by_one_at_gap_edge", SIM, "again: HB_SEED=");
}

/* A write failed, and what it would have stored is believed (I6). */
static void presence_learned_from_a_failed_write(void **state) {
  (void)state;
  finds("presence_from_failed_write", MODEL, "again: HB_SEED=");
  finds("presence_from_failed_write", SIM, "again: HB_SEED=");
}

/* The copy is answered before what it is a copy of is durable (I1). */
static void a_duplicate_answered_too_early(void **state) {
  (void)state;
  finds("duplicate_before_first_durable", MODEL, "again: HB_SEED=");
  finds("duplicate_before_first_durable", SIM, "again: HB_SEED=");
}

/* The core has decided it, the writer has it, and the answer does not wait for the writer (I1). */
static void an_answer_beside_the_write(void **state) {
  (void)state;
  finds("answer_in_flight", ENGINE_SWEEP, "--point=");
}

/* ---- the shrinker */

enum { MODEL_STEPS = 800, FEW_STEPS = 20 };

/* The seed and steps of the line that says how to see it again. */
static void take_again(const char *out, char seed[32], bool *keep) {
  const char *line = strstr(out, "again: HB_SEED=");
  assert_non_null(line);
  char steps[4096];
  assert_int_equal(sscanf(line, "again: HB_SEED=%31[0-9] HB_STEPS=%4095[0-9,]", seed, steps), 2);
  assert_true(hbt_steps_parse(steps, keep, MODEL_STEPS));
}

static int run_steps(const char *bug, const char *seed, const bool *keep) {
  setenv("HB_SEED", seed, 1);
  setenv("HB_STEPS", hbt_steps_text(keep, MODEL_STEPS), 1);
  struct hbt_run run = run_with(bug, MODEL);
  int code = run.code;
  hbt_run_done(&run);
  unsetenv("HB_SEED");
  unsetenv("HB_STEPS");
  return code;
}

/* Of the 800 steps that found it a few are left: they show it again, each of them is needed, and
 * without the bug they pass. */
static void what_is_found_is_shrunk(void **state) {
  (void)state;
  const char *bug = "presence_from_failed_write";
  bool keep[MODEL_STEPS];
  char seed[32];
  struct hbt_run run = run_with(bug, MODEL);
  take_again(run.out, seed, keep);
  hbt_run_done(&run);
  size_t kept = 0;
  for (size_t i = 0; i < MODEL_STEPS; i++) {
    if (!keep[i]) continue;
    kept++;
    keep[i] = false;
    assert_int_equal(run_steps(bug, seed, keep), 0);
    keep[i] = true;
  }
  assert_in_range(kept, 1, FEW_STEPS);
  assert_int_equal(run_steps(bug, seed, keep), 1);
  assert_int_equal(run_steps("", seed, keep), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_bug_all_pass),
      cmocka_unit_test(an_ack_before_the_sync),
      cmocka_unit_test(a_frontier_ahead_of_the_data),
      cmocka_unit_test(a_skipped_sync_of_a_directory),
      cmocka_unit_test(an_off_by_one_at_the_edge_of_a_gap),
      cmocka_unit_test(presence_learned_from_a_failed_write),
      cmocka_unit_test(a_duplicate_answered_too_early),
      cmocka_unit_test(an_answer_beside_the_write),
      cmocka_unit_test(what_is_found_is_shrunk),
  };
  return cmocka_run_group_tests(tests, few_seeds, NULL) ? 1 : 0;
}
