/* Decides which bundles stay in memory (held_memory_max over all streams) and which are read back.
 *
 * What is needed soonest stays: a bundle's rank is how far its lowest waiting event lies above its
 * stream's frontier. Where less than an eighth is free, tails are cut out of bundles that are
 * mostly drained, then the farthest bundles are dropped; wide ones are sorted before (regroup.c).
 * Ahead of need the next fetch_ahead_bytes above each frontier are fetched; a bundle that a release
 * stands before is fetched even where memory is full, up to half of it, and is not dropped again
 * before it was used: however small memory is, releases go on. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

static size_t memory_max(const struct hb_ordering *core) {
  return (size_t)core->options.limits.held_memory_max;
}

/* The release of the stream goes on with this bundle. */
static bool is_next(const struct hb_core_stream *stream, const struct hb_held_bundle *bundle) {
  return bundle->low == stream->record.frontier && stream->record.frontier < stream->covered.base;
}

/* ---- spilling */

/* Keep only the tail that waits, where at least half of what is in memory is drained. */
static void cut_tail(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  uint32_t live = bundle->count - bundle->next;
  if ((bundle->count - bundle->base) / 2 < live) return;
  hb_reserve((void **)&core->entries, &core->entries_cap, live, sizeof *core->entries);
  for (uint32_t i = 0; i < live; i++) {
    struct hb_slice frame = hb_bundle_frame(bundle, bundle->next + i);
    core->entries[i] =
        (struct hb_block_entry){.sequence = hb_bundle_sequence(bundle, bundle->next + i),
                                .frame = frame.data,
                                .frame_size = (uint32_t)frame.size,
                                .receipt = hb_bundle_receipt(bundle, bundle->next + i)};
  }
  struct hb_bytes *tail = hb_block_encode(HB_BLOCK_EVENTS, core->entries[0].sequence,
                                          core->entries[live - 1].sequence + 1, (struct hb_time){0},
                                          core->entries, live);
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(tail), &block, NULL);
  HB_ASSERT(code == HB_OK);
  hb_bundle_set_bytes(core, stream, slot, tail, &block, bundle->next);
  hb_bytes_unref(tail);
}

static void cut_tails(struct hb_ordering *core) {
  for (size_t i = 0; i < core->streams_count; i++) {
    struct hb_core_stream *stream = core->streams[i];
    for (uint32_t slot = 0; slot < stream->bundles_count; slot++) {
      if (stream->bundles[slot].bytes) cut_tail(core, stream, slot);
    }
  }
}

/* Farthest last, as items {rank, stream's place, slot}; wide ones are sorted before they are
 * spilled, where there is room for that. */
static size_t rank_bundles(struct hb_ordering *core) {
  size_t count = 0;
  size_t pinned = 0;
  size_t rewrites = 0;
  for (size_t i = 0; i < core->streams_count; i++) {
    const struct hb_core_stream *stream = core->streams[i];
    for (uint32_t slot = 0; slot < stream->bundles_count; slot++) {
      const struct hb_held_bundle *bundle = &stream->bundles[slot];
      if (!bundle->bytes) continue;
      if (bundle->flags & HB_BUNDLE_REWRITE &&
          rewrites + bundle->bytes->size <= memory_max(core) / 4) {
        rewrites += bundle->bytes->size;
        continue;
      }
      if (is_next(stream, bundle) && pinned + bundle->bytes->size <= memory_max(core) / 2) {
        pinned += bundle->bytes->size;
        continue;
      }
      uint64_t rank = (uint64_t)bundle->low - (uint64_t)stream->record.frontier;
      if (hb_regroup_is_wide(bundle)) rank = 0;
      hb_reserve((void **)&core->due, &core->due_cap, count + 1, sizeof *core->due);
      core->due[count++] =
          (struct hb_item){.sequence = (int64_t)(rank >> 1), .batch = (uint32_t)i, .index = slot};
    }
  }
  hb_reserve((void **)&core->due_spare, &core->due_spare_cap, count, sizeof *core->due_spare);
  hb_sort_items(core->due, core->due_spare, count);
  return count;
}

