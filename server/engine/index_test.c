/* The indexer: catches up by itself, in files and in rows, over restarts and many streams. Also:
 * positions by event time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/engine/testing.h"
#include "storage/index.h"

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

struct seen {
  int64_t next;
  int64_t count;
};

static bool see(void *context, const struct hb_index_entry *entry) {
  struct seen *seen = context;
  assert_int_equal(entry->position, seen->next);
  assert_true(entry->block <= entry->position);
  seen->next += 10;
  seen->count++;
  return true;
}

static int64_t indexed(struct rig *rig, struct hb_stream *stream) {
  struct seen seen = {.next = 3};
  assert_int_equal(hb_index_each(rig->engine->store, stream->id, hb_slice_text("k3"), INT64_MIN,
                                 INT64_MAX, see, &seen, NULL),
                   HB_OK);
  return seen.count;
}

/* Large bundles become files, small ones rows of the next commit; both are found, in order. */
static void test_files_and_rows(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_entries = 400;
  rig->tuning.index_file_entries = 300;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t at = 1; at < 2001; at += 100) put_range(rig, stream, at, at + 100);
  rig_until(rig, stream, rig_indexed_at_least, 2001);
  assert_int_equal(indexed(rig, stream), 200);
  put_range(rig, stream, 2001, 2011);
  rig_until(rig, stream, rig_indexed_at_least, 2011);
  assert_int_equal(indexed(rig, stream), 201);
  hb_stream_unref(stream);
}

/* What a restart finds unindexed is indexed then, from disk. */
static void test_catches_up_after_restart(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_idle_ms = 3600000; /* never, in the first run */
  rig->tuning.index_age_ms = 3600000;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 20001);
  assert_int_equal(indexed(rig, stream), 0);
  hb_stream_unref(stream);
  rig->tuning.index_idle_ms = 5;
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  rig_until(rig, stream, rig_indexed_at_least, 20001);
  assert_int_equal(indexed(rig, stream), 2000);
  hb_stream_unref(stream);
}

/* Many streams share one bundle's memory: the largest part is cut early. */
static void test_many_streams(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_entries = 500;
  rig_open(rig);
  struct hb_stream *streams[20];
  char name[16];
  for (int i = 0; i < 20; i++) {
    (void)snprintf(name, sizeof name, "s%d", i);
    streams[i] = rig_stream(rig, name);
  }
  for (int i = 0; i < 20; i++) put_range(rig, streams[i], 1, 201);
  for (int i = 0; i < 20; i++) {
    rig_until(rig, streams[i], rig_indexed_at_least, 201);
    assert_int_equal(indexed(rig, streams[i]), 20);
    hb_stream_unref(streams[i]);
  }
}

static int64_t find_time(struct rig *rig, struct hb_stream *stream, int64_t seconds) {
  struct hb_read read = {
      .kind = HB_READ_TIME, .stream = stream, .time = {.seconds = seconds, .present = true}};
  if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
  hb_read_done(&read);
  return read.found_position;
}

/* The first released event at or after a time; the frontier where there is none. */
static void test_find_time(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t i = 1; i <= 50; i++) {
    struct ev event = {.sequence = i, .key = "k", .seconds = i % 10 == 0 ? 0 : 1000 + i * 10};
    struct sent *sent = rig_send(rig, stream, 0, &event, 1);
    rig_wait(sent);
    rig_free(sent);
  }
  assert_int_equal(find_time(rig, stream, 0), 1);
  assert_int_equal(find_time(rig, stream, 1010), 1);
  assert_int_equal(find_time(rig, stream, 1011), 2);
  assert_int_equal(find_time(rig, stream, 1100), 11);
  assert_int_equal(find_time(rig, stream, 1490), 49);
  assert_int_equal(find_time(rig, stream, 1491), 51);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_files_and_rows, setup, teardown),
      cmocka_unit_test_setup_teardown(test_catches_up_after_restart, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_streams, setup, teardown),
      cmocka_unit_test_setup_teardown(test_find_time, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
