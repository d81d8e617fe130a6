/* DeliveryService.ListKeys: one page of the keys with a prefix, in byte order. */
#include <stdlib.h>

#include "base/endian.h"
#include "base/frame/wire.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/key_status.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

enum { RESPONSE_KEYS = 1, RESPONSE_TOKEN = 2, INFO_KEY = 1, INFO_STATUS = 16 };

/* `standing` NULL: none was asked for. */
static void put_key(struct hb_slice key, const struct hb_key_standing *standing,
                    struct hb_buf *out) {
  struct hb_buf info = {0};
  if (key.size) hb_wire_append_bytes(&info, INFO_KEY, key);
  if (standing) {
    Holdback__V1__KeyStatus pb;
    hb_key_standing_to_pb(standing, (struct hb_slice){0}, &pb); /* the key stands beside it */
    struct hb_buf status = {0};
    size_t size = holdback__v1__key_status__get_packed_size(&pb);
    status.size = holdback__v1__key_status__pack(&pb, hb_buf_reserve(&status, size));
    hb_wire_append_bytes(&info, INFO_STATUS, hb_buf_view(&status));
    hb_buf_done(&status);
  }
  hb_wire_append_bytes(out, RESPONSE_KEYS, hb_buf_view(&info));
  hb_buf_done(&info);
}

static void finished(struct hb_read_call *self) {
  struct hb_buf out = {0};
  const uint8_t *at = self->read.keys.data;
  for (size_t i = 0; i < self->read.keys_count; i++) {
    uint32_t size = hb_get_u32_le(at);
    const struct hb_key_standing *standings = self->read.standings;
    put_key(hb_slice_of(at + sizeof size, size), standings ? &standings[i] : NULL, &out);
    at += sizeof size + size;
  }
  char *token = hb_read_call_next_token(self);
  if (token[0]) hb_wire_append_bytes(&out, RESPONSE_TOKEN, hb_slice_text(token));
  free(token);
  hb_call_answer(&self->call, hb_pb_wrap(hb_buf_view(&out)));
  hb_buf_done(&out);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  Holdback__V1__ListKeysRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_keys_request__descriptor, message);
  if (!request) return;
  self->finished = finished;
  self->read.kind = HB_READ_KEYS;
  self->read.stream = hb_unary_find_stream(call, request->stream);
  bool good = self->read.stream && hb_read_call_set_key(self, "key_prefix", &request->key_prefix) &&
              hb_read_call_set_page(self, request->page_size, request->page_token);
  if (good && request->processor[0]) {
    self->read.processor =
        hb_processor_id_for_statuses(call, self->read.stream, request->processor);
    good = self->read.processor != 0;
  }
  if (good) hb_read_call_submit(self);
  holdback__v1__list_keys_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_keys = {
    .path = "/holdback.v1.DeliveryService/ListKeys",
    .size = sizeof(struct hb_read_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_read_call_done,
};
