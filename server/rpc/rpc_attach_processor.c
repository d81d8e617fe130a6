/* ProcessorService.AttachProcessor, DetachProcessor: jobs of the engine. */
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/processor_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

struct processor_call {
  struct hb_job_call job_call; /* first */
  struct hb_processor_request request;
  struct hb_buf parameters; /* the request looks at them */
};

static void done(struct hb_call *call) {
  hb_buf_done(&((struct processor_call *)call)->parameters);
}

/* ---- attach */

static void attached(struct hb_job_call *self) {
  Holdback__V1__AttachProcessorResponse response = HOLDBACK__V1__ATTACH_PROCESSOR_RESPONSE__INIT;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static void submit(struct processor_call *self, enum hb_job_kind kind,
                   void (*finished)(struct hb_job_call *self)) {
  self->job_call.job.kind = kind;
  self->job_call.job.processor = &self->request;
  self->job_call.finished = finished;
  hb_job_call_submit(&self->job_call);
}

static void attach(struct hb_call *call, const grpc_slice *message) {
  struct processor_call *self = (struct processor_call *)call;
  Holdback__V1__AttachProcessorRequest *request =
      hb_unary_unpack(call, &holdback__v1__attach_processor_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  enum hb_code code = hb_text_stream_name("stream", hb_slice_text(request->stream),
                                          self->job_call.job.config.name, &err);
  if (!code) code = hb_processor_request_from_pb(request, &self->parameters, &self->request, &err);
  holdback__v1__attach_processor_request__free_unpacked(request, NULL);
  if (code) {
    hb_call_end(call, &err);
  } else {
    submit(self, HB_JOB_ATTACH_PROCESSOR, attached);
  }
}

const struct hb_method hb_method_attach_processor = {
    .path = "/holdback.v1.ProcessorService/AttachProcessor",
    .size = sizeof(struct processor_call),
    .request_bytes_max = 8 * HB_REQUEST_BYTES_MAX, /* 64 parameters of 64 KiB */
    .opened = hb_unary_opened,
    .received = attach,
    .drain = hb_unary_drain,
    .done = done,
};

/* ---- detach */

static void detached(struct hb_job_call *self) {
  Holdback__V1__DetachProcessorResponse response = HOLDBACK__V1__DETACH_PROCESSOR_RESPONSE__INIT;
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static enum hb_code take_detach(const Holdback__V1__DetachProcessorRequest *from,
                                struct processor_call *self, struct hb_err *err) {
  enum hb_code code = hb_text_stream_name("stream", hb_slice_text(from->stream),
                                          self->job_call.job.config.name, err);
  if (!code) code = hb_processor_name_from_pb("name", from->name, self->request.name, err);
  if (code) return code;
  int state = (int)from->state;
  if (state == HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_KEEP) {
    self->request.keep_state = true;
  } else if (state != HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_DROP) {
    return hb_err_set(err, HB_INVALID, "DETACHED_STATE_MISSING",
                      "state is %d, must be %d (KEEP) or %d (DROP)", state,
                      HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_KEEP,
                      HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_DROP);
  }
  return HB_OK;
}

static void detach(struct hb_call *call, const grpc_slice *message) {
  struct processor_call *self = (struct processor_call *)call;
  Holdback__V1__DetachProcessorRequest *request =
      hb_unary_unpack(call, &holdback__v1__detach_processor_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  enum hb_code code = take_detach(request, self, &err);
  holdback__v1__detach_processor_request__free_unpacked(request, NULL);
  if (code) {
    hb_call_end(call, &err);
  } else {
    submit(self, HB_JOB_DETACH_PROCESSOR, detached);
  }
}

const struct hb_method hb_method_detach_processor = {
    .path = "/holdback.v1.ProcessorService/DetachProcessor",
    .size = sizeof(struct processor_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = detach,
    .drain = hb_unary_drain,
    .done = done,
};
