/* What hb_block_decode must refuse: damage of any bit, cuts, and well-sealed contradictions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/endian.h"
#include "base/frame/block.h"

#define FRAME(text) (const uint8_t *)(text), sizeof(text) - 1

static const struct hb_block_entry entries[] = {
    {-3, FRAME("\x0a\x02\x08\x01"), {1000, 7}},
    {0, FRAME("\x0a\x00"), {1000, 7}},
    {9, FRAME("\x0a\x03xyz"), {1001, 7}},
};

/* From -4 to 20: offsets stand at 48, sequences at 60, receipts at 84, frames at 116. */
static struct hb_bytes *sparse_block(void) {
  return hb_block_encode(HB_BLOCK_EVENTS, -4, 20, (struct hb_time){5, 6, true}, entries, 3);
}

static enum hb_code decode(const uint8_t *data, size_t size, struct hb_err *err) {
  struct hb_block block = {.count = 77};
  enum hb_code code = hb_block_decode(hb_slice_of(data, size), &block, err);
  if (code) assert_int_equal(block.count, 77); /* outputs untouched */
  return code;
}

/* Make the checksum right again, so that what it hides is seen. */
static void seal(uint8_t *data, size_t size) {
  hb_put_u64_le(data + size - 8, XXH3_64bits(data, size - 8));
}

/* One flipped bit anywhere is damage, in the version too. */
static void every_flipped_bit_is_refused(void **state) {
  (void)state;
  struct hb_bytes *bytes = sparse_block();
  uint8_t *copy = malloc(bytes->size);
  for (size_t bit = 0; bit < bytes->size * 8; bit++) {
    memcpy(copy, bytes->data, bytes->size);
    copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    struct hb_err err = {0};
    assert_int_equal(decode(copy, bytes->size, &err), HB_CORRUPT);
    assert_string_equal(err.reason, "BLOCK_DAMAGED");
  }
  free(copy);
  hb_bytes_unref(bytes);
}

/* A block that was cut, or that has more behind it, is none; with a right checksum neither. */
static void every_other_size_is_refused(void **state) {
  (void)state;
  struct hb_bytes *bytes = sparse_block();
  for (size_t size = 0; size <= bytes->size + 9; size++) {
    uint8_t *copy = calloc(size + 1, 1);
    memcpy(copy, bytes->data, size < bytes->size ? size : bytes->size);
    enum hb_code expected = size == bytes->size ? HB_OK : HB_CORRUPT;
    assert_int_equal(decode(copy, size, NULL), expected);
    if (size >= 8) {
      seal(copy, size);
      assert_int_equal(decode(copy, size, NULL), expected);
    }
    free(copy);
  }
  assert_int_equal(decode(NULL, 0, NULL), HB_CORRUPT);
  hb_bytes_unref(bytes);
}

/* A newer version with a right checksum is not damage: it says which version it is. */
static void a_newer_version_is_named(void **state) {
  (void)state;
  struct hb_bytes *bytes = sparse_block();
  uint8_t *copy = malloc(bytes->size);
  memcpy(copy, bytes->data, bytes->size);
  copy[0] = 2;
  seal(copy, bytes->size);
  struct hb_err err = {0};
  assert_int_equal(decode(copy, bytes->size, &err), HB_VERSION);
  assert_string_equal(err.message, "block: version is 2, this program reads version 1");
  free(copy);
  hb_bytes_unref(bytes);
}

struct change {
  const char *name;
  size_t at;
  size_t size;
  uint64_t value;
};

static void check_changes(const struct hb_bytes *bytes, const struct change *changes,
                          size_t count) {
  uint8_t *copy = malloc(bytes->size);
  for (size_t i = 0; i < count; i++) {
    memcpy(copy, bytes->data, bytes->size);
    uint8_t value[8];
    hb_put_u64_le(value, changes[i].value);
    memcpy(copy + changes[i].at, value, changes[i].size);
    seal(copy, bytes->size);
    struct hb_err err = {0};
    if (decode(copy, bytes->size, &err) != HB_CORRUPT) fail_msg("%s", changes[i].name);
    if (!strstr(err.message, changes[i].name)) fail_msg("%s: %s", changes[i].name, err.message);
  }
  free(copy);
}

