/* ProcessorService.RetryBlockedKeys. */
#include <stdlib.h>

#include "holdback/v1/processor.pb-c.h"
#include "server/rpc/blocked_call.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/processor_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

static void answer(struct hb_blocked_call *self) {
  struct hb_retry *retry = &self->retry;
  Holdback__V1__RetryBlockedKeysResponse response = HOLDBACK__V1__RETRY_BLOCKED_KEYS_RESPONSE__INIT;
  response.tried = retry->tried;
  response.processed = retry->good;
  response.blocked = retry->blocked;
  response.reason = hb_text_cleaned(hb_slice_text(retry->why));
  hb_call_answer(&self->call, hb_pb_pack(&response.base));
  free(response.reason);
}

static enum hb_code take(struct hb_blocked_call *self,
                         const Holdback__V1__RetryBlockedKeysRequest *request, struct hb_err *err) {
  enum hb_code code =
      hb_processor_name_from_pb("processor", request->processor, self->retry.name, err);
  if (code || request->key_presence_case == 0) return code;
  return hb_blocked_call_set_key(self, &request->key, err);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_blocked_call *self = (struct hb_blocked_call *)call;
  Holdback__V1__RetryBlockedKeysRequest *request =
      hb_unary_unpack(call, &holdback__v1__retry_blocked_keys_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  self->answer = answer;
  self->stream = hb_unary_find_stream(call, request->stream);
  if (self->stream && take(self, request, &err)) {
    hb_call_end(call, &err);
  } else if (self->stream) {
    hb_blocked_call_submit(self);
  }
  holdback__v1__retry_blocked_keys_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_retry_blocked_keys = {
    .path = "/holdback.v1.ProcessorService/RetryBlockedKeys",
    .size = sizeof(struct hb_blocked_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_blocked_call_done,
};
