/* Decides how randomness is seeded, printed and drawn (splitmix64). */
#include "tests/lib/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"

struct hbt_rng hbt_rng_start(const char *what) {
  struct hbt_rng rng = {0};
  const char *given = getenv("HOLDBACK_SEED");
  if (given) {
    rng.state = strtoull(given, NULL, 0);
  } else if (getrandom(&rng.state, sizeof rng.state, 0) != (ssize_t)sizeof rng.state) {
    perror("getrandom");
    abort();
  }
  (void)printf("%s: seed %llu (again: --test_env=HOLDBACK_SEED=%llu)\n", what,
               (unsigned long long)rng.state, (unsigned long long)rng.state);
  (void)fflush(stdout);
  return rng;
}

uint64_t hbt_rng_next(struct hbt_rng *rng) {
  uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The bias of the remainder is far below what a test could notice. */
uint64_t hbt_rng_below(struct hbt_rng *rng, uint64_t end) { return hbt_rng_next(rng) % end; }

struct ranked {
  uint64_t rank;
  uint32_t number;
};

static int by_rank(const void *left, const void *right) {
  const struct ranked *a = left;
  const struct ranked *b = right;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

void hbt_rng_displace(struct hbt_rng *rng, uint32_t *order, size_t count, uint64_t disorder) {
  struct ranked *ranked = hb_calloc(count, sizeof *ranked);
  for (size_t i = 0; i < count; i++) {
    ranked[i] = (struct ranked){i + hbt_rng_below(rng, disorder), (uint32_t)i};
  }
  qsort(ranked, count, sizeof *ranked, by_rank);
  for (size_t i = 0; i < count; i++) order[i] = ranked[i].number;
  free(ranked);
}
