/* Subscribe over real gRPC: order, filters, Progress, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/frame/wire.h"
#include "holdback/v1/stream.pb-c.h"
#include "server/rpc/test_subscriber.h"

/* Everything that is there comes in order, then Progress says caught up; then what comes later. */
static void delivers_what_is_there_and_what_comes(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_append(server, "default", 1, 1000);
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 1000);
  assert_int_equal(seen.positions[0], 1);
  assert_int_equal(seen.last->next_position, 1001);
  test_append(server, "default", 1002, 1);
  test_append(server, "default", 1001, 1);
  test_subscribe_until_position(&call, &seen, 1003);
  assert_int_equal(seen.count, 1002);
  test_subscribe_finish(&call, &seen);
}

/* The first answer is a Progress, on an empty stream too; it names the gap that blocks. */
static void progress_comes_at_once(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_append(server, "default", 5, 1);
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  assert_int_equal(seen.progress, 1);
  assert_int_equal(seen.last->frontier, 1);
  assert_int_equal(seen.last->highest, 5);
  assert_int_equal(seen.last->held_events, 1);
  assert_int_equal(seen.last->blocked_by->start, 1);
  assert_int_equal(seen.last->blocked_by->end, 5);
  assert_int_equal(seen.last->incarnation.len, 24);
  assert_true(seen.caught_up);
  test_subscribe_finish(&call, &seen);
}

/* Progress goes on by time while nothing happens. */
static void progress_comes_by_time(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_subscribe_pb request = test_subscribe_request("default");
  request.progress_interval_ms = 10;
  test_subscribe_open(&call, server, &request);
  while (seen.progress < 5) assert_true(test_subscribe_read(&call, &seen));
  test_subscribe_finish(&call, &seen);
}

/* What the first Progress said is not said again: the next answer is what comes next. */
static void one_progress_tells_one_catch_up(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_subscribe_pb request = test_subscribe_request("default");
  request.progress_interval_ms = UINT32_MAX;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  test_append(server, "default", 1, 1);
  test_subscribe_until_position(&call, &seen, 2);
  assert_int_equal(seen.progress, 1);
  test_subscribe_until_caught_up(&call, &seen);
  test_append(server, "default", 2, 1);
  test_subscribe_until_position(&call, &seen, 3);
  assert_int_equal(seen.progress, 2);
  test_subscribe_finish(&call, &seen);
}

static void append_keys(struct test_server *server, int64_t first, size_t count) {
  struct hb_buf bytes = {0}, batch = {0};
  for (size_t i = 0; i < count; i++) {
    int64_t sequence = first + (int64_t)i;
    test_put_event(&batch, sequence, sequence % 3 ? "other" : "third", "payload");
  }
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("default"));
  hb_wire_append_bytes(&bytes, 2, hb_buf_view(&batch));
  test_append_bytes(server, &bytes);
  hb_buf_done(&batch);
  hb_buf_done(&bytes);
}

/* A filter lets its keys through, spells positions out, and next_position passes the rest. */
static void filters_by_key(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  append_keys(server, 1, 1000);
  ProtobufCBinaryData key = {.len = 5, .data = (uint8_t *)(uintptr_t) "third"};
  Holdback__V1__Filter filter = HOLDBACK__V1__FILTER__INIT;
  filter.n_keys = 1;
  filter.keys = &key;
  test_subscribe_pb request = test_subscribe_request("default");
  request.filter = &filter;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 333);
  assert_int_equal(seen.positions[332], 999);
  assert_int_equal(seen.last->next_position, 1001);
  test_subscribe_finish(&call, &seen);
}

/* A filter that matches nothing still brings Progress whose next_position moves. */
static void filter_without_matches_moves_on(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  for (int i = 0; i < 30; i++) append_keys(server, 1 + 500 * i, 500);
  ProtobufCBinaryData prefix = {.len = 4, .data = (uint8_t *)(uintptr_t) "none"};
  Holdback__V1__Filter filter = HOLDBACK__V1__FILTER__INIT;
  filter.n_key_prefixes = 1;
  filter.key_prefixes = &prefix;
  test_subscribe_pb request = test_subscribe_request("default");
  request.filter = &filter;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 0);
  assert_int_equal(seen.last->next_position, 15001);
  filter.n_key_prefixes = 0;
  test_subscribe_finish(&call, &seen);
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "FILTER_EMPTY");
}

/* Below the shared tail blocks come from a reader; the subscriber sees no difference. */
static void reads_behind_the_tail(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  fake_engine_set_tail(server->engine, 1);
  for (int i = 0; i < 8; i++) test_append(server, "default", 1 + 500 * i, 500);
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 4000);
  test_subscribe_finish(&call, &seen);
}

