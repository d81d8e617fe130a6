/* The wire reader: fields follow each other without a hole, inside of the bytes, down to some
 * depth; what is malformed does not move the reader. */
#include "base/assert.h"
#include "base/frame/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_fields(struct hb_slice bytes, int depth) {
  struct hb_wire_reader reader = {bytes.data, bytes.data + bytes.size};
  const uint8_t *at = bytes.data;
  struct hb_wire_field field;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    HB_ASSERT(field.number > 0 && field.start == at && field.end > at);
    HB_ASSERT(field.end <= bytes.data + bytes.size && reader.at == field.end);
    at = field.end;
    if (field.type != HB_WIRE_LEN) continue;
    HB_ASSERT(field.bytes.size <= (size_t)(field.end - field.start));
    if (depth > 0 && field.bytes.size) read_fields(field.bytes, depth - 1);
  }
  HB_ASSERT(reader.at == at);
  HB_ASSERT((result == HB_WIRE_END) == (at == bytes.data + bytes.size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size) read_fields(hb_slice_of(data, size), 3);
  return 0;
}
