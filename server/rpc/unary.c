/* Decides how a unary call comes to its request, and comes back from the engine to its pump. */
#include "server/rpc/unary.h"

#include <grpc/slice.h>
#include <inttypes.h>
#include <string.h>

#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/pb.h"
#include "server/rpc/text.h"

enum { PAGE_SIZE_DEFAULT = 100 };

void hb_unary_opened(struct hb_call *call) { hb_call_read(call); }

/* Only a call whose request never came is in the way; the others end by themselves. */
void hb_unary_drain(struct hb_call *call) {
  if (!call->reading) return;
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

void *hb_unary_unpack(struct hb_call *call, const ProtobufCMessageDescriptor *type,
                      const grpc_slice *message) {
  struct hb_err err;
  ProtobufCMessage *out = NULL;
  if (!message) {
    hb_err_set(&err, HB_INVALID, "REQUEST_MISSING", "the call has no request");
  } else {
    struct hb_slice bytes =
        hb_slice_of(GRPC_SLICE_START_PTR(*message), GRPC_SLICE_LENGTH(*message));
    if (hb_pb_unpack(type, bytes, &out, &err) == HB_OK) return out;
  }
  hb_call_end(call, &err);
  return NULL;
}

struct hb_stream *hb_unary_find_stream(struct hb_call *call, const char *name) {
  struct hb_err err;
  char checked[HB_STREAM_NAME_MAX + 1];
  if (hb_text_stream_name("stream", hb_slice_text(name), checked, &err) == HB_OK) {
    struct hb_stream *stream = hb_engine_find_stream(call->rpc->engine, checked);
    if (stream) return stream;
    hb_err_set(&err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' does not exist", checked);
  }
  hb_call_end(call, &err);
  return NULL;
}

bool hb_unary_page_size(struct hb_call *call, uint32_t asked, uint32_t *out) {
  uint64_t max = call->rpc->limits->page_size_max;
  if (asked <= max) {
    *out = asked ? asked : PAGE_SIZE_DEFAULT;
    return true;
  }
  struct hb_err err;
  hb_err_set(&err, HB_INVALID, "PAGE_TOO_LARGE",
             "page_size is %" PRIu32 ", page_size_max is %" PRIu64, asked, max);
  hb_call_end(call, &err);
  return false;
}

/* ---- jobs */

static void job_finished(struct hb_post *post) {
  struct hb_job_call *self = HB_CONTAINER_OF(post, struct hb_job_call, post);
  if (self->job.error.code) {
    hb_call_end(&self->call, &self->job.error);
  } else if (!self->call.over) {
    self->finished(self);
  }
  hb_call_release(&self->call);
}

/* The engine's thread. */
static void job_done(struct hb_job *job) {
  struct hb_job_call *self = job->context;
  if (job->kind == HB_JOB_DELETE_STREAM && !job->error.code) hb_rpc_sweep(self->call.rpc);
  hb_pump_post(self->call.lane->pump, &self->post);
}

void hb_job_call_submit(struct hb_job_call *self) {
  hb_call_hold(&self->call);
  self->post.fire = job_finished;
  self->job.done = job_done;
  self->job.context = self;
  hb_engine_submit_job(self->call.rpc->engine, &self->job);
}

/* ---- reads */

static void read_finished(struct hb_post *post) {
  struct hb_read_call *self = HB_CONTAINER_OF(post, struct hb_read_call, post);
  if (self->read.error.code) {
    hb_call_end(&self->call, &self->read.error);
  } else if (!self->call.over) {
    self->finished(self);
  }
  hb_read_done(&self->read);
  hb_call_release(&self->call);
}

/* A reader's thread. */
static void read_done(struct hb_read *read) {
  struct hb_read_call *self = read->context;
  hb_pump_post(self->call.lane->pump, &self->post);
}

void hb_read_call_submit(struct hb_read_call *self) {
  hb_call_hold(&self->call);
  self->post.fire = read_finished;
  self->read.done = read_done;
  self->read.context = self;
  self->read.token = hb_buf_view(&self->token);
  hb_engine_read(self->call.rpc->engine, &self->read);
}

void hb_read_call_done(struct hb_call *call) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  hb_stream_unref(self->read.stream);
  hb_buf_done(&self->token);
  hb_buf_done(&self->key);
}

bool hb_read_call_set_key(struct hb_read_call *self, const char *field,
                          const ProtobufCBinaryData *key) {
  uint64_t max = self->call.rpc->limits->key_bytes_max;
  if (key->len > max) {
    struct hb_err err;
    hb_err_set(&err, HB_INVALID, "KEY_TOO_LARGE", "%s has %zu bytes, key_bytes_max is %" PRIu64,
               field, key->len, max);
    hb_call_end(&self->call, &err);
    return false;
  }
  hb_buf_append(&self->key, key->data, key->len);
  self->read.key = hb_buf_view(&self->key);
  return true;
}

bool hb_read_call_set_page(struct hb_read_call *self, uint32_t page_size, const char *page_token) {
  if (!hb_unary_page_size(&self->call, page_size, &self->read.page_size)) return false;
  struct hb_err err;
  if (hb_text_decode_token(hb_slice_text(page_token), &self->token, &err) == HB_OK) return true;
  hb_call_end(&self->call, &err);
  return false;
}

char *hb_read_call_next_token(const struct hb_read_call *self) {
  struct hb_buf text = {0};
  hb_text_encode_token(hb_buf_view(&self->read.next_token), &text);
  hb_buf_append_u8(&text, '\0');
  size_t size;
  return (char *)hb_buf_take(&text, &size);
}