/* A right checksum proves who wrote it, not that the parts agree: each rule is checked. */
static void contradictions_are_refused(void **state) {
  (void)state;
  static const struct change changes[] = {
      {"kind", 1, 1, 0},
      {"kind", 1, 1, 4},
      {"flags", 2, 1, 7},
      {"size", 2, 1, 2}, /* sequences not listed, yet there */
      {"reserved byte", 3, 1, 1},
      {"size", 4, 4, 2},
      {"size", 4, 4, UINT32_MAX},
      {"range", 16, 8, (uint64_t)-5},
      {"max_time", 2, 1, 1}, /* not there, yet with a value */
      {"max_time", 32, 4, 1000000000},
      {"max_time", 32, 4, UINT32_MAX},
      {"size", 36, 4, UINT32_MAX},
      {"size", 40, 4, UINT32_MAX},
      {"size", 44, 4, UINT32_MAX},
      {"size", 44, 4, 10},
      {"offset", 48, 4, 1},              /* the first is not 0 */
      {"offset", 52, 4, 0},              /* not ascending */
      {"offset", 52, 4, 6},              /* equal to the next */
      {"offset", 56, 4, 11},             /* past the frames */
      {"offset", 56, 4, UINT32_MAX},     /* far past them */
      {"sequence", 60, 8, (uint64_t)-5}, /* below from */
      {"sequence", 68, 8, (uint64_t)-3}, /* twice */
      {"sequence", 68, 8, 10},           /* above the next */
      {"sequence", 76, 8, 20},           /* to itself is outside */
      {"sequence", 76, 8, (uint64_t)INT64_MIN},
      {"receipt run", 84, 4, 0},  /* empty */
      {"receipt run", 84, 4, 3},  /* not ascending */
      {"receipt run", 100, 4, 2}, /* too few events */
      {"receipt run", 100, 4, 4}, /* too many */
  };
  struct hb_bytes *bytes = sparse_block();
  check_changes(bytes, changes, sizeof changes / sizeof changes[0]);
  hb_bytes_unref(bytes);
}

/* Consecutive events must fit their range, at the edge of int64 too. */
static void dense_counts_must_fit(void **state) {
  (void)state;
  static const struct change changes[] = {
      {"count", 16, 8, 1},
      {"count", 16, 8, 0},
      {"count", 8, 8, 1},
      {"range", 8, 8, (uint64_t)INT64_MAX},
  };
  static const struct hb_block_entry pair[] = {{0, FRAME("\x0a\x00"), {0}},
                                               {1, FRAME("\x0a\x00"), {0}}};
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_EVENTS, 0, 2, (struct hb_time){0}, pair, 2);
  check_changes(bytes, changes, sizeof changes / sizeof changes[0]);
  hb_bytes_unref(bytes);
  static const struct hb_block_entry last = {INT64_MAX - 1, FRAME("\x0a\x00"), {0}};
  static const struct change edge[] = {{"count", 8, 8, (uint64_t)INT64_MAX}};
  bytes = hb_block_encode(HB_BLOCK_EVENTS, INT64_MAX - 1, INT64_MAX, (struct hb_time){0}, &last, 1);
  check_changes(bytes, edge, 1);
  hb_bytes_unref(bytes);
}

/* Room for later: a section between receipts and frames is stepped over by a reader of today. */
static void sections_are_skipped(void **state) {
  (void)state;
  struct hb_bytes *bytes = sparse_block();
  size_t size = bytes->size + 5;
  uint8_t *copy = malloc(size);
  memcpy(copy, bytes->data, 116);
  memcpy(copy + 116, "later", 5);
  memcpy(copy + 121, bytes->data + 116, 11);
  hb_put_u32_le(copy + 40, 5);
  seal(copy, size);
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_slice_of(copy, size), &block, NULL), HB_OK);
  assert_true(hb_slice_equal(hb_block_frame(&block, 2), hb_slice_text("\x0a\x03xyz")));
  assert_int_equal(hb_block_receipt(&block, 2).received_ms, 1001);
  free(copy);
  hb_bytes_unref(bytes);
}

/* No events but bytes of frames, or receipts of nothing. */
static void an_empty_block_holds_nothing(void **state) {
  (void)state;
  struct hb_bytes *bytes = hb_block_encode(HB_BLOCK_VOID, 0, 9, (struct hb_time){0}, NULL, 0);
  for (size_t at = 36; at <= 44; at += 8) { /* receipts, frames */
    size_t size = bytes->size + 16;
    uint8_t *copy = calloc(size, 1);
    memcpy(copy, bytes->data, 48);
    hb_put_u32_le(copy + at, 16);
    hb_put_u32_le(copy + 48, 1); /* as a run: one event */
    seal(copy, size);
    assert_int_equal(decode(copy, size, NULL), HB_CORRUPT);
    free(copy);
  }
  hb_bytes_unref(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_flipped_bit_is_refused), cmocka_unit_test(every_other_size_is_refused),
      cmocka_unit_test(a_newer_version_is_named),     cmocka_unit_test(contradictions_are_refused),
      cmocka_unit_test(dense_counts_must_fit),        cmocka_unit_test(sections_are_skipped),
      cmocka_unit_test(an_empty_block_holds_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
