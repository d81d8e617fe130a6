/* Decides when a run is one with the run below it, and that no sequence is held twice (I10). */
#include "ordering/held_index.h"

#include "base/assert.h"

void hb_held_init(struct hb_held_index *index, size_t *account) {
  *index = (struct hb_held_index){0};
  hb_pages_init(&index->runs, account);
}

void hb_held_done(struct hb_held_index *index) { hb_pages_done(&index->runs); }

/* Sequences stay below INT64_MAX, so the last one of a run and its end always fit. */
static int64_t run_end(const struct hb_span *span) {
  return span->start + (int64_t)span->held.length;
}

static bool continues(const struct hb_span *below, const struct hb_held_run *run) {
  return run_end(below) == run->start && below->held.slot == run->slot &&
         below->held.index + below->held.length == run->index;
}

bool hb_held_insert(struct hb_held_index *index, struct hb_held_run run) {
  HB_ASSERT(run.length > 0);
  int64_t end = run.start + (int64_t)run.length;
  struct hb_place place = {0, 0};
  struct hb_span *below = NULL;
  if (hb_pages_floor(&index->runs, run.start, &index->place)) {
    below = hb_pages_at(&index->runs, index->place);
    if (run_end(below) > run.start) return false;
    place = index->place;
    if (!hb_pages_next(&index->runs, &place)) place.at++;
  }
  if (hb_pages_valid(&index->runs, place) && hb_pages_at(&index->runs, place)->start < end) {
    return false;
  }
  index->events += run.length;
  if (below && continues(below, &run)) {
    below->held.length += run.length;
    return true;
  }
  struct hb_span span = {.start = run.start,
                         .held = {.length = run.length, .slot = run.slot, .index = run.index}};
  hb_pages_insert(&index->runs, &place, span);
  index->place = place;
  return true;
}

static struct hb_held_run run_of(const struct hb_span *span) {
  return (struct hb_held_run){.start = span->start,
                              .length = span->held.length,
                              .slot = span->held.slot,
                              .index = span->held.index};
}

bool hb_held_find(struct hb_held_index *index, int64_t sequence, struct hb_held_run *out) {
  if (!hb_pages_floor(&index->runs, sequence, &index->place)) return false;
  const struct hb_span *span = hb_pages_at(&index->runs, index->place);
  if (sequence >= run_end(span)) return false;
  *out = run_of(span);
  return true;
}

bool hb_held_front(const struct hb_held_index *index, struct hb_held_run *out) {
  const struct hb_span *front = hb_pages_front(&index->runs);
  if (!front) return false;
  *out = run_of(front);
  return true;
}

bool hb_held_ahead(const struct hb_held_index *index, uint32_t ahead, struct hb_held_run *out) {
  struct hb_place place = {.at = ahead};
  if (!hb_pages_valid(&index->runs, place)) return false;
  *out = run_of(hb_pages_at(&index->runs, place));
  return true;
}

void hb_held_pop(struct hb_held_index *index, uint32_t count) {
  struct hb_span *front = hb_pages_front(&index->runs);
  HB_ASSERT(front && count <= front->held.length);
  index->events -= count;
  if (count == front->held.length) {
    hb_pages_pop_front(&index->runs);
    return;
  }
  front->held.length -= count;
  front->held.index += count;
  hb_pages_set_start(&index->runs, (struct hb_place){0, 0}, front->start + (int64_t)count);
}

void hb_held_remove(struct hb_held_index *index, int64_t start) {
  bool found = hb_pages_floor(&index->runs, start, &index->place);
  HB_ASSERT(found && hb_pages_at(&index->runs, index->place)->start == start);
  index->events -= hb_pages_at(&index->runs, index->place)->held.length;
  hb_pages_erase(&index->runs, &index->place);
}

int64_t hb_held_reach(const struct hb_held_index *index, uint64_t events) {
  if (index->events <= events) return INT64_MAX;
  uint64_t runs = (uint64_t)((double)events / (double)index->events * (double)index->runs.spans);
  for (size_t page = 0; page < index->runs.count; page++) {
    uint64_t count = hb_pages_page(&index->runs, page)->count;
    if (runs < count) {
      struct hb_place place = {.page = page, .at = (uint32_t)runs};
      return hb_pages_at(&index->runs, place)->start;
    }
    runs -= count;
  }
  return INT64_MAX;
}
