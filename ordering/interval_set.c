/* Decides how a new range joins what is covered: it is swallowed, it extends, it joins two, or it
 * stands alone and splits a gap. base swallows every range that it reaches (I4, I5). */
#include "ordering/interval_set.h"

#include "base/assert.h"
#include "base/planted.h"

void hb_intervals_init(struct hb_interval_set *set, int64_t base, size_t *account) {
  *set = (struct hb_interval_set){.base = base};
  hb_pages_init(&set->ranges, account);
}

void hb_intervals_done(struct hb_interval_set *set) { hb_pages_done(&set->ranges); }

int64_t hb_intervals_end(const struct hb_interval_set *set) {
  const struct hb_span *back = hb_pages_back(&set->ranges);
  return back ? back->range.end : set->base;
}

bool hb_intervals_contains(struct hb_interval_set *set, int64_t sequence) {
  if (sequence < set->base) return true;
  if (sequence >= hb_intervals_end(set)) return false;
  if (!hb_pages_floor(&set->ranges, sequence, &set->place)) return false;
  return sequence < hb_pages_at(&set->ranges, set->place)->range.end;
}

/* The range at base grows to `end` and takes in each range that it reaches. */
static void extend_base(struct hb_interval_set *set, int64_t end) {
  if (end > set->base) set->base = end;
  struct hb_span *front = hb_pages_front(&set->ranges);
  while (front && front->start - HB_PLANTED(GAP_EDGE) <= set->base) {
    if (front->range.end > set->base) set->base = front->range.end;
    hb_pages_pop_front(&set->ranges);
    front = hb_pages_front(&set->ranges);
  }
}

/* The range at `place` grows to `end` and takes in each range above that it reaches. */
static void extend_range(struct hb_interval_set *set, struct hb_place place, int64_t end) {
  struct hb_span *range = hb_pages_at(&set->ranges, place);
  if (end <= range->range.end) return;
  int64_t start = range->start;
  struct hb_place above = place;
  while (hb_pages_next(&set->ranges, &above)) {
    struct hb_span *next = hb_pages_at(&set->ranges, above);
    if (next->start > end) break;
    if (next->range.end > end) end = next->range.end;
    hb_pages_erase(&set->ranges, &above);
    /* Pages may have been joined: find the range again. */
    hb_pages_floor(&set->ranges, start, &set->place);
    above = set->place;
  }
  hb_pages_floor(&set->ranges, start, &set->place);
  hb_pages_at(&set->ranges, set->place)->range.end = end;
}

/* [start, end) touches no range below: it is put at `above`, or joined with what is there. */
static void insert_at(struct hb_interval_set *set, struct hb_place above, struct hb_range range,
                      uint64_t seen) {
  if (hb_pages_valid(&set->ranges, above)) {
    struct hb_span *next = hb_pages_at(&set->ranges, above);
    seen = next->range.seen;
    if (next->start <= range.end) {
      hb_pages_set_start(&set->ranges, above, range.start);
      set->place = above;
      extend_range(set, above, range.end);
      return;
    }
  }
  struct hb_span span = {.start = range.start, .range = {.end = range.end, .seen = seen}};
  hb_pages_insert(&set->ranges, &above, span);
  set->place = above;
}

void hb_intervals_insert(struct hb_interval_set *set, int64_t start, int64_t end, uint64_t seen) {
  HB_ASSERT(start < end);
  if (end <= set->base) return;
  if (start <= set->base) {
    extend_base(set, end);
    return;
  }
  if (!hb_pages_floor(&set->ranges, start, &set->place)) {
    insert_at(set, (struct hb_place){0, 0}, (struct hb_range){start, end}, seen);
    return;
  }
  if (start <= hb_pages_at(&set->ranges, set->place)->range.end) {
    extend_range(set, set->place, end);
    return;
  }
  struct hb_place above = set->place;
  if (!hb_pages_next(&set->ranges, &above)) above.at++;
  insert_at(set, above, (struct hb_range){start, end}, seen);
}

bool hb_intervals_splits(struct hb_interval_set *set, int64_t start, int64_t end) {
  if (start <= set->base) return false;
  struct hb_place above = {0, 0};
  if (hb_pages_floor(&set->ranges, start, &set->place)) {
    if (start <= hb_pages_at(&set->ranges, set->place)->range.end) return false;
    above = set->place;
    if (!hb_pages_next(&set->ranges, &above)) return true;
  }
  return !hb_pages_valid(&set->ranges, above) || hb_pages_at(&set->ranges, above)->start > end;
}

struct hb_gap_walk hb_gap_walk_start(const struct hb_interval_set *set) {
  return (struct hb_gap_walk){.set = set, .from = set->base, .more = set->ranges.spans > 0};
}

struct hb_gap_walk hb_gap_walk_from(const struct hb_interval_set *set, int64_t from) {
  struct hb_gap_walk walk = hb_gap_walk_start(set);
  bool below = walk.more && from > set->base && hb_pages_floor(&set->ranges, from, &walk.place);
  if (!below) return walk;
  walk.from = hb_pages_at(&set->ranges, walk.place)->range.end;
  walk.more = hb_pages_next(&set->ranges, &walk.place);
  return walk;
}

bool hb_gap_walk_next(struct hb_gap_walk *walk, struct hb_range *out_gap, uint64_t **slot) {
  if (!walk->more) return false;
  struct hb_span *range = hb_pages_at(&walk->set->ranges, walk->place);
  *out_gap = (struct hb_range){.start = walk->from, .end = range->start};
  if (slot) *slot = &range->range.seen;
  walk->from = range->range.end;
  walk->more = hb_pages_next(&walk->set->ranges, &walk->place);
  return true;
}
