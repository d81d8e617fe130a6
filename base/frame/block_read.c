/* Decides whether stored bytes are a block that can be trusted, and finds events in it. */
#include <inttypes.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/endian.h"
#include "base/frame/block.h"
#include "base/frame/block_layout.h"

static enum hb_code damaged(struct hb_err *err, const char *part, uint64_t value) {
  return hb_err_set(err, HB_CORRUPT, "BLOCK_DAMAGED", "block: %s is wrong (%" PRIu64 ")", part,
                    value);
}

/* The checksum comes before anything is believed, the version too: a flipped bit in it is damage,
 * a newer version is not. In every version the checksum stands at the end. */
static enum hb_code check_envelope(struct hb_slice bytes, struct hb_err *err) {
  if (bytes.size < HB_BLOCK_HEADER_SIZE + HB_BLOCK_CHECKSUM_SIZE) {
    return damaged(err, "size", bytes.size);
  }
  size_t size = bytes.size - HB_BLOCK_CHECKSUM_SIZE;
  uint64_t stored = hb_get_u64_le(bytes.data + size);
  if (XXH3_64bits(bytes.data, size) != stored) return damaged(err, "checksum", stored);
  uint8_t version = bytes.data[HB_BLOCK_AT_VERSION];
  if (version != HB_BLOCK_VERSION) {
    return hb_err_set(err, HB_VERSION, "BLOCK_VERSION",
                      "block: version is %d, this program reads version %d", version,
                      HB_BLOCK_VERSION);
  }
  return HB_OK;
}

/* Kind, flags, range and time. */
static enum hb_code read_header(const uint8_t *at, struct hb_block *out, struct hb_err *err) {
  uint8_t kind = at[HB_BLOCK_AT_KIND];
  uint8_t flags = at[HB_BLOCK_AT_FLAGS];
  if (kind < HB_BLOCK_EVENTS || kind > HB_BLOCK_SEAL) return damaged(err, "kind", kind);
  if (flags & ~HB_BLOCK_FLAGS_KNOWN) return damaged(err, "flags", flags);
  if (at[HB_BLOCK_AT_RESERVED]) return damaged(err, "reserved byte", at[HB_BLOCK_AT_RESERVED]);
  *out = (struct hb_block){
      .kind = (enum hb_block_kind)kind,
      .count = hb_get_u32_le(at + HB_BLOCK_AT_COUNT),
      .from = (int64_t)hb_get_u64_le(at + HB_BLOCK_AT_FROM),
      .to = (int64_t)hb_get_u64_le(at + HB_BLOCK_AT_TO),
      .max_time = {.seconds = (int64_t)hb_get_u64_le(at + HB_BLOCK_AT_SECONDS),
                   .nanos = (int32_t)hb_get_u32_le(at + HB_BLOCK_AT_NANOS),
                   .present = flags & HB_BLOCK_FLAG_MAX_TIME},
  };
  if (out->from > out->to) return damaged(err, "range", out->count);
  struct hb_time time = out->max_time;
  bool fits = time.present ? time.nanos >= 0 && time.nanos <= 999999999
                           : time.seconds == 0 && time.nanos == 0;
  return fits ? HB_OK : damaged(err, "max_time", (uint32_t)time.nanos);
}

/* Place the parts. Each term is below 2^35 or so: 64 bits can't overflow. */
static enum hb_code place_parts(struct hb_slice bytes, struct hb_block *out, struct hb_err *err) {
  const uint8_t *at = bytes.data;
  bool listed = at[HB_BLOCK_AT_FLAGS] & HB_BLOCK_FLAG_SEQUENCES;
  uint64_t offsets_size = (uint64_t)out->count * HB_BLOCK_OFFSET_SIZE;
  uint64_t sequences_size = listed ? (uint64_t)out->count * HB_BLOCK_SEQUENCE_SIZE : 0;
  uint64_t receipts_size = hb_get_u32_le(at + HB_BLOCK_AT_RECEIPTS_SIZE);
  uint64_t sections_size = hb_get_u32_le(at + HB_BLOCK_AT_SECTIONS_SIZE);
  uint64_t frames_size = hb_get_u32_le(at + HB_BLOCK_AT_FRAMES_SIZE);
  uint64_t size = HB_BLOCK_HEADER_SIZE + offsets_size + sequences_size + receipts_size +
                  sections_size + frames_size + HB_BLOCK_CHECKSUM_SIZE;
  if (size != bytes.size) return damaged(err, "size", bytes.size);
  out->offsets = at + HB_BLOCK_HEADER_SIZE;
  out->sequences = listed ? out->offsets + offsets_size : NULL;
  const uint8_t *receipts = out->offsets + offsets_size + sequences_size;
  out->receipts = hb_slice_of(receipts, (size_t)receipts_size);
  out->frames = hb_slice_of(receipts + receipts_size + sections_size, (size_t)frames_size);
  return HB_OK;
}

static uint32_t offset_at(const struct hb_block *block, uint32_t index) {
  return hb_get_u32_le(block->offsets + (size_t)index * HB_BLOCK_OFFSET_SIZE);
}

/* The first is 0 and each is below the next: every byte belongs to exactly one frame. */
static enum hb_code check_offsets(const struct hb_block *block, struct hb_err *err) {
  if (!block->count) {
    return block->frames.size ? damaged(err, "frames size", block->frames.size) : HB_OK;
  }
  uint32_t offset = offset_at(block, 0);
  if (offset != 0) return damaged(err, "offset", offset);
  for (uint32_t i = 1; i < block->count; i++) {
    uint32_t next = offset_at(block, i);
    if (next <= offset) return damaged(err, "offset", next);
    offset = next;
  }
  return offset < block->frames.size ? HB_OK : damaged(err, "offset", offset);
}

