/* Decides what is released: the walk from the frontier up over held events and first copies.
 *
 * It stops at the first uncovered sequence, at the slice (release_stream_bytes of blocks for the
 * stream, release_bytes for the commit), at release_limit, or at a bundle that is not in memory.
 * Where others wait for the same commits the slice of what was held is a quarter: their answers
 * come after its write. New events that it writes are stored whatever is full: they never become
 * held. Streams take turns: one that the commit had nothing left for comes first in the next.
 * Keeps I3 (ascending), I4 (blocks without holes) and I5. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

void hb_release_enqueue(struct hb_ordering *core, struct hb_core_stream *stream) {
  if (stream->releasing) return;
  hb_reserve((void **)&core->releasing, &core->releasing_cap, core->releasing_count + 1,
             sizeof(struct hb_core_stream *));
  core->releasing[core->releasing_count++] = stream;
  stream->releasing = true;
}

/* ---- blocks */

void hb_walk_close_block(struct hb_walk *walk) {
  struct hb_ordering *core = walk->core;
  if (!core->entries_count) return;
  walk->spent += hb_outbox_block(core, walk->stream, walk->block_from, walk->at)->size;
  walk->block_from = walk->at;
  walk->frames_bytes = 0;
}

/* What the blocks would be with one more event, at most. */
static bool has_budget(const struct hb_walk *walk, uint32_t frame_size) {
  const struct hb_ordering *core = walk->core;
  if (walk->first && !walk->spent && !core->entries_count) return true;
  size_t bytes = walk->spent + core->block_overhead +
                 (core->entries_count + 1) * core->entry_overhead + walk->frames_bytes + frame_size;
  return bytes <= walk->budget;
}

/* False: the slice is used up. */
bool hb_walk_take(struct hb_walk *walk, struct hb_block_entry entry, struct hb_time time) {
  struct hb_ordering *core = walk->core;
  bool full =
      core->entries_count && walk->frames_bytes + entry.frame_size > core->options.block_bytes;
  if (full) hb_walk_close_block(walk);
  if (!has_budget(walk, entry.frame_size)) {
    walk->cut = true;
    return false;
  }
  if (hb_time_compare(time, walk->stream->record.max_event_time) > 0) {
    walk->stream->record.max_event_time = time;
  }
  hb_reserve((void **)&core->entries, &core->entries_cap, core->entries_count + 1,
             sizeof *core->entries);
  core->entries[core->entries_count++] = entry;
  walk->frames_bytes += entry.frame_size;
  walk->at++;
  return true;
}

/* ---- the two sources */

static struct hb_time time_in(const struct hb_held_bundle *bundle, struct hb_slice frame) {
  struct hb_event event;
  if (!(bundle->flags & HB_BUNDLE_TIMES) || hb_scan_frame(frame, &event, NULL)) {
    return (struct hb_time){0};
  }
  return event.time;
}

/* Frames of a drained bundle are needed until the block that they go into is made. */
static void remember_drained(struct hb_walk *walk, uint32_t slot) {
  struct hb_ordering *core = walk->core;
  hb_reserve((void **)&core->dropping, &core->dropping_cap, core->dropping_count + 1,
             sizeof *core->dropping);
  core->dropping[core->dropping_count++] = slot;
}

static void drop_drained(struct hb_walk *walk) {
  struct hb_ordering *core = walk->core;
  for (size_t i = 0; i < core->dropping_count; i++) {
    hb_outbox_drained(core, hb_bundle_id_of(walk->stream, core->dropping[i]));
    hb_bundle_drop(core, walk->stream, core->dropping[i]);
  }
  core->dropping_count = 0;
}

/* Runs of few events lie scattered over as many bundles as arrived in the width of the disorder,
 * and each would wait for memory several times. */
static void expect_runs(const struct hb_core_stream *stream) {
  enum { AHEAD_PLACE = 12, AHEAD_FRAME = 6 };
  struct hb_held_run run;
  if (hb_held_ahead(&stream->held, AHEAD_PLACE, &run)) {
    const struct hb_held_bundle *bundle = &stream->bundles[run.slot];
    if (hb_bundle_is_resident(bundle)) hb_bundle_expect(bundle, run.index);
  }
  if (hb_held_ahead(&stream->held, AHEAD_FRAME, &run)) {
    const struct hb_held_bundle *bundle = &stream->bundles[run.slot];
    if (hb_bundle_is_resident(bundle)) hb_bundle_expect_frame(bundle, run.index);
  }
}

/* The held events of the lowest run. False: stop. */
static bool take_held(struct hb_walk *walk, const struct hb_held_run *run) {
  struct hb_held_bundle *bundle = &walk->stream->bundles[run->slot];
  if (!hb_bundle_is_resident(bundle)) return false;
  HB_ASSERT(bundle->next == run->index);
  expect_runs(walk->stream);
  uint32_t taken = 0;
  bool more = true;
  for (; taken < run->length && walk->at < walk->stream->release_limit; taken++) {
    struct hb_slice frame = hb_bundle_frame(bundle, run->index + taken);
    struct hb_block_entry entry = {.sequence = walk->at,
                                   .frame = frame.data,
                                   .frame_size = (uint32_t)frame.size,
                                   .receipt = hb_bundle_receipt(bundle, run->index + taken)};
    more = hb_walk_take(walk, entry, time_in(bundle, frame));
    if (!more) break;
  }
  if (!taken) return false;
  hb_held_pop(&walk->stream->held, taken);
  hb_bundle_advance(walk->stream, run->slot, taken);
  if (bundle->next == bundle->count) {
    remember_drained(walk, run->slot);
  } else {
    hb_bundle_consider(walk->core, walk->stream, run->slot);
  }
  return more;
}

