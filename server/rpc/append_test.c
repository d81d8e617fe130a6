/* Append and AppendStream over real gRPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame/wire.h"
#include "holdback/v1/ingest.pb-c.h"
#include "holdback/v1/stream.pb-c.h"
#include "server/rpc/lane.h"
#include "server/rpc/test_server.h"

#define APPEND "/holdback.v1.IngestService/Append"
#define APPEND_STREAM "/holdback.v1.IngestService/AppendStream"

static Holdback__V1__AppendResponse *append(struct test_server *server, const struct hb_buf *bytes,
                                            struct test_status *status) {
  struct test_call call;
  test_call_open(&call, &server->client, APPEND);
  (void)test_call_write(&call, hb_buf_view(bytes));
  test_call_half_close(&call);
  Holdback__V1__AppendResponse *response =
      test_call_read_pb(&call, &holdback__v1__append_response__descriptor);
  test_call_finish(&call, status);
  return response;
}

static void write_batch(struct test_call *call, const char *stream, int64_t first, size_t count) {
  struct hb_buf bytes = {0};
  test_put_append(&bytes, stream, first, count);
  (void)test_call_write(call, hb_buf_view(&bytes));
  hb_buf_done(&bytes);
}

static void expect_answer(struct test_call *call, uint64_t ordinal, uint32_t stored) {
  Holdback__V1__AppendStreamResponse *response =
      test_call_read_pb(call, &holdback__v1__append_stream_response__descriptor);
  assert_non_null(response);
  assert_int_equal(response->ordinal, ordinal);
  assert_int_equal(response->result->stored, stored);
  holdback__v1__append_stream_response__free_unpacked(response, NULL);
}

static void delete_stream(struct test_server *server, const char *name) {
  Holdback__V1__DeleteStreamRequest request = HOLDBACK__V1__DELETE_STREAM_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)name;
  struct test_status status;
  Holdback__V1__DeleteStreamResponse *response =
      test_unary(&server->client, "/holdback.v1.StreamService/DeleteStream", &request.base,
                 &holdback__v1__delete_stream_response__descriptor, &status);
  assert_non_null(response);
  holdback__v1__delete_stream_response__free_unpacked(response, NULL);
}

/* The answer tells outcomes as runs, and the stream's numbers. */
static void append_answers_runs_and_numbers(void **state) {
  struct hb_buf bytes = {0};
  struct test_status status;
  test_append(*state, "default", 2, 1);
  test_put_append(&bytes, "default", 1, 2);
  Holdback__V1__AppendResponse *response = append(*state, &bytes, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
  Holdback__V1__AppendResult *result = response->result;
  assert_int_equal(result->stored, 1);
  assert_int_equal(result->n_runs, 2);
  assert_int_equal(result->runs[0]->outcome, HOLDBACK__V1__OUTCOME__OUTCOME_STORED);
  assert_int_equal(result->runs[1]->outcome, HOLDBACK__V1__OUTCOME__OUTCOME_DUPLICATE);
  assert_int_equal(result->runs[1]->first_index, 1);
  assert_int_equal(result->runs[1]->first_sequence, 2);
  assert_int_equal(result->frontier, 3);
  assert_int_equal(result->highest, 2);
  assert_int_equal(result->incarnation.len, 24);
  holdback__v1__append_response__free_unpacked(response, NULL);
  hb_buf_done(&bytes);
}

static const struct {
  const char *what;
  const char *stream;
  uint32_t field; /* one more field, 0 = none */
  const char *bytes;
  size_t events;
  grpc_status_code code;
  const char *reason;
} refusals[] = {
    {"no stream", "", 0, "", 1, GRPC_STATUS_INVALID_ARGUMENT, "STREAM_MISSING"},
    {"bad name", "Default", 0, "", 1, GRPC_STATUS_INVALID_ARGUMENT, "STREAM_NAME_INVALID"},
    {"unknown stream", "nowhere", 0, "", 1, GRPC_STATUS_NOT_FOUND, "STREAM_NOT_FOUND"},
    {"empty batch", "default", 0, "", 0, GRPC_STATUS_INVALID_ARGUMENT, "BATCH_EMPTY"},
    {"covers", "default", 5, "", 1, GRPC_STATUS_UNIMPLEMENTED, "FEATURE_NOT_BUILT"},
    {"voids", "default", 6, "", 1, GRPC_STATUS_UNIMPLEMENTED, "FEATURE_NOT_BUILT"},
    {"incarnation", "default", 4, "other", 1, GRPC_STATUS_FAILED_PRECONDITION,
     "INCARNATION_CHANGED"},
    {"producer", "default", 3, "\xff", 1, GRPC_STATUS_INVALID_ARGUMENT, "TEXT_INVALID"},
    {"malformed event", "default", 2, "\x0a\x7f", 0, GRPC_STATUS_INVALID_ARGUMENT,
     "MALFORMED_EVENT"},
};

/* Each bad request has its status and reason, and the next call goes on. */
static void bad_requests_are_refused(void **state) {
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct hb_buf bytes = {0};
    struct test_status status;
    test_put_append(&bytes, refusals[i].stream, 1, refusals[i].events);
    if (refusals[i].field) {
      hb_wire_append_bytes(&bytes, refusals[i].field, hb_slice_text(refusals[i].bytes));
    }
    assert_null(append(*state, &bytes, &status));
    if (status.code != refusals[i].code || strcmp(status.reason, refusals[i].reason) != 0) {
      fail_msg("%s: %d %s %s", refusals[i].what, status.code, status.reason, status.message);
    }
    hb_buf_done(&bytes);
  }
  test_append(*state, "default", 1, 1);
}

