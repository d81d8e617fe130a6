/* Rules of base/frame/block.h: what is written comes back, and its bytes are the ones on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/frame/block.h"

#define ABSENT ((struct hb_time){0})
#define FRAME(text) (const uint8_t *)(text), sizeof(text) - 1

static const struct hb_time some_time = {INT64_C(-5), 999999999, true};

/* Three events, two of them of one batch; not consecutive. */
static const struct hb_block_entry sparse[] = {
    {-3, FRAME("\x0a\x02\x08\x01"), {1000, 7}},
    {0, FRAME("\x0a\x00"), {1000, 7}},
    {9, FRAME("\x0a\x03xyz"), {1001, 7}},
};

static const struct hb_block_entry dense[] = {
    {5, FRAME("\x0a\x01y"), {1, 2}},
    {6, FRAME("\x0a\x00"), {1, 3}},
};

static struct hb_block decoded(const struct hb_bytes *bytes) {
  struct hb_block block;
  struct hb_err err = {0};
  if (hb_block_decode(hb_bytes_view(bytes), &block, &err)) fail_msg("%s", err.message);
  return block;
}

/* Upwards, downwards and from anywhere: what is remembered only makes it quicker. */
static void check_receipts_near(const struct hb_block *block,
                                const struct hb_block_entry *entries) {
  uint32_t up = 0, down = UINT32_MAX, any = 7;
  for (uint32_t i = 0; i < block->count; i++) {
    uint32_t at[3] = {i, block->count - 1 - i, i * 31 % block->count};
    uint32_t *runs[3] = {&up, &down, &any};
    for (int k = 0; k < 3; k++) {
      struct hb_receipt receipt = hb_block_receipt_near(block, at[k], runs[k]);
      assert_int_equal(receipt.received_ms, entries[at[k]].receipt.received_ms);
      assert_int_equal(receipt.peer, entries[at[k]].receipt.peer);
    }
  }
}

static void check_entries(const struct hb_block *block, const struct hb_block_entry *entries,
                          uint32_t count) {
  assert_int_equal(block->count, count);
  for (uint32_t i = 0; i < count; i++) {
    const struct hb_block_entry *entry = &entries[i];
    assert_int_equal(hb_block_sequence(block, i), entry->sequence);
    struct hb_slice frame = hb_slice_of(entry->frame, entry->frame_size);
    assert_true(hb_slice_equal(hb_block_frame(block, i), frame));
    struct hb_receipt receipt = hb_block_receipt(block, i);
    assert_int_equal(receipt.received_ms, entry->receipt.received_ms);
    assert_int_equal(receipt.peer, entry->receipt.peer);
    assert_int_equal(hb_block_find(block, entry->sequence), i);
  }
  check_receipts_near(block, entries);
}

/* The layout is a promise to every store there is: these bytes may never change. */
static void bytes_are_golden(void **state) {
  (void)state;
  static const uint8_t sparse_golden[] =
      "\x01\x01\x03\x00\x03\x00\x00\x00" /* version, kind, both flags, 0; count */
      "\xfc\xff\xff\xff\xff\xff\xff\xff" /* from -4 */
      "\x14\x00\x00\x00\x00\x00\x00\x00" /* to 20 */
      "\xfb\xff\xff\xff\xff\xff\xff\xff" /* max_time: seconds -5 */
      "\xff\xc9\x9a\x3b\x20\x00\x00\x00" /* nanos; receipts: 32 bytes */
      "\x00\x00\x00\x00\x0b\x00\x00\x00" /* sections: none; frames: 11 bytes */
      "\x00\x00\x00\x00\x04\x00\x00\x00" /* offsets 0, 4, 6 */
      "\x06\x00\x00\x00"
      "\xfd\xff\xff\xff\xff\xff\xff\xff" /* sequences -3, 0, 9 */
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x09\x00\x00\x00\x00\x00\x00\x00"
      "\x02\x00\x00\x00\x07\x00\x00\x00" /* up to index 2: peer 7, ms 1000 */
      "\xe8\x03\x00\x00\x00\x00\x00\x00"
      "\x03\x00\x00\x00\x07\x00\x00\x00" /* up to index 3: peer 7, ms 1001 */
      "\xe9\x03\x00\x00\x00\x00\x00\x00"
      "\x0a\x02\x08\x01\x0a\x00\x0a\x03xyz" /* frames */
      "\x30\xae\xf0\x5d\x0e\x20\xfc\x03";   /* XXH3-64 */
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, -4, 20, some_time, sparse, 3);
  assert_int_equal(bytes->size, sizeof sparse_golden - 1);
  assert_memory_equal(bytes->data, sparse_golden, bytes->size);
  hb_bytes_unref(bytes);

  static const uint8_t dense_golden[] =
      "\x01\x01\x00\x00\x02\x00\x00\x00" /* no flags: nothing listed, no time */
      "\x05\x00\x00\x00\x00\x00\x00\x00" /* from 5 */
      "\x07\x00\x00\x00\x00\x00\x00\x00" /* to 7 */
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x20\x00\x00\x00"
      "\x00\x00\x00\x00\x05\x00\x00\x00"
      "\x00\x00\x00\x00\x03\x00\x00\x00" /* offsets 0, 3 */
      "\x01\x00\x00\x00\x02\x00\x00\x00" /* up to index 1: peer 2, ms 1 */
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x02\x00\x00\x00\x03\x00\x00\x00" /* up to index 2: peer 3, ms 1 */
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x0a\x01y\x0a\x00"
      "\x43\x7d\x69\x3c\xe7\x99\xdf\x27";
  bytes = hb_block_encode(HB_BLOCK_EVENTS, 5, 7, ABSENT, dense, 2);
  assert_int_equal(bytes->size, sizeof dense_golden - 1);
  assert_memory_equal(bytes->data, dense_golden, bytes->size);
  hb_bytes_unref(bytes);
}

