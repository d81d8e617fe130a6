/* The table of a stream's bundles: what each still holds, and whether its bytes are in memory.
 *
 * Keeps: held_bytes and live_bytes of the stream, resident_bytes and index_bytes of the core, the
 * number of spilled bundles, and which bundles are candidates for a rewrite. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

enum { TINY_BYTES = 4096, TINY_PER_BUNDLE = 16 };

/* ---- slots */

/* By half: it counts against held_index_max as it is allocated. */
static void grow_table(struct hb_ordering *core, struct hb_core_stream *stream) {
  if (stream->bundles_count < stream->bundles_cap) return;
  size_t cap = stream->bundles_cap + stream->bundles_cap / 2 + 4;
  stream->bundles = hb_realloc(stream->bundles, cap * sizeof *stream->bundles);
  core->index_bytes += (cap - stream->bundles_cap) * sizeof *stream->bundles;
  stream->bundles_cap = cap;
}

static uint32_t take_slot(struct hb_ordering *core, struct hb_core_stream *stream) {
  uint32_t slot = stream->free_slot;
  if (slot != HB_SLOT_NONE) {
    stream->free_slot = stream->bundles[slot].next_free;
    return slot;
  }
  grow_table(core, stream);
  return (uint32_t)stream->bundles_count++;
}

static void count_spilled(struct hb_ordering *core, struct hb_core_stream *stream, int by) {
  stream->spilled += (size_t)by;
  core->spilled += (size_t)by;
}

uint32_t hb_bundle_create(struct hb_ordering *core, struct hb_core_stream *stream, uint64_t commit,
                          uint32_t part) {
  uint32_t slot = take_slot(core, stream);
  stream->bundles[slot] =
      (struct hb_held_bundle){.commit = commit, .part = part, .flags = HB_BUNDLE_USED};
  count_spilled(core, stream, 1);
  return slot;
}

static void remove_candidate(struct hb_core_stream *stream, struct hb_held_bundle *bundle) {
  if (!bundle->candidate) return;
  uint32_t last = stream->candidates[--stream->candidates_count];
  stream->candidates[bundle->candidate - 1] = last;
  stream->bundles[last].candidate = bundle->candidate;
  bundle->candidate = 0;
}

void hb_bundle_drop(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  HB_ASSERT(bundle->flags & HB_BUNDLE_USED && !(bundle->flags & HB_BUNDLE_FETCHING));
  if (bundle->bytes) hb_bundle_spill(core, stream, slot);
  count_spilled(core, stream, -1);
  stream->held_bytes -= bundle->disk_bytes;
  stream->live_bytes -= bundle->live_bytes;
  remove_candidate(stream, bundle);
  bundle->flags = 0;
  bundle->next_free = stream->free_slot;
  stream->free_slot = slot;
}

void hb_bundle_drop_all(struct hb_ordering *core, struct hb_core_stream *stream) {
  for (uint32_t slot = 0; slot < stream->bundles_count; slot++) {
    if (stream->bundles[slot].bytes) hb_bundle_spill(core, stream, slot);
  }
  core->spilled -= stream->spilled;
  core->index_bytes -= stream->bundles_cap * sizeof *stream->bundles;
  free(stream->bundles);
  stream->bundles = NULL;
  stream->bundles_count = stream->bundles_cap = 0;
}

struct hb_bundle_id hb_bundle_id_of(const struct hb_core_stream *stream, uint32_t slot) {
  const struct hb_held_bundle *bundle = &stream->bundles[slot];
  return (struct hb_bundle_id){
      .stream = stream->id, .commit = bundle->commit, .part = bundle->part};
}

/* ---- bytes in memory */

void hb_bundle_set_bytes(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot,
                         struct hb_bytes *bytes, const struct hb_block *block, uint32_t base) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  struct hb_bytes *taken = hb_bytes_ref(bytes);
  if (bundle->bytes) hb_bundle_spill(core, stream, slot);
  count_spilled(core, stream, -1);
  bundle->bytes = taken;
  bundle->block = *block;
  bundle->base = base;
  core->resident_bytes += taken->size;
}

