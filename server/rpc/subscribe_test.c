/* Subscribe over real gRPC: order, starts, filters, Progress, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/frame/wire.h"
#include "holdback/v1/delivery.pb-c.h"
#include "holdback/v1/stream.pb-c.h"
#include "server/rpc/test_server.h"

#define SUBSCRIBE "/holdback.v1.DeliveryService/Subscribe"

typedef Holdback__V1__SubscribeRequest request_pb;
typedef Holdback__V1__SubscribeResponse response_pb;

/* What a subscription brought since it was opened. */
struct seen {
  int64_t positions[4096];
  size_t count;
  int64_t next_position;
  bool caught_up;
  size_t progress;
  Holdback__V1__Progress *last; /* owned by `response` */
  response_pb *response;
};

static request_pb make_request(const char *stream) {
  request_pb request = HOLDBACK__V1__SUBSCRIBE_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)stream;
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_AT;
  request.at = HOLDBACK__V1__START_POINT__START_POINT_EARLIEST;
  return request;
}

static void open_call(struct test_call *call, struct test_server *server,
                      const request_pb *request) {
  test_call_open(call, &server->client, SUBSCRIBE);
  (void)test_call_write_pb(call, &request->base);
  test_call_half_close(call);
}

static void take_batch(struct seen *seen, const Holdback__V1__Batch *batch) {
  if (batch->n_positions) assert_int_equal(batch->n_positions, batch->n_events);
  for (size_t i = 0; i < batch->n_events; i++) {
    int64_t position =
        batch->n_positions ? batch->positions[i] : batch->first_position + (int64_t)i;
    assert_int_equal(position, batch->events[i]->sequence);
    if (seen->count) assert_true(position > seen->positions[seen->count - 1]);
    seen->positions[seen->count++] = position;
  }
  seen->next_position = batch->next_position;
}

static void forget(struct seen *seen) {
  if (seen->response) holdback__v1__subscribe_response__free_unpacked(seen->response, NULL);
  seen->response = NULL;
}

/* One answer; false: the call has ended. */
static bool read_one(struct test_call *call, struct seen *seen) {
  forget(seen);
  seen->response = test_call_read_pb(call, &holdback__v1__subscribe_response__descriptor);
  if (!seen->response) return false;
  if (seen->response->message_case == HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_BATCH) {
    take_batch(seen, seen->response->batch);
    seen->caught_up = false;
  } else {
    assert_int_equal(seen->response->message_case,
                     HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_PROGRESS);
    seen->progress++;
    seen->last = seen->response->progress;
    seen->caught_up = seen->last->caught_up;
  }
  return true;
}

static void read_until_caught_up(struct test_call *call, struct seen *seen) {
  do {
    assert_true(read_one(call, seen));
  } while (!seen->caught_up);
}

static void read_until_position(struct test_call *call, struct seen *seen, int64_t next) {
  while (seen->next_position < next) assert_true(read_one(call, seen));
}

static void finish(struct test_call *call, struct seen *seen) {
  forget(seen);
  test_call_cancel(call);
}

static void expect_end(struct test_server *server, const request_pb *request, grpc_status_code code,
                       const char *reason) {
  struct test_call call;
  struct test_status status;
  struct seen seen = {.count = 0};
  open_call(&call, server, request);
  while (read_one(&call, &seen)) continue;
  test_call_finish(&call, &status);
  if (status.code != code || strcmp(status.reason, reason) != 0) {
    fail_msg("%d %s %s", status.code, status.reason, status.message);
  }
}

/* Everything that is there comes in order, then Progress says caught up; then what comes later. */
static void delivers_what_is_there_and_what_comes(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  test_append(server, "default", 1, 1000);
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 1000);
  assert_int_equal(seen.positions[0], 1);
  assert_int_equal(seen.last->next_position, 1001);
  test_append(server, "default", 1002, 1);
  test_append(server, "default", 1001, 1);
  read_until_position(&call, &seen, 1003);
  assert_int_equal(seen.count, 1002);
  finish(&call, &seen);
}

