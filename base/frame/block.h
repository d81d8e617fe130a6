/* The block: how events lie in the log and in a held bundle. docs/FORMAT.md has the byte table.
 *
 *   header | offsets (u32 each) | sequences (i64 each, only where not consecutive) | receipts
 *   (run-length) | sections (room for later) | frames | XXH3-64 over all before it
 *
 * The frames lie together at the end: consecutive events of a block are sent to a subscriber by
 * reference. A block accounts for the range [from, to), which may be wider than its events (voids,
 * `previous`) and may hold none. Integers are little-endian. Pure; any thread. */
#ifndef HB_BASE_FRAME_BLOCK_H
#define HB_BASE_FRAME_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/frame/scan.h"
#include "base/slice.h"
#include "base/types.h"

enum hb_block_kind { HB_BLOCK_EVENTS = 1, HB_BLOCK_VOID = 2, HB_BLOCK_SEAL = 3 };

enum { HB_BLOCK_VERSION = 1 };

/* ---- writing: init, add in ascending sequence, finish. Reusable; done frees. */

struct hb_block_entry {
  int64_t sequence;
  const uint8_t *frame; /* borrowed until finish */
  uint32_t frame_size;
  struct hb_receipt receipt;
};

/* Encode `count` entries (ascending sequences) as one block that accounts for [from, to).
 * `max_time` is the running maximum up to the block's end (absent in bundles).
 * The result is immutable, one reference, the caller's. */
struct hb_bytes *hb_block_encode(enum hb_block_kind kind, int64_t from, int64_t to,
                                 struct hb_time max_time, const struct hb_block_entry *entries,
                                 size_t count);
/* What hb_block_encode would make of them, an upper bound in bytes (receipts counted per entry). */
size_t hb_block_encoded_size(const struct hb_block_entry *entries, size_t count);

/* ---- reading */

struct hb_block {
  enum hb_block_kind kind;
  uint32_t count;
  int64_t from;
  int64_t to;
  struct hb_time max_time;
  struct hb_slice frames;   /* all frames, one after another */
  const uint8_t *offsets;   /* count * u32, from frames.data; read with the functions below */
  const uint8_t *sequences; /* count * i64, NULL where sequence = from + index */
  struct hb_slice receipts;
};

/* Check version, sizes, offsets (ascending, inside), sequences (ascending, inside [from, to)) and
 * the checksum; HB_CORRUPT or HB_VERSION else. `out` borrows from `bytes`. */
HB_MUST_CHECK enum hb_code hb_block_decode(struct hb_slice bytes, struct hb_block *out,
                                           struct hb_err *err);
/* index < count for all of these. */
int64_t hb_block_sequence(const struct hb_block *block, uint32_t index);
struct hb_slice hb_block_frame(const struct hb_block *block, uint32_t index);
/* Frames [first, first + count) as one slice. */
struct hb_slice hb_block_frames(const struct hb_block *block, uint32_t first, uint32_t count);
/* Index of the first event with sequence >= `sequence`; count where there is none. */
uint32_t hb_block_find(const struct hb_block *block, int64_t sequence);
struct hb_receipt hb_block_receipt(const struct hb_block *block, uint32_t index);
/* The same for who goes up: `run` remembers where the last one was, any value is right. */
struct hb_receipt hb_block_receipt_near(const struct hb_block *block, uint32_t index,
                                        uint32_t *run);
/* What reading the event at `index` will touch is asked for, so that it is in the cache by then:
 * what tells where it lies, and, some reads later, its frame. `run` as above. */
void hb_block_expect(const struct hb_block *block, uint32_t index, uint32_t run);
void hb_block_expect_frame(const struct hb_block *block, uint32_t index);

#endif
