/* Decides when bundles that are mostly drained, or tiny, are put together into new ones.
 *
 * A sparse bundle (less than a sixteenth still waits; a quarter, where what is gone takes twice of
 * what waits) keeps disk for what is gone; tiny bundles (each commit of one event makes one) cost a
 * row and a slot each. Rewriting waits until it pays: 256 KiB of live frames or 16 sparse bundles,
 * or more wasted than all that lives, or 256 tiny ones. A commit rewrites a bundle's worth of a
 * stream. What is spilled is fetched first, a few at a time. Old and new change places in one
 * commit (I10). */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

enum {
  REWRITE_LIVE_BYTES = 256 << 10,
  REWRITE_SPARSE = 16,
  REWRITE_TINY = 256,
  REWRITE_COMMIT_BYTES = 4 << 20
};

struct tally {
  size_t sparse;
  size_t tiny;
  size_t live_bytes; /* of sparse ones */
  size_t disk_bytes;
};

/* A candidate that is neither waits for the stream's waste to grow. */
static bool is_due(const struct hb_ordering *core, const struct hb_core_stream *stream,
                   const struct hb_held_bundle *bundle) {
  return hb_bundle_is_sparse(stream, bundle) || hb_bundle_is_tiny(core, bundle);
}

static struct tally count_candidates(const struct hb_ordering *core,
                                     const struct hb_core_stream *stream, bool resident_only) {
  struct tally tally = {0};
  for (size_t i = 0; i < stream->candidates_count; i++) {
    const struct hb_held_bundle *bundle = &stream->bundles[stream->candidates[i]];
    if (resident_only && !bundle->bytes) continue;
    if (hb_bundle_is_tiny(core, bundle)) tally.tiny++;
    if (!hb_bundle_is_sparse(stream, bundle)) continue;
    tally.sparse++;
    tally.live_bytes += bundle->live_bytes;
    tally.disk_bytes += bundle->disk_bytes;
  }
  return tally;
}

static bool pays(const struct hb_ordering *core, const struct hb_core_stream *stream,
                 const struct tally *tally) {
  size_t wasted = tally->disk_bytes - tally->live_bytes;
  return tally->sparse >= REWRITE_SPARSE || tally->live_bytes >= REWRITE_LIVE_BYTES ||
         tally->tiny >= REWRITE_TINY ||
         (wasted >= core->options.bundle_bytes && wasted > stream->live_bytes);
}

static bool is_ready(const struct hb_ordering *core, const struct hb_core_stream *stream) {
  if (!stream->candidates_count) return false;
  struct tally tally = count_candidates(core, stream, true);
  return pays(core, stream, &tally);
}

void hb_rewrite_look(struct hb_ordering *core) {
  size_t kept = 0;
  core->rewrite_ready = false;
  for (size_t i = 0; i < core->sparse_count; i++) {
    struct hb_core_stream *stream = core->sparse[i];
    stream->sparse = stream->candidates_count > 0;
    if (!stream->sparse) continue;
    core->sparse[kept++] = stream;
    core->rewrite_ready = core->rewrite_ready || is_ready(core, stream);
  }
  core->sparse_count = kept;
}

void hb_rewrite_plan_fetches(struct hb_ordering *core, struct hb_core_stream *stream) {
  struct tally all = count_candidates(core, stream, false);
  if (!pays(core, stream, &all) || is_ready(core, stream)) return;
  size_t room = (size_t)core->options.limits.held_memory_max / 4;
  size_t planned = 0;
  for (size_t i = 0; i < stream->candidates_count && planned < REWRITE_TINY; i++) {
    uint32_t slot = stream->candidates[i];
    struct hb_held_bundle *bundle = &stream->bundles[slot];
    if (bundle->bytes || !is_due(core, stream, bundle)) continue;
    if (bundle->disk_bytes > room) continue;
    room -= bundle->disk_bytes;
    bundle->flags |= HB_BUNDLE_REWRITE;
    hb_residency_plan(core, stream, slot);
    planned++;
  }
}

/* ---- doing it */

/* Candidates that are sparse, or those that are only tiny, in memory and not made by this commit,
 * as long as all together are a bundle's worth of frames: into core->dropping. */