/* Sequences listed, a range wider than the events, a time. */
static void a_sparse_block_comes_back(void **state) {
  (void)state;
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, -4, 20, some_time, sparse, 3);
  struct hb_block block = decoded(bytes);
  assert_int_equal(block.kind, HB_BLOCK_EVENTS);
  assert_int_equal(block.from, -4);
  assert_int_equal(block.to, 20);
  assert_int_equal(hb_time_compare(block.max_time, some_time), 0);
  check_entries(&block, sparse, 3);
  hb_bytes_unref(bytes);
}

/* Consecutive from the block's start: sequences are not listed, even if the range goes on. */
static void a_dense_block_lists_no_sequences(void **state) {
  (void)state;
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, 5, 100, ABSENT, dense, 2);
  struct hb_block block = decoded(bytes);
  assert_null(block.sequences);
  assert_false(block.max_time.present);
  check_entries(&block, dense, 2);
  hb_bytes_unref(bytes);
  bytes = hb_block_encode(HB_BLOCK_EVENTS, 4, 7, ABSENT, dense, 2);
  block = decoded(bytes);
  assert_non_null(block.sequences); /* consecutive, but not from `from` */
  check_entries(&block, dense, 2);
  hb_bytes_unref(bytes);
}

/* A block may account for a range without an event. */
static void a_block_may_be_empty(void **state) {
  (void)state;
  static const enum hb_block_kind kinds[] = {HB_BLOCK_EVENTS, HB_BLOCK_VOID, HB_BLOCK_SEAL};
  for (size_t i = 0; i < 3; i++) {
    struct hb_bytes *bytes = hb_block_encode(kinds[i], INT64_MIN, INT64_MAX, ABSENT, NULL, 0);
    struct hb_block block = decoded(bytes);
    assert_int_equal(block.kind, kinds[i]);
    assert_int_equal(block.from, INT64_MIN);
    assert_int_equal(block.to, INT64_MAX);
    assert_int_equal(block.count, 0);
    assert_int_equal(hb_block_find(&block, 5), 0);
    assert_int_equal(hb_block_frames(&block, 0, 0).size, 0);
    hb_bytes_unref(bytes);
  }
}

/* The widest range there is: distances do not fit 63 bits. */
static void the_edges_of_int64_come_back(void **state) {
  (void)state;
  static const struct hb_block_entry edges[] = {
      {INT64_MIN, FRAME("\x0a\x00"), {0, 0}},
      {0, FRAME("\x0a\x00"), {UINT64_MAX, UINT32_MAX}},
      {INT64_MAX - 1, FRAME("\x0a\x00"), {0, 0}},
  };
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, INT64_MIN, INT64_MAX, ABSENT, edges, 3);
  struct hb_block block = decoded(bytes);
  check_entries(&block, edges, 3);
  assert_int_equal(hb_block_find(&block, INT64_MAX), 3);
  hb_bytes_unref(bytes);
  bytes = hb_block_encode(HB_BLOCK_EVENTS, INT64_MAX - 1, INT64_MAX, ABSENT, &edges[2], 1);
  block = decoded(bytes);
  assert_null(block.sequences);
  check_entries(&block, &edges[2], 1);
  hb_bytes_unref(bytes);
}

