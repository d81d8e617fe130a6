/* Where a subscription begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/frame/wire.h"
#include "server/rpc/fake_engine.h"
#include "server/rpc/test_subscriber.h"

/* A stream "from first seen" without events: no numbers, caught up, and it waits. */
static void waits_for_the_first_event(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_server_create_stream(server, "fresh", true, 0);
  test_subscribe_pb request = test_subscribe_request("fresh");
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  assert_int_equal(seen.last->frontier_presence_case, 0);
  assert_int_equal(seen.last->next_position_presence_case, 0);
  assert_true(seen.caught_up);
  test_append(server, "fresh", -7, 3);
  test_subscribe_until_position(&call, &seen, -4);
  while (seen.count < 3) assert_true(test_subscribe_read(&call, &seen));
  assert_int_equal(seen.positions[0], -7);
  test_subscribe_finish(&call, &seen);
}

/* Start now: only what is released after the call was accepted. */
static void starts_now(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  test_subscribe_pb request = test_subscribe_request("default");
  request.at = HOLDBACK__V1__START_POINT__START_POINT_NOW;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  test_append(server, "default", 11, 2);
  test_subscribe_until_position(&call, &seen, 13);
  assert_int_equal(seen.count, 2);
  assert_int_equal(seen.positions[0], 11);
  test_subscribe_finish(&call, &seen);
}

/* Start at a position inside a block; one above the frontier waits; one below is refused. */
static void starts_at_a_position(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_append(server, "default", 1, 10);
  test_subscribe_pb request = test_subscribe_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_POSITION;
  request.position = 4;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 7);
  assert_int_equal(seen.positions[0], 4);
  test_subscribe_finish(&call, &seen);

  seen = (struct test_seen){.count = 0};
  request.position = 12;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  test_append(server, "default", 11, 3);
  test_subscribe_until_position(&call, &seen, 14);
  assert_int_equal(seen.positions[0], 12);
  test_subscribe_finish(&call, &seen);

  request.position = 0;
  test_subscribe_expect_end(server, &request, GRPC_STATUS_OUT_OF_RANGE, "BELOW_EARLIEST");
}

static void append_to(struct test_server *server, const char *stream, int64_t sequence,
                      int64_t seconds) {
  struct hb_buf time = {0}, event = {0}, batch = {0}, bytes = {0};
  hb_wire_append_varint(&time, 1, (uint64_t)seconds);
  hb_wire_append_varint(&event, 1, (uint64_t)sequence);
  hb_wire_append_bytes(&event, 3, hb_buf_view(&time));
  hb_wire_append_bytes(&batch, 1, hb_buf_view(&event));
  hb_wire_append_bytes(&bytes, 1, hb_slice_text(stream));
  hb_wire_append_bytes(&bytes, 2, hb_buf_view(&batch));
  test_append_bytes(server, &bytes);
  hb_buf_done(&time);
  hb_buf_done(&event);
  hb_buf_done(&batch);
  hb_buf_done(&bytes);
}

static void append_at(struct test_server *server, int64_t sequence, int64_t seconds) {
  append_to(server, "default", sequence, seconds);
}

/* Start at a time: the first event of that time or later, and all after it. */
static void starts_at_a_time(void **state) {
  struct test_server *server = *state;
  static const int64_t seconds[] = {10, 30, 20, 40};
  for (int64_t i = 0; i < 4; i++) append_at(server, i + 1, seconds[i]);
  struct test_call call;
  struct test_seen seen = {.count = 0};
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  test_subscribe_pb request = test_subscribe_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  time.seconds = 25;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.count, 3);
  assert_int_equal(seen.positions[0], 2);
  test_subscribe_finish(&call, &seen);
  time.seconds = INT64_C(300000000000);
  test_subscribe_expect_end(server, &request, GRPC_STATUS_INVALID_ARGUMENT, "EVENT_TIME_INVALID");
}

/* A time that no event has yet is "now": all that comes from here on, whatever its time, so that
 * who resumes at next_position sees the same. */
