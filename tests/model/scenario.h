/* One random scenario of the core against the naive model, as a list of steps.
 *
 * What a step does follows from the seed, its number and the state that it meets, so that a
 * scenario can be run with some of its steps left out. Failures are cmocka's, or abort. */
#ifndef HB_TESTS_MODEL_SCENARIO_H
#define HB_TESTS_MODEL_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

enum { HB_SCENARIO_STEPS = 800 };

/* How often the rarer paths were taken. */
struct hb_scenario_tally {
  unsigned needs, moved, fetches, unreadable, rewrites, failed_writes, gap_rows, gone_rows;
  unsigned refused[HB_REASON_HELD_EVENTS + 1];
  unsigned filled; /* streams that ended without gap, all released */
};

/* `keep` has HB_SCENARIO_STEPS flags. `tell`: each step is printed in words. */
void hb_scenario_run(uint64_t seed, const bool *keep, bool tell, struct hb_scenario_tally *tally);

#endif
