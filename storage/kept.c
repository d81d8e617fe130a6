/* Decides where a walk over `unprocessed` begins and ends, and what the two kinds of rows that it
 * meets have in common. */
#include "storage/kept.h"

#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/record_processor_internal.h"
#include "storage/store_internal.h"

struct walk {
  hb_kept_visit *visit;
  void *context;
};

static enum hb_code parse_key(struct hb_slice key, struct hb_kept_place *out, struct hb_err *err) {
  uint64_t stream;
  enum hb_outcome outcome;
  if (hb_key_parse_failure(key, &stream, &out->position, &out->hash)) {
    out->reason = HB_KEPT_FAILED;
    return HB_OK;
  }
  if (!hb_key_parse_unprocessed(key, &stream, &outcome, &out->position, &out->hash)) {
    return hb_store_bad_key(err);
  }
  out->reason = (uint8_t)outcome;
  return HB_OK;
}

static enum hb_code visit_row(void *context, struct hb_slice key, struct hb_slice value, bool *stop,
                              struct hb_err *err) {
  const struct walk *walk = context;
  struct hb_kept row = {.processor = 0};
  struct hb_unprocessed stored;
  enum hb_code code = parse_key(key, &row.place, err);
  if (!code) code = hb_record_get_unprocessed(value, &stored, err);
  if (code) return code;
  row.count = stored.count;
  row.first_seen_wall_ms = stored.first_seen_wall_ms;
  row.last_seen_wall_ms = stored.last_seen_wall_ms;
  row.peer = stored.peer;
  row.frame = stored.frame;
  if (row.place.reason == HB_KEPT_FAILED) {
    struct hb_failure_row parts;
    code = hb_record_get_failure(stored.frame, &row.processor, &parts, err);
    if (code) return code;
    row.explanation = parts.explanation;
    row.frame = parts.frame;
  }
  *stop = !walk->visit(walk->context, &row);
  return HB_OK;
}

static struct hb_key key_of(uint64_t stream, uint8_t reason, int64_t position, uint64_t hash) {
  return hb_key_unprocessed(stream, (enum hb_outcome)reason, position, hash);
}

enum hb_code hb_kept_each(struct hb_store *store, uint64_t stream, uint8_t reason,
                          const struct hb_kept_place *after, hb_kept_visit *visit, void *context,
                          struct hb_err *err) {
  struct walk walk = {.visit = visit, .context = context};
  bool all = reason == HB_KEPT_ANY || reason == UINT8_MAX;
  struct hb_key start = key_of(stream, reason, INT64_MIN, 0);
  struct hb_key end =
      all ? hb_key_stream_end(stream) : key_of(stream, (uint8_t)(reason + 1), INT64_MIN, 0);
  if (after) {
    start = key_of(stream, after->reason, after->position, after->hash);
    start.data[start.size++] = 0; /* just above it */
  }
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_UNPROCESSED,
                                                    hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_UNPROCESSED, visit_row, &walk, err);
}
