/* The interval set: which sequences of a stream are covered.
 *
 * Everything below `base` is, and above it the ranges here, maximal and apart: between two of them,
 * and between base and the first, lies a gap. So base is complete_to once first_sequence is known,
 * and the number of ranges is the number of gaps. Each range carries when the gap below it was
 * first seen; where a gap is split both parts keep that. Cost follows the number of gaps, never
 * their width. Ranges are inserted, not points: an event is [sequence, sequence + 1). */
#ifndef HB_ORDERING_INTERVAL_SET_H
#define HB_ORDERING_INTERVAL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"
#include "ordering/pages.h"

struct hb_interval_set {
  int64_t base;
  struct hb_pages ranges;
  struct hb_place place; /* where the last search ended */
};

void hb_intervals_init(struct hb_interval_set *set, int64_t base, size_t *account);
void hb_intervals_done(struct hb_interval_set *set);

bool hb_intervals_contains(struct hb_interval_set *set, int64_t sequence);
/* start < end. What is covered already stays so. `seen` is for a gap that comes to be above all
 * ranges so far. */
void hb_intervals_insert(struct hb_interval_set *set, int64_t start, int64_t end, uint64_t seen);
/* Whether inserting [start, end), of which nothing is covered, makes one gap more. */
bool hb_intervals_splits(struct hb_interval_set *set, int64_t start, int64_t end);

/* See hb_pages_expect_page. */
static inline void hb_intervals_expect(const struct hb_interval_set *set, int64_t sooner,
                                       int64_t later, size_t pages[2]) {
  hb_pages_expect_spans(&set->ranges, sooner, &pages[0]);
  hb_pages_expect_page(&set->ranges, later, &pages[1]);
}

/* End of all that is covered: no gap lies above it. */
int64_t hb_intervals_end(const struct hb_interval_set *set);

static inline size_t hb_intervals_gaps(const struct hb_interval_set *set) {
  return set->ranges.spans;
}

/* ---- walking the gaps, ascending; the set must not change meanwhile */

struct hb_gap_walk {
  const struct hb_interval_set *set;
  struct hb_place place;
  int64_t from; /* end of the coverage below the next gap */
  bool more;
};

struct hb_gap_walk hb_gap_walk_start(const struct hb_interval_set *set);
/* Those that begin at or above `from`, and perhaps some before. */
struct hb_gap_walk hb_gap_walk_from(const struct hb_interval_set *set, int64_t from);
/* The next gap with the moment it was first seen; `slot` (may be NULL) gets the place where that
 * moment is kept. False: no more. */
bool hb_gap_walk_next(struct hb_gap_walk *walk, struct hb_range *out_gap, uint64_t **slot);

#endif