void hb_bundle_spill(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  core->resident_bytes -= bundle->bytes->size;
  hb_bytes_unref(bundle->bytes);
  bundle->bytes = NULL;
  count_spilled(core, stream, 1);
}

struct hb_slice hb_bundle_frame(const struct hb_held_bundle *bundle, uint32_t index) {
  return hb_block_frame(&bundle->block, index - bundle->base);
}

int64_t hb_bundle_sequence(const struct hb_held_bundle *bundle, uint32_t index) {
  return hb_block_sequence(&bundle->block, index - bundle->base);
}

struct hb_receipt hb_bundle_receipt(struct hb_held_bundle *bundle, uint32_t index) {
  return hb_block_receipt_near(&bundle->block, index - bundle->base, &bundle->run);
}

void hb_bundle_expect(const struct hb_held_bundle *bundle, uint32_t index) {
  hb_block_expect(&bundle->block, index - bundle->base, bundle->run);
}

void hb_bundle_expect_frame(const struct hb_held_bundle *bundle, uint32_t index) {
  hb_block_expect_frame(&bundle->block, index - bundle->base);
}

/* ---- what waits */

/* At least sixteen of them make one bundle. */
bool hb_bundle_is_tiny(const struct hb_ordering *core, const struct hb_held_bundle *bundle) {
  return bundle->disk_bytes < TINY_BYTES &&
         bundle->disk_bytes < core->options.bundle_bytes / TINY_PER_BUNDLE;
}

/* A wide disorder drains all its bundles evenly; one that is rewritten late is rewritten for few
 * events. Where some events stay long, and what is gone takes twice of what waits, it is earlier.
 */
enum { SPARSE_SHARE = 16, SPARSE_SHARE_MAX = 4, HELD_TO_LIVE = 3 };

bool hb_bundle_is_sparse(const struct hb_core_stream *stream, const struct hb_held_bundle *bundle) {
  bool wasteful = stream->held_bytes / HELD_TO_LIVE > stream->live_bytes;
  return hb_bundle_waits_below(bundle, wasteful ? SPARSE_SHARE_MAX : SPARSE_SHARE);
}

static bool is_candidate(const struct hb_ordering *core, const struct hb_held_bundle *bundle) {
  if (bundle->next == bundle->count) return false;
  return hb_bundle_waits_below(bundle, SPARSE_SHARE_MAX) || hb_bundle_is_tiny(core, bundle);
}

static void make_sparse(struct hb_ordering *core, struct hb_core_stream *stream) {
  if (stream->sparse) return;
  hb_reserve((void **)&core->sparse, &core->sparse_cap, core->sparse_count + 1,
             sizeof(struct hb_core_stream *));
  core->sparse[core->sparse_count++] = stream;
  stream->sparse = true;
}

void hb_bundle_consider(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  if (!is_candidate(core, bundle)) {
    remove_candidate(stream, bundle);
    return;
  }
  if (bundle->candidate) return;
  hb_reserve((void **)&stream->candidates, &stream->candidates_cap, stream->candidates_count + 1,
             sizeof *stream->candidates);
  stream->candidates[stream->candidates_count++] = slot;
  bundle->candidate = (uint32_t)stream->candidates_count;
  make_sparse(core, stream);
}

void hb_bundle_advance(struct hb_core_stream *stream, uint32_t slot, uint32_t count) {
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  HB_ASSERT(bundle->bytes && count <= bundle->count - bundle->next);
  size_t gone = hb_block_frames(&bundle->block, bundle->next - bundle->base, count).size;
  bundle->next += count;
  bundle->live_bytes -= gone;
  stream->live_bytes -= gone;
  if (bundle->next < bundle->count) bundle->low = hb_bundle_sequence(bundle, bundle->next);
}