/* An event over the stream's limit is named by index, value and limit. */
static void too_large_event_is_named(void **state) {
  struct hb_buf bytes = {0};
  struct hb_buf batch = {0};
  struct test_status status;
  char *payload = calloc(1, (1 << 20) + 1);
  memset(payload, 'x', 1 << 20);
  test_put_event(&batch, 1, "k", "small");
  test_put_event(&batch, 2, "k", payload);
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("default"));
  hb_wire_append_bytes(&bytes, 2, hb_buf_view(&batch));
  assert_null(append(*state, &bytes, &status));
  assert_int_equal(status.code, GRPC_STATUS_INVALID_ARGUMENT);
  assert_string_equal(status.message, "events[1] has 1048585 bytes, event_bytes_max is 1048576");
  free(payload);
  hb_buf_done(&batch);
  hb_buf_done(&bytes);
}

/* A batch over 16 MiB is ours to refuse: with the limit, after the answers before it. */
static void oversized_batch_comes_after_earlier_answers(void **state) {
  struct test_server *server = *state;
  struct hb_buf bytes = {0};
  struct test_status status;
  struct test_call call;
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 3);
  uint8_t *large = calloc(1, 17 << 20);
  hb_wire_append_bytes(&bytes, 2, hb_slice_of(large, 17 << 20));
  (void)test_call_write(&call, hb_buf_view(&bytes));
  expect_answer(&call, 0, 3);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_INVALID_ARGUMENT);
  assert_string_equal(status.reason, "BATCH_TOO_LARGE");
  assert_string_equal(status.message, "batch has 17825792 bytes, batch_bytes_max is 16777216");
  free(large);
  hb_buf_done(&bytes);
}

/* Batches are answered in order, with ordinals; half-close ends with OK after all answers. */
static void stream_answers_in_order(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 2);
  for (int i = 1; i < 100; i++) write_batch(&call, i % 2 ? "" : "default", 1 + 2 * i, 2);
  test_call_half_close(&call);
  for (uint64_t i = 0; i < 100; i++) expect_answer(&call, i, 2);
  assert_false(test_call_read(&call, &(struct hb_buf){0}));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
}

/* A bad batch ends the call after the answers to all earlier ones; later ones are not stored. */
static void bad_batch_ends_after_earlier_answers(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_hold_answers(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 1);
  write_batch(&call, "default", 2, 1);
  write_batch(&call, "other", 3, 1);
  write_batch(&call, "default", 4, 1);
  while (fake_engine_unanswered(server->engine) < 2) sched_yield();
  fake_engine_hold_answers(server->engine, false);
  expect_answer(&call, 0, 1);
  expect_answer(&call, 1, 1);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_INVALID_ARGUMENT);
  assert_string_equal(status.reason, "STREAM_CHANGED");
  struct hb_stream *stream = hb_engine_find_stream(server->engine, "default");
  struct hb_stream_status numbers;
  hb_stream_get_status(stream, &numbers);
  hb_stream_unref(stream);
  assert_int_equal(numbers.record.highest, 2);
}

static void write_from(struct test_call *call, int64_t sequence, const char *producer) {
  struct hb_buf bytes = {0};
  test_put_append(&bytes, "default", sequence, 1);
  hb_wire_append_bytes(&bytes, 3, hb_slice_text(producer));
  (void)test_call_write(call, hb_buf_view(&bytes));
  hb_buf_done(&bytes);
}

/* A call has one producer: later requests repeat it or leave it out, and it stays. */
static void producer_is_the_first_requests(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_from(&call, 1, "feed-a");
  expect_answer(&call, 0, 1);
  assert_int_equal(fake_engine_last_peer(server->engine), strlen("feed-a"));
  write_batch(&call, "", 2, 1);
  expect_answer(&call, 1, 1);
  assert_int_equal(fake_engine_last_peer(server->engine), strlen("feed-a"));
  write_from(&call, 3, "feed-a");
  expect_answer(&call, 2, 1);
  write_from(&call, 4, "feed-b");
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_INVALID_ARGUMENT);
  assert_string_equal(status.reason, "PRODUCER_CHANGED");
  assert_string_equal(status.message, "producer differs from 'feed-a', which this call began with");
}

