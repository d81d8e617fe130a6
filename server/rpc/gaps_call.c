/* Decides what of a request for gaps is well-formed, and lives until its job is done. */
#include "server/rpc/gaps_call.h"

#include <inttypes.h>

#include "server/rpc/lane.h"
#include "server/rpc/text.h"

static enum hb_code take(struct hb_gaps_call *self, const char *stream, const char *field,
                         const ProtobufCBinaryData *key, const char *page_token,
                         struct hb_err *err) {
  struct hb_job *job = &self->base.job;
  uint64_t max = self->base.call.rpc->limits->key_bytes_max;
  enum hb_code code = hb_text_stream_name("stream", hb_slice_text(stream), job->config.name, err);
  if (code) return code;
  if (key->len > max) {
    return hb_err_set(err, HB_INVALID, "KEY_TOO_LARGE",
                      "%s has %zu bytes, key_bytes_max is %" PRIu64, field, key->len, max);
  }
  code = hb_text_decode_token(hb_slice_text(page_token), &self->token, err);
  if (code) return code;
  hb_buf_append(&self->key, key->data, key->len);
  self->gaps.key = hb_buf_view(&self->key);
  self->gaps.token = hb_buf_view(&self->token);
  job->kind = HB_JOB_LIST_GAPS;
  job->gaps = &self->gaps;
  return HB_OK;
}

void hb_gaps_call_submit(struct hb_gaps_call *self, const char *stream, const char *field,
                         const ProtobufCBinaryData *key, uint32_t page_size,
                         const char *page_token) {
  struct hb_err err;
  if (!hb_unary_page_size(&self->base.call, page_size, &self->gaps.page_size)) return;
  if (take(self, stream, field, key, page_token, &err)) {
    hb_call_end(&self->base.call, &err);
  } else {
    hb_job_call_submit(&self->base);
  }
}

char *hb_gaps_call_next_token(const struct hb_gaps_call *self) {
  struct hb_buf text = {0};
  hb_text_encode_token(hb_buf_view(&self->gaps.next_token), &text);
  hb_buf_append_u8(&text, '\0');
  size_t size;
  return (char *)hb_buf_take(&text, &size);
}

void hb_gaps_call_done(struct hb_call *call) {
  struct hb_gaps_call *self = (struct hb_gaps_call *)call;
  hb_gap_request_done(&self->gaps);
  hb_buf_done(&self->key);
  hb_buf_done(&self->token);
}