static enum hb_code check_sequences(const struct hb_block *block, struct hb_err *err) {
  if (!block->count) return HB_OK;
  if (!block->sequences) {
    uint64_t width = (uint64_t)block->to - (uint64_t)block->from;
    return block->count <= width ? HB_OK : damaged(err, "count", block->count);
  }
  int64_t sequence = hb_block_sequence(block, 0);
  if (sequence < block->from) return damaged(err, "sequence", (uint64_t)sequence);
  for (uint32_t i = 1; i < block->count; i++) {
    int64_t next = hb_block_sequence(block, i);
    if (next <= sequence) return damaged(err, "sequence", (uint64_t)next);
    sequence = next;
  }
  return sequence < block->to ? HB_OK : damaged(err, "sequence", (uint64_t)sequence);
}

static uint32_t run_end(const struct hb_block *block, size_t run) {
  return hb_get_u32_le(block->receipts.data + run * HB_RUN_SIZE + HB_RUN_AT_END);
}

/* The runs' ends ascend and the last is `count`: each event has exactly one receipt. */
static enum hb_code check_receipts(const struct hb_block *block, struct hb_err *err) {
  if (block->receipts.size % HB_RUN_SIZE) {
    return damaged(err, "receipts size", block->receipts.size);
  }
  uint32_t end = 0;
  for (size_t i = 0; i < block->receipts.size / HB_RUN_SIZE; i++) {
    uint32_t next = run_end(block, i);
    if (next <= end) return damaged(err, "receipt run", next);
    end = next;
  }
  return end == block->count ? HB_OK : damaged(err, "receipt run", end);
}

enum hb_code hb_block_decode(struct hb_slice bytes, struct hb_block *out, struct hb_err *err) {
  struct hb_block block;
  enum hb_code code = check_envelope(bytes, err);
  if (!code) code = read_header(bytes.data, &block, err);
  if (!code) code = place_parts(bytes, &block, err);
  if (!code) code = check_offsets(&block, err);
  if (!code) code = check_sequences(&block, err);
  if (!code) code = check_receipts(&block, err);
  if (!code) *out = block;
  return code;
}

int64_t hb_block_sequence(const struct hb_block *block, uint32_t index) {
  if (!block->sequences) return block->from + (int64_t)index;
  return (int64_t)hb_get_u64_le(block->sequences + (size_t)index * HB_BLOCK_SEQUENCE_SIZE);
}

/* Where the frame at `index` begins; the end of the frames for `count`. */
static size_t frame_start(const struct hb_block *block, uint32_t index) {
  return index < block->count ? offset_at(block, index) : block->frames.size;
}

struct hb_slice hb_block_frames(const struct hb_block *block, uint32_t first, uint32_t count) {
  HB_ASSERT(first <= block->count && count <= block->count - first);
  size_t start = frame_start(block, first);
  return hb_slice_of(block->frames.data + start, frame_start(block, first + count) - start);
}

struct hb_slice hb_block_frame(const struct hb_block *block, uint32_t index) {
  return hb_block_frames(block, index, 1);
}

uint32_t hb_block_find(const struct hb_block *block, int64_t sequence) {
  if (sequence <= block->from) return 0;
  if (!block->sequences) {
    uint64_t index = (uint64_t)sequence - (uint64_t)block->from;
    return index < block->count ? (uint32_t)index : block->count;
  }
  uint32_t low = 0;
  uint32_t high = block->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (hb_block_sequence(block, middle) < sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static struct hb_receipt receipt_at(const struct hb_block *block, size_t at) {
  const uint8_t *run = block->receipts.data + at * HB_RUN_SIZE;
  return (struct hb_receipt){.received_ms = hb_get_u64_le(run + HB_RUN_AT_RECEIVED),
                             .peer = hb_get_u32_le(run + HB_RUN_AT_PEER)};
}

/* The first run that ends above the index. */
static size_t find_run(const struct hb_block *block, uint32_t index) {
  size_t low = 0;
  size_t high = block->receipts.size / HB_RUN_SIZE - 1;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (run_end(block, middle) <= index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool is_run_of(const struct hb_block *block, size_t run, uint32_t index) {
  if (run >= block->receipts.size / HB_RUN_SIZE || run_end(block, run) <= index) return false;
  return run == 0 || run_end(block, run - 1) <= index;
}

struct hb_receipt hb_block_receipt(const struct hb_block *block, uint32_t index) {
  HB_ASSERT(index < block->count);
  return receipt_at(block, find_run(block, index));
}

struct hb_receipt hb_block_receipt_near(const struct hb_block *block, uint32_t index,
                                        uint32_t *run) {
  HB_ASSERT(index < block->count);
  size_t at = *run;
  if (!is_run_of(block, at, index)) at++;
  if (!is_run_of(block, at, index)) at = find_run(block, index);
  *run = (uint32_t)at;
  return receipt_at(block, at);
}

void hb_block_expect(const struct hb_block *block, uint32_t index, uint32_t run) {
  __builtin_prefetch(block->offsets + (size_t)index * HB_BLOCK_OFFSET_SIZE);
  if (block->sequences) {
    __builtin_prefetch(block->sequences + (size_t)index * HB_BLOCK_SEQUENCE_SIZE);
  }
  if (run < block->receipts.size / HB_RUN_SIZE) {
    __builtin_prefetch(block->receipts.data + (size_t)run * HB_RUN_SIZE);
  }
}

void hb_block_expect_frame(const struct hb_block *block, uint32_t index) {
  enum { LINE = 64, LINES = 3 }; /* the processor goes on by itself in longer ones */
  const uint8_t *frame = hb_block_frame(block, index).data;
  for (int line = 0; line < LINES; line++) __builtin_prefetch(frame + line * LINE);
}
