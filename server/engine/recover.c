/* Rebuilds core, registry and names from the store: configuration and frontier record of each
 * stream, then what waits in its bundles, first-seen rows of gaps, hashes of refused events.
 *
 * Three checks decide whether the folder is served at all: the log's last block ends exactly at the
 * frontier (I4), what the bundles cover from there ends exactly at complete_to
 * (hb_ordering_recover_end), and no fewer events are there than were stored. Else the server would
 * hide, or invent, events: HB_CORRUPT.
 *
 * Where a running server opened its store again, streams that it knows keep their objects, and a
 * fourth check is that nothing goes back behind what was shown (I5). What became of the admin job
 * whose write failed is seen here: its stream is there or is not. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/config.h"
#include "server/engine/engine_internal.h"
#include "storage/keys.h"
#include "storage/read.h"

struct stored {
  struct hb_stored_stream *streams;
  size_t count;
  size_t cap;
};

static bool collect(void *context, const struct hb_stored_stream *stream) {
  struct stored *stored = context;
  hb_reserve((void **)&stored->streams, &stored->cap, stored->count + 1, sizeof *stored->streams);
  stored->streams[stored->count++] = *stream;
  return true;
}

/* ---- what waits */

struct loading {
  struct hb_ordering *core;
  uint64_t stream;
  enum hb_code code;
  struct hb_err *err;
};

static bool load_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct loading *loading = context;
  struct hb_bytes *block = hb_bytes_copy(bytes);
  loading->code = hb_ordering_recover_bundle(loading->core, id, block, loading->err);
  hb_bytes_unref(block);
  return loading->code == HB_OK;
}

static bool load_gap(void *context, const struct hb_gap *gap) {
  struct loading *loading = context;
  hb_ordering_recover_gap(loading->core, loading->stream, *gap);
  return true;
}

static bool load_unprocessed(void *context, const struct hb_unprocessed *row) {
  struct loading *loading = context;
  hb_ordering_recover_unprocessed(loading->core, loading->stream, row->outcome, row->sequence,
                                  row->content_hash);
  return true;
}

/* PER_KEY: the records of the keys that the bundles name, and of no others. */
static enum hb_code load_keys(struct hb_engine *engine, uint64_t stream, struct hb_err *err) {
  struct hb_ordering *core = engine->sequencer.core;
  struct hb_slice key;
  enum hb_code code = HB_OK;
  while (code == HB_OK && hb_ordering_recover_wants_key(core, stream, &key)) {
    bool found;
    struct hb_key_record record;
    code = hb_key_record_read(engine->store, stream, key, &found, &record, err);
    if (code != HB_OK) break;
    code = hb_ordering_recover_key(core, stream, key, found ? &record : NULL, err);
  }
  return code;
}

static enum hb_code load(struct hb_engine *engine, uint64_t stream, struct hb_err *err) {
  struct loading loading = {.core = engine->sequencer.core, .stream = stream, .err = err};
  enum hb_code code = hb_bundle_each(engine->store, stream, NULL, load_bundle, &loading, err);
  if (code == HB_OK) code = loading.code;
  if (code == HB_OK) code = load_keys(engine, stream, err);
  if (code == HB_OK) code = hb_gap_each(engine->store, stream, load_gap, &loading, err);
  if (code == HB_OK) {
    code = hb_unprocessed_each(engine->store, stream, load_unprocessed, &loading, err);
  }
  return code;
}

/* ---- the checks */

static enum hb_code check_log(struct hb_engine *engine, const struct hb_stored_stream *stored,
                              struct hb_err *err) {
  const struct hb_frontier *record = &stored->record;
  bool any;
  struct hb_range last;
  enum hb_code code = hb_log_last(engine->store, stored->stream, &any, &last, err);
  if (code != HB_OK) return code;
  if (!any && (!record->frozen || record->frontier == record->earliest)) return HB_OK;
  if (any && record->frozen && last.end == record->frontier) return HB_OK;
  if (!any) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "its log is empty, but its frontier record says released from %" PRId64
                      " to %" PRId64 "; restore the folder from a backup",
                      record->earliest, record->frontier);
  }
  if (!record->frozen) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "its log ends at %" PRId64
                      ", but its frontier record says that nothing was "
                      "released; restore the folder from a backup",
                      last.end);
  }
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "its log ends at %" PRId64 ", but its frontier record says %" PRId64
                    "; restore the folder from a backup",
                    last.end, record->frontier);
}

/* Every stored event is released or held. One that waited behind a gap may be lost without a hole
 * before complete_to: then fewer are there than were counted. */
static enum hb_code check_count(struct hb_engine *engine, const struct hb_stored_stream *stored,
                                struct hb_err *err) {
  const struct hb_frontier *record = &stored->record;
  struct hb_stream_status status;
  if (!record->frozen || !hb_ordering_status(engine->sequencer.core, stored->stream,
                                             hb_sequencer_now(engine), &status)) {
    return HB_OK;
  }
  uint64_t released = (uint64_t)record->frontier - (uint64_t)record->first_sequence;
  if (record->counters.stored <= released + status.held_events) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "%" PRIu64 " events were stored, but %" PRIu64 " are released and %" PRIu64
                    " held; restore the folder from a backup",
                    record->counters.stored, released, status.held_events);
}

