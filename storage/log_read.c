/* Reading the log. Decides where a position lies: in the last block that starts at or below it, if
 * that reaches so far. Whatever is handed out was checked as a whole first. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/block.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/processor.h"
#include "storage/read.h"
#include "storage/store_internal.h"

/* Whose blocks: a stream's log, or one of its processors' results. */
struct place {
  enum hb_family family;
  struct hb_processor_id id; /* processor: only for results */
};

struct hb_log_reader {
  struct hb_rocks_iter *iter;
  struct place place;
  bool given;   /* the block at the iterator was: next goes on from it */
  int64_t next; /* what the block that next returns should contain */
};

static struct place log_of(uint64_t stream) {
  return (struct place){.family = HB_FAMILY_LOG, .id = {.stream = stream}};
}

static struct hb_key key_of(const struct place *place, int64_t position) {
  if (place->family == HB_FAMILY_LOG) return hb_key_position(place->id.stream, position);
  return hb_key_result(place->id, position);
}

static bool parse_key(enum hb_family family, struct hb_slice key, int64_t *out_from) {
  struct hb_processor_id id = {.stream = 0};
  if (family == HB_FAMILY_LOG) return hb_key_parse_position(key, &id.stream, out_from);
  return hb_key_parse_result(key, &id, out_from);
}

static enum hb_code wrap_block(enum hb_code code, const struct place *place, int64_t position,
                               struct hb_err *err) {
  if (code) {
    hb_err_wrap(err, "%s of stream %" PRIu64 " at position %" PRId64, hb_family_name(place->family),
                place->id.stream, position);
  }
  return code;
}

static enum hb_code decode_at(const struct place *place, int64_t from, struct hb_slice bytes,
                              struct hb_block *out, struct hb_err *err) {
  struct hb_block block;
  enum hb_code code = hb_block_decode(bytes, &block, err);
  if (!code && block.from != from) {
    code = hb_err_set(err, HB_CORRUPT, NULL, "the block there starts at %" PRId64, block.from);
  }
  if (code) return wrap_block(code, place, from, err);
  *out = block;
  return HB_OK;
}

/* `bytes` are the value at the iterator, or a copy of it. */
static enum hb_code decode(const struct hb_rocks_iter *iter, const struct place *place,
                           struct hb_slice bytes, struct hb_block *out, struct hb_err *err) {
  struct hb_slice key = hb_rocks_iter_key(iter);
  int64_t from;
  if (!parse_key(place->family, key, &from)) {
    return hb_store_wrap_row(hb_store_bad_key(err), place->family, key, err);
  }
  return decode_at(place, from, bytes, out, err);
}

static enum hb_code iter_error(const struct hb_rocks_iter *iter, const struct place *place,
                               int64_t position, struct hb_err *err) {
  return wrap_block(hb_rocks_iter_error(iter, err), place, position, err);
}

/* To the block that contains `position`, else to the first one above it. */
static enum hb_code seek(struct hb_rocks_iter *iter, const struct place *place, int64_t position,
                         struct hb_err *err) {
  struct hb_key key = key_of(place, position);
  hb_rocks_iter_seek_back(iter, hb_key_view(&key));
  if (!hb_rocks_iter_valid(iter)) {
    enum hb_code code = iter_error(iter, place, position, err);
    if (!code) hb_rocks_iter_first(iter);
    return code;
  }
  struct hb_block block;
  enum hb_code code = decode(iter, place, hb_rocks_iter_value(iter), &block, err);
  if (!code && block.to <= position) hb_rocks_iter_next(iter);
  return code;
}

static enum hb_code open_reader(struct hb_rocks_iter *owned_iter, struct place place,
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
  return open_reader(hb_store_iter(store, HB_FAMILY_LOG, stream), log_of(stream), position, out,
                     err);
}

