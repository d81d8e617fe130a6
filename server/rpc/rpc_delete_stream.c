/* StreamService.DeleteStream. Calls that are open on the stream are told by a sweep of all pumps,
 * started where the job ends (unary.c). */
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

static void finished(struct hb_job_call *self) {
  Holdback__V1__DeleteStreamResponse response = HOLDBACK__V1__DELETE_STREAM_RESPONSE__INIT;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_job_call *self = (struct hb_job_call *)call;
  Holdback__V1__DeleteStreamRequest *request =
      hb_unary_unpack(call, &holdback__v1__delete_stream_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->job.kind = HB_JOB_DELETE_STREAM;
  self->finished = finished;
  enum hb_code code =
      hb_text_stream_name("stream", hb_slice_text(request->stream), self->job.config.name, &err);
  holdback__v1__delete_stream_request__free_unpacked(request, NULL);
  if (code) {
    hb_call_end(call, &err);
  } else {
    hb_job_call_submit(self);
  }
}

const struct hb_method hb_method_delete_stream = {
    .path = "/holdback.v1.StreamService/DeleteStream",
    .size = sizeof(struct hb_job_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
