/* Rebuilds core, registry and names from the store: configuration and frontier record of each
 * stream, then what waits in its bundles, first-seen rows of gaps, hashes of refused events.
 *
 * Two checks decide whether the folder is served at all: the log's last block ends exactly at the
 * frontier (I4), and what the bundles cover from there ends exactly at complete_to
 * (hb_ordering_recover_end). Else the server would hide, or invent, events: HB_CORRUPT. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/engine_internal.h"
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

static enum hb_code load(struct hb_engine *engine, uint64_t stream, struct hb_err *err) {
  struct loading loading = {.core = engine->sequencer.core, .stream = stream, .err = err};
  enum hb_code code = hb_bundle_each(engine->store, stream, NULL, load_bundle, &loading, err);
  if (code == HB_OK) code = loading.code;
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

/* ---- one stream */

/* One reference. */
static struct hb_stream *publish(struct hb_engine *engine, const struct hb_stored_stream *stored,
                                 const struct hb_stream_config *resolved) {
  struct hb_stream *stream =
      hb_stream_create(stored->stream, engine->info.incarnation, &stored->config, resolved);
  stream->indexed_known = stored->has_indexed_to;
  stream->indexed_to = stored->indexed_to;
  hb_registry_add(&engine->sequencer.registry, stream);
  hb_names_add(&engine->names, stream);
  hb_publish_touch(engine, stored->stream, UINT64_MAX);
  hb_publish_all(engine);
  stream->touched = 0;
  engine->info.streams++;
  engine->info.held_events += stream->status.held_events;
  return stream;
}

static enum hb_code recover(struct hb_engine *engine, const struct hb_stored_stream *stored,
                            struct hb_err *err) {
  struct hb_ordering *core = engine->sequencer.core;
  struct hb_stream_config resolved = hb_config_resolve(engine, &stored->config);
  enum hb_code code = hb_ordering_add_stream(core, stored->stream, &resolved, &stored->record, err);
  if (code == HB_OK) code = check_log(engine, stored, err);
  if (code == HB_OK) code = load(engine, stored->stream, err);
  if (code == HB_OK) {
    code = hb_ordering_recover_end(core, stored->stream, hb_sequencer_now(engine), err);
  }
  if (code == HB_OK) {
    struct hb_stream *stream = publish(engine, stored, &resolved);
    code = hb_processors_recover(engine, stream, err);
    hb_stream_unref(stream);
  }
  if (code != HB_OK) {
    hb_err_wrap(err, "stream '%s' (id %" PRIu64 ")", stored->config.name, stored->stream);
  }
  return code;
}

enum hb_code hb_engine_recover(struct hb_engine *engine, struct hb_err *err) {
  struct stored stored = {0};
  enum hb_code code = hb_stream_each(engine->store, collect, &stored, err);
  for (size_t i = 0; code == HB_OK && i < stored.count; i++) {
    if (!stored.streams[i].deleting) code = recover(engine, &stored.streams[i], err);
  }
  /* Deletions that the last run did not finish. */
  for (size_t i = 0; code == HB_OK && i < stored.count; i++) {
    if (!stored.streams[i].deleting) continue;
    hb_deletion_begin(engine, stored.streams[i].stream, HB_DELETION_FILES);
  }
  free(stored.streams);
  return code;
}