/* The first answer is a Progress, on an empty stream too; it names the gap that blocks. */
static void progress_comes_at_once(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  test_append(server, "default", 5, 1);
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  assert_true(read_one(&call, &seen));
  assert_int_equal(seen.progress, 1);
  assert_int_equal(seen.last->frontier, 1);
  assert_int_equal(seen.last->highest, 5);
  assert_int_equal(seen.last->held_events, 1);
  assert_int_equal(seen.last->blocked_by->start, 1);
  assert_int_equal(seen.last->blocked_by->end, 5);
  assert_int_equal(seen.last->incarnation.len, 24);
  assert_true(seen.caught_up);
  finish(&call, &seen);
}

/* Progress goes on by time while nothing happens. */
static void progress_comes_by_time(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  request_pb request = make_request("default");
  request.progress_interval_ms = 10;
  open_call(&call, server, &request);
  while (seen.progress < 5) assert_true(read_one(&call, &seen));
  finish(&call, &seen);
}

/* A stream "from first seen" without events: no numbers, caught up, and it waits. */
static void waits_for_the_first_event(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  test_server_create_stream(server, "fresh", true, 0);
  request_pb request = make_request("fresh");
  open_call(&call, server, &request);
  assert_true(read_one(&call, &seen));
  assert_int_equal(seen.last->frontier_presence_case, 0);
  assert_int_equal(seen.last->next_position_presence_case, 0);
  assert_true(seen.caught_up);
  test_append(server, "fresh", -7, 3);
  read_until_position(&call, &seen, -4);
  while (seen.count < 3) assert_true(read_one(&call, &seen));
  assert_int_equal(seen.positions[0], -7);
  finish(&call, &seen);
}

/* Start now: only what is released after the call was accepted. */
static void starts_now(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  request_pb request = make_request("default");
  request.at = HOLDBACK__V1__START_POINT__START_POINT_NOW;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  test_append(server, "default", 11, 2);
  read_until_position(&call, &seen, 13);
  assert_int_equal(seen.count, 2);
  assert_int_equal(seen.positions[0], 11);
  finish(&call, &seen);
}

/* Start at a position inside a block; one above the frontier waits; one below is refused. */
static void starts_at_a_position(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  request_pb request = make_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_POSITION;
  request.position = 4;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 7);
  assert_int_equal(seen.positions[0], 4);
  finish(&call, &seen);

  seen = (struct seen){.count = 0};
  request.position = 12;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  test_append(server, "default", 11, 3);
  read_until_position(&call, &seen, 14);
  assert_int_equal(seen.positions[0], 12);
  finish(&call, &seen);

  request.position = 0;
  expect_end(server, &request, GRPC_STATUS_OUT_OF_RANGE, "BELOW_EARLIEST");
}

/* Start at a time: the first event of that time or later, and all after it. */
static void starts_at_a_time(void **state) {
  struct test_server *server = *state;
  static const int64_t seconds[] = {10, 30, 20, 40};
  for (int64_t i = 0; i < 4; i++) {
    struct hb_buf time = {0}, event = {0}, batch = {0}, bytes = {0};
    hb_wire_append_varint(&time, 1, (uint64_t)seconds[i]);
    hb_wire_append_varint(&event, 1, (uint64_t)i + 1);
    hb_wire_append_bytes(&event, 3, hb_buf_view(&time));
    hb_wire_append_bytes(&batch, 1, hb_buf_view(&event));
    hb_wire_append_bytes(&bytes, 1, hb_slice_text("default"));
    hb_wire_append_bytes(&bytes, 2, hb_buf_view(&batch));
    test_append_bytes(server, &bytes);
    hb_buf_done(&time);
    hb_buf_done(&event);
    hb_buf_done(&batch);
    hb_buf_done(&bytes);
  }
  struct test_call call;
  struct seen seen = {.count = 0};
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  request_pb request = make_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  time.seconds = 25;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 3);
  assert_int_equal(seen.positions[0], 2);
  finish(&call, &seen);
  time.seconds = INT64_C(300000000000);
  expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "EVENT_TIME_INVALID");
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
  struct seen seen = {.count = 0};
  append_keys(server, 1, 1000);
  ProtobufCBinaryData key = {.len = 5, .data = (uint8_t *)(uintptr_t) "third"};
  Holdback__V1__Filter filter = HOLDBACK__V1__FILTER__INIT;
  filter.n_keys = 1;
  filter.keys = &key;
  request_pb request = make_request("default");
  request.filter = &filter;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 333);
  assert_int_equal(seen.positions[332], 999);
  assert_int_equal(seen.last->next_position, 1001);
  finish(&call, &seen);
}