void hb_residency_trim(struct hb_ordering *core) {
  size_t goal = memory_max(core) / 8 * 7;
  if (core->resident_bytes <= goal) return;
  cut_tails(core);
  if (core->resident_bytes <= goal) return;
  hb_regroup_look(core);
  for (size_t left = rank_bundles(core); left > 0 && core->resident_bytes > goal; left--) {
    const struct hb_item *item = &core->due[left - 1];
    struct hb_core_stream *stream = core->streams[item->batch];
    bool wide = hb_regroup_is_wide(&stream->bundles[item->index]);
    if (wide && core->resident_bytes <= memory_max(core)) break;
    hb_bundle_spill(core, stream, item->index);
  }
  core->fetch_stale = true;
}

/* ---- planning FETCHes */

static bool can_fetch(const struct hb_held_bundle *bundle) {
  return bundle->flags & HB_BUNDLE_USED && !bundle->bytes &&
         !(bundle->flags & (HB_BUNDLE_FETCHING | HB_BUNDLE_UNREADABLE));
}

void hb_residency_plan(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot) {
  if (!can_fetch(&stream->bundles[slot])) return;
  hb_reserve((void **)&core->fetch_plan, &core->fetch_plan_cap, core->fetch_plan_count + 1,
             sizeof *core->fetch_plan);
  core->fetch_plan[core->fetch_plan_count++] =
      (struct hb_fetch){.stream = stream->id,
                        .slot = slot,
                        .id = hb_bundle_id_of(stream, slot),
                        .bytes = stream->bundles[slot].disk_bytes};
}

/* Bundles that releases stand before: half of the memory is theirs, and one may always come. */
static size_t plan_next(struct hb_ordering *core) {
  size_t bytes = core->fetches_bytes;
  for (int spilled = 0; spilled < 2; spilled++) {
    for (size_t i = 0; i < core->releasing_count; i++) {
      struct hb_core_stream *stream = core->releasing[i];
      struct hb_held_run run;
      if (!hb_held_front(&stream->held, &run)) continue;
      const struct hb_held_bundle *bundle = &stream->bundles[run.slot];
      if (!spilled) {
        if (bundle->bytes) bytes += bundle->bytes->size;
      } else if (bytes == 0 || bytes + bundle->disk_bytes <= memory_max(core) / 2) {
        if (can_fetch(bundle)) bytes += bundle->disk_bytes;
        hb_residency_plan(core, stream, run.slot);
      }
    }
  }
  return bytes;
}

static int64_t reach_of(const struct hb_ordering *core, const struct hb_core_stream *stream) {
  uint64_t per_event = stream->held.events ? stream->live_bytes / stream->held.events + 1 : 1;
  return hb_held_reach(&stream->held, core->options.fetch_ahead_bytes / per_event);
}

/* Spilled bundles with an event below the stream's reach, lowest first, while memory has room.
 * A stream that waits for a gap leaves a quarter of it free: trimming stops above that, so nothing
 * goes out and in again. */
static void plan_ahead(struct hb_ordering *core, struct hb_core_stream *stream, size_t *bytes) {
  int64_t reach = reach_of(core, stream);
  size_t count = 0;
  for (uint32_t slot = 0; slot < stream->bundles_count; slot++) {
    const struct hb_held_bundle *bundle = &stream->bundles[slot];
    if (!can_fetch(bundle) || bundle->low >= reach) continue;
    hb_reserve((void **)&core->due, &core->due_cap, count + 1, sizeof *core->due);
    core->due[count++] = (struct hb_item){.sequence = bundle->low, .index = slot};
  }
  hb_reserve((void **)&core->due_spare, &core->due_spare_cap, count, sizeof *core->due_spare);
  hb_sort_items(core->due, core->due_spare, count);
  size_t max = stream->releasing ? memory_max(core) : memory_max(core) / 4 * 3;
  for (size_t i = 0; i < count; i++) {
    uint32_t slot = core->due[i].index;
    if (*bytes + stream->bundles[slot].disk_bytes > max) return;
    *bytes += stream->bundles[slot].disk_bytes;
    hb_residency_plan(core, stream, slot);
  }
}

static void plan(struct hb_ordering *core) {
  core->fetch_stale = false;
  core->fetch_plan_count = core->fetch_plan_next = 0;
  hb_key_memory_plan(core);
  if (!core->spilled) return;
  (void)plan_next(core);
  size_t bytes = core->resident_bytes + core->fetches_bytes;
  for (size_t i = 0; i < core->fetch_plan_count; i++) bytes += core->fetch_plan[i].bytes;
  for (size_t i = 0; i < core->streams_count; i++) {
    struct hb_core_stream *stream = core->streams[i];
    if (!stream->spilled) continue;
    plan_ahead(core, stream, &bytes);
    hb_rewrite_plan_fetches(core, stream);
  }
}

