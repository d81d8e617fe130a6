/* Decides when a streaming call is over: when its status is known and no tag is on its way. */
#include "client/call.h"

#include <grpc/support/time.h>

#include "base/assert.h"
#include "client/status.h"

#define OWNER(tag, member) \
  ((struct hbc_call *)(void *)((char *)(tag)-offsetof(struct hbc_call, member)))

static void start_batch(struct hbc_call *call, const grpc_op *ops, size_t count,
                        struct hbc_tag *tag) {
  grpc_call_error started = grpc_call_start_batch(call->call, ops, count, tag, NULL);
  HB_ASSERT(started == GRPC_CALL_OK);
  call->pending++;
}

static void finish(struct hbc_call *call) {
  struct holdback_error error;
  hbc_status_read(call->code, &call->text, &call->trailing, call->client->server, &error);
  grpc_call_unref(call->call);
  grpc_metadata_array_destroy(&call->initial);
  grpc_metadata_array_destroy(&call->trailing);
  grpc_slice_unref(call->text);
  call->call = NULL;
  call->handler->ended(call, &error);
}

/* Last thing in each of the handlers below: the call may be gone afterwards. */
static void came_back(struct hbc_call *call) {
  HB_ASSERT(call->pending > 0);
  if (--call->pending == 0) finish(call);
}

static void on_opened(struct hbc_tag *tag, bool ok) {
  (void)ok;
  came_back(OWNER(tag, opened));
}

static void on_sent(struct hbc_tag *tag, bool ok) {
  struct hbc_call *call = OWNER(tag, sent);
  call->sending = false;
  if (ok) call->handler->sent(call);
  came_back(call);
}

static void on_closed(struct hbc_tag *tag, bool ok) {
  (void)ok;
  came_back(OWNER(tag, closed));
}

static void on_received(struct hbc_tag *tag, bool ok) {
  struct hbc_call *call = OWNER(tag, received);
  grpc_byte_buffer *message = call->incoming;
  call->incoming = NULL;
  call->reading = false;
  if (ok && message) {
    atomic_store(&call->client->was_connected, true);
    call->handler->message(call, message);
  } else {
    call->at_end = true;
    if (message) grpc_byte_buffer_destroy(message);
  }
  came_back(call);
}

/* The status is the last thing that comes, but a read or a send may still be on its way back. */
static void on_status(struct hbc_tag *tag, bool ok) {
  (void)ok;
  struct hbc_call *call = OWNER(tag, status);
  call->at_end = true;
  came_back(call);
}

static void start_status(struct hbc_call *call) {
  grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
  op.data.recv_status_on_client.trailing_metadata = &call->trailing;
  op.data.recv_status_on_client.status = &call->code;
  op.data.recv_status_on_client.status_details = &call->text;
  start_batch(call, &op, 1, &call->status);
}

/* Without GRPC_WRITE_BUFFER_HINT: with it the batch's tag may never come. */
static void start_metadata(struct hbc_call *call) {
  grpc_op ops[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA,
                     .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                              GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA}};
  ops[1].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
  start_batch(call, ops, 2, &call->opened);
}

void hbc_call_start(struct hbc_call *call, struct holdback_client *client, const char *method,
                    const struct hbc_call_handler *handler) {
  HB_ASSERT(!hbc_call_is_open(call));
  *call = (struct hbc_call){.client = client,
                            .handler = handler,
                            .opened = {on_opened},
                            .sent = {on_sent},
                            .closed = {on_closed},
                            .received = {on_received},
                            .status = {on_status},
                            .text = grpc_empty_slice()};
  grpc_metadata_array_init(&call->initial);
  grpc_metadata_array_init(&call->trailing);
  grpc_slice path = grpc_slice_from_copied_string(method);
  call->call =
      grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, client->queue, path,
                               NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_slice_unref(path);
  start_status(call);
  start_metadata(call);
}

void hbc_call_send(struct hbc_call *call, grpc_byte_buffer *owned) {
  HB_ASSERT(!call->sending);
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  op.data.send_message.send_message = owned;
  call->sending = true;
  start_batch(call, &op, 1, &call->sent);
  grpc_byte_buffer_destroy(owned); /* gRPC holds what it needs */
}

void hbc_call_send_end(struct hbc_call *call) {
  HB_ASSERT(!call->sending);
  grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
  start_batch(call, &op, 1, &call->closed);
}

void hbc_call_read(struct hbc_call *call) {
  if (!call->call || call->reading || call->at_end) return;
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &call->incoming;
  call->reading = true;
  start_batch(call, &op, 1, &call->received);
}

void hbc_call_cancel(struct hbc_call *call) {
  if (call->call) (void)grpc_call_cancel(call->call, NULL);
}
