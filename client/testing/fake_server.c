/* Decides nothing about answers: that is the test's. One thread, one completion queue; a call is
 * freed when all of its tags came back. */
#include "client/testing/fake_server.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "client/bytebuf.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

struct tag {
  void (*done)(struct fake_call *call, bool ok);
  struct fake_call *call;
};

struct outgoing {
  struct outgoing *next;
  grpc_byte_buffer *buffer;
};

struct fake_call {
  struct fake_server *server;
  grpc_call *call;
  grpc_call_details details;
  grpc_metadata_array metadata;
  char method[64];
  unsigned number;
  unsigned messages;
  unsigned pending;
  struct tag accepted, opened, received, sent, finished, closed;
  grpc_byte_buffer *incoming;
  int cancelled;
  struct outgoing *first, *last;
  bool sending;
  bool over; /* fake_call_finish was called */
  bool status_sent;
  int status;
  char *text;
  grpc_slice bin;
  bool has_bin;
};

enum { METHODS_MAX = 16 };

struct fake_server {
  grpc_server *server;
  grpc_completion_queue *queue;
  pthread_t thread;
  fake_handler *handler;
  void *context;
  unsigned calls; /* not freed yet */
  bool stopping;
  struct {
    char name[64];
    unsigned calls;
  } methods[METHODS_MAX];
};

static void start(struct fake_call *call, const grpc_op *ops, size_t count, struct tag *tag) {
  grpc_call_error started = grpc_call_start_batch(call->call, ops, count, tag, NULL);
  HB_ASSERT(started == GRPC_CALL_OK);
  call->pending++;
}

static void free_call(struct fake_call *call) {
  while (call->first) {
    struct outgoing *outgoing = call->first;
    call->first = outgoing->next;
    grpc_byte_buffer_destroy(outgoing->buffer);
    free(outgoing);
  }
  if (call->call) grpc_call_unref(call->call);
  if (call->has_bin) grpc_slice_unref(call->bin);
  grpc_call_details_destroy(&call->details);
  grpc_metadata_array_destroy(&call->metadata);
  free(call->text);
  call->server->calls--;
  free(call);
}

static void came_back(struct fake_call *call) {
  HB_ASSERT(call->pending > 0);
  if (--call->pending == 0) free_call(call);
}

static void send_status(struct fake_call *call) {
  if (!call->over || call->status_sent || call->sending || call->first) return;
  call->status_sent = true;
  grpc_metadata row = {.key = grpc_slice_from_static_string("grpc-status-details-bin"),
                       .value = call->bin};
  grpc_slice text = grpc_slice_from_copied_string(call->text);
  grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
  op.data.send_status_from_server.trailing_metadata_count = call->has_bin ? 1 : 0;
  op.data.send_status_from_server.trailing_metadata = &row;
  op.data.send_status_from_server.status = (grpc_status_code)call->status;
  op.data.send_status_from_server.status_details = &text;
  start(call, &op, 1, &call->finished);
  grpc_slice_unref(text);
}

static void send_next(struct fake_call *call) {
  if (call->sending || !call->first) {
    send_status(call);
    return;
  }
  struct outgoing *outgoing = call->first;
  call->first = outgoing->next;
  if (!call->first) call->last = NULL;
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  op.data.send_message.send_message = outgoing->buffer;
  call->sending = true;
  start(call, &op, 1, &call->sent);
  grpc_byte_buffer_destroy(outgoing->buffer);
  free(outgoing);
}

static void on_sent(struct fake_call *call, bool ok) {
  (void)ok;
  call->sending = false;
  send_next(call);
  came_back(call);
}

static void read_next(struct fake_call *call) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &call->incoming;
  start(call, &op, 1, &call->received);
}

static void on_received(struct fake_call *call, bool ok) {
  struct fake_server *server = call->server;
  grpc_byte_buffer *incoming = call->incoming;
  call->incoming = NULL;
  if (ok && incoming) {
    grpc_slice all = hbc_bytebuf_flatten(incoming);
    grpc_byte_buffer_destroy(incoming);
    if (!call->over) server->handler(server->context, call, hbc_slice_view(&all), false);
    call->messages++;
    grpc_slice_unref(all);
    if (!call->over) read_next(call);
  } else if (!call->over) {
    server->handler(server->context, call, (struct hb_slice){0}, true);
  }
  came_back(call);
}

static void on_tag(struct fake_call *call, bool ok) {
  (void)ok;
  came_back(call);
}

static unsigned count_call(struct fake_server *server, const char *method) {
  for (size_t i = 0; i < METHODS_MAX; i++) {
    if (!server->methods[i].name[0])
      (void)snprintf(server->methods[i].name, sizeof server->methods[i].name, "%s", method);
    if (strcmp(server->methods[i].name, method) == 0) return server->methods[i].calls++;
  }
  HB_UNREACHABLE();
}

static void accept_next(struct fake_server *server);

static void on_accepted(struct fake_call *call, bool ok) {
  if (!ok) { /* the server is shutting down */
    came_back(call);
    return;
  }
  accept_next(call->server);
  char *path = grpc_slice_to_c_string(call->details.method);
  (void)snprintf(call->method, sizeof call->method, "%s", strrchr(path, '/') + 1);
  gpr_free(path);
  call->number = count_call(call->server, call->method);
  grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
  close.data.recv_close_on_server.cancelled = &call->cancelled;
  start(call, &close, 1, &call->closed);
  grpc_op open = {.op = GRPC_OP_SEND_INITIAL_METADATA};
  start(call, &open, 1, &call->opened);
  read_next(call);
  came_back(call);
}

