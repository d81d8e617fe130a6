/* Decides nothing: gRPC C core, plucked operation by operation. */
#include "server/rpc/test_client.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/frame/wire.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "server/rpc/pb.h"

enum { OPERATION_SECONDS = 30 };

static gpr_timespec soon(void) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_seconds(OPERATION_SECONDS, GPR_TIMESPAN));
}

void test_client_init(struct test_client *client, int fd) {
  grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
  grpc_arg args[] = {{.type = GRPC_ARG_INTEGER,
                      .key = (char *)(uintptr_t)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                      .value.integer = 4 << 20}};
  grpc_channel_args all = {.num_args = 1, .args = args};
  client->channel = grpc_channel_create_from_fd("test", fd, insecure, &all);
  grpc_channel_credentials_release(insecure);
  client->queue = grpc_completion_queue_create_for_pluck(NULL);
}

void test_client_done(struct test_client *client) {
  grpc_channel_destroy(client->channel);
  grpc_completion_queue_shutdown(client->queue);
  grpc_event event =
      grpc_completion_queue_pluck(client->queue, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  HB_ASSERT(event.type == GRPC_QUEUE_SHUTDOWN);
  grpc_completion_queue_destroy(client->queue);
}

static bool run(struct test_call *call, const grpc_op *ops, size_t count) {
  grpc_call_error error = grpc_call_start_batch(call->grpc, ops, count, call, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
  grpc_event event = grpc_completion_queue_pluck(call->client->queue, call, soon(), NULL);
  HB_ASSERT(event.type == GRPC_OP_COMPLETE);
  return event.success != 0;
}

void test_call_open(struct test_call *call, struct test_client *client, const char *path) {
  *call = (struct test_call){.client = client};
  grpc_slice method = grpc_slice_from_copied_string(path);
  call->grpc = grpc_channel_create_call(client->channel, NULL, 0, client->queue, method, NULL,
                                        gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_slice_unref(method);
  grpc_metadata_array_init(&call->initial);
  grpc_metadata_array_init(&call->trailing);
  grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
  (void)run(call, &op, 1);
  /* Started now, for messages are only given out once it was asked for; waited for at the end. */
  op = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
  op.data.recv_initial_metadata.recv_initial_metadata = &call->initial;
  grpc_call_error error = grpc_call_start_batch(call->grpc, &op, 1, &call->initial, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
}

bool test_call_write(struct test_call *call, struct hb_slice message) {
  grpc_byte_buffer *buffer = hb_pb_wrap(message);
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  op.data.send_message.send_message = buffer;
  bool ok = run(call, &op, 1);
  grpc_byte_buffer_destroy(buffer);
  return ok;
}

bool test_call_write_pb(struct test_call *call, const ProtobufCMessage *message) {
  size_t size = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = malloc(size + 1);
  protobuf_c_message_pack(message, bytes);
  bool ok = test_call_write(call, hb_slice_of(bytes, size));
  free(bytes);
  return ok;
}

void test_call_half_close(struct test_call *call) {
  grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
  (void)run(call, &op, 1);
}

bool test_call_read(struct test_call *call, struct hb_buf *out) {
  grpc_byte_buffer *buffer = NULL;
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &buffer;
  (void)run(call, &op, 1);
  if (!buffer) return false;
  grpc_byte_buffer_reader reader;
  bool good = grpc_byte_buffer_reader_init(&reader, buffer);
  HB_ASSERT(good);
  grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
  hb_buf_append(out, GRPC_SLICE_START_PTR(all), GRPC_SLICE_LENGTH(all));
  grpc_slice_unref(all);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(buffer);
  return true;
}

void *test_call_read_pb(struct test_call *call, const ProtobufCMessageDescriptor *type) {
  struct hb_buf bytes = {0};
  if (!test_call_read(call, &bytes)) return NULL;
  ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.data);
  HB_ASSERT(message);
  hb_buf_done(&bytes);
  return message;
}

static void take_reason(const grpc_metadata_array *trailing, struct test_status *out) {
  for (size_t i = 0; i < trailing->count; i++) {
    const grpc_metadata *entry = &trailing->metadata[i];
    if (grpc_slice_str_cmp(entry->key, "grpc-status-details-bin") != 0) continue;
    Google__Rpc__Status *status = google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(entry->value),
                                                              GRPC_SLICE_START_PTR(entry->value));
    HB_ASSERT(status && status->n_details == 1 && status->code == (int)out->code);
    Google__Rpc__ErrorInfo *info = google__rpc__error_info__unpack(
        NULL, status->details[0]->value.len, status->details[0]->value.data);
    HB_ASSERT(info && strcmp(info->domain, "holdback") == 0);
    (void)snprintf(out->reason, sizeof out->reason, "%s", info->reason);
    google__rpc__error_info__free_unpacked(info, NULL);
    google__rpc__status__free_unpacked(status, NULL);
  }
}

static void free_call(struct test_call *call) {
  grpc_metadata_array_destroy(&call->initial);
  grpc_metadata_array_destroy(&call->trailing);
  grpc_call_unref(call->grpc);
}

void test_call_finish(struct test_call *call, struct test_status *out) {
  *out = (struct test_status){.message = ""};
  grpc_slice details = grpc_empty_slice();
  grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
  op.data.recv_status_on_client.trailing_metadata = &call->trailing;
  op.data.recv_status_on_client.status = &out->code;
  op.data.recv_status_on_client.status_details = &details;
  (void)run(call, &op, 1);
  grpc_event event = grpc_completion_queue_pluck(call->client->queue, &call->initial, soon(), NULL);
  HB_ASSERT(event.type == GRPC_OP_COMPLETE);
  (void)snprintf(out->message, sizeof out->message, "%.*s", (int)GRPC_SLICE_LENGTH(details),
                 (const char *)GRPC_SLICE_START_PTR(details));
  grpc_slice_unref(details);
  take_reason(&call->trailing, out);
  free_call(call);
}

void test_call_cancel(struct test_call *call) {
  struct test_status ignored;
  (void)grpc_call_cancel(call->grpc, NULL);
  test_call_finish(call, &ignored);
}

void *test_unary(struct test_client *client, const char *path, const ProtobufCMessage *request,
                 const ProtobufCMessageDescriptor *response, struct test_status *out_status) {
  struct test_call call;
  test_call_open(&call, client, path);
  (void)test_call_write_pb(&call, request);
  test_call_half_close(&call);
  void *message = test_call_read_pb(&call, response);
  test_call_finish(&call, out_status);
  return message;
}

void test_put_event(struct hb_buf *out, int64_t sequence, const char *key, const char *payload) {
  struct hb_buf event = {0};
  hb_wire_append_varint(&event, 1, (uint64_t)sequence);
  hb_wire_append_bytes(&event, 2, hb_slice_text(key));
  hb_wire_append_bytes(&event, 5, hb_slice_text(payload));
  hb_wire_append_bytes(out, 1, hb_buf_view(&event));
  hb_buf_done(&event);
}
