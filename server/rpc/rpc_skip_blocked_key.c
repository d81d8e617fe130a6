/* ProcessorService.SkipBlockedKey. */
#include "holdback/v1/processor.pb-c.h"
#include "server/rpc/blocked_call.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/processor_pb.h"
#include "server/rpc/unary.h"

static void answer(struct hb_blocked_call *self) {
  const struct hb_retry *retry = &self->retry;
  Holdback__V1__SkipBlockedKeyResponse response = HOLDBACK__V1__SKIP_BLOCKED_KEY_RESPONSE__INIT;
  response.skipped = retry->given_up;
  response.blocked = retry->blocked;
  if (retry->is_blocked) {
    response.blocked_at_presence_case =
        HOLDBACK__V1__SKIP_BLOCKED_KEY_RESPONSE__BLOCKED_AT_PRESENCE_BLOCKED_AT;
    response.blocked_at = retry->blocked_at;
  }
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
}

static enum hb_code take(struct hb_blocked_call *self,
                         const Holdback__V1__SkipBlockedKeyRequest *request, struct hb_err *err) {
  struct hb_retry *retry = &self->retry;
  enum hb_code code = hb_processor_name_from_pb("processor", request->processor, retry->name, err);
  if (code) return code;
  if (request->key_presence_case == 0) {
    return hb_err_set(err, HB_INVALID, "KEY_MISSING", "key is not given");
  }
  retry->gives_up = true;
  retry->has_sequence = request->sequence_presence_case != 0;
  retry->sequence = request->sequence;
  return hb_blocked_call_set_key(self, &request->key, err);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_blocked_call *self = (struct hb_blocked_call *)call;
  Holdback__V1__SkipBlockedKeyRequest *request =
      hb_unary_unpack(call, &holdback__v1__skip_blocked_key_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->answer = answer;
  self->stream = hb_unary_find_stream(call, request->stream);
  if (self->stream && take(self, request, &err)) {
    hb_call_end(call, &err);
  } else if (self->stream) {
    hb_blocked_call_submit(self);
  }
  holdback__v1__skip_blocked_key_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_skip_blocked_key = {
    .path = "/holdback.v1.ProcessorService/SkipBlockedKey",
    .size = sizeof(struct hb_blocked_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_blocked_call_done,
};
