/* A subscriber for tests: opens Subscribe calls and checks what every answer must keep (I3). */
#ifndef HB_SERVER_RPC_TEST_SUBSCRIBER_H
#define HB_SERVER_RPC_TEST_SUBSCRIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/test_server.h"

typedef Holdback__V1__SubscribeRequest test_subscribe_pb;

/* What a subscription brought since it was opened. */
struct test_seen {
  int64_t positions[4096];
  size_t count;
  int64_t next_position;
  bool caught_up;
  size_t progress;
  Holdback__V1__Progress *last; /* owned by `response` */
  Holdback__V1__SubscribeResponse *response;
};

/* From the earliest event on. */
test_subscribe_pb test_subscribe_request(const char *stream);
void test_subscribe_open(struct test_call *call, struct test_server *server,
                         const test_subscribe_pb *request);
/* One answer; false: the call has ended. */
bool test_subscribe_read(struct test_call *call, struct test_seen *seen);
void test_subscribe_until_caught_up(struct test_call *call, struct test_seen *seen);
void test_subscribe_until_position(struct test_call *call, struct test_seen *seen, int64_t next);
void test_subscribe_finish(struct test_call *call, struct test_seen *seen);
/* A call with `request` ends so, whatever comes before. */
void test_subscribe_expect_end(struct test_server *server, const test_subscribe_pb *request,
                               grpc_status_code code, const char *reason);

#endif
