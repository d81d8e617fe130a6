/* The server in virtual time, from a seed:
 *
 *   HB_SEED=n      this simulation only, its trace told    HB_SEEDS=n     that many, from 1
 *   HB_STEPS=a,b   with HB_SEED: with these faults and extra clients only
 *
 * One that fails is shrunk: the fewest faults and clients that still fail are printed, with the
 * command that runs them again. */
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
#include "tests/sim/simulation.h"

enum { SEEDS = 40, TRIALS_MAX = 200 };

struct run {
  uint64_t seed;
  bool tell;
  struct hb_sim_tally *tally; /* shared with children */
};

static struct hb_sim_tally *shared_tally(void) {
  void *memory = mmap(NULL, sizeof(struct hb_sim_tally), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(memory != MAP_FAILED);
  return memory;
}

static int simulate(void *context, const bool *keep, size_t count) {
  const struct run *run = context;
  assert_int_equal(count, HB_SIM_STEPS);
  (void)hb_simulate(run->seed, keep, run->tell, run->tally);
  return 0;
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void shrink(struct run *run, bool *keep) {
  size_t kept = hbt_shrink(simulate, run, keep, HB_SIM_STEPS, TRIALS_MAX);
  printf("seed %" PRIu64 " fails with %zu of %d faults and extra clients\n", run->seed, kept,
         HB_SIM_STEPS);
  printf("again: HB_SEED=%" PRIu64 " HB_STEPS=%s ./bazelw run //tests/sim:sim_test\n", run->seed,
         hbt_steps_text(keep, HB_SIM_STEPS));
}

static void check_tally(const struct hb_sim_tally *tally) {
  printf("lives %u, failed writes %u, power losses %u, refused %u, needs %u, fetches %u\n",
         tally->lives, tally->failed_writes, tally->power_losses, tally->refused, tally->needs,
         tally->fetches);
  printf("acked %u, conflicts %u, far ahead %u, delivered %u, reconnects %u\n", tally->acked,
         tally->conflicts, tally->far, tally->delivered, tally->reconnects);
  assert_true(tally->lives && tally->failed_writes && tally->power_losses && tally->refused);
  assert_true(tally->needs && tally->fetches && tally->acked && tally->conflicts);
  assert_true(tally->far && tally->delivered && tally->reconnects);
}

/* Whatever goes wrong: nothing acknowledged is lost, nothing comes twice or out of order, and when
 * nothing goes wrong any more everything comes. */
static void everything_is_delivered_exactly_once(void **state) {
  (void)state;
  static bool keep[HB_SIM_STEPS];
  const char *steps = getenv("HB_STEPS");
  uint64_t one = number_from("HB_SEED", 0);
  uint64_t last = one ? one : number_from("HB_SEEDS", SEEDS);
  struct run run = {.tell = one != 0, .tally = shared_tally()};
  for (run.seed = one ? one : 1; run.seed <= last; run.seed++) {
    printf("HB_SEED=%" PRIu64 "\n", run.seed);
    memset(keep, true, sizeof keep);
    if (steps) assert_true(hbt_steps_parse(steps, keep, HB_SIM_STEPS));
    bool failed = hbt_trial_fails(simulate, &run, keep, HB_SIM_STEPS, false);
    if (failed && !steps) shrink(&run, keep);
    assert_false(failed);
  }
  if (!one && last >= 20) check_tally(run.tally);
  munmap(run.tally, sizeof *run.tally);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_delivered_exactly_once)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
