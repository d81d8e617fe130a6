/* The core against the naive model, in random scenarios that can be run again:
 *
 *   HB_SEED=n      this scenario only         HB_SEEDS=n     that many, from 1
 *   HB_STEPS=a,b   with HB_SEED: these steps of it only, each told in words
 *
 * A scenario that fails is shrunk: the fewest steps that still fail are printed, with the command
 * that runs them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/shrink.h"
#include "tests/model/scenario.h"

enum { SEEDS = 150, TRIALS_MAX = 600 };

struct run {
  uint64_t seed;
  bool tell;
  struct hb_scenario_tally *tally; /* shared with children */
};

static int run_steps(void *context, const bool *keep, size_t count) {
  const struct run *run = context;
  assert_int_equal(count, HB_SCENARIO_STEPS);
  hb_scenario_run(run->seed, keep, run->tell, run->tally);
  return 0;
}

/* The tally grows by what failing runs do too: it is looked at only where none failed. */
static void shrink(struct run *run, bool *keep) {
  size_t kept = hbt_shrink(run_steps, run, keep, HB_SCENARIO_STEPS, TRIALS_MAX);
  printf("\nthe fewest steps of seed %" PRIu64 " that fail, %zu of %d:\n", run->seed, kept,
         HB_SCENARIO_STEPS);
  run->tell = true;
  (void)hbt_trial_fails(run_steps, run, keep, HB_SCENARIO_STEPS, false);
  printf("\nagain: HB_SEED=%" PRIu64
         " HB_STEPS=%s ./bazelw run //tests/model:ordering_model_test\n",
         run->seed, hbt_steps_text(keep, HB_SCENARIO_STEPS));
}

static void check_tally(const struct hb_scenario_tally *tally) {
  printf("needs %u, moved %u, fetches %u, unreadable %u, rewrites %u, failed writes %u\n",
         tally->needs, tally->moved, tally->fetches, tally->unreadable, tally->rewrites,
         tally->failed_writes);
  printf(
      "gap rows %u, gone %u, filled %u; refused: ahead %u, bytes %u, gaps %u, reserve %u, "
      "events %u\n",
      tally->gap_rows, tally->gone_rows, tally->filled, tally->refused[HB_REASON_AHEAD],
      tally->refused[HB_REASON_HELD_BYTES], tally->refused[HB_REASON_GAPS],
      tally->refused[HB_REASON_DISK_RESERVE], tally->refused[HB_REASON_HELD_EVENTS]);
  assert_true(tally->needs && tally->moved && tally->fetches && tally->unreadable);
  assert_true(tally->rewrites && tally->failed_writes && tally->gap_rows && tally->gone_rows);
  assert_true(tally->filled && tally->refused[HB_REASON_AHEAD]);
  assert_true(tally->refused[HB_REASON_HELD_BYTES] && tally->refused[HB_REASON_GAPS]);
  assert_true(tally->refused[HB_REASON_DISK_RESERVE] && tally->refused[HB_REASON_HELD_EVENTS]);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct hb_scenario_tally *shared_tally(void) {
  void *memory = mmap(NULL, sizeof(struct hb_scenario_tally), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(memory != MAP_FAILED);
  return memory;
}

/* Whatever happens in whatever order, the core does what the model says. */
static void agrees_with_the_model(void **state) {
  (void)state;
  static bool keep[HB_SCENARIO_STEPS];
  const char *steps = getenv("HB_STEPS");
  uint64_t one = number_from("HB_SEED", 0);
  uint64_t last = one ? one : number_from("HB_SEEDS", SEEDS);
  struct run run = {.tell = steps != NULL, .tally = shared_tally()};
  for (run.seed = one ? one : 1; run.seed <= last; run.seed++) {
    printf("HB_SEED=%" PRIu64 "\n", run.seed);
    memset(keep, true, sizeof keep);
    if (steps) assert_true(hbt_steps_parse(steps, keep, HB_SCENARIO_STEPS));
    bool failed = hbt_trial_fails(run_steps, &run, keep, HB_SCENARIO_STEPS, false);
    if (failed && !steps) shrink(&run, keep);
    assert_false(failed);
  }
  if (last >= 100 && !one) check_tally(run.tally);
  munmap(run.tally, sizeof *run.tally);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_model)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
