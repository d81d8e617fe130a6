/* Where the parts of a block lie; shared by its writer and its reader. Private to base/frame. */
#ifndef HB_BASE_FRAME_BLOCK_LAYOUT_H
#define HB_BASE_FRAME_BLOCK_LAYOUT_H

enum {
  HB_BLOCK_AT_VERSION = 0,        /* u8 */
  HB_BLOCK_AT_KIND = 1,           /* u8 */
  HB_BLOCK_AT_FLAGS = 2,          /* u8 */
  HB_BLOCK_AT_RESERVED = 3,       /* u8, 0 */
  HB_BLOCK_AT_COUNT = 4,          /* u32 */
  HB_BLOCK_AT_FROM = 8,           /* i64 */
  HB_BLOCK_AT_TO = 16,            /* i64 */
  HB_BLOCK_AT_SECONDS = 24,       /* i64, 0 where absent */
  HB_BLOCK_AT_NANOS = 32,         /* u32, 0 where absent */
  HB_BLOCK_AT_RECEIPTS_SIZE = 36, /* u32 */
  HB_BLOCK_AT_SECTIONS_SIZE = 40, /* u32 */
  HB_BLOCK_AT_FRAMES_SIZE = 44,   /* u32 */
  HB_BLOCK_HEADER_SIZE = 48
};

enum { HB_BLOCK_FLAG_SEQUENCES = 1, HB_BLOCK_FLAG_MAX_TIME = 2, HB_BLOCK_FLAGS_KNOWN = 3 };

enum { HB_BLOCK_OFFSET_SIZE = 4, HB_BLOCK_SEQUENCE_SIZE = 8, HB_BLOCK_CHECKSUM_SIZE = 8 };

/* A run of equal receipts: the index after its last event (so that one can be found by bisection),
 * then the receipt. */
enum {
  HB_RUN_AT_END = 0,      /* u32 */
  HB_RUN_AT_PEER = 4,     /* u32 */
  HB_RUN_AT_RECEIVED = 8, /* u64 */
  HB_RUN_SIZE = 16
};

#endif
