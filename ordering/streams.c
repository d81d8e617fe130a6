/* Decides which streams there are, and makes and ends the core as a whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"
#include "ordering/per_key_internal.h"

enum {
  COMMIT_BYTES = 16 << 20,
  RELEASE_STREAM_BYTES = 4 << 20,
  RELEASE_BYTES = 16 << 20,
  BLOCK_BYTES = 64 << 10,
  BUNDLE_BYTES = 1 << 20,
  FETCH_AHEAD_BYTES = 8 << 20
};

static void set_default(size_t *size, size_t value) {
  if (!*size) *size = value;
}

/* What an event costs in a block beside its frame, as the codec itself says. */
static void measure_blocks(struct hb_ordering *core) {
  struct hb_block_entry entry = {0};
  core->block_overhead = hb_block_encoded_size(NULL, 0);
  core->entry_overhead = hb_block_encoded_size(&entry, 1) - core->block_overhead;
}

struct hb_ordering *hb_ordering_create(const struct hb_ordering_options *options) {
  struct hb_ordering *core = hb_calloc(1, sizeof *core);
  core->options = *options;
  set_default(&core->options.commit_bytes, COMMIT_BYTES);
  set_default(&core->options.release_stream_bytes, RELEASE_STREAM_BYTES);
  set_default(&core->options.release_bytes, RELEASE_BYTES);
  set_default(&core->options.block_bytes, BLOCK_BYTES);
  set_default(&core->options.bundle_bytes, BUNDLE_BYTES);
  set_default(&core->options.fetch_ahead_bytes, FETCH_AHEAD_BYTES);
  measure_blocks(core);
  return core;
}

void hb_ordering_destroy(struct hb_ordering *core) {
  if (!core) return;
  HB_ASSERT(!core->batch_bytes && !core->needs_out && !core->needs_first);
  for (size_t i = 0; i < core->streams_count; i++) hb_core_free_stream(core, core->streams[i]);
  hb_outbox_done(core);
  hb_round_done(&core->round);
  hb_moments_done(&core->moments);
  free(core->streams);
  free(core->releasing);
  free(core->sparse);
  free(core->wanted);
  free(core->fetch_plan);
  free(core->fetches);
  free(core->entries);
  free(core->dropping);
  free(core->due);
  free(core->due_spare);
  free(core->touched);
  free(core);
}

/* ---- the table, ascending by id */

