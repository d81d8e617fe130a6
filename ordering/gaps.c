/* Decides which gaps get a row (when were they first seen: the one thing that can't be derived) and
 * which rows go.
 *
 * Once a second of served time each stream that may have something due is walked: gaps and rows
 * side by side, both ascending. A gap of ten seconds without a row gets one, the oldest first, a
 * thousand in a commit. A row whose start is no gap's start is left over; it may be the only record
 * of gaps that were split off it, so it goes only when every gap that old has its own row. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

enum { ROW_AGE_MS = 10000, LOOK_MS = 1000, ROWS_MAX = 1000 };

struct look {
  struct hb_ordering *core;
  struct hb_core_stream *stream;
  size_t due;         /* gaps in core->due as {moment, page, at} */
  uint64_t oldest_ms; /* of gaps that are too young */
};

static struct hb_range gap_at(const struct hb_interval_set *set, struct hb_place place) {
  int64_t end = hb_pages_at(&set->ranges, place)->start;
  if (place.page == 0 && place.at == 0) return (struct hb_range){set->base, end};
  if (place.at > 0) {
    place.at--;
  } else {
    place.page--;
    place.at = hb_pages_page(&set->ranges, place.page)->count - 1;
  }
  return (struct hb_range){hb_pages_at(&set->ranges, place)->range.end, end};
}

static void note_gap(struct look *look, struct hb_place place, uint64_t moment) {
  struct hb_ordering *core = look->core;
  uint64_t seen_ms = hb_moment_served_ms(moment);
  if (seen_ms + ROW_AGE_MS > core->now.served_ms) {
    if (seen_ms < look->oldest_ms) look->oldest_ms = seen_ms;
    return;
  }
  hb_reserve((void **)&core->due, &core->due_cap, look->due + 1, sizeof *core->due);
  core->due[look->due++] = (struct hb_item){
      .sequence = (int64_t)moment, .batch = (uint32_t)place.page, .index = place.at};
}

static bool has_row(const struct hb_core_stream *stream, int64_t start, struct hb_place *hint) {
  return hb_pages_floor(&stream->gap_rows, start, hint) &&
         hb_pages_at(&stream->gap_rows, *hint)->start == start;
}

static void find_due(struct look *look) {
  const struct hb_interval_set *set = &look->stream->covered;
  struct hb_gap_walk walk = hb_gap_walk_start(set);
  struct hb_place hint = {0, 0};
  struct hb_range gap;
  uint64_t *moment;
  for (struct hb_place place = walk.place; hb_gap_walk_next(&walk, &gap, &moment);
       place = walk.place) {
    if (!has_row(look->stream, gap.start, &hint)) note_gap(look, place, *moment);
  }
}

static void put_row(struct look *look, const struct hb_item *item) {
  struct hb_ordering *core = look->core;
  struct hb_place place = {.page = item->batch, .at = item->index};
  struct hb_range gap = gap_at(&look->stream->covered, place);
  uint64_t moment = (uint64_t)item->sequence;
  struct hb_span row = {.start = gap.start, .range = {.end = gap.end, .seen = moment}};
  struct hb_place at = {0, 0};
  if (hb_pages_floor(&look->stream->gap_rows, gap.start, &at)) at.at++;
  hb_pages_insert(&look->stream->gap_rows, &at, row);
  hb_outbox_gap(core,
                (struct hb_put_gap){
                    .stream = look->stream->id,
                    .gap = {.start = gap.start,
                            .end = gap.end,
                            .first_seen_served_ms = hb_moment_served_ms(moment),
                            .first_seen_wall_ms = hb_moment_wall_ms(&core->moments, moment)}});
}

/* The oldest first. False: some had to be left for later. */
static bool put_rows(struct look *look) {
  struct hb_ordering *core = look->core;
  hb_reserve((void **)&core->due_spare, &core->due_spare_cap, look->due, sizeof *core->due_spare);
  hb_sort_items(core->due, core->due_spare, look->due);
  size_t room = ROWS_MAX - core->commit.gaps_count;
  size_t count = look->due < room ? look->due : room;
  for (size_t i = 0; i < count; i++) put_row(look, &core->due[i]);
  return count == look->due;
}

