/* Decides which bundles of PER_KEY streams stay in memory (key_held_memory_max over all streams)
 * and which are read back.
 *
 * A key's events may lie in any bundles, so no bundle is nearer to a release than others: those
 * that came to memory first leave it first. What waited longest is likely to go on waiting. A key
 * whose next event is on disk waits for its bundle while others go on. Such bundles are fetched in
 * turn, each once for all keys that wait for it, up to half of the memory, and one always: however
 * small memory is, releases go on. One that came stays until each of its keys used it. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

static size_t memory_max(const struct hb_ordering *core) {
  return (size_t)core->options.limits.key_held_memory_max;
}

/* ---- in memory */

void hb_key_memory_load(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot,
                        struct hb_bytes *bytes, const struct hb_block *block) {
  struct hb_key_memory *memory = &core->key_memory;
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  HB_ASSERT(!bundle->frames);
  struct hb_key_frames *frames = hb_alloc(sizeof *frames);
  *frames = (struct hb_key_frames){.older = memory->newest,
                                   .owner = per_key,
                                   .slot = slot,
                                   .bytes = hb_bytes_ref(bytes),
                                   .block = *block};
  if (memory->newest) {
    memory->newest->newer = frames;
  } else {
    memory->oldest = frames;
  }
  memory->newest = frames;
  memory->bytes += bytes->size;
  memory->spilled--;
  core->index_bytes += sizeof *frames;
  bundle->frames = frames;
}

static void unlink_frames(struct hb_key_memory *memory, const struct hb_key_frames *frames) {
  if (frames->older) {
    frames->older->newer = frames->newer;
  } else {
    memory->oldest = frames->newer;
  }
  if (frames->newer) {
    frames->newer->older = frames->older;
  } else {
    memory->newest = frames->older;
  }
}

void hb_key_memory_spill(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_memory *memory = &core->key_memory;
  struct hb_key_frames *frames = per_key->bundles[slot].frames;
  unlink_frames(memory, frames);
  memory->bytes -= frames->bytes->size;
  if (frames->pins) memory->pinned_bytes -= frames->bytes->size;
  if (frames->for_rewrite) memory->rewrite_bytes -= frames->bytes->size;
  memory->spilled++;
  core->index_bytes -= sizeof *frames;
  hb_bytes_unref(frames->bytes);
  free(frames);
  per_key->bundles[slot].frames = NULL;
}

void hb_key_memory_trim(struct hb_ordering *core) {
  size_t goal = memory_max(core) / 8 * 7;
  struct hb_key_frames *frames = core->key_memory.oldest;
  while (frames && core->key_memory.bytes > goal) {
    struct hb_key_frames *newer = frames->newer;
    if (!frames->pins && !frames->for_rewrite) {
      hb_key_memory_spill(core, frames->owner, frames->slot);
      core->fetch_stale = true;
    }
    frames = newer;
  }
}

/* ---- keys that wait */

void hb_key_memory_wait(struct hb_ordering *core, struct hb_key_state *key, uint32_t slot) {
  struct hb_key_memory *memory = &core->key_memory;
  struct hb_key_bundle *bundle = &key->owner->bundles[slot];
  HB_ASSERT(!bundle->frames && !key->woken && !(key->flags & (HB_KEY_READY | HB_KEY_WAITS)));
  if (!bundle->waiting) {
    bundle->waiting = hb_calloc(1, sizeof *bundle->waiting);
    bundle->waiting->owner = key->owner;
    bundle->waiting->slot = slot;
    core->index_bytes += sizeof *bundle->waiting;
    if (memory->last) {
      memory->last->next = bundle->waiting;
    } else {
      memory->first = bundle->waiting;
    }
    memory->last = bundle->waiting;
  }
  struct hb_key_waiting *waiting = bundle->waiting;
  key->flags |= HB_KEY_WAITS;
  key->ready_next = NULL;
  if (waiting->last) {
    waiting->last->ready_next = key;
  } else {
    waiting->first = key;
  }
  waiting->last = key;
  core->fetch_stale = true;
}

void hb_key_memory_forget(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_memory *memory = &core->key_memory;
  struct hb_key_waiting *gone = per_key->bundles[slot].waiting;
  if (!gone) return;
  struct hb_key_waiting *before = NULL;
  for (struct hb_key_waiting *at = memory->first; at != gone; at = at->next) before = at;
  if (before) {
    before->next = gone->next;
  } else {
    memory->first = gone->next;
  }
  if (memory->last == gone) memory->last = before;
  core->index_bytes -= sizeof *gone;
  free(gone);
  per_key->bundles[slot].waiting = NULL;
}

static void pin(struct hb_ordering *core, struct hb_key_state *key, struct hb_key_frames *frames) {
  if (!frames->pins++) core->key_memory.pinned_bytes += frames->bytes->size;
  key->woken = frames->slot + 1;
}

