/* ProcessorService.RetryBlockedKeys: work of a processor's thread, which tells when it is done. */
#include <inttypes.h>
#include <string.h>

#include "holdback/v1/processor.pb-c.h"
#include "server/engine/processors.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/processor_pb.h"
#include "server/rpc/unary.h"

struct retry_call {
  struct hb_call call; /* first */
  struct hb_retry retry;
  struct hb_post post;
  struct hb_buf key;
  struct hb_stream *stream; /* reference */
};

/* On the pump. */
static void finished(struct hb_post *post) {
  struct retry_call *self = HB_CONTAINER_OF(post, struct retry_call, post);
  struct hb_retry *retry = &self->retry;
  if (retry->error.code) {
    hb_call_end(&self->call, &retry->error);
  } else if (!self->call.over) {
    Holdback__V1__RetryBlockedKeysResponse response =
        HOLDBACK__V1__RETRY_BLOCKED_KEYS_RESPONSE__INIT;
    response.tried = retry->tried;
    response.processed = retry->good;
    response.blocked = retry->blocked;
    response.reason = retry->why;
    hb_call_answer(&self->call, hb_pb_pack(&response.base));
  }
  hb_call_release(&self->call);
}

static void retried(struct hb_retry *retry) {
  struct retry_call *self = retry->context;
  hb_pump_post(self->call.lane->pump, &self->post);
}

static void submit(struct retry_call *self) {
  hb_call_hold(&self->call);
  self->post.fire = finished;
  self->retry.done = retried;
  self->retry.context = self;
  hb_engine_retry_blocked(self->call.rpc->engine, self->stream, &self->retry);
}

static enum hb_code take(struct retry_call *self,
                         const Holdback__V1__RetryBlockedKeysRequest *request, struct hb_err *err) {
  enum hb_code code =
      hb_processor_name_from_pb("processor", request->processor, self->retry.name, err);
  uint64_t max = self->call.rpc->limits->key_bytes_max;
  self->retry.has_key = request->key_presence_case != 0;
  if (code || !self->retry.has_key) return code;
  if (request->key.len > max) {
    return hb_err_set(err, HB_INVALID, "KEY_TOO_LARGE",
                      "key has %zu bytes, key_bytes_max is %" PRIu64, request->key.len, max);
  }
  hb_buf_append(&self->key, request->key.data, request->key.len);
  self->retry.key = hb_buf_view(&self->key);
  return HB_OK;
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct retry_call *self = (struct retry_call *)call;
  Holdback__V1__RetryBlockedKeysRequest *request =
      hb_unary_unpack(call, &holdback__v1__retry_blocked_keys_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->stream = hb_unary_find_stream(call, request->stream);
  if (self->stream && take(self, request, &err)) {
    hb_call_end(call, &err);
  } else if (self->stream) {
    submit(self);
  }
  holdback__v1__retry_blocked_keys_request__free_unpacked(request, NULL);
}

static void done(struct hb_call *call) {
  struct retry_call *self = (struct retry_call *)call;
  hb_stream_unref(self->stream);
  hb_buf_done(&self->key);
}

const struct hb_method hb_method_retry_blocked_keys = {
    .path = "/holdback.v1.ProcessorService/RetryBlockedKeys",
    .size = sizeof(struct retry_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = done,
};
