/* DeliveryService.ReadKey: one page of one key's list. Frames go out as they are: KeyEntry.event
 * is field 1 like EventBatch.events, so a frame is the field, tag and length included. */
#include <stdlib.h>
#include <string.h>

#include "base/frame/wire.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

enum { RESPONSE_ENTRIES = 1, RESPONSE_TOKEN = 2, ENTRY_POSITION = 2, ENTRY_STATE = 3 };

static void put_entry(const struct hb_key_entry *entry, bool per_key, struct hb_buf *out) {
  uint8_t tail[2 * (1 + HB_VARINT_MAX)];
  size_t size = 0;
  if (entry->released || !per_key) {
    tail[size++] = ENTRY_POSITION << 3 | HB_WIRE_VARINT;
    size += hb_wire_put_varint(tail + size, (uint64_t)entry->position);
  }
  tail[size++] = ENTRY_STATE << 3 | HB_WIRE_VARINT;
  tail[size++] = entry->released ? HOLDBACK__V1__ENTRY_STATE__ENTRY_STATE_RELEASED
                                 : HOLDBACK__V1__ENTRY_STATE__ENTRY_STATE_HELD;
  uint8_t *head = hb_buf_reserve(out, 1 + HB_VARINT_MAX);
  head[0] = RESPONSE_ENTRIES << 3 | HB_WIRE_LEN;
  out->size += 1 + hb_wire_put_varint(head + 1, entry->frame.size + size);
  hb_buf_append(out, entry->frame.data, entry->frame.size);
  hb_buf_append(out, tail, size);
}

static void finished(struct hb_read_call *self) {
  struct hb_buf out = {0};
  bool per_key = hb_stream_mode(self->read.stream) == HB_MODE_PER_KEY;
  for (size_t i = 0; i < self->read.entries_count; i++) {
    put_entry(&self->read.entries[i], per_key, &out);
  }
  char *token = hb_read_call_next_token(self);
  if (token[0]) hb_wire_append_bytes(&out, RESPONSE_TOKEN, hb_slice_text(token));
  free(token);
  hb_call_answer(&self->call, hb_pb_wrap(hb_buf_view(&out)));
  hb_buf_done(&out);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  Holdback__V1__ReadKeyRequest *request =
      hb_unary_unpack(call, &holdback__v1__read_key_request__descriptor, message);
  if (!request) return;
  self->finished = finished;
  self->read.kind = HB_READ_KEY;
  self->read.has_from =
      request->from_presence_case == HOLDBACK__V1__READ_KEY_REQUEST__FROM_PRESENCE_FROM_POSITION;
  if (self->read.has_from) self->read.from_position = request->from_position;
  self->read.released_only = request->released_only;
  self->read.stream = hb_unary_find_stream(call, request->stream);
  if (self->read.stream && hb_read_call_set_key(self, "key", &request->key) &&
      hb_read_call_set_page(self, request->page_size, request->page_token)) {
    hb_read_call_submit(self);
  }
  holdback__v1__read_key_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_read_key = {
    .path = "/holdback.v1.DeliveryService/ReadKey",
    .size = sizeof(struct hb_read_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_read_call_done,
};
