/* Ack mode ASYNC: only the acknowledgement comes earlier; everything that is shown follows the
 * fsync. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

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

static struct hb_stream *async_stream(struct rig *rig) {
  struct hb_job job = {
      .kind = HB_JOB_CREATE_STREAM,
      .config = {.name = "a", .mode = HB_MODE_GLOBAL, .first_sequence = 1, .ack = HB_ACK_ASYNC}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  return hb_engine_find_stream(rig->engine, "a");
}

static int64_t published(struct hb_stream *stream) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  return status.record.frontier;
}

static void put_stored(struct rig *rig, struct hb_stream *stream, int64_t sequence,
                       int64_t frontier) {
  struct ev event = {.sequence = sequence, .key = "k"};
  struct sent *sent = rig_send(rig, stream, 0, &event, 1);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  assert_int_equal(sent->append.batch.decisions[0].outcome, HB_OUTCOME_STORED);
  assert_int_equal(sent->append.status.record.frontier, frontier);
  rig_free(sent);
}

/* Acknowledged before the fsync: not published, not read, and the answer's numbers are those of the
 * last fsync. A commit that is fsynced for another stream publishes it. */
static void test_shown_after_sync_only(void **state) {
  struct rig *rig = *state;
  rig->async_sync_ms = 3600000;
  rig_open(rig);
  struct hb_stream *a = async_stream(rig);
  struct hb_stream *s = rig_stream(rig, "s");
  put_stored(rig, a, 1, 1);
  put_stored(rig, a, 2, 1);
  assert_int_equal(published(a), 1);
  assert_int_equal(rig_check_log(rig, a, 1), 0);
  assert_int_equal(rig_put(rig, a, 2, "k", NULL), HB_OUTCOME_DUPLICATE);
  put_stored(rig, s, 1, 2);
  assert_int_equal(published(a), 3);
  assert_int_equal(rig_check_log(rig, a, 1), 2);
  hb_stream_unref(a);
  hb_stream_unref(s);
}

/* Left alone, the fsync comes by itself. */
static void test_sync_in_time(void **state) {
  struct rig *rig = *state;
  rig->async_sync_ms = 5;
  rig_open(rig);
  struct hb_stream *a = async_stream(rig);
  put_stored(rig, a, 1, 1);
  rig_until(rig, a, rig_frontier_at_least, 2);
  hb_stream_unref(a);
}

/* A change to DURABLE fsyncs what was acknowledged before; and so does a stop. */
static void test_update_and_stop_sync(void **state) {
  struct rig *rig = *state;
  rig->async_sync_ms = 3600000;
  rig_open(rig);
  struct hb_stream *a = async_stream(rig);
  put_stored(rig, a, 1, 1);
  struct hb_job job = {.kind = HB_JOB_UPDATE_STREAM,
                       .config = {.name = "a", .ack = HB_ACK_DURABLE}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  assert_int_equal(published(a), 2);
  put_stored(rig, a, 2, 3);
  job.config.ack = HB_ACK_ASYNC;
  assert_int_equal(rig_job(rig, &job), HB_OK);
  put_stored(rig, a, 3, 3);
  hb_engine_stop(rig->engine);
  assert_int_equal(published(a), 4);
  hb_stream_unref(a);
}

/* A key's list does not miss an entry that an unfsynced commit moves from a bundle to the log. */
static void test_key_list_waits_for_sync(void **state) {
  struct rig *rig = *state;
  rig->async_sync_ms = 200;
  rig_open(rig);
  struct hb_stream *a = async_stream(rig);
  put_stored(rig, a, 2, 1);
  put_stored(rig, a, 4, 1);
  rig_until(rig, a, rig_frontier_at_least, 1);
  struct hb_stream_status status;
  do hb_stream_get_status(a, &status);
  while (status.held_events < 2); /* published */
  put_stored(rig, a, 1, 1);       /* releases 2: written, not fsynced */
  struct hb_read read = {
      .kind = HB_READ_KEY, .stream = a, .key = hb_slice_text("k"), .page_size = 10};
  assert_int_equal(rig_read(rig, &read), HB_OK);
  assert_int_equal(read.next_token.size, 0);
  assert_int_equal(read.entries_count, 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(read.entries[i].position, i < 2 ? i + 1 : 4);
    assert_int_equal(read.entries[i].released, i < 2);
  }
  hb_read_done(&read);
  hb_stream_unref(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_shown_after_sync_only, setup, teardown),
      cmocka_unit_test_setup_teardown(test_sync_in_time, setup, teardown),
      cmocka_unit_test_setup_teardown(test_update_and_stop_sync, setup, teardown),
      cmocka_unit_test_setup_teardown(test_key_list_waits_for_sync, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
