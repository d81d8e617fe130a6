/* A gRPC client for tests: one thing at a time, each with a time limit. */
#ifndef HB_SERVER_RPC_TEST_CLIENT_H
#define HB_SERVER_RPC_TEST_CLIENT_H

#include <grpc/grpc.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct test_client {
  grpc_channel *channel;
  grpc_completion_queue *queue;
};

struct test_status {
  grpc_status_code code;
  char message[1024];
  char reason[128]; /* of the ErrorInfo; "" = none */
};

/* A call with one operation at a time. */
struct test_call {
  struct test_client *client;
  grpc_call *grpc;
  grpc_metadata_array initial;
  grpc_metadata_array trailing;
};

/* `fd`: a connected socket, taken over. */
void test_client_init(struct test_client *client, int fd);
void test_client_done(struct test_client *client);

void test_call_open(struct test_call *call, struct test_client *client, const char *path);
/* False: the call has ended. */
bool test_call_write(struct test_call *call, struct hb_slice message);
bool test_call_write_pb(struct test_call *call, const ProtobufCMessage *message);
void test_call_half_close(struct test_call *call);
/* One message's bytes into `out`; false: the call has ended. */
bool test_call_read(struct test_call *call, struct hb_buf *out);
/* NULL: the call has ended. */
void *test_call_read_pb(struct test_call *call, const ProtobufCMessageDescriptor *type);
/* Waits for the status, and frees the call. */
void test_call_finish(struct test_call *call, struct test_status *out);
/* Cancels first. */
void test_call_cancel(struct test_call *call);

/* NULL: *out_status says why. */
void *test_unary(struct test_client *client, const char *path, const ProtobufCMessage *request,
                 const ProtobufCMessageDescriptor *response, struct test_status *out_status);

/* An event's frame appended. */
void test_put_event(struct hb_buf *out, int64_t sequence, const char *key, const char *payload);

#endif