/* Find gives the first event at or above, whether sequences are listed or not. */
static void find_gives_the_first_at_or_above(void **state) {
  (void)state;
  static const struct {
    int64_t sequence;
    uint32_t sparse_index;
    uint32_t dense_index;
  } rows[] = {
      {INT64_MIN, 0, 0}, {-4, 0, 0}, {-3, 0, 0}, {-2, 1, 0}, {0, 1, 0},  {1, 2, 0},
      {5, 2, 0},         {6, 2, 1},  {7, 2, 2},  {9, 2, 2},  {10, 3, 2}, {INT64_MAX, 3, 2},
  };
  struct hb_bytes *a = hb_block_encode(HB_BLOCK_EVENTS, -4, 20, ABSENT, sparse, 3);
  struct hb_bytes *b = hb_block_encode(HB_BLOCK_EVENTS, 5, 20, ABSENT, dense, 2);
  struct hb_block sparse_block = decoded(a);
  struct hb_block dense_block = decoded(b);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(hb_block_find(&sparse_block, rows[i].sequence), rows[i].sparse_index);
    assert_int_equal(hb_block_find(&dense_block, rows[i].sequence), rows[i].dense_index);
  }
  hb_bytes_unref(a);
  hb_bytes_unref(b);
}

/* Consecutive frames are one slice of an EventBatch, as they lie. */
static void frames_lie_together(void **state) {
  (void)state;
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, -4, 20, ABSENT, sparse, 3);
  struct hb_block block = decoded(bytes);
  static const char all[] = "\x0a\x02\x08\x01\x0a\x00\x0a\x03xyz";
  static const size_t starts[] = {0, 4, 6, 11};
  for (uint32_t first = 0; first <= 3; first++) {
    for (uint32_t count = 0; first + count <= 3; count++) {
      struct hb_slice expected =
          hb_slice_of(all + starts[first], starts[first + count] - starts[first]);
      assert_true(hb_slice_equal(hb_block_frames(&block, first, count), expected));
    }
  }
  hb_bytes_unref(bytes);
}

/* Many events of many senders: each receipt is found, equal neighbours share one, and the size
 * was foretold. Frames come from one batch and from apart. */
static void many_events_come_back(void **state) {
  (void)state;
  enum { COUNT = 3000 };
  static struct hb_block_entry entries[COUNT];
  static uint8_t frames[COUNT * 12];
  for (int i = 0; i < COUNT; i++) {
    uint8_t *frame = &frames[(i % 5 ? i : COUNT - 5 - i) * 12];
    memset(frame, i % 251, 12);
    frame[0] = 0x0a;
    frame[1] = 10;
  }
  for (int i = 0; i < COUNT; i++) {
    entries[i] = (struct hb_block_entry){
        .sequence = i * INT64_C(1000003) - 7,
        .frame = &frames[(i % 5 ? i : COUNT - 5 - i) * 12],
        .frame_size = 12,
        .receipt = {.received_ms = 1000 + i / 7, .peer = (uint32_t)(i / 11)},
    };
  }
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, -7, INT64_MAX, ABSENT, entries, COUNT);
  struct hb_block block = decoded(bytes);
  check_entries(&block, entries, COUNT);
  size_t foretold = hb_block_encoded_size(entries, COUNT);
  assert_true(bytes->size <= foretold);
  assert_true(block.receipts.size < COUNT * 16 / 4);
  hb_bytes_unref(bytes);
  /* One event with its own receipt and not at `from`: nothing can be left out. */
  bytes = hb_block_encode(HB_BLOCK_EVENTS, -8, 0, ABSENT, entries, 1);
  assert_int_equal(bytes->size, hb_block_encoded_size(entries, 1));
  hb_bytes_unref(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_golden),
      cmocka_unit_test(a_sparse_block_comes_back),
      cmocka_unit_test(a_dense_block_lists_no_sequences),
      cmocka_unit_test(a_block_may_be_empty),
      cmocka_unit_test(the_edges_of_int64_come_back),
      cmocka_unit_test(find_gives_the_first_at_or_above),
      cmocka_unit_test(frames_lie_together),
      cmocka_unit_test(many_events_come_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
