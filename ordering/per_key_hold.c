/* Decides how held events of a PER_KEY stream are laid into bundles, and when these go.
 *
 * A commit makes one bundle of what it holds, over all keys, cut at bundle_bytes. Its events leave
 * it in any order, so it counts those that wait; when none does the commit that releases the last
 * one deletes it. A sparse one (less than a quarter waits) keeps disk and memory for what is gone,
 * a tiny one costs a row: when enough of them gathered, or they waste a bundle's worth, a commit
 * that comes anyway puts what waits of them into new ones. Old and new change places in it (I10).
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

enum { TINY_BYTES = 4096, TINY_PER_BUNDLE = 16, REWRITE_SPARSE = 16, REWRITE_TINY = 64 };

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
  per_key->bundles[slot] = (struct hb_key_bundle){.commit = commit, .part = part, .used = true};
  return slot;
}

void hb_key_bundle_set(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot,
                       struct hb_bytes *bytes, const struct hb_block *block) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  bundle->bytes = hb_bytes_ref(bytes);
  bundle->block = *block;
  bundle->count = bundle->live = block->count;
  bundle->live_bytes = block->frames.size;
  per_key->live_bytes += bundle->live_bytes;
  per_key->held_bytes += bytes->size;
  core->key_held_bytes += bytes->size;
}

void hb_key_bundle_drop(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  per_key->live_bytes -= bundle->live_bytes;
  per_key->held_bytes -= bundle->bytes->size;
  core->key_held_bytes -= bundle->bytes->size;
  hb_bytes_unref(bundle->bytes);
  *bundle = (struct hb_key_bundle){.next_free = per_key->free_slot};
  per_key->free_slot = slot;
}

void hb_key_bundle_done(struct hb_ordering *core, struct hb_per_key *per_key) {
  for (uint32_t slot = 0; slot < per_key->bundles_count; slot++) {
    if (per_key->bundles[slot].bytes) hb_key_bundle_drop(core, per_key, slot);
  }
  core->index_bytes -= per_key->bundles_cap * sizeof *per_key->bundles;
  free(per_key->bundles);
}

struct hb_slice hb_key_bundle_frame(const struct hb_per_key *per_key,
                                    const struct hb_keyed_entry *entry) {
  return hb_block_frame(&per_key->bundles[entry->slot].block, entry->index);
}

struct hb_receipt hb_key_bundle_receipt(const struct hb_per_key *per_key,
                                        const struct hb_keyed_entry *entry) {
  return hb_block_receipt(&per_key->bundles[entry->slot].block, entry->index);
}

/* ---- what waits of a bundle */

static bool is_sparse(const struct hb_key_bundle *bundle) {
  return (uint64_t)bundle->live * 4 < bundle->count;
}

static bool is_tiny(const struct hb_ordering *core, const struct hb_key_bundle *bundle) {
  return bundle->bytes->size < TINY_BYTES &&
         bundle->bytes->size < core->options.bundle_bytes / TINY_PER_BUNDLE;
}

void hb_key_bundle_consider(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  struct hb_key_bundle *bundle = &per_key->bundles[slot];
  if (bundle->candidate || (!is_sparse(bundle) && !is_tiny(core, bundle))) return;
  hb_reserve((void **)&per_key->candidates, &per_key->candidates_cap, per_key->candidates_count + 1,
             sizeof *per_key->candidates);
  per_key->candidates[per_key->candidates_count++] = slot;
  bundle->candidate = true;
}

void hb_key_bundle_take(struct hb_per_key *per_key, const struct hb_keyed_entry *entry) {
  struct hb_key_bundle *bundle = &per_key->bundles[entry->slot];
  size_t size = hb_key_bundle_frame(per_key, entry).size;
  HB_ASSERT(bundle->live > 0);
  bundle->live--;
  bundle->live_bytes -= size;
  per_key->live_bytes -= size;
  if (bundle->live && !is_sparse(bundle)) return;
  hb_reserve((void **)&per_key->drained, &per_key->drained_cap, per_key->drained_count + 1,
             sizeof *per_key->drained);
  per_key->drained[per_key->drained_count++] = entry->slot;
}

static struct hb_bundle_id id_of(const struct hb_per_key *per_key, uint32_t slot) {
  const struct hb_key_bundle *bundle = &per_key->bundles[slot];
  return (struct hb_bundle_id){
      .stream = per_key->stream->id, .commit = bundle->commit, .part = bundle->part};
}

static void delete_bundle(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  hb_outbox_drained(core, id_of(per_key, slot));
  hb_key_bundle_drop(core, per_key, slot);
}

