/* Reading and writing a value's parts; shared by record_*.c alone. */
#ifndef HB_STORAGE_RECORD_BYTES_INTERNAL_H
#define HB_STORAGE_RECORD_BYTES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endian.h"
#include "base/err.h"
#include "base/slice.h"

enum { HB_RECORD_VERSION = 1 }; /* the first byte of every value */

/* Reads on after `ok` turned false give 0; who decodes asks once, at the end. */
struct hb_cursor {
  const uint8_t *at;
  size_t left;
  bool ok;
};

static inline const uint8_t *hb_take(struct hb_cursor *cursor, size_t size) {
  if (!cursor->ok || cursor->left < size) {
    cursor->ok = false;
    return NULL;
  }
  const uint8_t *at = cursor->at;
  cursor->at += size;
  cursor->left -= size;
  return at;
}

static inline uint8_t hb_take_u8(struct hb_cursor *cursor) {
  const uint8_t *at = hb_take(cursor, 1);
  return at ? *at : 0;
}

static inline uint32_t hb_take_u32(struct hb_cursor *cursor) {
  const uint8_t *at = hb_take(cursor, 4);
  return at ? hb_get_u32_le(at) : 0;
}

static inline uint64_t hb_take_u64(struct hb_cursor *cursor) {
  const uint8_t *at = hb_take(cursor, 8);
  return at ? hb_get_u64_le(at) : 0;
}

static inline int64_t hb_take_i64(struct hb_cursor *cursor) { return (int64_t)hb_take_u64(cursor); }

static inline void hb_add_u32(struct hb_buf *out, uint32_t value) {
  hb_put_u32_le(hb_buf_reserve(out, 4), value);
  out->size += 4;
}

static inline void hb_add_u64(struct hb_buf *out, uint64_t value) {
  hb_put_u64_le(hb_buf_reserve(out, 8), value);
  out->size += 8;
}

static inline void hb_add_i64(struct hb_buf *out, int64_t value) {
  hb_add_u64(out, (uint64_t)value);
}

static inline enum hb_code hb_record_begin(struct hb_slice value, const char *what,
                                           struct hb_cursor *out, struct hb_err *err) {
  *out = (struct hb_cursor){0};
  if (!value.size) return hb_err_set(err, HB_CORRUPT, NULL, "%s: empty", what);
  if (value.data[0] != HB_RECORD_VERSION) {
    return hb_err_set(err, HB_VERSION, NULL, "%s: version %u, this program knows %d", what,
                      value.data[0], HB_RECORD_VERSION);
  }
  *out = (struct hb_cursor){.at = value.data + 1, .left = value.size - 1, .ok = true};
  return HB_OK;
}

/* Everything was read, nothing is left. */
static inline enum hb_code hb_record_end(const struct hb_cursor *cursor, const char *what,
                                         size_t size, struct hb_err *err) {
  if (cursor->ok && !cursor->left) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL, "%s: wrong size, %zu bytes", what, size);
}

#endif