/* Requests that can't be served end with a fitting status. */
static void bad_requests_are_refused(void **state) {
  struct test_server *server = *state;
  test_subscribe_pb request = test_subscribe_request("nowhere");
  test_subscribe_expect_end(server, &request, GRPC_STATUS_NOT_FOUND, "STREAM_NOT_FOUND");
  request = test_subscribe_request("");
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "STREAM_MISSING");
  request = test_subscribe_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START__NOT_SET;
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "START_MISSING");
  request = test_subscribe_request("default");
  request.at = HOLDBACK__V1__START_POINT__START_POINT_UNSPECIFIED;
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "START_INVALID");
  request = test_subscribe_request("default");
  request.processor = (char *)(uintptr_t) "sum";
  test_subscribe_expect_end(server, &request, GRPC_STATUS_NOT_FOUND, "PROCESSOR_NOT_FOUND");
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  request.key_statuses = true;
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "START_INVALID");
  request = test_subscribe_request("default");
  request.incarnation = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)(uintptr_t) "x"};
  test_subscribe_expect_end(server, &request, GRPC_STATUS_FAILED_PRECONDITION,
                            "INCARNATION_CHANGED");
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

static void seal_stream(struct test_server *server, const char *name, int64_t end) {
  Holdback__V1__SealStreamRequest request = HOLDBACK__V1__SEAL_STREAM_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)name;
  request.end_presence_case = HOLDBACK__V1__SEAL_STREAM_REQUEST__END_PRESENCE_END;
  request.end = end;
  struct test_status status;
  Holdback__V1__SealStreamResponse *response =
      test_unary(&server->client, "/holdback.v1.StreamService/SealStream", &request.base,
                 &holdback__v1__seal_stream_response__descriptor, &status);
  assert_non_null(response);
  assert_int_equal(response->end, end);
  holdback__v1__seal_stream_response__free_unpacked(response, NULL);
}

/* When a sealed stream was delivered as a whole, End comes and the call ends OK; not before. */
static void seal_ends_it(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  struct test_seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  seal_stream(server, "default", 12);
  test_append(server, "default", 11, 1);
  test_subscribe_until_position(&call, &seen, 12);
  Holdback__V1__SubscribeResponse *response;
  int64_t end = 0;
  holdback__v1__subscribe_response__free_unpacked(seen.response, NULL);
  while ((response = test_call_read_pb(&call, &holdback__v1__subscribe_response__descriptor))) {
    assert_int_equal(end, 0); /* nothing after End */
    if (response->message_case == HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_END) {
      end = response->end->end;
    }
    holdback__v1__subscribe_response__free_unpacked(response, NULL);
  }
  assert_int_equal(end, 12);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
}

/* A subscription on a stream that is deleted ends with NOT_FOUND. */
static void deletion_ends_it(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  struct test_seen seen = {.count = 0};
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  delete_stream(server, "default");
  while (test_subscribe_read(&call, &seen)) continue;
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
}

/* A stopping server ends it with UNAVAILABLE "server stops". */
static void draining_ends_it(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  struct test_seen seen = {.count = 0};
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  hb_rpc_drain(server->rpc, 10000);
  while (test_subscribe_read(&call, &seen)) continue;
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  assert_string_equal(status.message, "server stops");
}

static int stop_drained(void **state) {
  struct test_server *server = *state;
  test_client_done(&server->client);
  hb_rpc_stop(server->rpc);
  fake_engine_destroy(server->engine);
  free(server);
  return 0;
}

static int start_with_one_subscription(void **state) {
  struct hb_limits limits = hb_limits_default();
  limits.subscriptions_max = 1;
  return test_server_start_with(state, &limits);
}

/* One more than subscriptions_max is RESOURCE_EXHAUSTED; a place that is left can be taken. */
static void subscriptions_are_bounded(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_subscribe_pb request = test_subscribe_request("default");
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  test_subscribe_expect_end(server, &request, GRPC_STATUS_RESOURCE_EXHAUSTED,
                            "TOO_MANY_SUBSCRIPTIONS");
  test_subscribe_finish(&call, &seen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_server_start, test_server_stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(delivers_what_is_there_and_what_comes),
      TEST(progress_comes_at_once),
      TEST(progress_comes_by_time),
      TEST(one_progress_tells_one_catch_up),
      TEST(filters_by_key),
      TEST(filter_without_matches_moves_on),
      TEST(reads_behind_the_tail),
      TEST(bad_requests_are_refused),
      TEST(deletion_ends_it),
      TEST(seal_ends_it),
      cmocka_unit_test_setup_teardown(draining_ends_it, test_server_start, stop_drained),
      cmocka_unit_test_setup_teardown(subscriptions_are_bounded, start_with_one_subscription,
                                      test_server_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
