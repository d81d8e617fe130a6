/* Decides how held events of a PER_KEY stream are laid into bundles, and when these go.
 *
 * A commit makes one bundle of what it holds, over all keys, cut at bundle_bytes. Its events leave
 * it in any order, so it counts those that wait; when none does the commit that releases the last
 * one deletes it. What waits of a bundle in bytes is taken from its share in the events: their
 * sizes are not known while it is on disk only. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

enum { TINY_BYTES = 4096, TINY_PER_BUNDLE = 16 };

/* ---- the table */

uint32_t hb_key_bundle_create(struct hb_ordering *core, struct hb_per_key *per_key, uint64_t commit,
                              uint32_t part) {
  uint32_t slot = per_key->free_slot;
  if (slot != HB_SLOT_NONE) {
    per_key->free_slot = per_key->bundles[slot].next_free;
  } else {
    size_t before = per_key->bundles_cap;
    hb_reserve((void **)&per_key->bundles, &per_key->bundles_cap, per_key->bundles_count + 1,
               sizeof *per_key->bundles);
    core->index_bytes += (per_key->bundles_cap - before) * sizeof *per_key->bundles;
    slot = (uint32_t)per_key->bundles_count++;
  }
  per_key->bundles[slot] =
      (struct hb_key_bundle){.commit = commit, .part = part, .flags = HB_KEY_BUNDLE_USED};
  core->key_memory.spilled++; /* until it is made */
  return slot;
}

size_t hb_key_bundle_live_bytes(const struct hb_key_bundle *bundle) {
  if (!bundle->count) return 0;
  return (size_t)((uint64_t)bundle->frames_bytes * bundle->live / bundle->count);
}

static void set_live(struct hb_per_key *per_key, struct hb_key_bundle *bundle, uint32_t live) {
  per_key->live_bytes -= hb_key_bundle_live_bytes(bundle);
  bundle->live = live;
  per_key->live_bytes += hb_key_bundle_live_bytes(bundle);
}

void hb_key_bundle_set(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot,
                       struct hb_bytes *bytes, const struct hb_block *block) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  bundle->count = block->count;
  bundle->frames_bytes = block->frames.size;
  bundle->disk_bytes = bytes->size;
  set_live(per_key, bundle, block->count);
  per_key->held_bytes += bytes->size;
  hb_key_memory_load(core, per_key, slot, bytes, block);
}

void hb_key_bundle_drop(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  HB_ASSERT(!bundle->waiting && !(bundle->flags & HB_KEY_BUNDLE_FETCHING));
  if (bundle->frames) hb_key_memory_spill(core, per_key, slot);
  core->key_memory.spilled--;
  set_live(per_key, bundle, 0);
  per_key->held_bytes -= bundle->disk_bytes;
  *bundle = (struct hb_key_bundle){.next_free = per_key->free_slot};
  per_key->free_slot = slot;
}

void hb_key_bundle_done(struct hb_ordering *core, struct hb_per_key *per_key) {
  for (uint32_t slot = 0; slot < per_key->bundles_count; slot++) {
    const struct hb_key_bundle *bundle = &per_key->bundles[slot];
    if (!(bundle->flags & HB_KEY_BUNDLE_USED)) continue;
    hb_key_memory_forget(core, per_key, slot);
    if (bundle->frames) hb_key_memory_spill(core, per_key, slot);
    core->key_memory.spilled--;
  }
  core->index_bytes -= per_key->bundles_cap * sizeof *per_key->bundles;
  free(per_key->bundles);
}

struct hb_slice hb_key_bundle_frame(const struct hb_per_key *per_key,
                                    const struct hb_keyed_entry *entry) {
  return hb_block_frame(&per_key->bundles[entry->slot].frames->block, entry->index);
}

struct hb_receipt hb_key_bundle_receipt(const struct hb_per_key *per_key,
                                        const struct hb_keyed_entry *entry) {
  return hb_block_receipt(&per_key->bundles[entry->slot].frames->block, entry->index);
}

/* ---- what waits of a bundle */

/* Less than a quarter of it waits. */
bool hb_key_bundle_is_sparse(const struct hb_key_bundle *bundle) {
  return (uint64_t)bundle->live * 4 < bundle->count;
}

bool hb_key_bundle_is_tiny(const struct hb_ordering *core, const struct hb_key_bundle *bundle) {
  return bundle->disk_bytes < TINY_BYTES &&
         bundle->disk_bytes < core->options.bundle_bytes / TINY_PER_BUNDLE;
}

