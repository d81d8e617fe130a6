/* Looking for an event time by halving a stream's log, or a processor's results. Decides which
 * blocks are read for it: at most 64, whatever their number. The times of blocks are the largest so
 * far, so they ascend, also where results come late (a key that waited). */
#include "base/assert.h"
#include "base/frame/scan.h"
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

/* Halve [low, high) until it holds no block that reaches the time but the first; *out_from is where
 * that starts. */
static enum hb_code find_block(struct hb_rocks_iter *iter, const struct hb_log_place *place,
                               struct hb_time time, struct hb_range within, bool *out_found,
                               int64_t *out_from, struct hb_err *err) {
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
    if (code) break;
    if (hb_time_compare(block.max_time, time) < 0) {
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

static enum hb_code find_time(struct hb_rocks_iter *iter, const struct hb_log_place *place,
                              struct hb_time time, int64_t earliest, int64_t end, int64_t *out,
                              struct hb_err *err) {
  HB_ASSERT(time.present);
  bool found = false;
  int64_t from = 0;
  enum hb_code code =
      find_block(iter, place, time, (struct hb_range){earliest, end}, &found, &from, err);
  int64_t position = end;
  if (!code && found) {
    struct hb_key key = hb_log_place_key(place, from);
    hb_rocks_iter_seek(iter, hb_key_view(&key));
  }
  /* One block, but where the maximum comes from events that were truncated. */
  while (!code && found && hb_rocks_iter_valid(iter)) {
    struct hb_block block;
    uint32_t index = 0;
    code = hb_log_decode(iter, place, hb_rocks_iter_value(iter), &block, err);
    if (!code && block.from > from) code = hole(place, from, err);
    if (code || block.from >= end) break;
    code = hb_log_wrap(find_event(&block, time, earliest, &index, err), place, block.from, err);
    if (code) break;
    if (index < block.count) {
      position = hb_block_sequence(&block, index);
      break;
    }
    from = block.to;
    hb_rocks_iter_next(iter);
  }
  if (!code && found && from < end && !hb_rocks_iter_valid(iter)) {
    code = hb_log_iter_error(iter, place, from, err);
    if (!code) code = hole(place, from, err);
  }
  if (!code) *out = position < end ? position : end;
  return code;
}

enum hb_code hb_log_find_time(struct hb_store *store, uint64_t stream, struct hb_time time,
                              int64_t earliest, int64_t end, int64_t *out, struct hb_err *err) {
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_LOG, stream);
  const struct hb_log_place place = hb_log_place_of(stream);
  enum hb_code code = find_time(iter, &place, time, earliest, end, out, err);
  hb_rocks_iter_destroy(iter);
  return code;
}

enum hb_code hb_results_find_time(struct hb_store *store, struct hb_processor_id id,
                                  struct hb_time time, int64_t end, int64_t *out,
                                  struct hb_err *err) {
  struct hb_rocks_iter *iter = hb_log_results_iter(store, id);
  const struct hb_log_place place = {.family = HB_FAMILY_RESULTS, .id = id};
  enum hb_code code = find_time(iter, &place, time, 0, end, out, err);
  hb_rocks_iter_destroy(iter);
  return code;
}
