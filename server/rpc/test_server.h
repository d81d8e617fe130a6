/* A server for tests: the real methods over a fake engine, with one client on a socket pair. */
#ifndef HB_SERVER_RPC_TEST_SERVER_H
#define HB_SERVER_RPC_TEST_SERVER_H

#include "server/rpc/fake_engine.h"
#include "server/rpc/rpc.h"
#include "server/rpc/test_client.h"

struct test_server {
  struct hb_engine *engine;
  struct hb_rpc *rpc;
  struct test_client client;
};

/* cmocka's set-up and tear-down; the state is a struct test_server with the stream `default`
 * (first_sequence 1). Tear-down drains and asserts that nothing is left. */
int test_server_start(void **state);
int test_server_stop(void **state);
/* The same with limits of one's own. */
int test_server_start_with(void **state, const struct hb_limits *limits);
/* One more client. */
void test_server_connect(struct test_server *server, struct test_client *out_client);
void test_server_create_stream(struct test_server *server, const char *name, bool first_seen,
                               int64_t first_sequence);

/* An AppendRequest (or AppendStreamRequest) with events [first, first + count) and key "k". */
void test_put_append(struct hb_buf *out, const char *stream, int64_t first, size_t count);
/* Append by the unary call; asserts OK. */
void test_append_bytes(struct test_server *server, const struct hb_buf *bytes);
void test_append(struct test_server *server, const char *stream, int64_t first, size_t count);

#endif
