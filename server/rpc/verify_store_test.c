/* VerifyStore over real gRPC and an engine that finds what a test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "holdback/v1/server.pb-c.h"
#include "server/rpc/test_server.h"

#define VERIFY "/holdback.v1.ServerService/VerifyStore"

static void open_call(struct test_server *server, const char *stream, struct test_call *call) {
  Holdback__V1__VerifyStoreRequest request = HOLDBACK__V1__VERIFY_STORE_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)stream;
  test_call_open(call, &server->client, VERIFY);
  assert_true(test_call_write_pb(call, &request.base));
  test_call_half_close(call);
}

static Holdback__V1__VerifyStoreResponse *next(struct test_call *call) {
  return test_call_read_pb(call, &holdback__v1__verify_store_response__descriptor);
}

/* One answer for each piece, findings as they are, `finished` in the last, then OK. */
static void each_piece_is_answered(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_set_verification(server->engine, 3, 2);
  open_call(server, "", &call);
  for (int i = 1; i <= 3; i++) {
    Holdback__V1__VerifyStoreResponse *answer = next(&call);
    assert_non_null(answer);
    assert_int_equal(answer->finished, i == 3);
    assert_int_equal(answer->progress->blocks, i);
    assert_int_equal(answer->progress->findings, 2 * i);
    assert_int_equal(answer->n_findings, 2);
    assert_string_equal(answer->findings[0]->text, "finding 0");
    assert_null(answer->findings[0]->range);
    assert_string_equal(answer->findings[1]->stream, "some");
    assert_int_equal(answer->findings[1]->stream_id, 7);
    assert_string_equal(answer->findings[1]->family, "log");
    assert_true(answer->findings[1]->range->start == INT64_MIN);
    assert_int_equal(answer->findings[1]->range->end, 1);
    holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  }
  assert_null(next(&call));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
}

/* A stream is named by its name; one that does not exist is refused, and nothing begins. */
static void one_stream_is_looked_at(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_set_verification(server->engine, 1, 0);
  open_call(server, "nowhere", &call);
  assert_null(next(&call));
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
  assert_string_equal(status.reason, "STREAM_NOT_FOUND");
  open_call(server, "default", &call);
  Holdback__V1__VerifyStoreResponse *answer = next(&call);
  assert_non_null(answer);
  assert_int_equal(answer->progress->streams, 1); /* the fake tells that it was given one */
  holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_OK);
}

/* One at a time; a call that is cancelled while a piece is under way lets the next one begin. */
static void one_at_a_time(void **state) {
  struct test_server *server = *state;
  struct test_call first;
  struct test_call second;
  struct test_status status;
  fake_engine_set_verification(server->engine, 2, 0);
  open_call(server, "", &first);
  Holdback__V1__VerifyStoreResponse *answer = next(&first);
  assert_non_null(answer); /* it runs */
  holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  fake_engine_set_verification(server->engine, SIZE_MAX, 0);
  test_call_cancel(&first);
  for (;;) { /* until the server knows of the cancellation */
    open_call(server, "", &second);
    answer = next(&second);
    if (answer) break;
    test_call_finish(&second, &status);
    assert_int_equal(status.code, GRPC_STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(status.reason, "VERIFICATION_RUNS");
  }
  holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  test_call_cancel(&second);
}

/* A second call is refused while the first is under way. */
static void a_second_one_is_refused(void **state) {
  struct test_server *server = *state;
  struct test_call first;
  struct test_call second;
  struct test_status status;
  fake_engine_set_verification(server->engine, SIZE_MAX, 0);
  open_call(server, "", &first);
  Holdback__V1__VerifyStoreResponse *answer = next(&first);
  assert_non_null(answer);
  holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  open_call(server, "", &second);
  assert_null(next(&second));
  test_call_finish(&second, &status);
  assert_int_equal(status.code, GRPC_STATUS_RESOURCE_EXHAUSTED);
  test_call_cancel(&first);
}

/* It was drained by the test. */
static int stop_drained(void **state) {
  struct test_server *server = *state;
  test_client_done(&server->client);
  hb_rpc_stop(server->rpc);
  fake_engine_destroy(server->engine);
  free(server);
  return 0;
}

/* A server that stops ends it, also while a piece is under way, and nothing is left. */
static void a_stopping_server_ends_it(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_set_verification(server->engine, SIZE_MAX, 0);
  open_call(server, "", &call);
  Holdback__V1__VerifyStoreResponse *answer = next(&call);
  assert_non_null(answer);
  holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  fake_engine_hold_verification(server->engine, true);
  hb_rpc_drain(server->rpc, 10000);
  while ((answer = next(&call))) holdback__v1__verify_store_response__free_unpacked(answer, NULL);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  fake_engine_hold_verification(server->engine, false);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_server_start, test_server_stop)
  const struct CMUnitTest tests[] = {
      TEST(each_piece_is_answered),
      TEST(one_stream_is_looked_at),
      TEST(one_at_a_time),
      TEST(a_second_one_is_refused),
      cmocka_unit_test_setup_teardown(a_stopping_server_ends_it, test_server_start, stop_drained),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
