/* ProcessorService.GetKeyStatus: a read of one key. */
#include "holdback/v1/processor.pb-c.h"
#include "server/rpc/key_status.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

static void finished(struct hb_read_call *self) {
  Holdback__V1__KeyStatus status;
  hb_key_standing_to_pb(&self->read.standings[0], self->read.key, &status);
  Holdback__V1__GetKeyStatusResponse response = HOLDBACK__V1__GET_KEY_STATUS_RESPONSE__INIT;
  response.status = &status;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  Holdback__V1__GetKeyStatusRequest *request =
      hb_unary_unpack(call, &holdback__v1__get_key_status_request__descriptor, message);
  if (!request) return;
  self->finished = finished;
  self->read.kind = HB_READ_KEY_STATUS;
  self->read.stream = hb_unary_find_stream(call, request->stream);
  if (self->read.stream && hb_read_call_set_key(self, "key", &request->key)) {
    self->read.processor =
        hb_processor_id_for_statuses(call, self->read.stream, request->processor);
    if (self->read.processor) hb_read_call_submit(self);
  }
  holdback__v1__get_key_status_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_get_key_status = {
    .path = "/holdback.v1.ProcessorService/GetKeyStatus",
    .size = sizeof(struct hb_read_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_read_call_done,
};