static void accept_next(struct fake_server *server) {
  struct fake_call *call = hb_calloc(1, sizeof *call);
  call->server = server;
  server->calls++;
  call->accepted = (struct tag){on_accepted, call};
  call->opened = (struct tag){on_tag, call};
  call->received = (struct tag){on_received, call};
  call->sent = (struct tag){on_sent, call};
  call->finished = (struct tag){on_tag, call};
  call->closed = (struct tag){on_tag, call};
  grpc_call_details_init(&call->details);
  grpc_metadata_array_init(&call->metadata);
  call->pending = 1;
  grpc_call_error requested =
      grpc_server_request_call(server->server, &call->call, &call->details, &call->metadata,
                               server->queue, server->queue, &call->accepted);
  if (requested != GRPC_CALL_OK) free_call(call);
}

static struct tag shutdown_tag;

static void *run(void *context) {
  struct fake_server *server = context;
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next(server->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
    struct tag *tag = event.tag;
    if (tag == &shutdown_tag) {
      server->stopping = true;
    } else {
      tag->done(tag->call, event.success != 0);
    }
    /* No earlier: a call may start one more operation when one of its tags comes back. */
    if (server->stopping && server->calls == 0) grpc_completion_queue_shutdown(server->queue);
  }
}

struct fake_server *fake_server_start(const char *path, fake_handler *handler, void *context) {
  struct fake_server *server = hb_calloc(1, sizeof *server);
  server->handler = handler;
  server->context = context;
  grpc_init();
  server->server = grpc_server_create(NULL, NULL);
  server->queue = grpc_completion_queue_create_for_next(NULL);
  grpc_server_register_completion_queue(server->server, server->queue, NULL);
  grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
  int bound = grpc_server_add_http2_port(server->server, path, credentials);
  grpc_server_credentials_release(credentials);
  HB_ASSERT(bound);
  grpc_server_start(server->server);
  accept_next(server);
  int failed = pthread_create(&server->thread, NULL, run, server);
  HB_ASSERT(!failed);
  return server;
}

void fake_server_stop(struct fake_server *server) {
  grpc_server_shutdown_and_notify(server->server, server->queue, &shutdown_tag);
  grpc_server_cancel_all_calls(server->server);
  pthread_join(server->thread, NULL);
  grpc_server_destroy(server->server);
  grpc_completion_queue_destroy(server->queue);
  grpc_shutdown_blocking();
  free(server);
}

static const char scheme[] = "unix:";
static const char file[] = "/socket";

char *fake_path_create(void) {
  char folder[] = "/tmp/holdback-fake-XXXXXX"; /* TEST_TMPDIR is too long for a socket's path */
  HB_ASSERT(mkdtemp(folder));
  size_t size = sizeof scheme + sizeof folder + sizeof file;
  char *path = hb_alloc(size);
  (void)snprintf(path, size, "%s%s%s", scheme, folder, file);
  return path;
}

void fake_path_destroy(char *path) {
  char *name = path + sizeof scheme - 1;
  (void)unlink(name);
  name[strlen(name) - (sizeof file - 1)] = '\0';
  (void)rmdir(name);
  free(path);
}

const char *fake_call_method(const struct fake_call *call) { return call->method; }
unsigned fake_call_number(const struct fake_call *call) { return call->number; }
unsigned fake_call_messages(const struct fake_call *call) { return call->messages; }

void fake_call_send_bytes(struct fake_call *call, struct hb_slice bytes) {
  struct outgoing *outgoing = hb_calloc(1, sizeof *outgoing);
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.size);
  outgoing->buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  if (call->last) {
    call->last->next = outgoing;
  } else {
    call->first = outgoing;
  }
  call->last = outgoing;
  send_next(call);
}

void fake_call_send(struct fake_call *call, const ProtobufCMessage *message) {
  size_t size = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = hb_alloc(size);
  protobuf_c_message_pack(message, bytes);
  fake_call_send_bytes(call, hb_slice_of(bytes, size));
  free(bytes);
}

static grpc_slice pack_slice(const ProtobufCMessage *message) {
  grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
  protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
  return slice;
}

static grpc_slice pack_details(int status, const char *reason, const char *text) {
  Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
  info.reason = (char *)(uintptr_t)reason;
  info.domain = (char *)(uintptr_t) "holdback";
  grpc_slice packed = pack_slice(&info.base);
  Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
  any.type_url = (char *)(uintptr_t) "type.googleapis.com/google.rpc.ErrorInfo";
  any.value =
      (ProtobufCBinaryData){.len = GRPC_SLICE_LENGTH(packed), .data = GRPC_SLICE_START_PTR(packed)};
  Google__Protobuf__Any *all[] = {&any};
  Google__Rpc__Status details = GOOGLE__RPC__STATUS__INIT;
  details.code = status;
  details.message = (char *)(uintptr_t)text;
  details.n_details = 1;
  details.details = all;
  grpc_slice slice = pack_slice(&details.base);
  grpc_slice_unref(packed);
  return slice;
}

void fake_call_finish(struct fake_call *call, int status, const char *reason, const char *text) {
  HB_ASSERT(!call->over);
  call->over = true;
  call->status = status;
  call->text = hb_strdup(text);
  call->has_bin = reason != NULL;
  if (reason) call->bin = pack_details(status, reason, text);
  send_next(call);
}
