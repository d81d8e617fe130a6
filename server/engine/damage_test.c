/* Folders that do not agree with themselves: refused at start, or told when read. They are made
 * with the store alone, by writing what no server would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/frame/block.h"
#include "base/frame/wire.h"
#include "server/engine/testing.h"
#include "storage/store.h"
#include "storage/write.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

/* Blocks of one event per sequence; a range with start == end ends the list. */
struct made {
  struct hb_frontier record;
  struct hb_range blocks[4];
  struct hb_range bundles[4];
};

static struct hb_bytes *block_of(struct hb_range range) {
  size_t count = (size_t)(range.end - range.start);
  struct hb_buf frames = {0};
  struct hb_block_entry *entries = calloc(count, sizeof *entries);
  size_t *offsets = calloc(count + 1, sizeof *offsets);
  for (size_t i = 0; i < count; i++) {
    struct hb_buf body = {0};
    hb_wire_append_varint(&body, 1, (uint64_t)(range.start + (int64_t)i));
    hb_wire_append_bytes(&frames, 1, hb_buf_view(&body));
    hb_buf_done(&body);
    offsets[i + 1] = frames.size;
  }
  for (size_t i = 0; i < count; i++) {
    entries[i] = (struct hb_block_entry){.sequence = range.start + (int64_t)i,
                                         .frame = frames.data + offsets[i],
                                         .frame_size = (uint32_t)(offsets[i + 1] - offsets[i])};
  }
  struct hb_bytes *bytes =
      hb_block_encode(HB_BLOCK_EVENTS, range.start, range.end, (struct hb_time){0}, entries, count);
  free(offsets);
  free(entries);
  hb_buf_done(&frames);
  return bytes;
}

static void put_blocks(struct hb_write *write, const struct made *made) {
  for (int i = 0; i < 4 && made->blocks[i].start < made->blocks[i].end; i++) {
    struct hb_bytes *bytes = block_of(made->blocks[i]);
    hb_write_put_block(write, 1, made->blocks[i].start, hb_bytes_view(bytes));
    hb_bytes_unref(bytes);
  }
  for (int i = 0; i < 4 && made->bundles[i].start < made->bundles[i].end; i++) {
    struct hb_bytes *bytes = block_of(made->bundles[i]);
    struct hb_bundle_id id = {.stream = 1, .commit = (uint64_t)i + 1};
    hb_write_put_bundle(write, id, hb_bytes_view(bytes));
    hb_bytes_unref(bytes);
  }
}

static void make_folder(struct rig *rig, const struct made *made) {
  struct hb_store_options options = {.path = rig->path};
  struct hb_store *store;
  assert_int_equal(hb_store_open(&options, &store, NULL), HB_OK);
  struct hb_write *write = hb_write_create(store);
  struct hb_stream_config config = {
      .name = "s", .mode = HB_MODE_GLOBAL, .first_sequence = 1, .ack = HB_ACK_DURABLE};
  hb_write_put_config(write, 1, &config);
  hb_write_put_frontier(write, 1, &made->record);
  hb_write_put_next_stream(write, 2);
  put_blocks(write, made);
  uint64_t commit = hb_store_info(store)->last_commit + 10;
  assert_int_equal(hb_store_write(store, write, commit, true, NULL), HB_OK);
  hb_write_destroy(write);
  hb_store_close(store);
}

static struct hb_frontier record_of(int64_t earliest, int64_t frontier, int64_t complete_to) {
  return (struct hb_frontier){.frozen = true,
                              .first_sequence = 1,
                              .earliest = earliest,
                              .frontier = frontier,
                              .complete_to = complete_to,
                              .any = true,
                              .highest = complete_to - 1};
}

static void expect_refused(struct rig *rig, const struct made *made, const char *text) {
  make_folder(rig, made);
  struct hb_engine_options options = {.data_dir = rig->path, .limits = rig->limits};
  struct hb_err err = {0};
  assert_int_equal(hb_engine_open(&options, &rig->engine, &err), HB_CORRUPT);
  if (!strstr(err.message, text) || !strstr(err.message, "stream 's'")) fail_msg("%s", err.message);
}

/* The log must end exactly at the frontier (I4). */
static void test_log_and_frontier(void **state) {
  struct made made = {.record = record_of(1, 11, 11), .blocks = {{1, 10}}};
  expect_refused(*state, &made, "ends at 10, but its frontier record says 11");
}

/* A log that is gone is noticed too. */
static void test_no_log(void **state) {
  struct made made = {.record = record_of(1, 11, 11)};
  expect_refused(*state, &made, "log is empty");
}

/* A stream without a first event has no log. */
static void test_log_without_record(void **state) {
  struct made made = {.blocks = {{1, 10}}};
  expect_refused(*state, &made, "nothing was released");
}

/* Coverage from the frontier must end exactly at complete_to: a bundle is missing. */
static void test_missing_bundle(void **state) {
  struct made made = {.record = record_of(1, 11, 31), .blocks = {{1, 11}}, .bundles = {{11, 21}}};
  expect_refused(*state, &made, "31");
}

/* No sequence is in two bundles (I4). */
static void test_double_bundle(void **state) {
  struct made made = {
      .record = record_of(1, 11, 21), .blocks = {{1, 11}}, .bundles = {{11, 21}, {15, 21}}};
  expect_refused(*state, &made, "15");
}

/* What agrees is opened: an unfinished release goes on by itself. */
static void test_release_goes_on(void **state) {
  struct rig *rig = *state;
  struct made made = {.record = record_of(1, 11, 21), .blocks = {{1, 11}}, .bundles = {{11, 21}}};
  make_folder(rig, &made);
  rig_open(rig);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  rig_until(rig, stream, rig_frontier_at_least, 21);
  assert_int_equal(rig_check_log(rig, stream, 1), 20);
  hb_stream_unref(stream);
}

/* A hole in the log is told with stream and position; what is before it is given. Below earliest
 * it is no damage. */
static void test_hole(void **state) {
  struct rig *rig = *state;
  struct made made = {.record = record_of(11, 41, 41), .blocks = {{11, 21}, {31, 41}}};
  make_folder(rig, &made);
  rig_open(rig);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  struct hb_read read = {
      .kind = HB_READ_LOG, .stream = stream, .position = 15, .bytes_max = 1 << 20};
  assert_int_equal(rig_read(rig, &read), HB_OK);
  assert_int_equal(read.blocks_count, 1);
  hb_read_done(&read);
  read.position = 21;
  assert_int_equal(rig_read(rig, &read), HB_CORRUPT);
  assert_non_null(strstr(read.error.message, "stream 's'"));
  assert_non_null(strstr(read.error.message, "position 21"));
  assert_int_equal(read.blocks_count, 0);
  read.position = 10;
  assert_int_equal(rig_read(rig, &read), HB_OUT_OF_RANGE);
  assert_non_null(strstr(read.error.message, "earliest 11"));
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_log_and_frontier, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_log, setup, teardown),
      cmocka_unit_test_setup_teardown(test_log_without_record, setup, teardown),
      cmocka_unit_test_setup_teardown(test_missing_bundle, setup, teardown),
      cmocka_unit_test_setup_teardown(test_double_bundle, setup, teardown),
      cmocka_unit_test_setup_teardown(test_release_goes_on, setup, teardown),
      cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
