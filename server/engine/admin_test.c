/* Streams: what is valid, made again, changed, deleted; and that nothing of a deleted one is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  rig_open(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static struct hb_job job_of(enum hb_job_kind kind, const char *name) {
  struct hb_job job = {.kind = kind, .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 1}};
  (void)snprintf(job.config.name, sizeof job.config.name, "%s", name);
  return job;
}

static void expect(struct rig *rig, struct hb_job job, enum hb_code code, const char *text) {
  assert_int_equal(rig_job(rig, &job), code);
  if (!strstr(job.error.message, text)) fail_msg("'%s' is not in '%s'", text, job.error.message);
}

/* What is wrong is named with its value and its limit; nothing is stored. */
static void test_bad_configs(void **state) {
  struct rig *rig = *state;
  static const char *const names[] = {"", "A", "-a", ".a", "a/b", "a b", "a\xc3\xa9"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    expect(rig, job_of(HB_JOB_CREATE_STREAM, names[i]), HB_INVALID, "name ");
  }
  struct hb_job job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.mode = 9;
  expect(rig, job, HB_INVALID, "mode is 9");
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.first_sequence = INT64_MAX;
  expect(rig, job, HB_INVALID, "first_sequence is 9223372036854775807");
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.ack = 7;
  expect(rig, job, HB_INVALID, "ack_mode is 7");
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.limits.held_events_max = 999;
  expect(rig, job, HB_INVALID, "limits.held_events_max is 999, must be from 1000 to 1000000000");
  job.config.limits.held_events_max = 0;
  job.config.limits.event_bytes_max = 4 << 20;
  expect(rig, job, HB_INVALID, "limits.event_bytes_max is 4194304");
  assert_null(hb_engine_find_stream(rig->engine, "s"));
  expect(rig, job_of(HB_JOB_UPDATE_STREAM, "none"), HB_NOT_FOUND, "'none'");
  expect(rig, job_of(HB_JOB_DELETE_STREAM, "none"), HB_NOT_FOUND, "'none'");
}

/* The same settings again are fine (0 = the default, stated or not); others name the field. */
static void test_create_again(void **state) {
  struct rig *rig = *state;
  struct hb_job first = job_of(HB_JOB_CREATE_STREAM, "s");
  assert_int_equal(rig_job(rig, &first), HB_OK);
  assert_int_equal(first.config.limits.gaps_max, 1000000);
  assert_int_equal(first.config.ack, HB_ACK_DURABLE);
  struct hb_job job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.limits.gaps_max = 1000000;
  assert_int_equal(rig_job(rig, &job), HB_OK);
  assert_memory_equal(first.incarnation, job.incarnation, HB_INCARNATION_SIZE);
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.limits.gaps_max = 5;
  expect(rig, job, HB_EXISTS, "stream 's' exists with gaps_max 1000000, not 5");
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.first_sequence = 2;
  expect(rig, job, HB_EXISTS, "exists with first_sequence 1, not 2");
  job.config.first_seen = true;
  expect(rig, job, HB_EXISTS, "exists with first_sequence 1, not from first seen");
  job = job_of(HB_JOB_CREATE_STREAM, "s");
  job.config.ack = HB_ACK_ASYNC;
  expect(rig, job, HB_EXISTS, "exists with ack_mode DURABLE, not ASYNC");
}

/* An update changes what it states and leaves the rest; it is there after a restart. */
static void test_update(void **state) {
  struct rig *rig = *state;
  hb_stream_unref(rig_stream(rig, "s"));
  struct hb_job job = job_of(HB_JOB_UPDATE_STREAM, "s");
  job.config.limits.ahead_max = 10;
  assert_int_equal(rig_job(rig, &job), HB_OK);
  assert_int_equal(job.config.limits.gaps_max, 1000000);
  rig_reopen(rig);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  struct hb_stream_config config;
  hb_stream_get_config(stream, &config);
  assert_int_equal(config.limits.ahead_max, 10);
  assert_int_equal(config.ack, HB_ACK_DURABLE);
  assert_int_equal(rig_put(rig, stream, 11, "k", NULL), HB_OUTCOME_WINDOW_FULL);
  assert_int_equal(rig_put(rig, stream, 10, "k", NULL), HB_OUTCOME_STORED);
  hb_stream_unref(stream);
}

/* Names come in order, by prefix, after a name, in pages. */
static void test_list(void **state) {
  struct rig *rig = *state;
  static const char *const names[] = {"b2", "a", "b1", "b3", "c"};
  for (size_t i = 0; i < 5; i++) hb_stream_unref(rig_stream(rig, names[i]));
  static struct hb_stream_config out[8];
  bool more;
  assert_int_equal(hb_engine_list_streams(rig->engine, "", "", out, 8, &more), 6);
  assert_string_equal(out[0].name, "a");
  assert_string_equal(out[5].name, "default");
  assert_false(more);
  assert_int_equal(hb_engine_list_streams(rig->engine, "b", "", out, 2, &more), 2);
  assert_true(more);
  assert_string_equal(out[1].name, "b2");
  assert_int_equal(hb_engine_list_streams(rig->engine, "b", "b2", out, 2, &more), 1);
  assert_false(more);
  assert_string_equal(out[0].name, "b3");
}

