/* Decides what is well-formed on the wire, for readers that take it field by field. */
#include "base/frame/wire.h"

#include "base/assert.h"
#include "base/frame/wire_inline.h"

/* The value of a field whose tag was read; NULL where it is malformed. */
static const uint8_t *read_value(const uint8_t *at, const uint8_t *end, uint32_t tag,
                                 struct hb_wire_field *out) {
  switch (tag & 7) {
    case HB_WIRE_VARINT:
      return hb_wire_read_varint(at, end, &out->number_value);
    case HB_WIRE_LEN:
      return hb_wire_read_bytes(at, end, &out->bytes);
    case HB_WIRE_I64:
      if (end - at < 8) return NULL;
      out->number_value = hb_get_u64_le(at);
      return at + 8;
    case HB_WIRE_I32:
      if (end - at < 4) return NULL;
      out->number_value = hb_get_u32_le(at);
      return at + 4;
    default:
      return NULL;
  }
}

enum hb_wire_result hb_wire_next(struct hb_wire_reader *reader, struct hb_wire_field *out) {
  if (reader->at == reader->end) return HB_WIRE_END;
  struct hb_wire_field field = {.start = reader->at};
  uint32_t tag;
  const uint8_t *at = hb_wire_read_tag(reader->at, reader->end, &tag);
  if (at) at = read_value(at, reader->end, tag, &field);
  if (!at) return HB_WIRE_MALFORMED;
  field.number = tag >> 3;
  field.type = (enum hb_wire_type)(tag & 7);
  field.end = at;
  *out = field;
  reader->at = at;
  return HB_WIRE_FIELD;
}

size_t hb_wire_put_varint(uint8_t *at, uint64_t value) {
  size_t size = 0;
  while (value >= 0x80) {
    at[size++] = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  at[size++] = (uint8_t)value;
  return size;
}

size_t hb_wire_varint_size(uint64_t value) {
  /* 7 bits a byte; `| 1` because zero takes a byte too. */
  unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
  return (bits + 6) / 7;
}

static size_t put_tag(uint8_t *at, uint32_t field, enum hb_wire_type type) {
  HB_ASSERT(field > 0 && field <= UINT32_MAX >> 3);
  return hb_wire_put_varint(at, HB_WIRE_TAG(field, type));
}

void hb_wire_append_varint(struct hb_buf *buf, uint32_t field, uint64_t value) {
  uint8_t *at = hb_buf_reserve(buf, 2 * HB_VARINT_MAX);
  size_t size = put_tag(at, field, HB_WIRE_VARINT);
  buf->size += size + hb_wire_put_varint(at + size, value);
}

void hb_wire_append_bytes(struct hb_buf *buf, uint32_t field, struct hb_slice bytes) {
  uint8_t *at = hb_buf_reserve(buf, 2 * HB_VARINT_MAX + bytes.size);
  size_t size = put_tag(at, field, HB_WIRE_LEN);
  buf->size += size + hb_wire_put_varint(at + size, bytes.size);
  hb_buf_append(buf, bytes.data, bytes.size);
}
