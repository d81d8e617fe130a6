/* Protocol buffers' wire format, read field by field and written by hand.
 *
 * For the few messages on the byte path, where generated code would allocate once per event.
 * Reading has proto3 semantics; what is malformed (a varint over 10 bytes, a tag or a length over
 * 5, a length past the end, a group, field number 0) ends the reading with an error and is never
 * guessed. */
#ifndef HB_BASE_FRAME_WIRE_H
#define HB_BASE_FRAME_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum hb_wire_type { HB_WIRE_VARINT = 0, HB_WIRE_I64 = 1, HB_WIRE_LEN = 2, HB_WIRE_I32 = 5 };

struct hb_wire_reader {
  const uint8_t *at;
  const uint8_t *end;
};

struct hb_wire_field {
  uint32_t number;
  enum hb_wire_type type;
  uint64_t number_value; /* VARINT, I64, I32 */
  struct hb_slice bytes; /* LEN: the content */
  const uint8_t *start;  /* of the tag */
  const uint8_t *end;    /* past the value */
};

enum hb_wire_result { HB_WIRE_END, HB_WIRE_FIELD, HB_WIRE_MALFORMED };

/* Read the next field. After HB_WIRE_MALFORMED the reader stands where the bad field starts. */
enum hb_wire_result hb_wire_next(struct hb_wire_reader *reader, struct hb_wire_field *out);

enum { HB_VARINT_MAX = 10 };
/* Write to `at`, which has HB_VARINT_MAX bytes of room; returns the bytes written. */
size_t hb_wire_put_varint(uint8_t *at, uint64_t value);
size_t hb_wire_varint_size(uint64_t value);
/* Tag and value appended to a buffer. Zero values are written too: leave them out yourself. */
void hb_wire_append_varint(struct hb_buf *buf, uint32_t field, uint64_t value);
void hb_wire_append_bytes(struct hb_buf *buf, uint32_t field, struct hb_slice bytes);

#endif
