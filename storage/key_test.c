#include "storage/key_internal.h"

#include "storage/test_store_internal.h"

static struct hb_slice text(const char *chars, size_t size) { return hb_slice_of(chars, size); }

/* User keys in byte order, the awkward ones: empty, NULs inside and at the end, FF. */
static const struct {
  const char *bytes;
  size_t size;
} KEYS[] = {
    {"", 0},       {"\0", 1},       {"\0\0", 2}, {"\0\0\1", 3}, {"\0\1", 2},
    {"\0\xFF", 2}, {"\1", 1},       {"a", 1},    {"a\0", 2},    {"a\0\0", 3},
    {"a\0b", 3},   {"a\0\xFF", 3},  {"a\1", 2},  {"ab", 2},     {"a\xFF", 2},
    {"b", 1},      {"\xFE\xFF", 2}, {"\xFF", 1}, {"\xFF\0", 2}, {"\xFF\xFF", 2},
};
enum { KEYS_COUNT = sizeof KEYS / sizeof *KEYS };

static const int64_t POSITIONS[] = {INT64_MIN, INT64_MIN + 1, -256, -1, 0, 1, 255, INT64_MAX};
enum { POSITIONS_COUNT = sizeof POSITIONS / sizeof *POSITIONS };

/* Rows of `lists` ascend as (stream, key, position) does, over every pair of awkward ones. */
static void list_keys_keep_the_order(void **state) {
  (void)state;
  struct hb_buf before = {0};
  int compared = 0;
  for (uint64_t stream = 254; stream < 258; stream++) {
    for (int k = 0; k < KEYS_COUNT; k++) {
      for (int p = 0; p < POSITIONS_COUNT; p++) {
        struct hb_buf row = {0};
        hb_key_list(&row, stream, text(KEYS[k].bytes, KEYS[k].size), POSITIONS[p]);
        if (before.size) {
          assert_true(hb_slice_compare(hb_buf_view(&before), hb_buf_view(&row)) < 0);
          compared++;
        }
        hb_buf_done(&before);
        before = row;
      }
    }
  }
  hb_buf_done(&before);
  assert_int_equal(compared, 4 * KEYS_COUNT * POSITIONS_COUNT - 1);
}

/* What was put into a row's key comes out of it. */
static void list_keys_come_back(void **state) {
  (void)state;
  struct hb_buf key = {0};
  for (int k = 0; k < KEYS_COUNT; k++) {
    for (int p = 0; p < POSITIONS_COUNT; p++) {
      struct hb_buf row = {0};
      uint64_t stream = 0;
      int64_t position = 0;
      hb_key_list(&row, UINT64_MAX, text(KEYS[k].bytes, KEYS[k].size), POSITIONS[p]);
      assert_true(hb_key_parse_list(hb_buf_view(&row), &stream, &key, &position));
      assert_int_equal(stream, UINT64_MAX);
      assert_true(position == POSITIONS[p]);
      assert_true(hb_slice_equal(hb_buf_view(&key), text(KEYS[k].bytes, KEYS[k].size)));
      hb_buf_done(&row);
    }
  }
  hb_buf_done(&key);
}

/* A row starts with the prefix's bytes exactly where its key starts with the prefix. */
static void a_prefix_finds_its_keys_and_no_other(void **state) {
  (void)state;
  int found = 0;
  for (int a = 0; a < KEYS_COUNT; a++) {
    struct hb_buf prefix = {0};
    hb_key_list_prefix(&prefix, 7, text(KEYS[a].bytes, KEYS[a].size));
    for (int b = 0; b < KEYS_COUNT; b++) {
      struct hb_buf row = {0};
      hb_key_list(&row, 7, text(KEYS[b].bytes, KEYS[b].size), 0);
      bool expected = hb_slice_starts_with(text(KEYS[b].bytes, KEYS[b].size),
                                           text(KEYS[a].bytes, KEYS[a].size));
      assert_int_equal(hb_slice_starts_with(hb_buf_view(&row), hb_buf_view(&prefix)), expected);
      found += expected;
      hb_buf_done(&row);
    }
    hb_buf_done(&prefix);
  }
  assert_true(found > KEYS_COUNT * 2);
}

/* The place after a key is above all its rows and below all rows of the next one. */
static void after_a_key_comes_the_next(void **state) {
  (void)state;
  for (int k = 0; k + 1 < KEYS_COUNT; k++) {
    struct hb_buf last = {0};
    struct hb_buf after = {0};
    struct hb_buf next = {0};
    hb_key_list(&last, 7, text(KEYS[k].bytes, KEYS[k].size), INT64_MAX);
    hb_key_list_after(&after, 7, text(KEYS[k].bytes, KEYS[k].size));
    hb_key_list(&next, 7, text(KEYS[k + 1].bytes, KEYS[k + 1].size), INT64_MIN);
    assert_true(hb_slice_compare(hb_buf_view(&last), hb_buf_view(&after)) < 0);
    assert_true(hb_slice_compare(hb_buf_view(&after), hb_buf_view(&next)) < 0);
    hb_buf_done(&last);
    hb_buf_done(&after);
    hb_buf_done(&next);
  }
}