void hb_key_memory_unpin(struct hb_ordering *core, struct hb_key_state *key) {
  if (!key->woken) return;
  struct hb_key_frames *frames = key->owner->bundles[key->woken - 1].frames;
  HB_ASSERT(frames && frames->pins > 0);
  if (!--frames->pins) core->key_memory.pinned_bytes -= frames->bytes->size;
  key->woken = 0;
}

static void wake(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  if (!bundle->waiting) return;
  struct hb_key_state *key = bundle->waiting->first;
  while (key) {
    struct hb_key_state *next = key->ready_next;
    key->flags &= ~(uint32_t)HB_KEY_WAITS;
    hb_per_key_make_ready(core, key);
    pin(core, key, bundle->frames);
    key = next;
  }
  hb_key_memory_forget(core, per_key, slot);
}

bool hb_key_memory_waits_for(const struct hb_ordering *core, struct hb_bundle_id id) {
  for (const struct hb_key_waiting *at = core->key_memory.first; at; at = at->next) {
    struct hb_bundle_id here = hb_key_bundle_id(at->owner, at->slot);
    if (here.stream == id.stream && here.commit == id.commit && here.part == id.part) return true;
  }
  return false;
}

/* ---- FETCH */

bool hb_key_memory_can_fetch(const struct hb_key_bundle *bundle) {
  return bundle->flags & HB_KEY_BUNDLE_USED && !bundle->frames &&
         !(bundle->flags & (HB_KEY_BUNDLE_FETCHING | HB_KEY_BUNDLE_UNREADABLE));
}

void hb_key_memory_fetch(struct hb_ordering *core, const struct hb_per_key *per_key, uint32_t slot,
                         bool for_rewrite) {
  hb_reserve((void **)&core->fetch_plan, &core->fetch_plan_cap, core->fetch_plan_count + 1,
             sizeof *core->fetch_plan);
  core->fetch_plan[core->fetch_plan_count++] =
      (struct hb_fetch){.stream = per_key->stream->id,
                        .slot = slot,
                        .id = hb_key_bundle_id(per_key, slot),
                        .bytes = per_key->bundles[slot].disk_bytes,
                        .keyed = true,
                        .for_rewrite = for_rewrite};
}

void hb_key_memory_plan(struct hb_ordering *core) {
  struct hb_key_memory *memory = &core->key_memory;
  if (!memory->spilled) return;
  size_t bytes = memory->pinned_bytes + memory->fetches_bytes;
  for (const struct hb_key_waiting *at = memory->first; at; at = at->next) {
    const struct hb_key_bundle *bundle = &at->owner->bundles[at->slot];
    if (!hb_key_memory_can_fetch(bundle)) continue;
    if (bytes && bytes + bundle->disk_bytes > memory_max(core) / 2) break;
    bytes += bundle->disk_bytes;
    hb_key_memory_fetch(core, at->owner, at->slot, false);
  }
  for (size_t i = 0; i < core->streams_count; i++) {
    if (core->streams[i]->per_key) hb_key_rewrite_plan(core, core->streams[i]->per_key);
  }
}

bool hb_key_memory_take_fetch(const struct hb_core_stream *stream, uint32_t slot) {
  struct hb_key_bundle *bundle = &stream->per_key->bundles[slot];
  if (!hb_key_memory_can_fetch(bundle)) return false;
  bundle->flags |= HB_KEY_BUNDLE_FETCHING;
  return true;
}

void hb_key_memory_fetched(struct hb_ordering *core, struct hb_core_stream *stream,
                           const struct hb_fetch *fetch, struct hb_bytes *block) {
  struct hb_per_key *per_key = stream->per_key;
  struct hb_key_bundle *bundle = &per_key->bundles[fetch->slot];
  struct hb_block decoded;
  bundle->flags &= ~(uint32_t)HB_KEY_BUNDLE_FETCHING;
  bool readable = block && hb_block_decode(hb_bytes_view(block), &decoded, NULL) == HB_OK &&
                  decoded.count == bundle->count;
  if (!readable) {
    bundle->flags |= HB_KEY_BUNDLE_UNREADABLE;
    core->unreadable++;
    return;
  }
  hb_key_memory_load(core, per_key, fetch->slot, block, &decoded);
  if (fetch->for_rewrite) {
    bundle->frames->for_rewrite = true;
    core->key_memory.rewrite_bytes += block->size;
  }
  wake(core, per_key, fetch->slot);
  hb_key_rewrite_look(core, per_key);
  hb_key_memory_trim(core);
}

void hb_key_memory_retry(struct hb_per_key *per_key) {
  for (uint32_t slot = 0; slot < per_key->bundles_count; slot++) {
    per_key->bundles[slot].flags &= ~(uint32_t)HB_KEY_BUNDLE_UNREADABLE;
  }
}
