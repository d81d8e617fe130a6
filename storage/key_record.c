/* Decides how the record of a key lies in bytes, and what is none; reads one. */
#include "storage/key_record_internal.h"

#include <inttypes.h>

#include "storage/key_internal.h"
#include "storage/keys.h"
#include "storage/record_bytes_internal.h"
#include "storage/store_internal.h"

/* ---- the row's key: that of an entry in `lists`, without a position */

enum { POSITION_SIZE = 8 };

void hb_key_row(struct hb_buf *out, uint64_t stream, struct hb_slice key) {
  hb_key_list(out, stream, key, 0);
  out->size -= POSITION_SIZE;
}

bool hb_key_parse_row(struct hb_slice row, uint64_t *out_stream, struct hb_buf *key) {
  static const uint8_t position[POSITION_SIZE];
  struct hb_buf entry = {0};
  int64_t nothing;
  hb_buf_append(&entry, row.data, row.size);
  hb_buf_append(&entry, position, sizeof position);
  bool parsed = hb_key_parse_list(hb_buf_view(&entry), out_stream, key, &nothing);
  hb_buf_done(&entry);
  return parsed;
}

/* ---- the value */

enum { FLAG_BEGUN = 1, FLAG_COMPLETE = 2, FLAGS_KNOWN = 3 };

void hb_record_put_key(struct hb_buf *out, const struct hb_key_record *record) {
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_buf_append_u8(
      out, (uint8_t)((record->begun ? FLAG_BEGUN : 0) | (record->complete ? FLAG_COMPLETE : 0)));
  hb_add_i64(out, record->first);
  hb_add_i64(out, record->next);
  hb_add_i64(out, record->first_position);
  hb_add_i64(out, record->last_position);
  hb_add_i64(out, record->last);
}

static enum hb_code check(const struct hb_key_record *record, struct hb_err *err) {
  uint64_t released = (uint64_t)record->next - (uint64_t)record->first;
  if (record->next < record->first) {
    return hb_err_set(err, HB_CORRUPT, NULL, "key record: next %" PRId64 " is below first %" PRId64,
                      record->next, record->first);
  }
  bool has_room = record->first_position >= 0 && record->last_position >= record->first_position &&
                  (uint64_t)(record->last_position - record->first_position) >= released - 1;
  if (released && !has_room) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "key record: %" PRIu64 " events can't lie from position %" PRId64
                      " to %" PRId64,
                      released, record->first_position, record->last_position);
  }
  if (record->complete && (record->last < record->first || record->last >= record->next)) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "key record: last %" PRId64 " is not in [%" PRId64 ", %" PRId64 ")",
                      record->last, record->first, record->next);
  }
  return HB_OK;
}

enum hb_code hb_record_get_key(struct hb_slice value, struct hb_key_record *out,
                               struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "key record", &cursor, err);
  if (code) return code;
  uint8_t flags = hb_take_u8(&cursor);
  struct hb_key_record record = {.begun = flags & FLAG_BEGUN, .complete = flags & FLAG_COMPLETE};
  record.first = hb_take_i64(&cursor);
  record.next = hb_take_i64(&cursor);
  record.first_position = hb_take_i64(&cursor);
  record.last_position = hb_take_i64(&cursor);
  record.last = hb_take_i64(&cursor);
  code = hb_record_end(&cursor, "key record", value.size, err);
  if (code) return code;
  if (flags & ~FLAGS_KNOWN || !record.begun) {
    return hb_err_set(err, HB_CORRUPT, NULL, "key record: flags %u", flags);
  }
  code = check(&record, err);
  if (!code) *out = record;
  return code;
}

/* ---- reading */

enum hb_code hb_key_record_read(struct hb_store *store, uint64_t stream, struct hb_slice key,
                                bool *out_found, struct hb_key_record *out, struct hb_err *err) {
  struct hb_buf row = {0};
  struct hb_bytes *value = NULL;
  hb_key_row(&row, stream, key);
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_KEYS, hb_buf_view(&row), &value, err);
  bool found = !code && value;
  if (found) code = hb_record_get_key(hb_bytes_view(value), out, err);
  hb_bytes_unref(value);
  code = hb_store_wrap_row(code, HB_FAMILY_KEYS, hb_buf_view(&row), err);
  hb_buf_done(&row);
  if (!code) *out_found = found;
  return code;
}