/* Bytes that are no key of a list are refused: cut anywhere, or with a wrong escape. */
static void a_damaged_list_key_is_refused(void **state) {
  (void)state;
  struct hb_buf row = {0};
  struct hb_buf key = {0};
  uint64_t stream;
  int64_t position;
  hb_key_list(&row, 7, text("a\0b", 3), 5);
  for (size_t size = 0; size < row.size; size++) {
    assert_false(hb_key_parse_list(hb_slice_of(row.data, size), &stream, &key, &position));
  }
  hb_buf_append_u8(&row, 0);
  assert_false(hb_key_parse_list(hb_buf_view(&row), &stream, &key, &position));
  row.size--;
  row.data[10] = 0x7F; /* what stands after the NUL */
  assert_false(hb_key_parse_list(hb_buf_view(&row), &stream, &key, &position));
  hb_buf_done(&row);
  hb_buf_done(&key);
}

/* Keys with a position (log, gaps) ascend over the whole range and come back. */
static void positions_keep_the_order(void **state) {
  (void)state;
  for (int p = 0; p < POSITIONS_COUNT; p++) {
    struct hb_key key = hb_key_position(3, POSITIONS[p]);
    uint64_t stream = 0;
    int64_t position = 0;
    assert_true(hb_key_parse_position(hb_key_view(&key), &stream, &position));
    assert_int_equal(stream, 3);
    assert_true(position == POSITIONS[p]);
    if (!p) continue;
    struct hb_key before = hb_key_position(3, POSITIONS[p - 1]);
    assert_true(hb_slice_compare(hb_key_view(&before), hb_key_view(&key)) < 0);
  }
}

/* Names of bundles ascend by commit, then part. */
static void bundles_keep_the_order(void **state) {
  (void)state;
  const struct hb_bundle_id ids[] = {
      {1, 0, 0},   {1, 0, 1},          {1, 1, 0}, {1, 255, UINT32_MAX},
      {1, 256, 0}, {1, UINT64_MAX, 0}, {2, 0, 0}};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    struct hb_key key = hb_key_bundle(ids[i]);
    struct hb_bundle_id back;
    assert_true(hb_key_parse_bundle(hb_key_view(&key), &back));
    assert_true(back.stream == ids[i].stream && back.commit == ids[i].commit &&
                back.part == ids[i].part);
    if (!i) continue;
    struct hb_key before = hb_key_bundle(ids[i - 1]);
    assert_true(hb_slice_compare(hb_key_view(&before), hb_key_view(&key)) < 0);
  }
}

/* All rows of a stream lie between its start and its end, also those of the highest id. */
static void a_stream_has_bounds(void **state) {
  (void)state;
  const uint64_t streams[] = {0, 1, 255, UINT64_MAX - 1, UINT64_MAX};
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
    struct hb_key start = hb_key_stream(streams[i]);
    struct hb_key end = hb_key_stream_end(streams[i]);
    struct hb_key low = hb_key_position(streams[i], INT64_MIN);
    struct hb_key high =
        hb_key_unprocessed(streams[i], HB_OUTCOME_WINDOW_FULL, INT64_MAX, UINT64_MAX);
    assert_true(hb_slice_compare(hb_key_view(&start), hb_key_view(&low)) < 0);
    assert_true(hb_slice_compare(hb_key_view(&high), hb_key_view(&end)) < 0);
  }
}

/* Sizes that are not a family's, and outcomes that are none, are refused. */
static void wrong_sizes_are_refused(void **state) {
  (void)state;
  struct hb_key key = hb_key_unprocessed(1, HB_OUTCOME_CONFLICT, -5, 9);
  uint64_t stream;
  uint64_t hash;
  int64_t sequence;
  uint32_t peer;
  enum hb_outcome outcome;
  struct hb_bundle_id id;
  assert_true(hb_key_parse_unprocessed(hb_key_view(&key), &stream, &outcome, &sequence, &hash));
  assert_int_equal(outcome, HB_OUTCOME_CONFLICT);
  assert_int_equal(sequence, -5);
  assert_int_equal(hash, 9);
  assert_false(hb_key_parse_bundle(hb_key_view(&key), &id));
  assert_false(hb_key_parse_position(hb_key_view(&key), &stream, &sequence));
  assert_false(hb_key_parse_peer(hb_key_view(&key), &peer));
  key.data[8] = HB_OUTCOME_WINDOW_FULL + 1;
  assert_false(hb_key_parse_unprocessed(hb_key_view(&key), &stream, &outcome, &sequence, &hash));
  key.data[8] = HB_OUTCOME_NONE;
  assert_false(hb_key_parse_unprocessed(hb_key_view(&key), &stream, &outcome, &sequence, &hash));
  key.size = 8;
  assert_false(hb_key_parse_stream(hb_key_view(&key), &stream));
}

/* Above everything with a prefix: the last byte that can grow grows; of FFs alone nothing is. */
static void after_a_prefix(void **state) {
  (void)state;
  struct hb_buf out = {0};
  assert_true(hb_key_after_prefix(text("a\xFF\xFF", 3), &out));
  assert_true(hb_slice_equal(hb_buf_view(&out), hb_slice_text("b")));
  assert_false(hb_key_after_prefix(text("\xFF\xFF", 2), &out));
  assert_false(hb_key_after_prefix(text("", 0), &out));
  hb_buf_done(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(list_keys_keep_the_order),
      cmocka_unit_test(list_keys_come_back),
      cmocka_unit_test(a_prefix_finds_its_keys_and_no_other),
      cmocka_unit_test(after_a_key_comes_the_next),
      cmocka_unit_test(a_damaged_list_key_is_refused),
      cmocka_unit_test(positions_keep_the_order),
      cmocka_unit_test(bundles_keep_the_order),
      cmocka_unit_test(a_stream_has_bounds),
      cmocka_unit_test(wrong_sizes_are_refused),
      cmocka_unit_test(after_a_prefix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