void hb_key_bundle_drop_drained(struct hb_ordering *core, struct hb_per_key *per_key) {
  for (size_t i = 0; i < per_key->drained_count; i++) {
    uint32_t slot = per_key->drained[i];
    if (!per_key->bundles[slot].used) continue; /* it became sparse before, and is named twice */
    if (per_key->bundles[slot].live) {
      hb_key_bundle_consider(core, per_key, slot);
    } else {
      delete_bundle(core, per_key, slot);
    }
  }
  per_key->drained_count = 0;
}

/* ---- making one */

static void cut(struct hb_ordering *core, struct hb_per_key *per_key) {
  uint32_t slot = per_key->making;
  if (slot == HB_SLOT_NONE) return;
  struct hb_bytes *bytes = hb_outbox_bundle(core, id_of(per_key, slot));
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

/* What is being made costs, on disk and in memory, at most as much as the codec says of it. */
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

/* ---- rewriting */

static bool may_rewrite(const struct hb_ordering *core, const struct hb_key_bundle *bundle) {
  return bundle->used && bundle->candidate && bundle->commit != core->commit.number;
}

/* Slots are used again: what is no candidate any more leaves the list. */
static void tidy_candidates(struct hb_per_key *per_key) {
  size_t kept = 0;
  for (size_t i = 0; i < per_key->candidates_count; i++) {
    uint32_t slot = per_key->candidates[i];
    struct hb_key_bundle *bundle = &per_key->bundles[slot];
    if (!bundle->used || !bundle->candidate) continue;
    bundle->candidate = false; /* so that a slot that is named twice is kept once */
    per_key->candidates[kept++] = slot;
  }
  per_key->candidates_count = kept;
  for (size_t i = 0; i < kept; i++) per_key->bundles[per_key->candidates[i]].candidate = true;
}

static bool pays(const struct hb_ordering *core, const struct hb_per_key *per_key) {
  size_t sparse = 0;
  size_t tiny = 0;
  size_t wasted = 0;
  for (size_t i = 0; i < per_key->candidates_count; i++) {
    const struct hb_key_bundle *bundle = &per_key->bundles[per_key->candidates[i]];
    if (!may_rewrite(core, bundle)) continue;
    if (is_sparse(bundle)) {
      sparse++;
      wasted += bundle->bytes->size - bundle->live_bytes;
    } else {
      tiny++;
    }
  }
  return sparse >= REWRITE_SPARSE || tiny >= REWRITE_TINY ||
         (wasted >= core->options.bundle_bytes && wasted > per_key->live_bytes);
}

/* What waits of it is added to the bundle being made. */
static void move_events(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  for (uint32_t i = 0; i < per_key->bundles[slot].count; i++) {
    const struct hb_key_bundle *bundle = &per_key->bundles[slot];
    struct hb_slice frame = hb_block_frame(&bundle->block, i);
    struct hb_event event;
    enum hb_code code = hb_scan_frame(frame, &event, NULL);
    HB_ASSERT(code == HB_OK);
    struct hb_key_state *key = hb_key_find(per_key, hb_event_key(&event));
    struct hb_keyed_entry *held = key ? hb_key_list_find(&key->held, event.sequence) : NULL;
    if (!held || held->slot != slot || held->index != i) continue;
    struct hb_block_entry entry = {.frame = frame.data,
                                   .frame_size = (uint32_t)frame.size,
                                   .receipt = hb_block_receipt(&bundle->block, i)};
    *held = hb_per_key_hold_add(core, per_key, event.sequence, entry);
  }
}

/* A bundle's worth in each commit. */
void hb_per_key_rewrite(struct hb_ordering *core, struct hb_per_key *per_key) {
  tidy_candidates(per_key);
  if (!pays(core, per_key)) return;
  size_t bytes = 0;
  for (size_t i = 0; i < per_key->candidates_count; i++) {
    uint32_t slot = per_key->candidates[i];
    if (!may_rewrite(core, &per_key->bundles[slot])) continue;
    if (bytes && bytes + per_key->bundles[slot].live_bytes > core->options.bundle_bytes) break;
    bytes += per_key->bundles[slot].live_bytes;
    move_events(core, per_key, slot);
    hb_reserve((void **)&per_key->drained, &per_key->drained_cap, per_key->drained_count + 1,
               sizeof *per_key->drained);
    per_key->drained[per_key->drained_count++] = slot;
  }
  cut(core, per_key);
  for (size_t i = 0; i < per_key->drained_count; i++) {
    delete_bundle(core, per_key, per_key->drained[i]);
  }
  per_key->drained_count = 0;
}
