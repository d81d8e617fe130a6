/* Decides how the small values lie in bytes, and what is none. Little-endian; sizes are exact, so
 * that neither a cut row nor one with something after its end passes. */
#include "storage/record_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "storage/record_bytes_internal.h"

/* ---- gap */

void hb_record_put_gap(struct hb_buf *out, const struct hb_gap *gap) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_add_i64(out, gap->end);
  hb_add_u64(out, gap->first_seen_served_ms);
  hb_add_u64(out, gap->first_seen_wall_ms);
}

enum hb_code hb_record_get_gap(struct hb_slice value, struct hb_gap *out, struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "gap", &cursor, err);
  if (code) return code;
  struct hb_gap gap = {.start = out->start, .end = hb_take_i64(&cursor)};
  gap.first_seen_served_ms = hb_take_u64(&cursor);
  gap.first_seen_wall_ms = hb_take_u64(&cursor);
  code = hb_record_end(&cursor, "gap", value.size, err);
  if (code) return code;
  if (gap.end <= gap.start) {
    return hb_err_set(err, HB_CORRUPT, NULL, "gap: end %" PRId64 " is not above start %" PRId64,
                      gap.end, gap.start);
  }
  *out = gap;
  return HB_OK;
}

/* ---- index entry */

void hb_record_put_index(uint8_t out[HB_RECORD_INDEX_SIZE], const struct hb_index_entry *entry) {
  out[0] = HB_RECORD_VERSION;
  hb_put_u64_le(out + 1, (uint64_t)entry->block);
  hb_put_u32_le(out + 9, entry->offset);
  hb_put_u32_le(out + 13, entry->length);
}

enum hb_code hb_record_get_index(struct hb_slice value, struct hb_index_entry *out,
                                 struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "index entry", &cursor, err);
  if (code) return code;
  int64_t block = hb_take_i64(&cursor);
  uint32_t offset = hb_take_u32(&cursor);
  uint32_t length = hb_take_u32(&cursor);
  code = hb_record_end(&cursor, "index entry", value.size, err);
  if (code) return code;
  out->block = block;
  out->offset = offset;
  out->length = length;
  return HB_OK;
}

/* ---- unprocessed */

void hb_record_put_unprocessed(struct hb_buf *out, const struct hb_unprocessed *row) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_add_u64(out, row->count);
  hb_add_u64(out, row->first_seen_wall_ms);
  hb_add_u64(out, row->last_seen_wall_ms);
  hb_add_u32(out, row->peer);
  hb_buf_append(out, row->frame.data, row->frame.size);
}

enum hb_code hb_record_get_unprocessed(struct hb_slice value, struct hb_unprocessed *out,
                                       struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "unprocessed event", &cursor, err);
  if (code) return code;
  uint64_t count = hb_take_u64(&cursor);
  uint64_t first = hb_take_u64(&cursor);
  uint64_t last = hb_take_u64(&cursor);
  uint32_t peer = hb_take_u32(&cursor);
  if (!cursor.ok || !cursor.left || !count) {
    return hb_err_set(err, HB_CORRUPT, NULL, "unprocessed event: wrong size, %zu bytes",
                      value.size);
  }
  out->count = count;
  out->first_seen_wall_ms = first;
  out->last_seen_wall_ms = last;
  out->peer = peer;
  out->frame = hb_slice_of(cursor.at, cursor.left);
  return HB_OK;
}

void hb_record_merge_unprocessed(struct hb_slice older, struct hb_slice newer, struct hb_buf *out) {
  struct hb_unprocessed a;
  struct hb_unprocessed b;
  bool has_a = hb_record_get_unprocessed(older, &a, NULL) == HB_OK;
  bool has_b = hb_record_get_unprocessed(newer, &b, NULL) == HB_OK;
  if (!has_a || !has_b) {
    struct hb_slice kept = has_b ? newer : older;
    hb_buf_append(out, kept.data, kept.size);
    return;
  }
  a.count = a.count > UINT64_MAX - b.count ? UINT64_MAX : a.count + b.count;
  if (b.first_seen_wall_ms < a.first_seen_wall_ms) a.first_seen_wall_ms = b.first_seen_wall_ms;
  if (b.last_seen_wall_ms > a.last_seen_wall_ms) a.last_seen_wall_ms = b.last_seen_wall_ms;
  hb_record_put_unprocessed(out, &a);
}

/* ---- plain ones */

void hb_record_put_u64(struct hb_buf *out, uint64_t value) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_add_u64(out, value);
}

enum hb_code hb_record_get_u64(struct hb_slice value, uint64_t *out, struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "number", &cursor, err);
  if (code) return code;
  uint64_t number = hb_take_u64(&cursor);
  code = hb_record_end(&cursor, "number", value.size, err);
  if (!code) *out = number;
  return code;
}

void hb_record_put_bytes(struct hb_buf *out, struct hb_slice bytes) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_buf_append(out, bytes.data, bytes.size);
}

enum hb_code hb_record_get_bytes(struct hb_slice value, struct hb_slice *out, struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "bytes", &cursor, err);
  if (!code) *out = hb_slice_of(cursor.at, cursor.left);
  return code;
}

void hb_record_put_run(struct hb_buf *out, struct hb_run_record record) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_add_u64(out, record.run);
  hb_add_u64(out, record.commit);
}

enum hb_code hb_record_get_run(struct hb_slice value, struct hb_run_record *out,
                               struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "run", &cursor, err);
  if (code) return code;
  struct hb_run_record record = {.run = hb_take_u64(&cursor)};
  record.commit = hb_take_u64(&cursor);
  code = hb_record_end(&cursor, "run", value.size, err);
  if (!code) *out = record;
  return code;
}

/* ---- log data */

void hb_log_data_put(uint8_t out[HB_LOG_DATA_SIZE], struct hb_log_data data) {
  out[0] = HB_RECORD_VERSION;
  out[1] = 'H';
  out[2] = 'B';
  hb_put_u64_le(out + 3, data.run);
  hb_put_u64_le(out + 11, data.mark);
  hb_put_u64_le(out + 19, data.commit);
  hb_put_u64_le(out + 27, data.previous);
  hb_put_u64_le(out + 35, data.synced);
}

enum hb_code hb_log_data_get(struct hb_slice value, struct hb_log_data *out, struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "log data", &cursor, err);
  if (code) return code;
  const uint8_t *magic = hb_take(&cursor, 2);
  struct hb_log_data data = {.run = hb_take_u64(&cursor)};
  data.mark = hb_take_u64(&cursor);
  data.commit = hb_take_u64(&cursor);
  data.previous = hb_take_u64(&cursor);
  data.synced = hb_take_u64(&cursor);
  code = hb_record_end(&cursor, "log data", value.size, err);
  if (code) return code;
  if (memcmp(magic, "HB", 2) != 0) {
    return hb_err_set(err, HB_CORRUPT, NULL, "log data: not ours");
  }
  *out = data;
  return HB_OK;
}
