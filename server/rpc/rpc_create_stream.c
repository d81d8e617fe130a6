/* StreamService.CreateStream: the engine decides and makes it durable. */
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"
#include "server/rpc/unary.h"

static void finished(struct hb_job_call *self) {
  struct hb_stream_config_pb config;
  hb_stream_config_to_pb(&self->job.config, &config);
  Holdback__V1__CreateStreamResponse response = HOLDBACK__V1__CREATE_STREAM_RESPONSE__INIT;
  response.config = &config.config;
  response.incarnation =
      (ProtobufCBinaryData){.len = HB_INCARNATION_SIZE, .data = self->job.incarnation};
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_job_call *self = (struct hb_job_call *)call;
  Holdback__V1__CreateStreamRequest *request =
      hb_unary_unpack(call, &holdback__v1__create_stream_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->job.kind = HB_JOB_CREATE_STREAM;
  self->finished = finished;
  enum hb_code code = hb_stream_config_from_pb(request->config, &self->job.config, &err);
  holdback__v1__create_stream_request__free_unpacked(request, NULL);
  if (code) {
    hb_call_end(call, &err);
  } else {
    hb_job_call_submit(self);
  }
}

const struct hb_method hb_method_create_stream = {
    .path = "/holdback.v1.StreamService/CreateStream",
    .size = sizeof(struct hb_job_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
