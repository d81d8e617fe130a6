/* Reading the log. Decides where a position lies: in the last block that starts at or below it, if
 * that reaches so far. Whatever is handed out was checked as a whole first. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/block.h"
#include "storage/key_internal.h"
#include "storage/log_internal.h"
#include "storage/processor.h"
#include "storage/read.h"
#include "storage/store_internal.h"

struct hb_log_reader {
  struct hb_rocks_iter *iter;
  struct hb_log_place place;
  bool given;   /* the block at the iterator was: next goes on from it */
  int64_t next; /* what the block that next returns should contain */
};

struct hb_log_place hb_log_place_of(uint64_t stream) {
  return (struct hb_log_place){.family = HB_FAMILY_LOG, .id = {.stream = stream}};
}

struct hb_key hb_log_place_key(const struct hb_log_place *place, int64_t position) {
  if (place->family == HB_FAMILY_LOG) return hb_key_position(place->id.stream, position);
  return hb_key_result(place->id, position);
}

static bool parse_key(enum hb_family family, struct hb_slice key, int64_t *out_from) {
  struct hb_processor_id id = {.stream = 0};
  if (family == HB_FAMILY_LOG) return hb_key_parse_position(key, &id.stream, out_from);
  return hb_key_parse_result(key, &id, out_from);
}

enum hb_code hb_log_wrap(enum hb_code code, const struct hb_log_place *place, int64_t position,
                         struct hb_err *err) {
  if (code) {
    hb_err_wrap(err, "%s of stream %" PRIu64 " at position %" PRId64, hb_family_name(place->family),
                place->id.stream, position);
  }
  return code;
}

static enum hb_code decode_at(const struct hb_log_place *place, int64_t from, struct hb_slice bytes,
                              struct hb_block *out, struct hb_err *err) {
  struct hb_block block;
  enum hb_code code = hb_block_decode(bytes, &block, err);
  if (!code && block.from != from) {
    code = hb_err_set(err, HB_CORRUPT, NULL, "the block there starts at %" PRId64, block.from);
  }
  if (code) return hb_log_wrap(code, place, from, err);
  *out = block;
  return HB_OK;
}

/* `bytes` are the value at the iterator, or a copy of it. */
enum hb_code hb_log_decode(const struct hb_rocks_iter *iter, const struct hb_log_place *place,
                           struct hb_slice bytes, struct hb_block *out, struct hb_err *err) {
  struct hb_slice key = hb_rocks_iter_key(iter);
  int64_t from;
  if (!parse_key(place->family, key, &from)) {
    return hb_store_wrap_row(hb_store_bad_key(err), place->family, key, err);
  }
  return decode_at(place, from, bytes, out, err);
}

enum hb_code hb_log_iter_error(const struct hb_rocks_iter *iter, const struct hb_log_place *place,
                               int64_t position, struct hb_err *err) {
  return hb_log_wrap(hb_rocks_iter_error(iter, err), place, position, err);
}

/* To the block that contains `position`, else to the first one above it. */
static enum hb_code seek(struct hb_rocks_iter *iter, const struct hb_log_place *place,
                         int64_t position, struct hb_err *err) {
  struct hb_key key = hb_log_place_key(place, position);
  hb_rocks_iter_seek_back(iter, hb_key_view(&key));
  if (!hb_rocks_iter_valid(iter)) {
    enum hb_code code = hb_log_iter_error(iter, place, position, err);
    if (!code) hb_rocks_iter_first(iter);
    return code;
  }
  struct hb_block block;
  enum hb_code code = hb_log_decode(iter, place, hb_rocks_iter_value(iter), &block, err);
  if (!code && block.to <= position) hb_rocks_iter_next(iter);
  return code;
}