/* A filter that matches nothing still brings Progress whose next_position moves. */
static void filter_without_matches_moves_on(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  for (int i = 0; i < 30; i++) append_keys(server, 1 + 500 * i, 500);
  ProtobufCBinaryData prefix = {.len = 4, .data = (uint8_t *)(uintptr_t) "none"};
  Holdback__V1__Filter filter = HOLDBACK__V1__FILTER__INIT;
  filter.n_key_prefixes = 1;
  filter.key_prefixes = &prefix;
  request_pb request = make_request("default");
  request.filter = &filter;
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 0);
  assert_int_equal(seen.last->next_position, 15001);
  filter.n_key_prefixes = 0;
  finish(&call, &seen);
  expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "FILTER_EMPTY");
}

/* Below the shared tail blocks come from a reader; the subscriber sees no difference. */
static void reads_behind_the_tail(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct seen seen = {.count = 0};
  fake_engine_set_tail(server->engine, 1);
  for (int i = 0; i < 8; i++) test_append(server, "default", 1 + 500 * i, 500);
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 4000);
  finish(&call, &seen);
}

/* Requests that can't be served end with a fitting status. */
static void bad_requests_are_refused(void **state) {
  struct test_server *server = *state;
  request_pb request = make_request("nowhere");
  expect_end(server, &request, GRPC_STATUS_NOT_FOUND, "STREAM_NOT_FOUND");
  request = make_request("");
  expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "STREAM_MISSING");
  request = make_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START__NOT_SET;
  expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "START_MISSING");
  request = make_request("default");
  request.at = HOLDBACK__V1__START_POINT__START_POINT_UNSPECIFIED;
  expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "START_INVALID");
  request = make_request("default");
  request.processor = (char *)(uintptr_t) "sum";
  expect_end(server, &request, GRPC_STATUS_NOT_FOUND, "PROCESSOR_NOT_FOUND");
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  expect_end(server, &request, GRPC_STATUS_UNIMPLEMENTED, "FEATURE_NOT_BUILT");
  request = make_request("default");
  request.incarnation = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)(uintptr_t) "x"};
  expect_end(server, &request, GRPC_STATUS_FAILED_PRECONDITION, "INCARNATION_CHANGED");
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
  struct seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  read_until_caught_up(&call, &seen);
  seal_stream(server, "default", 12);
  test_append(server, "default", 11, 1);
  read_until_position(&call, &seen, 12);
  Holdback__V1__SubscribeResponse *response;
  int64_t end = 0;
  forget(&seen);
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
  struct seen seen = {.count = 0};
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  assert_true(read_one(&call, &seen));
  delete_stream(server, "default");
  while (read_one(&call, &seen)) continue;
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
}

/* A stopping server ends it with UNAVAILABLE "server stops". */
static void draining_ends_it(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  struct seen seen = {.count = 0};
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  assert_true(read_one(&call, &seen));
  hb_rpc_drain(server->rpc, 10000);
  while (read_one(&call, &seen)) continue;
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
  struct seen seen = {.count = 0};
  request_pb request = make_request("default");
  open_call(&call, server, &request);
  assert_true(read_one(&call, &seen));
  expect_end(server, &request, GRPC_STATUS_RESOURCE_EXHAUSTED, "TOO_MANY_SUBSCRIPTIONS");
  finish(&call, &seen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_server_start, test_server_stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(delivers_what_is_there_and_what_comes),
      TEST(progress_comes_at_once),
      TEST(progress_comes_by_time),
      TEST(waits_for_the_first_event),
      TEST(starts_now),
      TEST(starts_at_a_position),
      TEST(starts_at_a_time),
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