static void starts_now_where_no_event_has_the_time(void **state) {
  struct test_server *server = *state;
  append_at(server, 1, 10);
  struct test_call call;
  struct test_seen seen = {.count = 0};
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  test_subscribe_pb request = test_subscribe_request("default");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  time.seconds = 100;
  test_subscribe_open(&call, server, &request);
  test_subscribe_until_caught_up(&call, &seen);
  assert_int_equal(seen.last->next_position, 2);
  append_at(server, 2, 50);
  test_subscribe_until_position(&call, &seen, 3);
  assert_int_equal(seen.count, 1);
  assert_int_equal(seen.positions[0], 2);
  test_subscribe_finish(&call, &seen);
}

/* The same on a stream without a first event: it waits for that one, as "now" does. */
static void a_time_waits_for_the_first_event(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  test_server_create_stream(server, "fresh", true, 0);
  test_subscribe_pb request = test_subscribe_request("fresh");
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  time.seconds = 100;
  test_subscribe_open(&call, server, &request);
  assert_true(test_subscribe_read(&call, &seen));
  test_append(server, "fresh", 7, 2); /* without a time */
  test_subscribe_until_position(&call, &seen, 9);
  assert_int_equal(seen.count, 2);
  assert_int_equal(seen.positions[0], 7);
  test_subscribe_finish(&call, &seen);
}

/* ---- results by event time */

/* The first result that comes; those of the fake are 0 to 3. */
static int64_t first_result(struct test_call *call, struct test_seen *seen) {
  while (seen->count == 0) assert_true(test_subscribe_read(call, seen));
  int64_t position = seen->positions[0];
  test_subscribe_finish(call, seen);
  *seen = (struct test_seen){.count = 0};
  return position;
}

/* Results of a processor start at the first of that time. Before the processor has come to the
 * event of that time, what it brings next may be earlier: the call waits. */
static void results_start_at_a_time(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_server_create_stream(server, "results", true, 0);
  for (int64_t i = 0; i < 4; i++) append_to(server, "results", i, 100 + 10 * i);
  for (int64_t i = 1; i <= 30; i++) append_at(server, i, 100 + i);
  struct hb_stream *stream = hb_engine_find_stream(server->engine, "default");
  struct hb_stream *results = hb_engine_find_stream(server->engine, "results");
  fake_engine_set_results(stream, results, 15);
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  time.seconds = 125;
  test_subscribe_pb request = test_subscribe_request("default");
  request.processor = (char *)(uintptr_t) "p";
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  request.progress_interval_ms = 10;
  test_subscribe_open(&call, server, &request);
  for (int i = 0; i < 3; i++) {
    assert_true(test_subscribe_read(&call, &seen));
    assert_int_equal(seen.last->next_position_presence_case, 0);
    assert_false(seen.caught_up);
  }
  fake_engine_set_results(stream, results, 24); /* one before the event */
  assert_true(test_subscribe_read(&call, &seen));
  assert_int_equal(seen.last->next_position_presence_case, 0);
  fake_engine_set_results(stream, results, 25);
  assert_int_equal(first_result(&call, &seen), 3);
  time.seconds = 105; /* it is past that already */
  test_subscribe_open(&call, server, &request);
  assert_int_equal(first_result(&call, &seen), 1);
  hb_stream_unref(stream);
  hb_stream_unref(results);
}

/* Without a first event there are no results yet: all that come are later than now. */
static void results_of_nothing_start_at_once(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_seen seen = {.count = 0};
  test_server_create_stream(server, "fresh", true, 0);
  test_server_create_stream(server, "results", true, 0);
  test_append(server, "results", 0, 1);
  struct hb_stream *stream = hb_engine_find_stream(server->engine, "fresh");
  struct hb_stream *results = hb_engine_find_stream(server->engine, "results");
  fake_engine_set_results(stream, results, INT64_MIN);
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  test_subscribe_pb request = test_subscribe_request("fresh");
  request.processor = (char *)(uintptr_t) "p";
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME;
  request.event_time = &time;
  test_subscribe_open(&call, server, &request);
  assert_int_equal(first_result(&call, &seen), 0);
  hb_stream_unref(stream);
  hb_stream_unref(results);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_server_start, test_server_stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(waits_for_the_first_event),
      TEST(starts_now),
      TEST(starts_at_a_position),
      TEST(starts_at_a_time),
      TEST(starts_now_where_no_event_has_the_time),
      TEST(a_time_waits_for_the_first_event),
      TEST(results_start_at_a_time),
      TEST(results_of_nothing_start_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
