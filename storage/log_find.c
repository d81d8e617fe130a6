/* Looking for a place by halving the log: by event time, or by what a result comes from. Decides
 * which blocks are read for it: at most 64, whatever the log's length. */
#include "base/assert.h"
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "storage/log_internal.h"
#include "storage/processor.h"
#include "storage/read.h"
#include "storage/store_internal.h"

static int64_t middle(int64_t low, int64_t high) {
  return (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2);
}

/* Each position from `earliest` up to the frontier lies in a block (I4): the event that is looked
 * for may have been in the one that is missing. */
static enum hb_code hole(const struct hb_log_place *place, int64_t position, struct hb_err *err) {
  return hb_log_wrap(hb_err_set(err, HB_CORRUPT, NULL, "no block accounts for it"), place, position,
                     err);
}

/* Whether nothing in the block reaches what is looked for, nor in any block before it. */
typedef enum hb_code is_below(const struct hb_block *block, const void *sought, bool *out,
                              struct hb_err *err);

/* Halve [low, high) until it holds no block that is not below but the first; *out_from is where
 * that starts. */
static enum hb_code find_block(struct hb_rocks_iter *iter, const struct hb_log_place *place,
                               is_below *below, const void *sought, struct hb_range within,
                               bool *out_found, int64_t *out_from, struct hb_err *err) {
  enum hb_code code = HB_OK;
  while (!code && within.start < within.end) {
    int64_t at = middle(within.start, within.end);
    struct hb_key key = hb_log_place_key(place, at);
    hb_rocks_iter_seek_back(iter, hb_key_view(&key));
    struct hb_block block = {.to = at}; /* where there is none so low */
    if (hb_rocks_iter_valid(iter)) {
      code = hb_log_decode(iter, place, hb_rocks_iter_value(iter), &block, err);
    } else {
      code = hb_log_iter_error(iter, place, at, err);
    }
    if (!code && block.to <= at) code = hole(place, at, err);
    bool is_lower = false;
    if (!code) code = hb_log_wrap(below(&block, sought, &is_lower, err), place, block.from, err);
    if (code) break;
    if (is_lower) {
      within.start = block.to;
    } else {
      *out_found = true;
      *out_from = block.from;
      within.end = block.from;
    }
  }
  return code;
}

/* ---- by event time */

static enum hb_code ends_before(const struct hb_block *block, const void *sought, bool *out,
                                struct hb_err *err) {
  (void)err;
  const struct hb_time *time = sought;
  *out = hb_time_compare(block->max_time, *time) < 0;
  return HB_OK;
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
  struct hb_log_place place = hb_log_place_of(stream);
  bool found = false;
  int64_t from = 0;
  enum hb_code code = find_block(iter, &place, ends_before, &time, (struct hb_range){earliest, end},
                                 &found, &from, err);
  int64_t position = end;
  if (!code && found) {
    struct hb_key key = hb_key_position(stream, from);
    hb_rocks_iter_seek(iter, hb_key_view(&key));
  }
  /* One block, but where the maximum comes from events that were truncated. */
  while (!code && found && hb_rocks_iter_valid(iter)) {
    struct hb_block block;
    uint32_t index = 0;
    code = hb_log_decode(iter, &place, hb_rocks_iter_value(iter), &block, err);
    if (!code && block.from > from) code = hole(&place, from, err);
    if (code || block.from >= end) break;
    code = hb_log_wrap(find_event(&block, time, earliest, &index, err), &place, block.from, err);
    if (code) break;
    if (index < block.count) {
      position = hb_block_sequence(&block, index);
      break;
    }
    from = block.to;
    hb_rocks_iter_next(iter);
  }
  if (!code && found && from < end && !hb_rocks_iter_valid(iter)) {
    code = hb_log_iter_error(iter, &place, from, err);
    if (!code) code = hole(&place, from, err);
  }
  hb_rocks_iter_destroy(iter);
  if (!code) *out = position < end ? position : end;
  return code;
}

/* ---- by cause */

enum { RESULT_FIELD = 1, CAUSE_FIELD = 9 }; /* of ResultBatch, of Result */

/* *out unchanged where there is no such field. */
static enum hb_code read_field(struct hb_slice message, uint32_t number, enum hb_wire_type type,
                               struct hb_wire_field *out, struct hb_err *err) {
  struct hb_wire_reader reader = {message.data, message.data + message.size};
  struct hb_wire_field field;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.number == number && field.type == type) *out = field;
  }
  if (result == HB_WIRE_END) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL, "a result there is no message");
}

static enum hb_code cause_of(const struct hb_block *block, uint32_t index, int64_t *out,
                             struct hb_err *err) {
  struct hb_wire_field field = {.number_value = 0};
  enum hb_code code =
      read_field(hb_block_frame(block, index), RESULT_FIELD, HB_WIRE_LEN, &field, err);
  if (!code) code = read_field(field.bytes, CAUSE_FIELD, HB_WIRE_VARINT, &field, err);
  if (!code) *out = field.type == HB_WIRE_VARINT ? (int64_t)field.number_value : 0;
  return code;
}

/* Causes ascend with the results. */
static enum hb_code comes_before(const struct hb_block *block, const void *sought, bool *out,
                                 struct hb_err *err) {
  const int64_t *cause = sought;
  int64_t last = 0;
  if (block->count == 0) return hb_err_set(err, HB_CORRUPT, NULL, "the block there is empty");
  enum hb_code code = cause_of(block, block->count - 1, &last, err);
  if (!code) *out = last < *cause;
  return code;
}

static enum hb_code find_result(const struct hb_block *block, int64_t cause, int64_t *out,
                                struct hb_err *err) {
  uint32_t low = 0;
  uint32_t high = block->count - 1; /* that one is not below */
  while (low < high) {
    uint32_t at = low + (high - low) / 2;
    int64_t here = 0;
    enum hb_code code = cause_of(block, at, &here, err);
    if (code) return code;
    if (here < cause) {
      low = at + 1;
    } else {
      high = at;
    }
  }
  *out = hb_block_sequence(block, low);
  return HB_OK;
}

enum hb_code hb_results_find_cause(struct hb_store *store, struct hb_processor_id id, int64_t cause,
                                   int64_t end, int64_t *out, struct hb_err *err) {
  struct hb_rocks_iter *iter = hb_log_results_iter(store, id);
  const struct hb_log_place place = {.family = HB_FAMILY_RESULTS, .id = id};
  bool found = false;
  int64_t from = 0;
  int64_t position = end;
  enum hb_code code =
      find_block(iter, &place, comes_before, &cause, (struct hb_range){0, end}, &found, &from, err);
  if (!code && found) {
    struct hb_key key = hb_log_place_key(&place, from);
    struct hb_block block;
    hb_rocks_iter_seek(iter, hb_key_view(&key));
    code = hb_rocks_iter_valid(iter)
               ? hb_log_decode(iter, &place, hb_rocks_iter_value(iter), &block, err)
               : hb_log_iter_error(iter, &place, from, err);
    if (!code && !hb_rocks_iter_valid(iter)) code = hole(&place, from, err);
    if (!code) code = hb_log_wrap(find_result(&block, cause, &position, err), &place, from, err);
  }
  hb_rocks_iter_destroy(iter);
  if (!code) *out = position < end ? position : end;
  return code;
}