static bool is_gap_start(struct hb_core_stream *stream, int64_t start) {
  struct hb_interval_set *set = &stream->covered;
  if (!set->ranges.spans) return false;
  if (start == set->base) return true;
  return start > set->base && start < hb_intervals_end(set) &&
         hb_pages_floor(&set->ranges, start, &set->place) &&
         hb_pages_at(&set->ranges, set->place)->range.end == start;
}

static void delete_left_over(struct look *look) {
  struct hb_ordering *core = look->core;
  struct hb_pages *rows = &look->stream->gap_rows;
  struct hb_place place = {0, 0};
  while (hb_pages_valid(rows, place) && core->commit.gone_gaps_count < ROWS_MAX) {
    int64_t start = hb_pages_at(rows, place)->start;
    if (!is_gap_start(look->stream, start)) {
      hb_outbox_gone_gap(core, (struct hb_delete_gap){.stream = look->stream->id, .start = start});
      hb_pages_erase(rows, &place);
    } else if (!hb_pages_next(rows, &place)) {
      return;
    }
  }
}

static void look_at(struct hb_ordering *core, struct hb_core_stream *stream) {
  bool nothing = !hb_intervals_gaps(&stream->covered) && !stream->gap_rows.spans;
  if (nothing || stream->gaps_due_ms > core->now.served_ms) return;
  struct look look = {.core = core, .stream = stream, .oldest_ms = core->now.served_ms};
  find_due(&look);
  bool all = put_rows(&look);
  if (all) delete_left_over(&look);
  stream->gaps_due_ms = all ? look.oldest_ms + ROW_AGE_MS : core->now.served_ms;
}

void hb_gaps_write_rows(struct hb_ordering *core) {
  if (core->now.served_ms < core->gaps_due_ms) return;
  core->gaps_due_ms = core->now.served_ms + LOOK_MS;
  for (size_t i = 0; i < core->streams_count; i++) look_at(core, core->streams[i]);
}

/* ---- at start */

void hb_ordering_recover_gap(struct hb_ordering *core, uint64_t id, struct hb_gap gap) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (!stream) return;
  uint64_t moment = hb_moment_of(&core->moments, gap.first_seen_served_ms, gap.first_seen_wall_ms);
  struct hb_span row = {.start = gap.start, .range = {.end = gap.end, .seen = moment}};
  struct hb_place place = {0, 0};
  if (hb_pages_floor(&stream->gap_rows, gap.start, &place)) {
    struct hb_span *before = hb_pages_at(&stream->gap_rows, place);
    if (before->start == gap.start) {
      *before = row;
      return;
    }
    place.at++;
  }
  hb_pages_insert(&stream->gap_rows, &place, row);
}

/* Rows that reach into the gap: those begun before its end and not ended before its start. */
struct overlaps {
  struct hb_span *open; /* owned */
  size_t count;
  size_t cap;
};

static void open_rows(struct overlaps *overlaps, const struct hb_pages *rows,
                      struct hb_place *place, int64_t gap_end) {
  while (hb_pages_valid(rows, *place) && hb_pages_at(rows, *place)->start < gap_end) {
    hb_reserve((void **)&overlaps->open, &overlaps->cap, overlaps->count + 1,
               sizeof *overlaps->open);
    overlaps->open[overlaps->count++] = *hb_pages_at(rows, *place);
    if (hb_pages_next(rows, place)) continue;
    *place = (struct hb_place){.page = rows->count};
  }
}

static uint64_t oldest_of(struct overlaps *overlaps, int64_t gap_start, uint64_t now) {
  size_t kept = 0;
  uint64_t oldest = now;
  for (size_t i = 0; i < overlaps->count; i++) {
    if (overlaps->open[i].range.end <= gap_start) continue;
    overlaps->open[kept++] = overlaps->open[i];
    if (overlaps->open[i].range.seen < oldest) oldest = overlaps->open[i].range.seen;
  }
  overlaps->count = kept;
  return oldest;
}

void hb_gaps_inherit(struct hb_ordering *core, struct hb_core_stream *stream) {
  struct overlaps overlaps = {0};
  struct hb_place row = {0, 0};
  struct hb_gap_walk walk = hb_gap_walk_start(&stream->covered);
  struct hb_range gap;
  uint64_t *moment;
  while (hb_gap_walk_next(&walk, &gap, &moment)) {
    open_rows(&overlaps, &stream->gap_rows, &row, gap.end);
    *moment = oldest_of(&overlaps, gap.start, core->moment);
  }
  free(overlaps.open);
}
