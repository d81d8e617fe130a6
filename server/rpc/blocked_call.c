/* Decides how a call waits for a processor's thread: it is held until that is done, whoever goes
 * away meanwhile. */
#include "server/rpc/blocked_call.h"

#include <inttypes.h>

#include "server/rpc/container.h"

/* On the pump. */
static void finished(struct hb_post *post) {
  struct hb_blocked_call *self = HB_CONTAINER_OF(post, struct hb_blocked_call, post);
  if (self->retry.error.code) {
    hb_call_end(&self->call, &self->retry.error);
  } else if (!self->call.over) {
    self->answer(self);
  }
  hb_call_release(&self->call);
}

static void retried(struct hb_retry *retry) {
  struct hb_blocked_call *self = retry->context;
  hb_pump_post(self->call.lane->pump, &self->post);
}

void hb_blocked_call_submit(struct hb_blocked_call *self) {
  hb_call_hold(&self->call);
  self->post.fire = finished;
  self->retry.done = retried;
  self->retry.context = self;
  hb_engine_retry_blocked(self->call.rpc->engine, self->stream, &self->retry);
}

enum hb_code hb_blocked_call_set_key(struct hb_blocked_call *self, const ProtobufCBinaryData *key,
                                     struct hb_err *err) {
  uint64_t max = self->call.rpc->limits->key_bytes_max;
  if (key->len > max) {
    return hb_err_set(err, HB_INVALID, "KEY_TOO_LARGE",
                      "key has %zu bytes, key_bytes_max is %" PRIu64, key->len, max);
  }
  hb_buf_append(&self->key, key->data, key->len);
  self->retry.has_key = true;
  self->retry.key = hb_buf_view(&self->key);
  return HB_OK;
}

void hb_blocked_call_done(struct hb_call *call) {
  struct hb_blocked_call *self = (struct hb_blocked_call *)call;
  hb_stream_unref(self->stream);
  hb_buf_done(&self->key);
}
