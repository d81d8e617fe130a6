/* A gRPC server in the test's own process that answers what the test says. For cases that a real
 * server shows rarely: a call that ends between two answers, an answer that can't be, a window
 * that is full at the right moment.
 *
 * It listens on a Unix socket in a folder of its own, so no test meets another one's port, and a
 * second server can be started where the first was: that is a restart. */
#ifndef HB_CLIENT_TESTING_FAKE_SERVER_H
#define HB_CLIENT_TESTING_FAKE_SERVER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/slice.h"

struct fake_server;
struct fake_call;

/* On the server's thread: one message of the call, or `at_end`: the client sends no more. Methods
 * are told apart by fake_call_method. */
typedef void fake_handler(void *context, struct fake_call *call, struct hb_slice message,
                          bool at_end);

/* `path` is from fake_path_create. */
struct fake_server *fake_server_start(const char *path, fake_handler *handler, void *context);
/* Every call is cancelled and the connection closed. */
void fake_server_stop(struct fake_server *server);

/* "unix:/tmp/.../socket"; free it with fake_path_destroy, after the server's stop. */
char *fake_path_create(void);
void fake_path_destroy(char *path);

/* On the server's thread, in the handler. */
const char *fake_call_method(const struct fake_call *call); /* "Append", "GetStream", ... */
/* 0 for the first call of this method since the server's start. */
unsigned fake_call_number(const struct fake_call *call);
void fake_call_send(struct fake_call *call, const ProtobufCMessage *message);
void fake_call_send_bytes(struct fake_call *call, struct hb_slice bytes);
/* After what was sent. `reason` NULL = without details, as a broken connection ends. Once; later
 * messages of the call are not told. */
void fake_call_finish(struct fake_call *call, int status, const char *reason, const char *text);
/* Messages of this call that the handler has seen. */
unsigned fake_call_messages(const struct fake_call *call);

#endif