/* I5: known is NULL where the stream was not shown yet. */
static enum hb_code check_shown(const struct hb_stream *known,
                                const struct hb_stored_stream *stored, struct hb_err *err) {
  if (!known || !known->status.record.frozen) return HB_OK;
  const struct hb_frontier *shown = &known->status.record;
  const struct hb_frontier *record = &stored->record;
  if (record->frozen && record->frontier >= shown->frontier &&
      record->complete_to >= shown->complete_to) {
    return HB_OK;
  }
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "its frontier record says frontier %" PRId64 " and complete_to %" PRId64
                    ", but %" PRId64 " and %" PRId64
                    " were durable before the store was opened again; restore the folder from a "
                    "backup",
                    record->frontier, record->complete_to, shown->frontier, shown->complete_to);
}

/* ---- one stream */

static struct hb_stream *add(struct hb_engine *engine, const struct hb_stored_stream *stored,
                             const struct hb_stream_config *resolved) {
  struct hb_stream *stream =
      hb_stream_create(stored->stream, engine->info.incarnation, &stored->config, resolved);
  hb_registry_add(&engine->sequencer.registry, stream);
  hb_names_add(&engine->names, stream);
  hb_stream_unref(stream);
  return stream;
}

static struct hb_stream *publish(struct hb_engine *engine, const struct hb_stored_stream *stored,
                                 const struct hb_stream_config *resolved) {
  struct hb_stream *stream = hb_registry_find(&engine->sequencer.registry, stored->stream);
  if (stream) {
    stream->stored = stored->config;
    hb_stream_set_config(stream, resolved);
  } else {
    stream = add(engine, stored, resolved);
  }
  stream->indexed_known = stored->has_indexed_to;
  stream->indexed_to = stored->indexed_to;
  hb_publish_touch(engine, stored->stream, UINT64_MAX);
  hb_publish_all(engine);
  stream->touched = 0;
  return stream;
}

static enum hb_code recover(struct hb_engine *engine, const struct hb_stored_stream *stored,
                            bool again, struct hb_err *err) {
  struct hb_ordering *core = engine->sequencer.core;
  struct hb_stream_config resolved = hb_config_resolve(&engine->limits, &stored->config);
  enum hb_code code = hb_ordering_add_stream(core, stored->stream, &resolved, &stored->record, err);
  if (code == HB_OK) code = check_log(engine, stored, err);
  if (code == HB_OK) {
    code = check_shown(hb_registry_find(&engine->sequencer.registry, stored->stream), stored, err);
  }
  if (code == HB_OK) code = load(engine, stored->stream, err);
  if (code == HB_OK) {
    code = hb_ordering_recover_end(core, stored->stream, hb_sequencer_now(engine), err);
  }
  if (code == HB_OK) code = check_count(engine, stored, err);
  if (code == HB_OK) {
    code = hb_processors_recover(engine, publish(engine, stored, &resolved), again, err);
  }
  if (code != HB_OK) {
    hb_err_wrap(err, "stream '%s' (id %" PRIu64 ")", stored->config.name, stored->stream);
  }
  return code;
}

static int by_id(const void *id, const void *stored) {
  uint64_t wanted = *(const uint64_t *)id;
  uint64_t here = ((const struct hb_stored_stream *)stored)->stream;
  return (wanted > here) - (wanted < here);
}

static bool is_stored(const struct stored *stored, uint64_t stream) {
  if (stored->count == 0) return false;
  const struct hb_stored_stream *found =
      bsearch(&stream, stored->streams, stored->count, sizeof *stored->streams, by_id);
  return found && !found->deleting;
}

/* Streams whose deletion was written, though it seemed to fail. */
static void leave_gone(struct hb_engine *engine, const struct stored *stored) {
  const struct hb_registry *registry = &engine->sequencer.registry;
  for (size_t i = registry->count; i > 0; i--) {
    struct hb_stream *stream = registry->streams[i - 1];
    if (!is_stored(stored, stream->id)) hb_stream_leave(engine, stream);
  }
}

static void count(struct hb_engine *engine) {
  const struct hb_registry *registry = &engine->sequencer.registry;
  engine->info.streams = registry->count;
  for (size_t i = 0; i < registry->count; i++) {
    engine->info.held_events += registry->streams[i]->status.held_events;
  }
}

enum hb_code hb_engine_recover(struct hb_engine *engine, bool again, struct hb_err *err) {
  struct stored stored = {0};
  enum hb_code code = hb_stream_each(engine->store, collect, &stored, err);
  if (code == HB_OK) leave_gone(engine, &stored);
  for (size_t i = 0; code == HB_OK && i < stored.count; i++) {
    if (!stored.streams[i].deleting) code = recover(engine, &stored.streams[i], again, err);
  }
  if (!again) count(engine); /* what it tells is of the start, and others read it */
  /* Deletions that were not finished. At the start the indexer has nothing to forget. */
  enum hb_deletion_step step = again ? HB_DELETION_FORGET : HB_DELETION_FILES;
  for (size_t i = 0; code == HB_OK && i < stored.count; i++) {
    if (stored.streams[i].deleting) hb_deletion_begin(engine, stored.streams[i].stream, step);
  }
  free(stored.streams);
  return code;
}