static bool begin_fetch(struct hb_core_stream *stream, const struct hb_fetch *fetch) {
  if (fetch->keyed) return hb_key_memory_take_fetch(stream, fetch->slot);
  struct hb_held_bundle *bundle = &stream->bundles[fetch->slot];
  if (!can_fetch(bundle)) return false;
  bundle->flags |= HB_BUNDLE_FETCHING;
  return true;
}

static size_t *bytes_out(struct hb_ordering *core, const struct hb_fetch *fetch) {
  return fetch->keyed ? &core->key_memory.fetches_bytes : &core->fetches_bytes;
}

bool hb_ordering_take_fetch(struct hb_ordering *core, struct hb_bundle_id *out) {
  if (core->in_flight || core->dead) return false;
  if (core->fetch_stale) plan(core);
  while (core->fetch_plan_next < core->fetch_plan_count) {
    struct hb_fetch fetch = core->fetch_plan[core->fetch_plan_next++];
    struct hb_core_stream *stream = hb_core_find_stream(core, fetch.stream);
    if (!begin_fetch(stream, &fetch)) continue;
    hb_reserve((void **)&core->fetches, &core->fetches_cap, core->fetches_count + 1,
               sizeof *core->fetches);
    core->fetches[core->fetches_count++] = fetch;
    *bytes_out(core, &fetch) += fetch.bytes;
    *out = fetch.id;
    return true;
  }
  return false;
}

/* ---- what comes back */

static bool same_id(struct hb_bundle_id a, struct hb_bundle_id b) {
  return a.stream == b.stream && a.commit == b.commit && a.part == b.part;
}

static bool end_fetch(struct hb_ordering *core, struct hb_bundle_id id, struct hb_fetch *out) {
  for (size_t i = 0; i < core->fetches_count; i++) {
    if (!same_id(core->fetches[i].id, id)) continue;
    *out = core->fetches[i];
    core->fetches[i] = core->fetches[--core->fetches_count];
    *bytes_out(core, out) -= out->bytes;
    return true;
  }
  return false;
}

void hb_ordering_fetched(struct hb_ordering *core, struct hb_bundle_id id, struct hb_bytes *block) {
  struct hb_fetch fetch;
  if (!end_fetch(core, id, &fetch)) return;
  struct hb_core_stream *stream = hb_core_find_stream(core, id.stream);
  if (!stream || core->dead) return;
  core->fetch_stale = true;
  if (fetch.keyed) {
    hb_key_memory_fetched(core, stream, &fetch, block);
    return;
  }
  struct hb_held_bundle *bundle = &stream->bundles[fetch.slot];
  bundle->flags &= ~(uint32_t)HB_BUNDLE_FETCHING;
  struct hb_block decoded;
  bool readable = block && hb_block_decode(hb_bytes_view(block), &decoded, NULL) == HB_OK &&
                  decoded.count == bundle->count;
  if (readable) {
    hb_bundle_set_bytes(core, stream, fetch.slot, block, &decoded, 0);
  } else {
    bundle->flags |= HB_BUNDLE_UNREADABLE;
    core->unreadable++;
  }
  hb_rewrite_look(core);
}

bool hb_ordering_waits_for(const struct hb_ordering *core, struct hb_bundle_id id) {
  const struct hb_core_stream *stream = hb_core_find_stream(core, id.stream);
  struct hb_held_run run;
  if (stream && stream->per_key) return hb_key_memory_waits_for(core, id);
  if (!stream || !hb_held_front(&stream->held, &run)) return false;
  struct hb_bundle_id front = hb_bundle_id_of(stream, run.slot);
  return run.start == stream->record.frontier && front.commit == id.commit && front.part == id.part;
}

void hb_residency_retry(struct hb_ordering *core) {
  if (!core->unreadable) return;
  core->unreadable = 0;
  for (size_t i = 0; i < core->streams_count; i++) {
    struct hb_core_stream *stream = core->streams[i];
    for (size_t slot = 0; slot < stream->bundles_count; slot++) {
      stream->bundles[slot].flags &= ~(uint32_t)HB_BUNDLE_UNREADABLE;
    }
    if (stream->per_key) hb_key_memory_retry(stream->per_key);
  }
}