static size_t choose(struct hb_ordering *core, const struct hb_core_stream *stream, bool sparse,
                     size_t bytes) {
  for (size_t i = 0; i < stream->candidates_count; i++) {
    uint32_t slot = stream->candidates[i];
    const struct hb_held_bundle *bundle = &stream->bundles[slot];
    bool fits = !bytes || bytes + bundle->live_bytes <= core->options.bundle_bytes;
    if (!bundle->bytes || bundle->commit == core->commit.number || !fits) continue;
    if (hb_bundle_is_sparse(stream, bundle) != sparse) continue;
    if (!sparse && !hb_bundle_is_tiny(core, bundle)) continue;
    bytes += bundle->live_bytes;
    hb_reserve((void **)&core->dropping, &core->dropping_cap, core->dropping_count + 1,
               sizeof *core->dropping);
    core->dropping[core->dropping_count++] = slot;
  }
  return bytes;
}

/* What waits of the chosen ones, ascending, as items {sequence, slot, index} in core->due. */
static size_t collect(struct hb_ordering *core, const struct hb_core_stream *stream) {
  size_t count = 0;
  for (size_t i = 0; i < core->dropping_count; i++) {
    uint32_t slot = core->dropping[i];
    const struct hb_held_bundle *bundle = &stream->bundles[slot];
    uint32_t live = bundle->count - bundle->next;
    hb_reserve((void **)&core->due, &core->due_cap, count + live, sizeof *core->due);
    for (uint32_t k = bundle->next; k < bundle->count; k++) {
      core->due[count++] = (struct hb_item){hb_bundle_sequence(bundle, k), slot, k};
    }
  }
  hb_reserve((void **)&core->due_spare, &core->due_spare_cap, count, sizeof *core->due_spare);
  hb_sort_items(core->due, core->due_spare, count);
  return count;
}

static void take_out(struct hb_ordering *core, struct hb_core_stream *stream, size_t count) {
  for (size_t i = 0; i < count;) {
    struct hb_held_run run;
    bool held = hb_held_find(&stream->held, core->due[i].sequence, &run);
    HB_ASSERT(held && run.start == core->due[i].sequence && run.slot == core->due[i].batch);
    hb_held_remove(&stream->held, run.start);
    i += run.length;
  }
}

static void put_in(struct hb_ordering *core, struct hb_core_stream *stream, size_t count,
                   bool sorted) {
  struct hb_hold hold = hb_hold_begin(core, stream, false);
  hold.sorted = sorted;
  for (size_t i = 0; i < count; i++) {
    const struct hb_item *item = &core->due[i];
    struct hb_held_bundle *bundle = &stream->bundles[item->batch];
    struct hb_slice frame = hb_bundle_frame(bundle, item->index);
    struct hb_block_entry entry = {.sequence = item->sequence,
                                   .frame = frame.data,
                                   .frame_size = (uint32_t)frame.size,
                                   .receipt = hb_bundle_receipt(bundle, item->index)};
    hb_hold_add(&hold, &entry, bundle->flags & HB_BUNDLE_TIMES);
  }
  hb_hold_end(&hold);
}

size_t hb_rewrite_chosen(struct hb_ordering *core, struct hb_core_stream *stream, bool sorted) {
  size_t count = collect(core, stream);
  if (!count) return 0;
  uint64_t before = stream->held_bytes;
  take_out(core, stream, count);
  put_in(core, stream, count, sorted);
  size_t bytes = (size_t)(stream->held_bytes - before);
  for (size_t i = 0; i < core->dropping_count; i++) {
    hb_outbox_drained(core, hb_bundle_id_of(stream, core->dropping[i]));
    hb_bundle_drop(core, stream, core->dropping[i]);
  }
  core->dropping_count = 0;
  hb_outbox_touch(core, stream);
  return bytes;
}

/* Sparse ones are chosen first: one of them alone is worth it, a tiny one alone would be put again
 * as it is. */
static size_t rewrite_stream(struct hb_ordering *core, struct hb_core_stream *stream) {
  size_t bytes = choose(core, stream, true, 0);
  (void)choose(core, stream, false, bytes);
  return hb_rewrite_chosen(core, stream, false);
}

void hb_rewrite(struct hb_ordering *core) {
  size_t bytes = 0;
  for (size_t i = 0; i < core->sparse_count && bytes < REWRITE_COMMIT_BYTES; i++) {
    if (is_ready(core, core->sparse[i])) bytes += rewrite_stream(core, core->sparse[i]);
  }
}
