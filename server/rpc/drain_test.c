/* How the server stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdback/v1/delivery.pb-c.h"
#include "holdback/v1/ingest.pb-c.h"
#include "server/rpc/test_server.h"

#define APPEND_STREAM "/holdback.v1.IngestService/AppendStream"
#define SUBSCRIBE "/holdback.v1.DeliveryService/Subscribe"

static int stop_drained(void **state) {
  struct test_server *server = *state;
  test_client_done(&server->client);
  hb_rpc_stop(server->rpc);
  fake_engine_destroy(server->engine);
  free(server);
  return 0;
}

static void write_batch(struct test_call *call, const char *stream, int64_t first, size_t count) {
  struct hb_buf bytes = {0};
  test_put_append(&bytes, stream, first, count);
  (void)test_call_write(call, hb_buf_view(&bytes));
  hb_buf_done(&bytes);
}

static bool read_answer(struct test_call *call, uint64_t ordinal) {
  Holdback__V1__AppendStreamResponse *response =
      test_call_read_pb(call, &holdback__v1__append_stream_response__descriptor);
  if (!response) return false;
  assert_int_equal(response->ordinal, ordinal);
  holdback__v1__append_stream_response__free_unpacked(response, NULL);
  return true;
}

/* What an append stream sent and the engine took is answered, then it ends with UNAVAILABLE. */
static void accepted_batches_are_answered(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_hold_answers(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  for (int i = 0; i < 3; i++) write_batch(&call, "default", 1 + i, 1);
  while (fake_engine_unanswered(server->engine) < 3) sched_yield();
  hb_rpc_drain(server->rpc, 10000);
  fake_engine_hold_answers(server->engine, false);
  for (uint64_t i = 0; i < 3; i++) assert_true(read_answer(&call, i));
  assert_false(read_answer(&call, 3));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  assert_string_equal(status.message, "server stops");
}

/* A unary call that is under way gets its answer. */
static void unary_call_is_answered(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  struct hb_buf bytes = {0};
  fake_engine_hold_answers(server->engine, true);
  test_put_append(&bytes, "default", 1, 1);
  test_call_open(&call, &server->client, "/holdback.v1.IngestService/Append");
  (void)test_call_write(&call, hb_buf_view(&bytes));
  test_call_half_close(&call);
  while (fake_engine_unanswered(server->engine) < 1) sched_yield();
  hb_rpc_drain(server->rpc, 10000);
  fake_engine_hold_answers(server->engine, false);
  hb_buf_clear(&bytes);
  assert_true(test_call_read(&call, &bytes));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
  hb_buf_done(&bytes);
}

/* A call whose request never comes does not hold the server up. */
static void silent_call_is_ended(void **state) {
  struct test_server *server = *state;
  struct test_call call, other;
  struct test_status status;
  struct hb_buf bytes = {0};
  test_call_open(&call, &server->client, "/holdback.v1.ServerService/GetServer");
  /* Once a later call of the connection was answered the server knows of this one. */
  test_call_open(&other, &server->client, "/holdback.v1.ServerService/GetServer");
  (void)test_call_write(&other, (struct hb_slice){0});
  test_call_half_close(&other);
  assert_true(test_call_read(&other, &bytes));
  test_call_finish(&other, &status);
  hb_rpc_drain(server->rpc, 10000);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  hb_buf_done(&bytes);
}

/* A subscriber that does not read is left to itself after half of the time. */
static void stalled_subscriber_is_cut(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  char *payload = calloc(1, 1000001);
  memset(payload, 'x', 1000000);
  for (int64_t i = 1; i <= 12; i++) {
    struct hb_buf batch = {0}, bytes = {0};
    test_put_event(&batch, i, "k", payload);
    hb_buf_append(&bytes,
                  "\x0a\x07"
                  "default\x12",
                  10);
    uint32_t size = (uint32_t)batch.size; /* three bytes of varint */
    hb_buf_append_u8(&bytes, (uint8_t)(size | 0x80));
    hb_buf_append_u8(&bytes, (uint8_t)((size >> 7) | 0x80));
    hb_buf_append_u8(&bytes, (uint8_t)(size >> 14));
    hb_buf_append(&bytes, batch.data, batch.size);
    test_append_bytes(server, &bytes);
    hb_buf_done(&batch);
    hb_buf_done(&bytes);
  }
  free(payload);
  Holdback__V1__SubscribeRequest request = HOLDBACK__V1__SUBSCRIBE_REQUEST__INIT;
  request.stream = (char *)(uintptr_t) "default";
  request.start_case = HOLDBACK__V1__SUBSCRIBE_REQUEST__START_AT;
  request.at = HOLDBACK__V1__START_POINT__START_POINT_EARLIEST;
  test_call_open(&call, &server->client, SUBSCRIBE);
  (void)test_call_write_pb(&call, &request.base);
  test_call_half_close(&call);
  struct hb_buf bytes = {0};
  assert_true(test_call_read(&call, &bytes)); /* Progress; then nothing more is read */
  hb_buf_done(&bytes);
  hb_rpc_drain(server->rpc, 200);
  hb_rpc_stop(server->rpc); /* returns, though the client never reads */
  struct hb_rpc_options options = {.engine = server->engine};
  assert_int_equal(hb_rpc_start(&options, &server->rpc, NULL), HB_OK);
  test_call_cancel(&call);
}

/* A connection whose peer does nothing at all, as a stopped process, does not hold the server up:
 * gRPC alone would wait for 20 s. */
static void silent_connection_is_closed(void **state) {
  struct test_server *server = *state;
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  hb_rpc_add_connection(server->rpc, ends[1]);
  test_append(server, "default", 1, 1);
  test_client_done(&server->client);
  uint64_t began_ms = hb_clock_mono_ms();
  hb_rpc_drain(server->rpc, 200);
  hb_rpc_stop(server->rpc);
  assert_in_range(hb_clock_mono_ms() - began_ms, 0, 10000);
  close(ends[0]);
  fake_engine_destroy(server->engine);
  free(server);
  grpc_shutdown_blocking();
}

/* Calls that are open when time is over are cancelled, and everything comes back. */
static void cancel_ends_what_is_left(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_hold_answers(server->engine, true);
  test_call_open(&call, &server->client, APPEND_STREAM);
  write_batch(&call, "default", 1, 1);
  while (fake_engine_unanswered(server->engine) < 1) sched_yield();
  hb_rpc_drain(server->rpc, 10000);
  hb_rpc_cancel(server->rpc);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  fake_engine_hold_answers(server->engine, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(accepted_batches_are_answered, test_server_start,
                                      stop_drained),
      cmocka_unit_test_setup_teardown(unary_call_is_answered, test_server_start, stop_drained),
      cmocka_unit_test_setup_teardown(silent_call_is_ended, test_server_start, stop_drained),
      cmocka_unit_test_setup_teardown(stalled_subscriber_is_cut, test_server_start,
                                      test_server_stop),
      cmocka_unit_test_setup(silent_connection_is_closed, test_server_start),
      cmocka_unit_test_setup_teardown(cancel_ends_what_is_left, test_server_start, stop_drained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
