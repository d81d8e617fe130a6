/* What is published: the shared tail against the disk, and who is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/frame/block.h"
#include "server/engine/testing.h"

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

static void put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 10);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  rig_free(sent);
}

static int64_t from_of(struct hb_bytes *bytes) {
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
  return block.from;
}

/* At the frontier a reader is caught up; below the oldest shared block it is sent to the disk; in
 * between it gets consecutive blocks, the first of which contains its position. */
static void test_tail(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_bytes *blocks[4];
  size_t count = 0;
  assert_int_equal(hb_stream_read_tail(stream, 1, blocks, 4, 1 << 20, &count), HB_TAIL_CAUGHT_UP);
  for (int64_t at = 1; at <= 401; at += 100) put_range(rig, stream, at, at + 100);
  assert_int_equal(hb_stream_read_tail(stream, 501, blocks, 4, 1 << 20, &count), HB_TAIL_CAUGHT_UP);
  assert_int_equal(hb_stream_read_tail(stream, 0, blocks, 4, 1 << 20, &count), HB_TAIL_BEHIND);
  assert_int_equal(hb_stream_read_tail(stream, 250, blocks, 4, 1 << 20, &count), HB_TAIL_BLOCKS);
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(from_of(blocks[i]), 201 + 100 * (int64_t)i);
    hb_bytes_unref(blocks[i]);
  }
  assert_int_equal(hb_stream_read_tail(stream, 250, blocks, 4, 1, &count), HB_TAIL_BLOCKS);
  assert_int_equal(count, 1); /* one at least, however small the budget */
  hb_bytes_unref(blocks[0]);
  hb_stream_unref(stream);
}

/* All tails together stay under shared_blocks_max: the oldest block of all goes first, and what is
 * gone is read from disk. */
static void test_tail_cap(void **state) {
  struct rig *rig = *state;
  rig->limits.shared_blocks_max = 50000;
  rig_open(rig);
  struct hb_stream *a = rig_stream(rig, "a");
  struct hb_stream *b = rig_stream(rig, "b");
  put_range(rig, a, 1, 1001); /* about 20 KB each */
  put_range(rig, b, 1, 1001);
  put_range(rig, b, 1001, 2001);
  put_range(rig, b, 2001, 3001);
  assert_true(rig->engine->sequencer.share.bytes <= 50000);
  struct hb_bytes *block;
  size_t count = 0;
  assert_int_equal(hb_stream_read_tail(a, 1, &block, 1, 1, &count), HB_TAIL_BEHIND);
  assert_int_equal(hb_stream_read_tail(b, 1, &block, 1, 1, &count), HB_TAIL_BEHIND);
  assert_int_equal(hb_stream_read_tail(b, 2999, &block, 1, 1, &count), HB_TAIL_BLOCKS);
  hb_bytes_unref(block);
  assert_int_equal(rig_check_log(rig, a, 1), 1000);
  assert_int_equal(rig_check_log(rig, b, 500), 2501);
  hb_stream_unref(a);
  hb_stream_unref(b);
}

struct counted {
  struct hb_watch watch;
  _Atomic int calls;
};

static void count_call(struct hb_watch *watch) { ((struct counted *)watch)->calls++; }

/* `changed` is called once until armed again; publications in between are told by arm. */
static void test_watch(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct counted counted = {.watch = {.changed = count_call}};
  hb_watch_start(&counted.watch, stream);
  put_range(rig, stream, 1, 2);
  put_range(rig, stream, 2, 3);
  put_range(rig, stream, 3, 4);
  /* The answers came after the publications: nothing is under way. */
  assert_int_equal(counted.calls, 1);
  assert_true(hb_watch_arm(&counted.watch));
  assert_false(hb_watch_arm(&counted.watch));
  put_range(rig, stream, 4, 5);
  assert_int_equal(counted.calls, 2);
  hb_watch_stop(&counted.watch);
  put_range(rig, stream, 5, 6);
  assert_int_equal(counted.calls, 2);
  hb_stream_unref(stream);
}

/* Deletion is told too, and the object stays readable. */
static void test_watch_deletion(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct counted counted = {.watch = {.changed = count_call}};
  put_range(rig, stream, 1, 11);
  hb_watch_start(&counted.watch, stream);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  assert_true(counted.calls >= 1);
  assert_true(hb_stream_is_deleted(stream));
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.record.frontier, 11);
  hb_watch_stop(&counted.watch);
  hb_stream_unref(stream);
}

struct churn {
  struct rig *rig;
  struct hb_stream *stream;
  _Atomic bool stop;
};

static void *start_and_stop(void *context) {
  struct churn *churn = context;
  while (!churn->stop) {
    struct counted counted = {.watch = {.changed = count_call}};
    hb_watch_start(&counted.watch, churn->stream);
    (void)hb_watch_arm(&counted.watch);
    hb_watch_stop(&counted.watch); /* the watch is on this stack: a late call would show */
  }
  return NULL;
}

/* A watch may be stopped while publications run; it is never called after stop returned. */
static void test_watch_stop_races(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct churn churn = {.rig = rig, .stream = rig_stream(rig, "s")};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, start_and_stop, &churn);
  for (int64_t at = 1; at <= 200; at++) put_range(rig, churn.stream, at, at + 1);
  churn.stop = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  hb_stream_unref(churn.stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_tail, setup, teardown),
      cmocka_unit_test_setup_teardown(test_tail_cap, setup, teardown),
      cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
      cmocka_unit_test_setup_teardown(test_watch_deletion, setup, teardown),
      cmocka_unit_test_setup_teardown(test_watch_stop_races, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
