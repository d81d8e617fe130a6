/* Decides how events that must wait are laid into bundles: ascending, cut at bundle_bytes.
 *
 * Events that follow each other are put into index and interval set as one run, when the run ends.
 * What a bundle costs on disk is known when it is encoded; until then the codec's upper bound
 * counts, so that held_bytes_max is never passed. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

struct hb_hold hb_hold_begin(struct hb_ordering *core, struct hb_core_stream *stream, bool cover) {
  HB_ASSERT(core->entries_count == 0);
  return (struct hb_hold){.core = core, .stream = stream, .cover = cover, .slot = HB_SLOT_NONE};
}

void hb_hold_flush_run(struct hb_hold *hold) {
  struct hb_held_run run = hold->run;
  if (!run.length) return;
  if (hold->cover) {
    hb_intervals_insert(&hold->stream->covered, run.start, run.start + (int64_t)run.length,
                        hold->core->moment);
  }
  bool fresh = hb_held_insert(&hold->stream->held, run);
  HB_ASSERT(fresh); /* I10 */
  hold->run.length = 0;
}

static void cut(struct hb_hold *hold) {
  struct hb_ordering *core = hold->core;
  struct hb_core_stream *stream = hold->stream;
  if (hold->slot == HB_SLOT_NONE) return;
  hb_hold_flush_run(hold);
  uint32_t count = (uint32_t)core->entries_count;
  int64_t low = core->entries[0].sequence;
  struct hb_bytes *bytes = hb_outbox_bundle(core, hb_bundle_id_of(stream, hold->slot));
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(bytes), &block, NULL);
  HB_ASSERT(code == HB_OK);
  struct hb_held_bundle *bundle = &stream->bundles[hold->slot];
  bundle->count = count;
  bundle->low = low;
  bundle->disk_bytes = bytes->size;
  bundle->live_bytes = hold->frames_bytes;
  if (hold->times) bundle->flags |= HB_BUNDLE_TIMES;
  if (hold->sorted) bundle->flags |= HB_BUNDLE_SORTED;
  stream->held_bytes += bytes->size;
  stream->live_bytes += hold->frames_bytes;
  hb_bundle_set_bytes(core, stream, hold->slot, bytes, &block, 0);
  hb_bundle_consider(core, stream, hold->slot);
  hold->slot = HB_SLOT_NONE;
  hold->frames_bytes = 0;
  hold->times = false;
}

/* Narrow ones are small, so that many passes find room in memory beside each other. */
static size_t bundle_bytes(const struct hb_hold *hold) {
  return hold->sorted ? hold->core->options.bundle_bytes / 4 : hold->core->options.bundle_bytes;
}

static bool needs_new_bundle(const struct hb_hold *hold, uint32_t frame_size) {
  return hold->slot == HB_SLOT_NONE || hold->frames_bytes + frame_size > bundle_bytes(hold);
}

uint64_t hb_hold_bytes_with(const struct hb_hold *hold, uint32_t frame_size) {
  const struct hb_ordering *core = hold->core;
  uint64_t bytes = hold->stream->held_bytes + core->entry_overhead + frame_size;
  if (needs_new_bundle(hold, frame_size)) bytes += core->block_overhead;
  if (hold->slot == HB_SLOT_NONE) return bytes;
  return bytes + core->block_overhead + core->entries_count * core->entry_overhead +
         hold->frames_bytes;
}

void hb_hold_add(struct hb_hold *hold, const struct hb_block_entry *entry, bool has_time) {
  struct hb_ordering *core = hold->core;
  if (needs_new_bundle(hold, entry->frame_size)) {
    cut(hold);
    hold->slot = hb_bundle_create(core, hold->stream, core->commit.number,
                                  (uint32_t)core->commit.bundles_count);
  }
  bool follows = hold->run.length && hold->run.start + (int64_t)hold->run.length == entry->sequence;
  if (!follows) {
    hb_hold_flush_run(hold);
    hold->run = (struct hb_held_run){
        .start = entry->sequence, .slot = hold->slot, .index = (uint32_t)core->entries_count};
  }
  hold->run.length++;
  hold->frames_bytes += entry->frame_size;
  hold->times |= has_time;
  hb_reserve((void **)&core->entries, &core->entries_cap, core->entries_count + 1,
             sizeof *core->entries);
  core->entries[core->entries_count++] = *entry;
}

void hb_hold_end(struct hb_hold *hold) { cut(hold); }
