/* The arrays of the commit, reused from one to the next, and the references that they hold. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "ordering/core_internal.h"

/* Room for one more in one of the commit's arrays. */
#define OUTBOX_RESERVE(core, name)                                                         \
  hb_reserve((void **)&(core)->name, &(core)->name##_cap, (core)->commit.name##_count + 1, \
             sizeof *(core)->name)

bool hb_commit_is_empty(const struct hb_commit *commit) {
  return !commit->blocks_count && !commit->bundles_count && !commit->drained_count &&
         !commit->frontiers_count && !commit->unprocessed_count && !commit->gaps_count &&
         !commit->gone_gaps_count && !commit->keys_count;
}

void hb_outbox_clear(struct hb_ordering *core) {
  struct hb_commit *commit = &core->commit;
  for (size_t i = 0; i < commit->blocks_count; i++) hb_bytes_unref(core->blocks[i].block);
  for (size_t i = 0; i < commit->bundles_count; i++) hb_bytes_unref(core->bundles[i].block);
  for (size_t i = 0; i < core->touched_count; i++) core->touched[i]->touched = false;
  core->touched_count = 0;
  *commit = (struct hb_commit){0};
}

void hb_outbox_done(struct hb_ordering *core) {
  core->touched_count = 0;
  hb_outbox_clear(core);
  free(core->blocks);
  free(core->bundles);
  free(core->drained);
  free(core->frontiers);
  free(core->unprocessed);
  free(core->gaps);
  free(core->gone_gaps);
  free(core->keys);
}

void hb_outbox_touch(struct hb_ordering *core, struct hb_core_stream *stream) {
  if (stream->touched) return;
  stream->touched = true;
  hb_reserve((void **)&core->touched, &core->touched_cap, core->touched_count + 1,
             sizeof(struct hb_core_stream *));
  core->touched[core->touched_count++] = stream;
}

struct hb_bytes *hb_outbox_block(struct hb_ordering *core, struct hb_core_stream *stream,
                                 int64_t from, int64_t to) {
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, from, to, stream->record.max_event_time,
                                           core->entries, core->entries_count);
  core->entries_count = 0;
  OUTBOX_RESERVE(core, blocks);
  core->blocks[core->commit.blocks_count++] =
      (struct hb_put_block){.stream = stream->id, .from = from, .to = to, .block = bytes};
  hb_outbox_touch(core, stream);
  return bytes;
}

struct hb_bytes *hb_outbox_bundle(struct hb_ordering *core, struct hb_bundle_id id) {
  const struct hb_block_entry *entries = core->entries;
  size_t count = core->entries_count;
  struct hb_bytes *bytes =
      hb_block_encode(HB_BLOCK_EVENTS, entries[0].sequence, entries[count - 1].sequence + 1,
                      (struct hb_time){0}, entries, count);
  core->entries_count = 0;
  OUTBOX_RESERVE(core, bundles);
  core->bundles[core->commit.bundles_count++] = (struct hb_put_bundle){.id = id, .block = bytes};
  return bytes;
}

void hb_outbox_drained(struct hb_ordering *core, struct hb_bundle_id id) {
  OUTBOX_RESERVE(core, drained);
  core->drained[core->commit.drained_count++] = id;
}

void hb_outbox_unprocessed(struct hb_ordering *core, struct hb_put_unprocessed row) {
  OUTBOX_RESERVE(core, unprocessed);
  core->unprocessed[core->commit.unprocessed_count++] = row;
}

void hb_outbox_gap(struct hb_ordering *core, struct hb_put_gap row) {
  OUTBOX_RESERVE(core, gaps);
  core->gaps[core->commit.gaps_count++] = row;
}

void hb_outbox_gone_gap(struct hb_ordering *core, struct hb_delete_gap row) {
  OUTBOX_RESERVE(core, gone_gaps);
  core->gone_gaps[core->commit.gone_gaps_count++] = row;
}

void hb_outbox_key(struct hb_ordering *core, struct hb_put_key row) {
  OUTBOX_RESERVE(core, keys);
  core->keys[core->commit.keys_count++] = row;
}

void hb_outbox_frontiers(struct hb_ordering *core) {
  for (size_t i = 0; i < core->touched_count; i++) {
    struct hb_core_stream *stream = core->touched[i];
    stream->record.commit = core->commit.number;
    OUTBOX_RESERVE(core, frontiers);
    core->frontiers[core->commit.frontiers_count++] =
        (struct hb_put_frontier){.stream = stream->id, .record = stream->record};
    if (HB_PLANTED(FRONTIER_AHEAD)) {
      core->frontiers[core->commit.frontiers_count - 1].record.frontier =
          stream->record.complete_to;
    }
  }
}