static size_t find_place(const struct hb_ordering *core, uint64_t id) {
  size_t low = 0;
  size_t high = core->streams_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (core->streams[middle]->id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

struct hb_core_stream *hb_core_find_stream(const struct hb_ordering *core, uint64_t id) {
  size_t at = find_place(core, id);
  bool found = at < core->streams_count && core->streams[at]->id == id;
  return found ? core->streams[at] : NULL;
}

static struct hb_core_stream *create_stream(struct hb_ordering *core, uint64_t id,
                                            const struct hb_stream_config *config,
                                            const struct hb_frontier *record) {
  struct hb_core_stream *stream = hb_calloc(1, sizeof *stream);
  stream->id = id;
  stream->config = *config;
  stream->record = *record;
  stream->release_limit = INT64_MAX;
  stream->free_slot = HB_SLOT_NONE;
  hb_intervals_init(&stream->covered, record->frozen ? record->frontier : 0, &core->index_bytes);
  hb_held_init(&stream->held, &core->index_bytes);
  hb_pages_init(&stream->gap_rows, &core->index_bytes);
  if (config->mode == HB_MODE_PER_KEY) stream->per_key = hb_per_key_create(stream);
  return stream;
}

void hb_core_free_stream(struct hb_ordering *core, struct hb_core_stream *stream) {
  hb_bundle_drop_all(core, stream);
  hb_intervals_done(&stream->covered);
  hb_held_done(&stream->held);
  hb_pages_done(&stream->gap_rows);
  hb_kept_done(core, stream);
  if (stream->per_key) hb_per_key_destroy(core, stream->per_key);
  free(stream->candidates);
  free(stream->empty);
  free(stream);
}

enum hb_code hb_ordering_add_stream(struct hb_ordering *core, uint64_t id,
                                    const struct hb_stream_config *config,
                                    const struct hb_frontier *record, struct hb_err *err) {
  HB_ASSERT(!core->in_flight);
  size_t at = find_place(core, id);
  if (at < core->streams_count && core->streams[at]->id == id) {
    return hb_err_set(err, HB_EXISTS, NULL, "stream %" PRIu64 ": there is one with this id", id);
  }
  hb_reserve((void **)&core->streams, &core->streams_cap, core->streams_count + 1,
             sizeof(struct hb_core_stream *));
  memmove(core->streams + at + 1, core->streams + at,
          (core->streams_count - at) * sizeof(struct hb_core_stream *));
  core->streams[at] = create_stream(core, id, config, record);
  core->streams_count++;
  core->round.prepared = false;
  return HB_OK;
}

static void freeze_record(struct hb_frontier *record, int64_t first_sequence) {
  record->frozen = true;
  record->first_sequence = first_sequence;
  record->complete_to = first_sequence;
  record->frontier = first_sequence;
  record->earliest = first_sequence;
}

struct hb_frontier hb_ordering_new_record(const struct hb_stream_config *config) {
  struct hb_frontier record = {0};
  if (config->mode == HB_MODE_PER_KEY) {
    freeze_record(&record, 0); /* positions, which are the server's */
    return record;
  }
  if (!config->first_seen) freeze_record(&record, config->first_sequence);
  return record;
}

void hb_core_freeze(struct hb_core_stream *stream, int64_t first_sequence) {
  freeze_record(&stream->record, first_sequence);
  stream->covered.base = first_sequence;
}

void hb_ordering_update_stream(struct hb_ordering *core, uint64_t id,
                               const struct hb_stream_config *config) {
  HB_ASSERT(!core->in_flight);
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (!stream) return;
  stream->config.limits = config->limits;
  stream->config.ack = config->ack;
}

void hb_ordering_set_disk_reserve(struct hb_ordering *core, bool reached) {
  core->disk_reserve = reached;
}

/* ---- removal */

static void forget_in(struct hb_core_stream **list, size_t *count,
                      const struct hb_core_stream *stream) {
  size_t kept = 0;
  for (size_t i = 0; i < *count; i++) {
    if (list[i] != stream) list[kept++] = list[i];
  }
  *count = kept;
}

static void fail_ready(struct hb_ordering *core, uint64_t id) {
  struct hb_batch_list ready = core->ready;
  core->ready = (struct hb_batch_list){0};
  for (struct hb_batch *batch = hb_queue_pop(&ready); batch; batch = hb_queue_pop(&ready)) {
    if (batch->stream == id) {
      hb_queue_fail(core, batch, HB_NOT_FOUND);
    } else {
      hb_queue_insert(&core->ready, batch);
    }
  }
}

enum hb_code hb_ordering_check_seal(const struct hb_ordering *core, uint64_t id, int64_t end,
                                    struct hb_err *err) {
  const struct hb_core_stream *stream = hb_core_find_stream(core, id);
  HB_ASSERT(stream && !core->in_flight);
  const struct hb_frontier *record = &stream->record;
  if (stream->per_key) {
    return hb_err_set(err, HB_PRECONDITION, "MODE_MISMATCH",
                      "a PER_KEY stream has no last sequence: each key ends with an event "
                      "flagged `last`");
  }
  if (!record->frozen) {
    return hb_err_set(err, HB_PRECONDITION, "NO_FIRST_SEQUENCE",
                      "the stream has no first sequence yet, so no last one either");
  }
  if (record->sealed && record->seal_end == end) return HB_OK;
  if (record->sealed) {
    return hb_err_set(err, HB_PRECONDITION, "ALREADY_SEALED",
                      "end is %" PRId64 ", but the stream is sealed at %" PRId64, end,
                      record->seal_end);
  }
  if (record->any && record->highest >= end) {
    return hb_err_set(err, HB_PRECONDITION, "SEAL_BELOW_HIGHEST",
                      "end is %" PRId64 ", but sequence %" PRId64 " is stored", end,
                      record->highest);
  }
  if (end < record->complete_to) {
    return hb_err_set(err, HB_PRECONDITION, "SEAL_BELOW_FIRST",
                      "end is %" PRId64 ", must be at least complete_to %" PRId64, end,
                      record->complete_to);
  }
  return HB_OK;
}

void hb_ordering_seal(struct hb_ordering *core, uint64_t id, int64_t end) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  HB_ASSERT(stream && !core->in_flight);
  stream->record.sealed = true;
  stream->record.seal_end = end;
}

void hb_ordering_remove_stream(struct hb_ordering *core, uint64_t id) {
  HB_ASSERT(!core->in_flight);
  size_t at = find_place(core, id);
  if (at == core->streams_count || core->streams[at]->id != id) return;
  struct hb_core_stream *stream = core->streams[at];
  memmove(core->streams + at, core->streams + at + 1,
          (core->streams_count - at - 1) * sizeof(struct hb_core_stream *));
  core->streams_count--;
  core->round.prepared = false;
  core->fetch_stale = true;
  forget_in(core->releasing, &core->releasing_count, stream);
  forget_in(core->sparse, &core->sparse_count, stream);
  if (core->regroup_stream == stream) core->regroup_stream = NULL;
  hb_core_free_stream(core, stream);
  fail_ready(core, id);
  hb_needs_drop(core, &id);
  hb_rewrite_look(core);
}