/* streams_max refuses the next one, and a deletion makes room. */
static void test_streams_max(void **state) {
  struct rig *rig = *state;
  rig_close(rig);
  rig->limits.streams_max = 2;
  rig_open(rig);
  hb_stream_unref(rig_stream(rig, "a"));
  expect(rig, job_of(HB_JOB_CREATE_STREAM, "b"), HB_LIMIT, "streams_max 2");
  assert_int_equal(rig_delete(rig, "a"), HB_OK);
  hb_stream_unref(rig_stream(rig, "b"));
}

/* `default` is made with the store, and not again once it was deleted. */
static void test_default_only_once(void **state) {
  struct rig *rig = *state;
  assert_int_equal(rig_delete(rig, "default"), HB_OK);
  rig_reopen(rig);
  assert_null(hb_engine_find_stream(rig->engine, "default"));
  assert_int_equal(hb_engine_info(rig->engine)->streams, 0);
}

static void put_much(struct rig *rig, struct hb_stream *stream) {
  for (int64_t at = 1; at < 60000; at += 20000) {
    struct sent *sent = rig_send_range(rig, stream, 0, at, at + 20000, 1000);
    rig_wait(sent);
    rig_free(sent);
  }
  struct sent *held = rig_send_range(rig, stream, 0, 300000, 320000, 1000);
  rig_wait(held);
  rig_free(held);
}

/* A deleted stream's space comes back, also when the server stops before; its id is never used
 * again, so a stream of the same name is another one. */
static void test_deletion_gives_space_back(void **state) {
  struct rig *rig = *state;
  uint8_t incarnations[3][HB_INCARNATION_SIZE];
  uint64_t before = rig_folder_bytes(rig);
  for (int i = 0; i < 3; i++) {
    struct hb_stream *stream = rig_stream(rig, "s");
    memcpy(incarnations[i], hb_stream_incarnation(stream), HB_INCARNATION_SIZE);
    put_much(rig, stream);
    if (i == 1) rig_until(rig, stream, rig_indexed_at_least, 60001);
    assert_int_equal(rig_delete(rig, "s"), HB_OK);
    assert_true(hb_stream_is_deleted(stream));
    assert_null(hb_engine_find_stream(rig->engine, "s"));
    hb_stream_unref(stream);
    if (i == 2) rig_reopen(rig); /* resumes what it left */
    hb_engine_wait_deletions(rig->engine);
  }
  assert_memory_not_equal(incarnations[0], incarnations[1], HB_INCARNATION_SIZE);
  assert_memory_not_equal(incarnations[1], incarnations[2], HB_INCARNATION_SIZE);
  rig_reopen(rig); /* old WAL files go */
  hb_engine_wait_deletions(rig->engine);
  uint64_t after = rig_folder_bytes(rig);
  if (after > before + (2 << 20)) fail_msg("folder: %zu before, %zu after", before, after);
}

/* Deleting under calls: what waits for a comparison, what comes later, and reads end NOT_FOUND;
 * other streams don't notice. */
static void test_deletion_under_calls(void **state) {
  struct rig *rig = *state;
  struct hb_stream *other = rig_stream(rig, "other");
  for (int round = 0; round < 5; round++) {
    struct hb_stream *stream = rig_stream(rig, "s");
    struct sent *first = rig_send_range(rig, stream, 0, 1, 20001, 10);
    rig_wait(first);
    rig_free(first);
    struct sent *again[4];
    for (int i = 0; i < 4; i++) again[i] = rig_send_range(rig, stream, 0, 1, 20001, 10);
    assert_int_equal(rig_delete(rig, "s"), HB_OK);
    for (int i = 0; i < 4; i++) {
      rig_wait(again[i]);
      enum hb_code code = again[i]->append.batch.error.code;
      assert_true(code == HB_OK || code == HB_NOT_FOUND);
      rig_free(again[i]);
    }
    struct sent *late = rig_send_range(rig, stream, 0, 1, 2, 10);
    rig_wait(late);
    assert_int_equal(late->append.batch.error.code, HB_NOT_FOUND);
    rig_free(late);
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = stream, .position = 1, .bytes_max = 1 << 20};
    assert_int_equal(rig_read(rig, &read), HB_NOT_FOUND);
    hb_read_done(&read);
    assert_int_equal(rig_put(rig, other, round + 1, "k", NULL), HB_OUTCOME_STORED);
    hb_stream_unref(stream);
  }
  hb_stream_unref(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_bad_configs, setup, teardown),
      cmocka_unit_test_setup_teardown(test_create_again, setup, teardown),
      cmocka_unit_test_setup_teardown(test_update, setup, teardown),
      cmocka_unit_test_setup_teardown(test_list, setup, teardown),
      cmocka_unit_test_setup_teardown(test_streams_max, setup, teardown),
      cmocka_unit_test_setup_teardown(test_default_only_once, setup, teardown),
      cmocka_unit_test_setup_teardown(test_deletion_gives_space_back, setup, teardown),
      cmocka_unit_test_setup_teardown(test_deletion_under_calls, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