static enum hb_code open_reader(struct hb_rocks_iter *owned_iter, struct hb_log_place place,
                                int64_t position, struct hb_log_reader **out, struct hb_err *err) {
  enum hb_code code = seek(owned_iter, &place, position, err);
  if (code) {
    hb_rocks_iter_destroy(owned_iter);
    return code;
  }
  struct hb_log_reader *reader = hb_calloc(1, sizeof *reader);
  reader->iter = owned_iter;
  reader->place = place;
  reader->next = position;
  *out = reader;
  return HB_OK;
}

enum hb_code hb_log_reader_open(struct hb_store *store, uint64_t stream, int64_t position,
                                struct hb_log_reader **out, struct hb_err *err) {
  return open_reader(hb_store_iter(store, HB_FAMILY_LOG, stream), hb_log_place_of(stream), position,
                     out, err);
}

struct hb_rocks_iter *hb_log_results_iter(struct hb_store *store, struct hb_processor_id id) {
  struct hb_key start = hb_key_processor(id);
  struct hb_key end = hb_key_processor_end(id);
  return hb_rocks_iter_create(store->engine, HB_FAMILY_RESULTS, hb_key_view(&start),
                              hb_key_view(&end));
}

enum hb_code hb_results_reader_open(struct hb_store *store, struct hb_processor_id id,
                                    int64_t position, struct hb_log_reader **out,
                                    struct hb_err *err) {
  return open_reader(hb_log_results_iter(store, id),
                     (struct hb_log_place){.family = HB_FAMILY_RESULTS, .id = id}, position, out,
                     err);
}

void hb_log_reader_close(struct hb_log_reader *reader) {
  if (!reader) return;
  hb_rocks_iter_destroy(reader->iter);
  free(reader);
}

enum hb_code hb_log_reader_next(struct hb_log_reader *reader, struct hb_bytes **out,
                                struct hb_err *err) {
  /* Not before it is asked for: who wants one block alone would read the one behind it too. */
  if (reader->given) hb_rocks_iter_next(reader->iter);
  reader->given = false;
  if (!hb_rocks_iter_valid(reader->iter)) {
    enum hb_code code = hb_log_iter_error(reader->iter, &reader->place, reader->next, err);
    if (!code) *out = NULL;
    return code;
  }
  struct hb_bytes *bytes = hb_bytes_copy(hb_rocks_iter_value(reader->iter));
  struct hb_block block;
  enum hb_code code =
      hb_log_decode(reader->iter, &reader->place, hb_bytes_view(bytes), &block, err);
  if (code) {
    hb_bytes_unref(bytes);
    return code;
  }
  reader->given = true;
  reader->next = block.to;
  *out = bytes;
  return HB_OK;
}

enum hb_code hb_log_get(struct hb_store *store, uint64_t stream, int64_t from,
                        struct hb_bytes **out, struct hb_err *err) {
  const struct hb_log_place place = hb_log_place_of(stream);
  struct hb_key key = hb_key_position(stream, from);
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_LOG, hb_key_view(&key), &bytes, err);
  if (code) return hb_log_wrap(code, &place, from, err);
  if (bytes) code = decode_at(&place, from, hb_bytes_view(bytes), &block, err);
  if (code) {
    hb_bytes_unref(bytes);
    return code;
  }
  *out = bytes;
  return HB_OK;
}

enum hb_code hb_log_last(struct hb_store *store, uint64_t stream, bool *out_any,
                         struct hb_range *out, struct hb_err *err) {
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_LOG, stream);
  hb_rocks_iter_last(iter);
  bool any = hb_rocks_iter_valid(iter);
  struct hb_block block;
  struct hb_log_place place = hb_log_place_of(stream);
  enum hb_code code = HB_OK;
  if (any) {
    code = hb_log_decode(iter, &place, hb_rocks_iter_value(iter), &block, err);
  } else {
    code = hb_rocks_iter_error(iter, err);
    if (code) hb_err_wrap(err, "log of stream %" PRIu64 ", its last block", stream);
  }
  if (!code) {
    *out_any = any;
    if (any) *out = (struct hb_range){.start = block.from, .end = block.to};
  }
  hb_rocks_iter_destroy(iter);
  return code;
}