static const struct hb_first *next_first(const struct hb_walk *walk) {
  if (!walk->share) return NULL;
  size_t at = walk->share->firsts_from + walk->share->released;
  return at < walk->share->firsts_to ? &walk->core->round.firsts[at] : NULL;
}

static bool take_first(struct hb_walk *walk, const struct hb_first *first) {
  struct hb_block_entry entry = {.sequence = first->sequence,
                                 .frame = first->event->frame,
                                 .frame_size = first->event->frame_size,
                                 .receipt = first->batch->receipt};
  if (!hb_walk_take(walk, entry, first->event->time)) return false;
  first->decision->outcome = HB_OUTCOME_STORED;
  walk->share->released++;
  return true;
}

/* ---- the walk */

static bool step(struct hb_walk *walk) {
  struct hb_held_run run;
  if (walk->at >= walk->stream->release_limit) return false;
  if (hb_held_front(&walk->stream->held, &run) && run.start == walk->at) {
    return take_held(walk, &run);
  }
  const struct hb_first *first = next_first(walk);
  return first && first->sequence == walk->at && take_first(walk, first);
}

static void note_stored(struct hb_core_stream *stream, size_t count) {
  stream->record.counters.stored += count;
  if (!count) return;
  int64_t last = stream->record.frontier - 1;
  if (!stream->record.any || last > stream->record.highest) stream->record.highest = last;
  stream->record.any = true;
}

static struct hb_share *share_of(struct hb_round *round, const struct hb_core_stream *stream) {
  size_t at = stream->share - 1;
  bool there = stream->share && at < round->shares_count && round->shares[at].stream == stream;
  return there ? &round->shares[at] : NULL;
}

static void walk_stream(struct hb_walk *walk) {
  struct hb_core_stream *stream = walk->stream;
  if (stream->per_key) {
    hb_per_key_walk(walk);
    return;
  }
  while (step(walk)) continue;
  hb_walk_close_block(walk);
  drop_drained(walk);
  if (walk->at == stream->record.frontier) return;
  stream->record.frontier = walk->at;
  if (walk->at > stream->covered.base) {
    hb_intervals_insert(&stream->covered, stream->covered.base, walk->at, walk->core->moment);
  }
  if (walk->share) note_stored(stream, walk->share->released);
}

static void reverse(struct hb_core_stream **list, size_t count) {
  for (size_t i = 0; i < count / 2; i++) {
    struct hb_core_stream *swap = list[i];
    list[i] = list[count - 1 - i];
    list[count - 1 - i] = swap;
  }
}

/* The first `served` go behind the others, which come first next time. */
static void rotate(struct hb_ordering *core, size_t served) {
  if (!core->releasing_count) return; /* there may be no array to point into */
  reverse(core->releasing, served);
  reverse(core->releasing + served, core->releasing_count - served);
  reverse(core->releasing, core->releasing_count);
}

/* How long others that came count as still there, and how much smaller the slice is then. */
enum { COMPANY_COMMITS = 64, COMPANY_DIVISOR = 4 };

static void look_for_company(struct hb_ordering *core) {
  const struct hb_round *round = &core->round;
  size_t streams = core->releasing_count; /* those of the round are among them */
  if (core->company > 0) core->company--;
  if (streams > 1 && round->shares_count > 0) core->company = COMPANY_COMMITS;
}

/* Never less than what is new: that would be held, and written twice. */
static size_t slice_of(const struct hb_ordering *core, const struct hb_share *share) {
  size_t whole = core->options.release_stream_bytes;
  size_t part = whole / COMPANY_DIVISOR + (share ? share->bytes + share->bytes / 8 : 0);
  return core->company > 0 && part < whole ? part : whole;
}

void hb_release_walk(struct hb_ordering *core) {
  size_t left = core->options.release_bytes;
  size_t served = 0;
  look_for_company(core);
  for (; served < core->releasing_count; served++) {
    struct hb_core_stream *stream = core->releasing[served];
    if (!stream->record.frozen) continue;
    struct hb_walk walk = {.core = core,
                           .stream = stream,
                           .share = share_of(&core->round, stream),
                           .at = stream->record.frontier,
                           .block_from = stream->record.frontier,
                           .budget = slice_of(core, share_of(&core->round, stream)),
                           .first = left == core->options.release_bytes};
    bool shortened = left < walk.budget;
    if (shortened) walk.budget = left;
    walk_stream(&walk);
    left = walk.spent < left ? left - walk.spent : 0;
    if (walk.cut && shortened) break;
  }
  rotate(core, served);
}

void hb_release_settle(struct hb_ordering *core) {
  size_t kept = 0;
  for (size_t i = 0; i < core->releasing_count; i++) {
    struct hb_core_stream *stream = core->releasing[i];
    stream->releasing = stream->record.frozen && stream->record.frontier < stream->covered.base;
    if (stream->per_key) stream->releasing = hb_per_key_is_releasing(stream->per_key);
    if (stream->releasing) core->releasing[kept++] = stream;
  }
  core->releasing_count = kept;
}

bool hb_release_has_work(const struct hb_ordering *core) {
  for (size_t i = 0; i < core->releasing_count; i++) {
    const struct hb_core_stream *stream = core->releasing[i];
    struct hb_held_run run;
    if (stream->per_key && hb_per_key_is_releasing(stream->per_key)) return true;
    if (stream->record.frontier >= stream->release_limit) continue;
    if (hb_held_front(&stream->held, &run) && hb_bundle_is_resident(&stream->bundles[run.slot])) {
      return true;
    }
  }
  return false;
}
