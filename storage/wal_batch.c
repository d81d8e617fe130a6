/* Decides where our log data is in a WriteBatch: sequence (8 bytes), count (4), then entries, each
 * a tag and what belongs to it. Only entries that storage/ writes, or RocksDB by itself, are known:
 * anything else was not written by Holdback. */
#include "storage/wal_batch_internal.h"

enum { BATCH_HEADER_SIZE = 12 };

enum tag {
  TAG_DELETE = 0x0,
  TAG_PUT = 0x1,
  TAG_MERGE = 0x2,
  TAG_LOG_DATA = 0x3,
  TAG_FAMILY_DELETE = 0x4,
  TAG_FAMILY_PUT = 0x5,
  TAG_FAMILY_MERGE = 0x6,
  TAG_DELETE_ONCE = 0x7,
  TAG_FAMILY_DELETE_ONCE = 0x8,
  TAG_NOOP = 0xd,
  TAG_FAMILY_DELETE_RANGE = 0xe,
  TAG_DELETE_RANGE = 0xf
};

bool hb_wal_take_varint(struct hb_slice *bytes, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 10 && i < bytes->size; i++) {
    uint8_t byte = bytes->data[i];
    if (i == 9 && byte > 1) return false;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte & 0x80) continue;
    *bytes = hb_slice_of(bytes->data + i + 1, bytes->size - i - 1);
    *out = value;
    return true;
  }
  return false;
}

bool hb_wal_take_string(struct hb_slice *bytes, struct hb_slice *out) {
  struct hb_slice rest = *bytes;
  uint64_t size;
  if (!hb_wal_take_varint(&rest, &size) || size > rest.size) return false;
  *out = hb_slice_of(rest.data, (size_t)size);
  *bytes = hb_slice_of(rest.data + size, rest.size - (size_t)size);
  return true;
}

/* How an entry goes on after its tag: the family's number, then strings. */
struct shape {
  bool known;
  bool family;
  int strings;
};

static struct shape shape_of(uint8_t tag) {
  switch (tag) {
    case TAG_DELETE:
    case TAG_DELETE_ONCE:
    case TAG_LOG_DATA:
      return (struct shape){true, false, 1};
    case TAG_PUT:
    case TAG_MERGE:
    case TAG_DELETE_RANGE:
      return (struct shape){true, false, 2};
    case TAG_FAMILY_DELETE:
    case TAG_FAMILY_DELETE_ONCE:
      return (struct shape){true, true, 1};
    case TAG_FAMILY_PUT:
    case TAG_FAMILY_MERGE:
    case TAG_FAMILY_DELETE_RANGE:
      return (struct shape){true, true, 2};
    case TAG_NOOP:
      return (struct shape){true, false, 0};
    default:
      return (struct shape){0};
  }
}

static bool take_entry(struct hb_slice *bytes, uint8_t *out_tag, struct hb_slice *out_first) {
  *out_tag = bytes->data[0];
  *bytes = hb_slice_of(bytes->data + 1, bytes->size - 1);
  struct shape shape = shape_of(*out_tag);
  uint64_t family;
  if (!shape.known || (shape.family && !hb_wal_take_varint(bytes, &family))) return false;
  for (int i = 0; i < shape.strings; i++) {
    struct hb_slice text;
    if (!hb_wal_take_string(bytes, &text)) return false;
    if (i == 0) *out_first = text;
  }
  return true;
}

bool hb_wal_batch_read(struct hb_slice batch, bool *out_any, struct hb_log_data *out) {
  if (batch.size < BATCH_HEADER_SIZE) return false;
  struct hb_slice rest =
      hb_slice_of(batch.data + BATCH_HEADER_SIZE, batch.size - BATCH_HEADER_SIZE);
  bool any = false;
  struct hb_log_data data = {0};
  while (rest.size) {
    uint8_t tag;
    struct hb_slice first = {0};
    if (!take_entry(&rest, &tag, &first)) return false;
    if (tag != TAG_LOG_DATA) continue;
    if (hb_log_data_get(first, &data, NULL)) return false;
    any = true;
  }
  *out_any = any;
  if (any) *out = data;
  return true;
}