void hb_key_bundle_consider(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  bool worth =
      bundle->asides || hb_key_bundle_is_sparse(bundle) || hb_key_bundle_is_tiny(core, bundle);
  if (!worth || bundle->flags & HB_KEY_BUNDLE_CANDIDATE) return;
  hb_reserve((void **)&per_key->candidates, &per_key->candidates_cap, per_key->candidates_count + 1,
             sizeof *per_key->candidates);
  per_key->candidates[per_key->candidates_count++] = slot;
  bundle->flags |= HB_KEY_BUNDLE_CANDIDATE;
}

void hb_key_bundle_forget(struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  HB_ASSERT(bundle->live > bundle->asides);
  set_live(per_key, bundle, bundle->live - 1);
}

void hb_key_bundle_take(struct hb_per_key *per_key, uint32_t slot) {
  hb_key_bundle_forget(per_key, slot);
  const struct hb_key_bundle *bundle = &per_key->bundles[slot];
  if (bundle->live && !hb_key_bundle_is_sparse(bundle)) return;
  hb_reserve((void **)&per_key->drained, &per_key->drained_cap, per_key->drained_count + 1,
             sizeof *per_key->drained);
  per_key->drained[per_key->drained_count++] = slot;
}

struct hb_bundle_id hb_key_bundle_id(const struct hb_per_key *per_key, uint32_t slot) {
  const struct hb_key_bundle *bundle = &per_key->bundles[slot];
  return (struct hb_bundle_id){
      .stream = per_key->stream->id, .commit = bundle->commit, .part = bundle->part};
}

void hb_key_bundle_delete(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  hb_outbox_drained(core, hb_key_bundle_id(per_key, slot));
  hb_key_bundle_drop(core, per_key, slot);
}

void hb_key_bundle_drop_drained(struct hb_ordering *core, struct hb_per_key *per_key) {
  for (size_t i = 0; i < per_key->drained_count; i++) {
    uint32_t slot = per_key->drained[i];
    if (!(per_key->bundles[slot].flags & HB_KEY_BUNDLE_USED))
      continue; /* it became sparse before, and is named twice */
    if (per_key->bundles[slot].live) {
      hb_key_bundle_consider(core, per_key, slot);
    } else {
      hb_key_bundle_delete(core, per_key, slot);
    }
  }
  per_key->drained_count = 0;
}

/* ---- making one */

static void cut(struct hb_ordering *core, struct hb_per_key *per_key) {
  uint32_t slot = per_key->making;
  if (slot == HB_SLOT_NONE) return;
  struct hb_bytes *bytes = hb_outbox_bundle(core, hb_key_bundle_id(per_key, slot));
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(bytes), &block, NULL);
  HB_ASSERT(code == HB_OK);
  hb_key_bundle_set(core, per_key, slot, bytes, &block);
  hb_key_bundle_consider(core, per_key, slot);
  per_key->making = HB_SLOT_NONE;
  per_key->making_bytes = 0;
}

static bool needs_new_bundle(const struct hb_ordering *core, const struct hb_per_key *per_key,
                             uint32_t frame_size) {
  return per_key->making == HB_SLOT_NONE ||
         per_key->making_bytes + frame_size > core->options.bundle_bytes;
}

/* What is being made costs, on disk, at most as much as the codec says of it. */
uint64_t hb_per_key_hold_bytes(const struct hb_ordering *core, const struct hb_per_key *per_key,
                               uint32_t frame_size) {
  uint64_t bytes = core->entry_overhead + frame_size;
  if (needs_new_bundle(core, per_key, frame_size)) bytes += core->block_overhead;
  if (per_key->making == HB_SLOT_NONE) return bytes;
  return bytes + core->block_overhead + core->entries_count * core->entry_overhead +
         per_key->making_bytes;
}

struct hb_keyed_entry hb_per_key_hold_add(struct hb_ordering *core, struct hb_per_key *per_key,
                                          int64_t sequence, struct hb_block_entry entry) {
  if (needs_new_bundle(core, per_key, entry.frame_size)) {
    cut(core, per_key);
    HB_ASSERT(core->entries_count == 0);
    per_key->making = hb_key_bundle_create(core, per_key, core->commit.number,
                                           (uint32_t)core->commit.bundles_count);
  }
  hb_reserve((void **)&core->entries, &core->entries_cap, core->entries_count + 1,
             sizeof *core->entries);
  uint32_t index = (uint32_t)core->entries_count++;
  entry.sequence = index;
  core->entries[index] = entry;
  per_key->making_bytes += entry.frame_size;
  return (struct hb_keyed_entry){.sequence = sequence, .slot = per_key->making, .index = index};
}

void hb_per_key_hold_end(struct hb_ordering *core, struct hb_per_key *per_key) {
  cut(core, per_key);
}