enum hb_code hb_results_reader_open(struct hb_store *store, struct hb_processor_id id,
                                    int64_t position, struct hb_log_reader **out,
                                    struct hb_err *err) {
  struct hb_key start = hb_key_processor(id);
  struct hb_key end = hb_key_processor_end(id);
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_RESULTS,
                                                    hb_key_view(&start), hb_key_view(&end));
  return open_reader(iter, (struct place){.family = HB_FAMILY_RESULTS, .id = id}, position, out,
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
    enum hb_code code = iter_error(reader->iter, &reader->place, reader->next, err);
    if (!code) *out = NULL;
    return code;
  }
  struct hb_bytes *bytes = hb_bytes_copy(hb_rocks_iter_value(reader->iter));
  struct hb_block block;
  enum hb_code code = decode(reader->iter, &reader->place, hb_bytes_view(bytes), &block, err);
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
  const struct place place = log_of(stream);
  struct hb_key key = hb_key_position(stream, from);
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_LOG, hb_key_view(&key), &bytes, err);
  if (code) return wrap_block(code, &place, from, err);
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
  struct place place = log_of(stream);
  enum hb_code code = HB_OK;
  if (any) {
    code = decode(iter, &place, hb_rocks_iter_value(iter), &block, err);
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

/* ---- by event time */

static int64_t middle(int64_t low, int64_t high) {
  return (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2);
}

/* Each position from `earliest` up to the frontier lies in a block (I4): the event that is looked
 * for may have been in the one that is missing. */
static enum hb_code hole(const struct place *place, int64_t position, struct hb_err *err) {
  return wrap_block(hb_err_set(err, HB_CORRUPT, NULL, "no block accounts for it"), place, position,
                    err);
}

/* Halve [low, high) until it holds no block whose running maximum reaches `time` but the first;
 * *out_from is where that starts. At most 64 seeks, whatever the log's length. */
static enum hb_code find_block(struct hb_rocks_iter *iter, const struct place *place,
                               struct hb_time time, struct hb_range within, bool *out_found,
                               int64_t *out_from, struct hb_err *err) {
  enum hb_code code = HB_OK;
  while (!code && within.start < within.end) {
    int64_t at = middle(within.start, within.end);
    struct hb_key key = key_of(place, at);
    hb_rocks_iter_seek_back(iter, hb_key_view(&key));
    struct hb_block block = {.to = at}; /* where there is none so low */
    if (hb_rocks_iter_valid(iter)) {
      code = decode(iter, place, hb_rocks_iter_value(iter), &block, err);
    } else {
      code = iter_error(iter, place, at, err);
    }
    if (code) break;
    if (block.to <= at) {
      code = hole(place, at, err);
    } else if (hb_time_compare(block.max_time, time) < 0) {
      within.start = block.to;
    } else {
      *out_found = true;
      *out_from = block.from;
      within.end = block.from;
    }
  }
  return code;
}

/* The first event in the block with sequence >= earliest and event time >= time; count: none. */
static enum hb_code find_event(const struct hb_block *block, struct hb_time time, int64_t earliest,
                               uint32_t *out, struct hb_err *err) {
  uint32_t index = hb_block_find(block, earliest);
  for (; index < block->count; index++) {
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, index), &event, err);
    if (code) return code;
    if (event.time.present && hb_time_compare(event.time, time) >= 0) break;
  }
  *out = index;
  return HB_OK;
}

enum hb_code hb_log_find_time(struct hb_store *store, uint64_t stream, struct hb_time time,
                              int64_t earliest, int64_t end, int64_t *out, struct hb_err *err) {
  HB_ASSERT(time.present);
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_LOG, stream);
  struct place place = log_of(stream);
  bool found = false;
  int64_t from = 0;
  enum hb_code code =
      find_block(iter, &place, time, (struct hb_range){earliest, end}, &found, &from, err);
  int64_t position = end;
  if (!code && found) {
    struct hb_key key = hb_key_position(stream, from);
    hb_rocks_iter_seek(iter, hb_key_view(&key));
  }
  /* One block, but where the maximum comes from events that were truncated. */
  while (!code && found && hb_rocks_iter_valid(iter)) {
    struct hb_block block;
    uint32_t index = 0;
    code = decode(iter, &place, hb_rocks_iter_value(iter), &block, err);
    if (!code && block.from > from) code = hole(&place, from, err);
    if (code || block.from >= end) break;
    code = wrap_block(find_event(&block, time, earliest, &index, err), &place, block.from, err);
    if (code) break;
    if (index < block.count) {
      position = hb_block_sequence(&block, index);
      break;
    }
    from = block.to;
    hb_rocks_iter_next(iter);
  }
  if (!code && found && from < end && !hb_rocks_iter_valid(iter)) {
    code = iter_error(iter, &place, from, err);
    if (!code) code = hole(&place, from, err);
  }
  hb_rocks_iter_destroy(iter);
  if (!code) *out = position < end ? position : end;
  return code;
}
