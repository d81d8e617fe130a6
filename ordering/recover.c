/* Decides whether what the store holds of a stream agrees with itself.
 *
 * Coverage is derived: it begins at the frontier and bundles add to it in any order. Checked: what
 * is read is a bundle, no sequence at or above the frontier lies in two (I10), and in the end
 * coverage from the frontier stops exactly at the stored complete_to (I4). After HB_CORRUPT the
 * core is of no use. */
#include <inttypes.h>

#include "base/alloc.h"
#include "ordering/core_internal.h"

static enum hb_code damaged(struct hb_err *err, struct hb_bundle_id id, const char *what) {
  return hb_err_set(err, HB_CORRUPT, "BUNDLE_DAMAGED",
                    "stream %" PRIu64 ", bundle %" PRIu64 "/%" PRIu32 ": %s", id.stream, id.commit,
                    id.part, what);
}

static enum hb_code insert_runs(struct hb_core_stream *stream, uint32_t slot,
                                struct hb_bundle_id id, struct hb_err *err) {
  const struct hb_held_bundle *bundle = &stream->bundles[slot];
  for (uint32_t i = bundle->next; i < bundle->count;) {
    struct hb_held_run run = {.start = hb_bundle_sequence(bundle, i), .slot = slot, .index = i};
    do {
      run.length++;
      i++;
    } while (i < bundle->count && hb_bundle_sequence(bundle, i) == run.start + (int64_t)run.length);
    if (!hb_held_insert(&stream->held, run)) {
      return hb_err_set(err, HB_CORRUPT, "SEQUENCE_HELD_TWICE",
                        "stream %" PRIu64 ", bundle %" PRIu64 "/%" PRIu32
                        ": a sequence in [%" PRId64 ", %" PRId64 ") lies in another bundle too",
                        id.stream, id.commit, id.part, run.start, run.start + (int64_t)run.length);
    }
    hb_intervals_insert(&stream->covered, run.start, run.start + (int64_t)run.length, 0);
  }
  return HB_OK;
}

void hb_recover_note_empty(struct hb_ordering *core, struct hb_core_stream *stream,
                           struct hb_bundle_id id) {
  hb_reserve((void **)&stream->empty, &stream->empty_cap, stream->empty_count + 1,
             sizeof *stream->empty);
  stream->empty[stream->empty_count++] = id;
  core->empty_bundles = true;
}

enum hb_code hb_ordering_recover_bundle(struct hb_ordering *core, struct hb_bundle_id id,
                                        struct hb_bytes *bytes, struct hb_err *err) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id.stream);
  if (!stream) return damaged(err, id, "its stream is not known");
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(bytes), &block, err);
  if (code) {
    hb_err_wrap(err, "stream %" PRIu64 ", bundle %" PRIu64 "/%" PRIu32, id.stream, id.commit,
                id.part);
    return code;
  }
  if (block.kind != HB_BLOCK_EVENTS) return damaged(err, id, "it is not a block of events");
  if (!stream->record.frozen) return damaged(err, id, "its stream has no first sequence yet");
  if (stream->per_key) {
    return hb_per_key_recover_bundle(core, stream, id, bytes, &block, err);
  }
  uint32_t next = hb_block_find(&block, stream->record.frontier);
  if (next == block.count) {
    hb_recover_note_empty(core, stream, id);
    return HB_OK;
  }
  uint32_t slot = hb_bundle_create(core, stream, id.commit, id.part);
  struct hb_held_bundle *bundle = &stream->bundles[slot];
  bundle->flags |= HB_BUNDLE_TIMES;
  bundle->count = block.count;
  bundle->next = next;
  bundle->low = hb_block_sequence(&block, next);
  bundle->disk_bytes = bytes->size;
  bundle->live_bytes = hb_block_frames(&block, next, block.count - next).size;
  stream->held_bytes += bundle->disk_bytes;
  stream->live_bytes += bundle->live_bytes;
  hb_bundle_set_bytes(core, stream, slot, bytes, &block, 0);
  code = insert_runs(stream, slot, id, err);
  if (code) return code;
  hb_bundle_consider(core, stream, slot);
  hb_residency_trim(core);
  return HB_OK;
}

void hb_ordering_recover_unprocessed(struct hb_ordering *core, uint64_t id, enum hb_outcome outcome,
                                     int64_t sequence, uint64_t content_hash) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (stream) hb_kept_add(core, stream, outcome, sequence, content_hash);
}

enum hb_code hb_ordering_recover_end(struct hb_ordering *core, uint64_t id, struct hb_now now,
                                     struct hb_err *err) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (!stream) return hb_err_set(err, HB_NOT_FOUND, NULL, "stream %" PRIu64 " is not known", id);
  const struct hb_frontier *record = &stream->record;
  if (record->frozen && stream->covered.base != record->complete_to) {
    return hb_err_set(err, HB_CORRUPT, "COVERAGE_DISAGREES",
                      "stream %" PRIu64 ": what is stored from the frontier %" PRId64
                      " covers up to %" PRId64 ", the frontier record says complete_to %" PRId64,
                      id, record->frontier, stream->covered.base, record->complete_to);
  }
  if (stream->per_key) {
    enum hb_code code = hb_per_key_recover_end(core, stream, err);
    if (code) return code;
  }
  core->now = now;
  core->moment = hb_moment_of(&core->moments, now.served_ms, now.wall_ms);
  hb_gaps_inherit(core, stream);
  if (record->frozen && record->frontier < record->complete_to) hb_release_enqueue(core, stream);
  core->fetch_stale = true;
  hb_rewrite_look(core);
  return HB_OK;
}
