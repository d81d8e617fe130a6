/* Decides how events become a block's bytes: sizes first, then one allocation, then one pass. */
#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/endian.h"
#include "base/frame/block.h"
#include "base/frame/block_layout.h"

/* What must be known before the first byte can be placed. */
struct shape {
  uint64_t frames_size;
  uint32_t runs;
  bool dense; /* sequence = from + index throughout: they need not be listed */
};

static bool same_receipt(struct hb_receipt a, struct hb_receipt b) {
  return a.received_ms == b.received_ms && a.peer == b.peer;
}

static struct shape measure(int64_t from, int64_t to, const struct hb_block_entry *entries,
                            size_t count) {
  struct shape shape = {.dense = true};
  for (size_t i = 0; i < count; i++) {
    const struct hb_block_entry *entry = &entries[i];
    HB_ASSERT(entry->sequence >= from && entry->sequence < to && entry->frame_size > 0);
    HB_ASSERT(i == 0 || entry->sequence > entries[i - 1].sequence);
    shape.frames_size += entry->frame_size;
    shape.runs += i == 0 || !same_receipt(entry->receipt, entries[i - 1].receipt);
  }
  /* They ascend from `from` or above: that the last one fits says that all do. */
  if (count) shape.dense = (uint64_t)entries[count - 1].sequence - (uint64_t)from == count - 1;
  return shape;
}

static void put_header(uint8_t *at, enum hb_block_kind kind, int64_t from, int64_t to,
                       struct hb_time max_time, uint32_t count, const struct shape *shape) {
  memset(at, 0, HB_BLOCK_HEADER_SIZE);
  at[HB_BLOCK_AT_VERSION] = HB_BLOCK_VERSION;
  at[HB_BLOCK_AT_KIND] = (uint8_t)kind;
  at[HB_BLOCK_AT_FLAGS] = (uint8_t)((shape->dense ? 0 : HB_BLOCK_FLAG_SEQUENCES) |
                                    (max_time.present ? HB_BLOCK_FLAG_MAX_TIME : 0));
  hb_put_u32_le(at + HB_BLOCK_AT_COUNT, count);
  hb_put_u64_le(at + HB_BLOCK_AT_FROM, (uint64_t)from);
  hb_put_u64_le(at + HB_BLOCK_AT_TO, (uint64_t)to);
  if (max_time.present) {
    hb_put_u64_le(at + HB_BLOCK_AT_SECONDS, (uint64_t)max_time.seconds);
    hb_put_u32_le(at + HB_BLOCK_AT_NANOS, (uint32_t)max_time.nanos);
  }
  hb_put_u32_le(at + HB_BLOCK_AT_RECEIPTS_SIZE, shape->runs * HB_RUN_SIZE);
  hb_put_u32_le(at + HB_BLOCK_AT_FRAMES_SIZE, (uint32_t)shape->frames_size);
}

static void put_run(uint8_t *at, uint32_t end, struct hb_receipt receipt) {
  hb_put_u32_le(at + HB_RUN_AT_END, end);
  hb_put_u32_le(at + HB_RUN_AT_PEER, receipt.peer);
  hb_put_u64_le(at + HB_RUN_AT_RECEIVED, receipt.received_ms);
}

static uint8_t *put_receipts(uint8_t *at, const struct hb_block_entry *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i + 1 < count && same_receipt(entries[i].receipt, entries[i + 1].receipt)) continue;
    put_run(at, i + 1, entries[i].receipt);
    at += HB_RUN_SIZE;
  }
  return at;
}

/* Frames that lay together in the producer's batch are copied together. */
static uint8_t *put_frames(uint8_t *at, const struct hb_block_entry *entries, uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    const uint8_t *start = entries[i].frame;
    const uint8_t *end = start;
    while (i < count && entries[i].frame == end) end += entries[i++].frame_size;
    memcpy(at, start, (size_t)(end - start));
    at += end - start;
  }
  return at;
}

static uint8_t *put_offsets(uint8_t *at, const struct hb_block_entry *entries, uint32_t count) {
  uint32_t offset = 0;
  for (uint32_t i = 0; i < count; i++) {
    hb_put_u32_le(at, offset);
    at += HB_BLOCK_OFFSET_SIZE;
    offset += entries[i].frame_size;
  }
  return at;
}

static uint8_t *put_sequences(uint8_t *at, const struct hb_block_entry *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    hb_put_u64_le(at, (uint64_t)entries[i].sequence);
    at += HB_BLOCK_SEQUENCE_SIZE;
  }
  return at;
}

struct hb_bytes *hb_block_encode(enum hb_block_kind kind, int64_t from, int64_t to,
                                 struct hb_time max_time, const struct hb_block_entry *entries,
                                 size_t count) {
  HB_ASSERT(from <= to && count <= UINT32_MAX / HB_RUN_SIZE);
  struct shape shape = measure(from, to, entries, count);
  HB_ASSERT(shape.frames_size <= UINT32_MAX);
  uint32_t n = (uint32_t)count;
  size_t per_event = HB_BLOCK_OFFSET_SIZE + (shape.dense ? 0 : HB_BLOCK_SEQUENCE_SIZE);
  size_t size =
      HB_BLOCK_HEADER_SIZE + n * per_event + (size_t)shape.runs * HB_RUN_SIZE + shape.frames_size;
  uint8_t *data;
  struct hb_bytes *block = hb_bytes_create(size + HB_BLOCK_CHECKSUM_SIZE, &data);
  put_header(data, kind, from, to, max_time, n, &shape);
  uint8_t *at = put_offsets(data + HB_BLOCK_HEADER_SIZE, entries, n);
  if (!shape.dense) at = put_sequences(at, entries, n);
  at = put_receipts(at, entries, n);
  at = put_frames(at, entries, n);
  HB_ASSERT((size_t)(at - data) == size);
  hb_put_u64_le(at, XXH3_64bits(data, size));
  return block;
}

size_t hb_block_encoded_size(const struct hb_block_entry *entries, size_t count) {
  size_t size = HB_BLOCK_HEADER_SIZE + HB_BLOCK_CHECKSUM_SIZE +
                count * (HB_BLOCK_OFFSET_SIZE + HB_BLOCK_SEQUENCE_SIZE + HB_RUN_SIZE);
  for (size_t i = 0; i < count; i++) size += entries[i].frame_size;
  return size;
}
