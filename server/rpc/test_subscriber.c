/* Decides what is true of every answer of a subscription, whatever a test looks for. */
#include "server/rpc/test_subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define SUBSCRIBE "/holdback.v1.DeliveryService/Subscribe"

test_subscribe_pb test_subscribe_request(const char *stream) {
  test_subscribe_pb request = HOLDBACK__V1__SUBSCRIBE_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)stream;
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_AT;
  request.at = HOLDBACK__V1__START_POINT__START_POINT_EARLIEST;
  return request;
}

void test_subscribe_open(struct test_call *call, struct test_server *server,
                         const test_subscribe_pb *request) {
  test_call_open(call, &server->client, SUBSCRIBE);
  (void)test_call_write_pb(call, &request->base);
  test_call_half_close(call);
}

static void take_batch(struct test_seen *seen, const Holdback__V1__Batch *batch) {
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

static void take_results(struct test_seen *seen, const Holdback__V1__ResultBatch *batch) {
  for (size_t i = 0; i < batch->n_results; i++) {
    assert_int_equal(batch->results[i]->position, batch->first_position + (int64_t)i);
    seen->positions[seen->count++] = batch->results[i]->position;
  }
  seen->next_position = batch->next_position;
}

static void forget(struct test_seen *seen) {
  if (seen->response) holdback__v1__subscribe_response__free_unpacked(seen->response, NULL);
  seen->response = NULL;
}

bool test_subscribe_read(struct test_call *call, struct test_seen *seen) {
  forget(seen);
  seen->response = test_call_read_pb(call, &holdback__v1__subscribe_response__descriptor);
  if (!seen->response) return false;
  if (seen->response->message_case == HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_BATCH) {
    take_batch(seen, seen->response->batch);
    seen->caught_up = false;
  } else if (seen->response->message_case == HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_RESULTS) {
    take_results(seen, seen->response->results);
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

void test_subscribe_until_caught_up(struct test_call *call, struct test_seen *seen) {
  do {
    assert_true(test_subscribe_read(call, seen));
  } while (!seen->caught_up);
}

void test_subscribe_until_position(struct test_call *call, struct test_seen *seen, int64_t next) {
  while (seen->next_position < next) assert_true(test_subscribe_read(call, seen));
}

void test_subscribe_finish(struct test_call *call, struct test_seen *seen) {
  forget(seen);
  test_call_cancel(call);
}

void test_subscribe_expect_end(struct test_server *server, const test_subscribe_pb *request,
                               grpc_status_code code, const char *reason) {
  struct test_call call;
  struct test_status status;
  struct test_seen seen = {.count = 0};
  test_subscribe_open(&call, server, request);
  while (test_subscribe_read(&call, &seen)) continue;
  test_call_finish(&call, &status);
  if (status.code != code || strcmp(status.reason, reason) != 0) {
    fail_msg("%d %s %s", status.code, status.reason, status.message);
  }
}
