/* A block from disk. Its checksum is put right first: what lies behind it has to be checked as if
 * there were none. What is a block can be read at every index. */
#include <stdlib.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"
#include "base/frame/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHECKSUM_SIZE = 8 };

static void read_block(struct hb_slice bytes) {
  struct hb_block block;
  if (hb_block_decode(bytes, &block, NULL) != HB_OK) return;
  HB_ASSERT(block.from <= block.to);
  for (uint32_t i = 0; i < block.count; i++) {
    int64_t sequence = hb_block_sequence(&block, i);
    struct hb_slice frame = hb_block_frame(&block, i);
    HB_ASSERT(sequence >= block.from && sequence < block.to);
    HB_ASSERT(i == 0 || hb_block_sequence(&block, i - 1) < sequence);
    HB_ASSERT(frame.data >= block.frames.data);
    HB_ASSERT(frame.data + frame.size <= block.frames.data + block.frames.size);
    HB_ASSERT(hb_block_find(&block, sequence) == i);
    (void)hb_block_receipt(&block, i);
  }
  if (block.count) HB_ASSERT(hb_block_frames(&block, 0, block.count).size <= block.frames.size);
  HB_ASSERT(hb_block_find(&block, block.to) == block.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_block(hb_slice_of(data, size));
  if (size < CHECKSUM_SIZE) return 0;
  uint8_t *right = hb_memdup(data, size);
  size_t body = size - CHECKSUM_SIZE;
  hb_put_u64_le(right + body, XXH3_64bits(right, body));
  read_block(hb_slice_of(right, size));
  free(right);
  return 0;
}
