/* Random numbers that can be had again.
 *
 * The seed is HOLDBACK_SEED where that is set, else a fresh one; it is printed with the way to
 * replay it, before anything depends on it. */
#ifndef TESTS_LIB_RNG_H
#define TESTS_LIB_RNG_H

#include <stddef.h>
#include <stdint.h>

struct hbt_rng {
  uint64_t state;
};

/* `what` says in the printed line which test the seed belongs to. */
struct hbt_rng hbt_rng_start(const char *what);
uint64_t hbt_rng_next(struct hbt_rng *rng);
/* In [0, end); end > 0. */
uint64_t hbt_rng_below(struct hbt_rng *rng, uint64_t end);
/* order[0 .. count) becomes 0 .. count-1, each displaced by less than `disorder` places. */
void hbt_rng_displace(struct hbt_rng *rng, uint32_t *order, size_t count, uint64_t disorder);

#endif
