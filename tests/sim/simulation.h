/* One simulation: a safety phase in which everything goes wrong, then a liveness phase in which
 * nothing does, at the end of which every event was delivered exactly once. */
#ifndef HB_TESTS_SIM_SIMULATION_H
#define HB_TESTS_SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

/* What can be left out of a run: faults, then clients that nobody needs. */
enum { HB_SIM_FAULTS = 24, HB_SIM_EXTRAS = 16, HB_SIM_STEPS = HB_SIM_FAULTS + HB_SIM_EXTRAS };

struct hb_sim_tally {
  unsigned lives, failed_writes, power_losses, refused, needs, fetches;
  unsigned acked, conflicts, far, delivered, reconnects;
};

/* `keep` has HB_SIM_STEPS flags. Returns the hash of the trace; failures are cmocka's. */
uint64_t hb_simulate(uint64_t seed, const bool *keep, bool tell, struct hb_sim_tally *tally);

#endif
