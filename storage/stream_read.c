/* Reading the rows of `streams`. Decides when they are a stream: a configuration with a frontier
 * record, or the mark of a deletion that has not ended. */
#include <inttypes.h>

#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"

struct gather {
  hb_stream_visit *visit;
  void *context;
  bool open; /* rows of `current` were seen */
  bool has_config;
  bool has_record;
  struct hb_stored_stream current;
};

/* The rows of one stream are all there. */
static enum hb_code emit(struct gather *gather, bool *stop, struct hb_err *err) {
  const struct hb_stored_stream *stream = &gather->current;
  if (!gather->open) return HB_OK;
  gather->open = false;
  if (!stream->deleting && (!gather->has_config || !gather->has_record)) {
    return hb_err_set(err, HB_CORRUPT, NULL, "stream %" PRIu64 " has no %s", stream->stream,
                      gather->has_config ? "frontier record" : "configuration");
  }
  *stop = !gather->visit(gather->context, stream);
  return HB_OK;
}

static enum hb_code take_mark(struct gather *gather, struct hb_slice value, struct hb_err *err) {
  struct hb_slice nothing;
  enum hb_code code = hb_record_get_bytes(value, &nothing, err);
  if (!code) gather->current.deleting = true;
  return code;
}

static enum hb_code take_indexed_to(struct gather *gather, struct hb_slice value,
                                    struct hb_err *err) {
  uint64_t number;
  enum hb_code code = hb_record_get_u64(value, &number, err);
  if (code) return code;
  gather->current.has_indexed_to = true;
  gather->current.indexed_to = (int64_t)number;
  return HB_OK;
}

static enum hb_code take_row(struct gather *gather, uint8_t kind, struct hb_slice value,
                             struct hb_err *err) {
  switch (kind) {
    case HB_KIND_CONFIG:
      gather->has_config = true;
      return hb_record_get_config(value, &gather->current.config, err);
    case HB_KIND_FRONTIER:
      gather->has_record = true;
      return hb_record_get_frontier(value, &gather->current.record, err);
    case HB_KIND_INDEXED_TO:
      return take_indexed_to(gather, value, err);
    case HB_KIND_DELETING:
      return take_mark(gather, value, err);
    case HB_KIND_PROCESSOR:
      return HB_OK; /* its own affair */
    default:
      return hb_store_bad_key(err);
  }
}

static enum hb_code visit_row(void *context, struct hb_slice key, struct hb_slice value, bool *stop,
                              struct hb_err *err) {
  struct gather *gather = context;
  uint64_t stream;
  if (!hb_key_parse_stream(key, &stream)) return hb_store_bad_key(err);
  if (gather->open && gather->current.stream != stream) {
    enum hb_code code = emit(gather, stop, err);
    if (code || *stop) return code;
  }
  if (!gather->open) {
    *gather = (struct gather){.visit = gather->visit, .context = gather->context, .open = true};
    gather->current.stream = stream;
  }
  return take_row(gather, key.data[8], value, err);
}

enum hb_code hb_stream_each(struct hb_store *store, hb_stream_visit *visit, void *context,
                            struct hb_err *err) {
  struct gather gather = {.visit = visit, .context = context};
  struct hb_slice none = {0};
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_STREAMS, none, none);
  hb_rocks_iter_first(iter);
  enum hb_code code = hb_store_each_row(iter, HB_FAMILY_STREAMS, visit_row, &gather, err);
  bool stop = false;
  return code ? code : emit(&gather, &stop, err);
}