/* A call has at most 256 batches unanswered, however much its peer sends. */
static void unanswered_batches_are_bounded(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_hold_answers(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  for (int i = 0; i < 600; i++) write_batch(&call, "default", 1 + i, 1);
  while (fake_engine_unanswered(server->engine) < 256) sched_yield();
  fake_engine_hold_answers(server->engine, false);
  test_call_half_close(&call);
  for (uint64_t i = 0; i < 600; i++) expect_answer(&call, i, 1);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
  assert_int_equal(fake_engine_most_unanswered(server->engine), 256);
}

/* An engine without room stops only this call's reading; it goes on when room comes. */
static void full_engine_delays_and_loses_nothing(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_set_full(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  for (int i = 0; i < 5; i++) write_batch(&call, "default", 1 + i, 1);
  test_call_half_close(&call);
  fake_engine_set_full(server->engine, false);
  for (uint64_t i = 0; i < 5; i++) expect_answer(&call, i, 1);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
}

enum { LARGE_EVENTS = 12 };

/* About 12 MiB. */
static void write_large(struct test_call *call, int64_t first) {
  static char payload[1000001];
  memset(payload, 'x', sizeof payload - 1);
  struct hb_buf batch = {0}, bytes = {0};
  for (int64_t i = 0; i < LARGE_EVENTS; i++) test_put_event(&batch, first + i, "k", payload);
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("default"));
  hb_wire_append_bytes(&bytes, 2, hb_buf_view(&batch));
  (void)test_call_write(call, hb_buf_view(&bytes));
  hb_buf_done(&batch);
  hb_buf_done(&bytes);
}

static int start_with_small_budget(void **state) {
  struct hb_limits limits = hb_limits_default();
  limits.ingest_mailbox_max = 16 << 20;
  limits.waiting_bytes_max = 16 << 20;
  return test_server_start_with(state, &limits);
}

/* What all calls of a pump have unanswered is bounded: more messages wait, and none is lost. */
static void unanswered_bytes_of_all_calls_are_bounded(void **state) {
  enum { CALLS = 8 };
  struct test_server *server = *state;
  struct test_call calls[CALLS];
  struct test_status status;
  fake_engine_hold_answers(server->engine, true);
  for (int i = 0; i < CALLS; i++) {
    test_call_open(&calls[i], &server->client, APPEND_STREAM);
    write_large(&calls[i], 1 + LARGE_EVENTS * i);
    test_call_half_close(&calls[i]);
  }
  /* Each pump takes three: the third passes 32 MiB. All calls of one connection are on one. */
  while (fake_engine_unanswered(server->engine) < 3) sched_yield();
  fake_engine_hold_answers(server->engine, false);
  for (int i = 0; i < CALLS; i++) {
    expect_answer(&calls[i], 0, LARGE_EVENTS);
    test_call_finish(&calls[i], &status);
    assert_int_equal(status.code, GRPC_STATUS_OK);
  }
  assert_true(fake_engine_most_unanswered(server->engine) <= 6);
}

/* A failed commit ends the call in its place with UNAVAILABLE. */
static void failed_commit_is_unavailable(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 1);
  expect_answer(&call, 0, 1);
  fake_engine_fail_answers(server->engine, HB_UNAVAILABLE);
  write_batch(&call, "default", 2, 1);
  assert_false(test_call_read(&call, &(struct hb_buf){0}));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
}

/* An open call on a stream that is deleted ends with NOT_FOUND, even if it sends nothing. */
static void deletion_ends_an_idle_call(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 1);
  expect_answer(&call, 0, 1);
  delete_stream(server, "default");
  assert_false(test_call_read(&call, &(struct hb_buf){0}));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
}

/* A call that its peer cancels gives everything back, answered or not (tear-down counts). */
static void cancelled_call_leaves_nothing(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  fake_engine_hold_answers(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  for (int i = 0; i < 10; i++) write_batch(&call, "default", 1 + i, 1);
  while (fake_engine_unanswered(server->engine) < 10) sched_yield();
  test_call_cancel(&call);
  fake_engine_hold_answers(server->engine, false);
  fake_engine_set_full(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 100, 1);
  test_call_cancel(&call);
  fake_engine_set_full(server->engine, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(append_answers_runs_and_numbers, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(bad_requests_are_refused, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(too_large_event_is_named, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(oversized_batch_comes_after_earlier_answers,
                                      test_server_start, test_server_stop),
      cmocka_unit_test_setup_teardown(stream_answers_in_order, test_server_start, test_server_stop),
      cmocka_unit_test_setup_teardown(bad_batch_ends_after_earlier_answers, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(producer_is_the_first_requests, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(unanswered_batches_are_bounded, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(full_engine_delays_and_loses_nothing, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(unanswered_bytes_of_all_calls_are_bounded,
                                      start_with_small_budget, test_server_stop),
      cmocka_unit_test_setup_teardown(failed_commit_is_unavailable, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(deletion_ends_an_idle_call, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup_teardown(cancelled_call_leaves_nothing, test_server_start,
                                      test_server_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
