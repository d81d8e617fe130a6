/* ProcessorService.GetKeyStatus: a read of one key. */
#include <inttypes.h>

#include "holdback/v1/processor.pb-c.h"
#include "server/rpc/key_status.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

struct get_key_status {
  struct hb_read_call base; /* first */
  struct hb_buf key;
};

static void finished(struct hb_read_call *self) {
  Holdback__V1__KeyStatus status;
  hb_key_standing_to_pb(&self->read.standings[0], self->read.key, &status);
  Holdback__V1__GetKeyStatusResponse response = HOLDBACK__V1__GET_KEY_STATUS_RESPONSE__INIT;
  response.status = &status;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static bool take_key(struct hb_call *call, const ProtobufCBinaryData *key) {
  struct get_key_status *self = (struct get_key_status *)call;
  uint64_t max = call->rpc->limits->key_bytes_max;
  if (key->len > max) {
    struct hb_err err;
    hb_err_set(&err, HB_INVALID, "KEY_TOO_LARGE", "key has %zu bytes, key_bytes_max is %" PRIu64,
               key->len, max);
    hb_call_end(call, &err);
    return false;
  }
  hb_buf_append(&self->key, key->data, key->len);
  self->base.read.key = hb_buf_view(&self->key);
  return true;
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  Holdback__V1__GetKeyStatusRequest *request =
      hb_unary_unpack(call, &holdback__v1__get_key_status_request__descriptor, message);
  if (!request) return;
  self->finished = finished;
  self->read.kind = HB_READ_KEY_STATUS;
  self->read.stream = hb_unary_find_stream(call, request->stream);
  if (self->read.stream && take_key(call, &request->key)) {
    self->read.processor =
        hb_processor_id_for_statuses(call, self->read.stream, request->processor);
    if (self->read.processor) hb_read_call_submit(self);
  }
  holdback__v1__get_key_status_request__free_unpacked(request, NULL);
}

static void done(struct hb_call *call) {
  hb_read_call_done(call);
  hb_buf_done(&((struct get_key_status *)call)->key);
}

const struct hb_method hb_method_get_key_status = {
    .path = "/holdback.v1.ProcessorService/GetKeyStatus",
    .size = sizeof(struct get_key_status),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = done,
};
