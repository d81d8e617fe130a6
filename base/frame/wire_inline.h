/* The steps of reading protocol buffers' wire format, inlined where each nanosecond counts.
 *
 * Private to base/frame. Each step takes [at, end) and returns the place after what it read, or
 * NULL where the bytes are malformed. A tag and a length have at most 5 bytes, even padded: that
 * is what the official decoders read, and what is accepted here is later sent to them. */
#ifndef HB_BASE_FRAME_WIRE_INLINE_H
#define HB_BASE_FRAME_WIRE_INLINE_H

#include "base/endian.h"
#include "base/frame/wire.h"

enum { HB_WIRE_SHORT_VARINT_MAX = 5 };

#define HB_WIRE_TAG(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

/* At most `size_max` bytes; bits above the 64th are dropped, as the official decoders do. */
static inline const uint8_t *hb_wire_read_padded(const uint8_t *at, const uint8_t *end,
                                                 ptrdiff_t size_max, uint64_t *out) {
  if (end - at > size_max) end = at + size_max;
  uint64_t value = 0;
  for (unsigned shift = 0; at < end; shift += 7) {
    uint8_t byte = *at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return at;
    }
  }
  return NULL;
}

static inline const uint8_t *hb_wire_read_varint(const uint8_t *at, const uint8_t *end,
                                                 uint64_t *out) {
  if (at < end && *at < 0x80) {
    *out = *at;
    return at + 1;
  }
  return hb_wire_read_padded(at, end, HB_VARINT_MAX, out);
}

/* A tag whose field number is not 0; the wire type may still be one that nobody reads. */
static inline const uint8_t *hb_wire_read_tag(const uint8_t *at, const uint8_t *end,
                                              uint32_t *out) {
  uint64_t tag;
  if (at < end && *at < 0x80) {
    tag = *at++;
  } else {
    at = hb_wire_read_padded(at, end, HB_WIRE_SHORT_VARINT_MAX, &tag);
    if (!at || tag > UINT32_MAX) return NULL;
  }
  *out = (uint32_t)tag;
  return tag >> 3 ? at : NULL;
}

/* A length and as many bytes; returns the place after them. */
static inline const uint8_t *hb_wire_read_bytes(const uint8_t *at, const uint8_t *end,
                                                struct hb_slice *out) {
  uint64_t size;
  if (at < end && *at < 0x80) {
    size = *at++;
  } else {
    at = hb_wire_read_padded(at, end, HB_WIRE_SHORT_VARINT_MAX, &size);
    if (!at) return NULL;
  }
  if (size > (uint64_t)(end - at)) return NULL;
  out->data = at;
  out->size = (size_t)size;
  return at + size;
}

/* Past the value of a field whose tag was read. Groups and the types 6 and 7 are malformed. */
static inline const uint8_t *hb_wire_skip(const uint8_t *at, const uint8_t *end, uint32_t tag) {
  uint64_t number;
  struct hb_slice bytes;
  switch (tag & 7) {
    case HB_WIRE_VARINT:
      return hb_wire_read_varint(at, end, &number);
    case HB_WIRE_LEN:
      return hb_wire_read_bytes(at, end, &bytes);
    case HB_WIRE_I64:
      return end - at >= 8 ? at + 8 : NULL;
    case HB_WIRE_I32:
      return end - at >= 4 ? at + 4 : NULL;
    default:
      return NULL;
  }
}

#endif
