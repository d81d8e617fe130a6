#include "storage/engine_internal.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

/* From where `position` is, the [from, to) of each block, as "1-3 3-7"; free() it. */
static char *read_from(struct fixture *fixture, uint64_t stream, int64_t position) {
  struct hb_err err;
  struct hb_log_reader *reader = NULL;
  must(hb_log_reader_open(fixture->store, stream, position, &reader, &err), &err);
  char *text = hb_calloc(1, 512);
  size_t used = 0;
  for (;;) {
    struct hb_bytes *bytes = NULL;
    must(hb_log_reader_next(reader, &bytes, &err), &err);
    if (!bytes) break;
    struct hb_block block;
    must(hb_block_decode(hb_bytes_view(bytes), &block, &err), &err);
    used += (size_t)snprintf(text + used, 512 - used, "%s%lld-%lld", used ? " " : "",
                             (long long)block.from, (long long)block.to);
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  return text;
}

static void reads(struct fixture *fixture, uint64_t stream, int64_t position, const char *blocks) {
  char *text = read_from(fixture, stream, position);
  assert_string_equal(text, blocks);
  free(text);
}

/* A reader starts at the block that contains the position, else at the first above it, and ends
 * with its stream. */
static void a_reader_starts_where_the_position_is(void **state) {
  struct fixture *fixture = *state;
  put_block(fixture, 1, 1, 3);
  put_block(fixture, 1, 3, 7);
  put_block(fixture, 1, 9, 12); /* a hole before it */
  put_block(fixture, 2, 1, 2);
  apply(fixture);
  reads(fixture, 1, INT64_MIN, "1-3 3-7 9-12");
  reads(fixture, 1, 1, "1-3 3-7 9-12");
  reads(fixture, 1, 2, "1-3 3-7 9-12");
  reads(fixture, 1, 3, "3-7 9-12");
  reads(fixture, 1, 6, "3-7 9-12");
  reads(fixture, 1, 7, "9-12");
  reads(fixture, 1, 11, "9-12");
  reads(fixture, 1, 12, "");
  reads(fixture, 1, INT64_MAX, "");
  reads(fixture, 2, 0, "1-2");
  reads(fixture, 3, 0, "");
}

/* A reader sees the log as it was when it was opened. */
static void a_reader_keeps_its_view(void **state) {
  struct fixture *fixture = *state;
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  struct hb_err err;
  put_block(fixture, 1, 1, 3);
  apply(fixture);
  must(hb_log_reader_open(fixture->store, 1, 1, &reader, &err), &err);
  put_block(fixture, 1, 3, 4);
  apply(fixture);
  must(hb_log_reader_next(reader, &bytes, &err), &err);
  assert_non_null(bytes);
  hb_bytes_unref(bytes);
  must(hb_log_reader_next(reader, &bytes, &err), &err);
  assert_null(bytes);
  hb_log_reader_close(reader);
}

/* A block is had by its own start, and by nothing else; damage in it is named. */
static void a_block_is_had_by_its_start(void **state) {
  struct fixture *fixture = *state;
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  struct hb_err err;
  put_block(fixture, 1, 1, 3);
  put_block(fixture, 1, 3, 7);
  apply(fixture);
  must(hb_log_get(fixture->store, 1, 3, &bytes, &err), &err);
  assert_non_null(bytes);
  must(hb_block_decode(hb_bytes_view(bytes), &block, &err), &err);
  assert_int_equal(block.from, 3);
  assert_int_equal(block.to, 7);
  hb_bytes_unref(bytes);
  bytes = NULL;
  must(hb_log_get(fixture->store, 1, 4, &bytes, &err), &err);
  assert_null(bytes);
  must(hb_log_get(fixture->store, 2, 3, &bytes, &err), &err);
  assert_null(bytes);
  hb_write_put_block(fixture->write, 1, 3, hb_slice_text("not a block"));
  apply(fixture);
  assert_int_equal(hb_log_get(fixture->store, 1, 3, &bytes, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "log of stream 1 at position 3"));
  assert_null(bytes);
}

/* The last block says how far the log goes; an empty log has none. */
static void the_last_block_is_found(void **state) {
  struct fixture *fixture = *state;
  bool any = true;
  struct hb_range range = {0};
  struct hb_err err;
  must(hb_log_last(fixture->store, 1, &any, &range, &err), &err);
  assert_false(any);
  put_block(fixture, 1, 1, 3);
  put_block(fixture, 1, 3, 7);
  put_block(fixture, 2, 50, 60);
  apply(fixture);
  must(hb_log_last(fixture->store, 1, &any, &range, &err), &err);
  assert_true(any);
  assert_int_equal(range.start, 3);
  assert_int_equal(range.end, 7);
}

static void damaged(struct fixture *fixture, int64_t at, struct hb_slice bytes) {
  hb_write_put_block(fixture->write, 1, at, bytes);
  apply(fixture);
}

/* A block that is damaged, or lies under another position, is reported with stream and place. */
static void damage_is_named(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  put_block(fixture, 1, 1, 3);
  apply(fixture);
  damaged(fixture, 3, hb_slice_text("not a block"));
  must(hb_log_reader_open(fixture->store, 1, 1, &reader, &err), &err);
  must(hb_log_reader_next(reader, &bytes, &err), &err);
  hb_bytes_unref(bytes);
  bytes = NULL;
  assert_int_equal(hb_log_reader_next(reader, &bytes, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "log of stream 1 at position 3"));
  assert_null(bytes);
  hb_log_reader_close(reader);
  struct hb_bytes *misplaced = make_block(7, 9, NULL, 0);
  damaged(fixture, 3, hb_bytes_view(misplaced));
  hb_bytes_unref(misplaced);
  assert_int_equal(hb_log_reader_open(fixture->store, 1, 4, &reader, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "the block there starts at 7"));
}

/* ---- by time */

static void put_timed(struct fixture *fixture, int64_t from, int64_t to, const uint8_t *seconds,
                      uint8_t max) {
  struct hb_bytes *block = make_block(from, to, seconds, max);
  hb_write_put_block(fixture->write, 1, from, hb_bytes_view(block));
  hb_bytes_unref(block);
}

static int64_t find(struct fixture *fixture, int64_t seconds, int64_t earliest, int64_t end) {
  struct hb_err err;
  int64_t position = -99;
  struct hb_time time = {.seconds = seconds, .present = true};
  must(hb_log_find_time(fixture->store, 1, time, earliest, end, &position, &err), &err);
  return position;
}

/* The first event at or after a time is found, though times do not ascend and some events have
 * none; at the end where there is none. */
static void a_time_is_found(void **state) {
  struct fixture *fixture = *state;
  const uint8_t first[] = {0, 10, 5};
  const uint8_t second[] = {7, 0};
  const uint8_t third[] = {9, 20, 15, 30};
  put_timed(fixture, 1, 4, first, 10);
  put_timed(fixture, 4, 6, second, 10); /* nothing new in it */
  put_timed(fixture, 6, 10, third, 30);
  apply(fixture);
  assert_int_equal(find(fixture, 1, 1, 10), 2);
  assert_int_equal(find(fixture, 10, 1, 10), 2);
  assert_int_equal(find(fixture, 11, 1, 10), 7);
  assert_int_equal(find(fixture, 20, 1, 10), 7);
  assert_int_equal(find(fixture, 21, 1, 10), 9);
  assert_int_equal(find(fixture, 31, 1, 10), 10);
  assert_int_equal(find(fixture, -5, 1, 10), 2);
}

/* Beyond what is published nothing is told; below earliest neither, though the maximum that
 * reaches the time comes from there. */
static void a_time_is_found_within_bounds(void **state) {
  struct fixture *fixture = *state;
  const uint8_t first[] = {50, 10};
  const uint8_t second[] = {7, 0};
  const uint8_t third[] = {9, 40};
  put_timed(fixture, 1, 3, first, 50);
  put_timed(fixture, 3, 5, second, 50);
  put_timed(fixture, 5, 7, third, 50);
  apply(fixture);
  assert_int_equal(find(fixture, 40, 1, 7), 1);
  assert_int_equal(find(fixture, 40, 2, 7), 6);
  assert_int_equal(find(fixture, 40, 2, 6), 6);
  assert_int_equal(find(fixture, 40, 2, 5), 5);
  assert_int_equal(find(fixture, 60, 1, 7), 7);
}

/* Many blocks spread over a wide range, against a walk over all of them. */
static void a_time_is_found_in_a_long_log(void **state) {
  struct fixture *fixture = *state;
  enum { BLOCKS = 200, STEP = 1000003 };
  uint8_t max = 0;
  uint8_t times[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    times[i] = (uint8_t)(1 + i / 2 + (i * 7) % 5);
    if (times[i] > max) max = times[i];
    int64_t from = (int64_t)i * STEP;
    uint8_t frame[300];
    struct hb_block_entry entry = {.sequence = from + STEP / 2, .frame = frame};
    entry.frame_size = (uint32_t)make_frame(frame, (uint64_t)entry.sequence, times[i], "x");
    struct hb_time running = {.seconds = max, .present = true};
    struct hb_bytes *block =
        hb_block_encode(HB_BLOCK_EVENTS, from, from + STEP, running, &entry, 1);
    hb_write_put_block(fixture->write, 1, from, hb_bytes_view(block));
    hb_bytes_unref(block);
  }
  apply(fixture);
  for (int time = 0; time < 110; time++) {
    int i = 0;
    while (i < BLOCKS && times[i] < time) i++;
    int64_t expected = i < BLOCKS ? (int64_t)i * STEP + STEP / 2 : (int64_t)BLOCKS * STEP;
    assert_int_equal(find(fixture, time, 0, (int64_t)BLOCKS * STEP), expected);
  }
}

/* A log without times, and no log: the end. */
static void without_times_the_end_is_found(void **state) {
  struct fixture *fixture = *state;
  assert_int_equal(find(fixture, 1, 5, 5), 5);
  put_block(fixture, 1, 1, 3);
  apply(fixture);
  assert_int_equal(find(fixture, 1, 1, 3), 3);
}

/* A hole may have had the event that is looked for: no position is made up. */
static void a_time_is_not_found_past_a_hole(void **state) {
  struct fixture *fixture = *state;
  const uint8_t times[] = {10, 20};
  static const int64_t HOLES[] = {1, 3, 5};
  static const int64_t TIMES[] = {10, 30, 30};
  for (int64_t from = 1; from < 7; from += 2) put_timed(fixture, from, from + 2, times, 20);
  apply(fixture);
  for (size_t i = 0; i < 3; i++) {
    struct hb_batch_writer *batch = hb_rocks_batch_create(fixture->store->engine);
    struct hb_key key = hb_key_position(1, HOLES[i]);
    struct hb_err err;
    hb_rocks_delete(batch, HB_FAMILY_LOG, hb_key_view(&key));
    must(hb_rocks_write(fixture->store->engine, batch, true, &err), &err);
    hb_rocks_batch_destroy(batch);
    int64_t position = -99;
    struct hb_time time = {.seconds = TIMES[i], .present = true};
    assert_int_equal(hb_log_find_time(fixture->store, 1, time, 1, 7, &position, &err), HB_CORRUPT);
    assert_int_equal(position, -99);
    assert_non_null(strstr(err.message, "log of stream 1 at position"));
    put_timed(fixture, HOLES[i], HOLES[i] + 2, times, 20);
    apply(fixture);
    assert_int_equal(find(fixture, 30, 1, 7), 7);
  }
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown)
  const struct CMUnitTest tests[] = {
      ONE(a_reader_starts_where_the_position_is),
      ONE(a_reader_keeps_its_view),
      ONE(a_block_is_had_by_its_start),
      ONE(the_last_block_is_found),
      ONE(damage_is_named),
      ONE(a_time_is_found),
      ONE(a_time_is_found_within_bounds),
      ONE(a_time_is_found_in_a_long_log),
      ONE(without_times_the_end_is_found),
      ONE(a_time_is_not_found_past_a_hole),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
