/* Decides nothing: puts a server and a client together. */
#include "server/rpc/test_server.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"
#include "holdback/v1/ingest.pb-c.h"
#include "holdback/v1/stream.pb-c.h"

void test_server_connect(struct test_server *server, struct test_client *out_client) {
  int fds[2];
  int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
  HB_ASSERT(!failed);
  hb_rpc_add_connection(server->rpc, fds[0]);
  test_client_init(out_client, fds[1]);
}

void test_server_create_stream(struct test_server *server, const char *name, bool first_seen,
                               int64_t first_sequence) {
  Holdback__V1__StreamConfig config = HOLDBACK__V1__STREAM_CONFIG__INIT;
  config.name = (char *)(uintptr_t)name;
  config.mode = HOLDBACK__V1__STREAM_MODE__STREAM_MODE_GLOBAL;
  if (first_seen) {
    config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN;
    config.first_seen = true;
  } else {
    config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE;
    config.first_sequence = first_sequence;
  }
  Holdback__V1__CreateStreamRequest request = HOLDBACK__V1__CREATE_STREAM_REQUEST__INIT;
  request.config = &config;
  struct test_status status;
  Holdback__V1__CreateStreamResponse *response =
      test_unary(&server->client, "/holdback.v1.StreamService/CreateStream", &request.base,
                 &holdback__v1__create_stream_response__descriptor, &status);
  HB_ASSERT(response);
  holdback__v1__create_stream_response__free_unpacked(response, NULL);
}

int test_server_start_with(void **state, const struct hb_limits *limits) {
  /* Never shut down: C core 1.51 sometimes sleeps 10 s in it, when a write was blocked before. */
  grpc_init();
  struct test_server *server = hb_calloc(1, sizeof *server);
  server->engine = fake_engine_create(limits);
  struct hb_rpc_options options = {.engine = server->engine};
  struct hb_err err;
  enum hb_code code = hb_rpc_start(&options, &server->rpc, &err);
  HB_ASSERT(code == HB_OK);
  test_server_connect(server, &server->client);
  test_server_create_stream(server, "default", false, 1);
  *state = server;
  return 0;
}

int test_server_start(void **state) {
  struct hb_limits limits = hb_limits_default();
  return test_server_start_with(state, &limits);
}

int test_server_stop(void **state) {
  struct test_server *server = *state;
  test_client_done(&server->client);
  hb_rpc_drain(server->rpc, 10000);
  hb_rpc_stop(server->rpc);
  fake_engine_destroy(server->engine);
  free(server);
  return 0;
}

void test_put_append(struct hb_buf *out, const char *stream, int64_t first, size_t count) {
  struct hb_buf batch = {0};
  for (size_t i = 0; i < count; i++) test_put_event(&batch, first + (int64_t)i, "k", "payload");
  if (stream[0]) hb_wire_append_bytes(out, 1, hb_slice_text(stream));
  hb_wire_append_bytes(out, 2, hb_buf_view(&batch));
  hb_buf_done(&batch);
}

void test_append_bytes(struct test_server *server, const struct hb_buf *bytes) {
  struct test_call call;
  struct test_status status;
  test_call_open(&call, &server->client, "/holdback.v1.IngestService/Append");
  (void)test_call_write(&call, hb_buf_view(bytes));
  test_call_half_close(&call);
  Holdback__V1__AppendResponse *response =
      test_call_read_pb(&call, &holdback__v1__append_response__descriptor);
  HB_ASSERT(response);
  test_call_finish(&call, &status);
  HB_ASSERT(status.code == GRPC_STATUS_OK);
  holdback__v1__append_response__free_unpacked(response, NULL);
}

void test_append(struct test_server *server, const char *stream, int64_t first, size_t count) {
  struct hb_buf bytes = {0};
  test_put_append(&bytes, stream, first, count);
  test_append_bytes(server, &bytes);
  hb_buf_done(&bytes);
}
