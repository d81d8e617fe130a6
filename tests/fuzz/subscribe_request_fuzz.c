/* A subscribe request: what is accepted has a valid name, a start and an interval, and its filter
 * lets through what a plain walk over keys and prefixes lets through. Also: page tokens as text. */
#include <string.h>

#include "base/assert.h"
#include "server/rpc/subscribe_request.h"
#include "server/rpc/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool wants(const Holdback__V1__Filter *filter, struct hb_slice key) {
  if (!filter) return true;
  for (size_t i = 0; i < filter->n_keys; i++) {
    if (hb_slice_equal(hb_slice_of(filter->keys[i].data, filter->keys[i].len), key)) return true;
  }
  for (size_t i = 0; i < filter->n_key_prefixes; i++) {
    const ProtobufCBinaryData *prefix = &filter->key_prefixes[i];
    if (prefix->len <= key.size && (!prefix->len || !memcmp(prefix->data, key.data, prefix->len))) {
      return true;
    }
  }
  return false;
}

static void probe(const struct hb_filter *ours, const Holdback__V1__Filter *theirs,
                  struct hb_slice key) {
  HB_ASSERT(hb_filter_matches(ours, key) == wants(theirs, key));
}

/* Each key and prefix itself, all that is a byte shorter or longer, and the whole input. */
static void check_filter(const struct hb_filter *ours, const Holdback__V1__Filter *theirs,
                         struct hb_slice input) {
  probe(ours, theirs, input);
  probe(ours, theirs, hb_slice_of(NULL, 0));
  for (size_t i = 0; theirs && i < theirs->n_keys + theirs->n_key_prefixes; i++) {
    const ProtobufCBinaryData *from =
        i < theirs->n_keys ? &theirs->keys[i] : &theirs->key_prefixes[i - theirs->n_keys];
    struct hb_buf key = {0};
    hb_buf_append(&key, from->data, from->len);
    hb_buf_append_u8(&key, (uint8_t)i);
    probe(ours, theirs, hb_buf_view(&key));
    probe(ours, theirs, hb_slice_of(key.data, from->len));
    if (from->len) probe(ours, theirs, hb_slice_of(key.data, from->len - 1));
    hb_buf_done(&key);
  }
}

static void read_token(struct hb_slice text) {
  struct hb_buf token = {0};
  struct hb_buf again = {0};
  struct hb_buf encoded = {0};
  struct hb_err err = {0};
  if (hb_text_decode_token(text, &token, &err) == HB_OK) {
    hb_text_encode_token(hb_buf_view(&token), &encoded);
    HB_ASSERT(hb_text_decode_token(hb_buf_view(&encoded), &again, NULL) == HB_OK);
    HB_ASSERT(hb_slice_equal(hb_buf_view(&token), hb_buf_view(&again)));
  } else {
    HB_ASSERT(err.message[0]);
  }
  hb_buf_done(&token);
  hb_buf_done(&again);
  hb_buf_done(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_token(hb_slice_of(data, size));
  Holdback__V1__SubscribeRequest *message =
      holdback__v1__subscribe_request__unpack(NULL, size, data);
  if (!message) return 0;
  struct hb_limits limits = hb_limits_default();
  struct hb_subscribe_request request;
  struct hb_err err = {0};
  if (hb_subscribe_request_from_pb(message, &limits, &request, &err) == HB_OK) {
    HB_ASSERT(strcmp(request.stream, message->stream) == 0);
    HB_ASSERT(strlen(request.stream) <= HB_STREAM_NAME_MAX && request.stream[0]);
    HB_ASSERT(request.progress_interval_ms >= 10);
    check_filter(&request.filter, message->filter, hb_slice_of(data, size));
    hb_subscribe_request_done(&request);
  } else {
    HB_ASSERT(err.message[0] && err.reason[0]);
  }
  holdback__v1__subscribe_request__free_unpacked(message, NULL);
  return 0;
}
