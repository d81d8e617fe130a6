/* StreamService.SealStream. */
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

static void finished(struct hb_job_call *self) {
  Holdback__V1__SealStreamResponse response = HOLDBACK__V1__SEAL_STREAM_RESPONSE__INIT;
  response.end = self->job.seal_end;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static enum hb_code check_incarnation(struct hb_call *call, const char *name,
                                      const ProtobufCBinaryData *given, struct hb_err *err) {
  if (given->len == 0) return HB_OK;
  struct hb_stream *stream = hb_engine_find_stream(call->rpc->engine, name);
  bool same = !stream /* the job says so */ ||
              hb_slice_equal(hb_slice_of(given->data, given->len),
                             hb_slice_of(hb_stream_incarnation(stream), HB_INCARNATION_SIZE));
  hb_stream_unref(stream);
  if (same) return HB_OK;
  return hb_err_set(err, HB_PRECONDITION, "INCARNATION_CHANGED",
                    "stream '%s' is not the incarnation asked for: it was made again", name);
}

static enum hb_code take(struct hb_job_call *self, const Holdback__V1__SealStreamRequest *from,
                         struct hb_err *err) {
  struct hb_job *job = &self->job;
  enum hb_code code =
      hb_text_stream_name("stream", hb_slice_text(from->stream), job->config.name, err);
  if (code) return code;
  if (from->end_presence_case != HOLDBACK__V1__SEAL_STREAM_REQUEST__END_PRESENCE_END) {
    return hb_err_set(err, HB_INVALID, "END_MISSING",
                      "end is not set: give one past the last sequence");
  }
  job->kind = HB_JOB_SEAL_STREAM;
  job->seal_end = from->end;
  return check_incarnation(&self->call, job->config.name, &from->incarnation, err);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_job_call *self = (struct hb_job_call *)call;
  Holdback__V1__SealStreamRequest *request =
      hb_unary_unpack(call, &holdback__v1__seal_stream_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->finished = finished;
  enum hb_code code = take(self, request, &err);
  holdback__v1__seal_stream_request__free_unpacked(request, NULL);
  if (code) {
    hb_call_end(call, &err);
  } else {
    hb_job_call_submit(self);
  }
}

const struct hb_method hb_method_seal_stream = {
    .path = "/holdback.v1.StreamService/SealStream",
    .size = sizeof(struct hb_job_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
