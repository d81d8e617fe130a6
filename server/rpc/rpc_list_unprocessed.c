/* DeliveryService.ListUnprocessed: one page of what is kept aside. Frames go out as they are:
 * UnprocessedEvent.event is field 1 like EventBatch.events, so a frame is the field, tag and length
 * included; the rest of the message follows it. */
#include <stdlib.h>

#include "base/frame/wire.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/engine/processors.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

enum { RESPONSE_EVENTS = 1, RESPONSE_TOKEN = 2 };

static Google__Protobuf__Timestamp time_of(uint64_t wall_ms) {
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  time.seconds = (int64_t)(wall_ms / 1000);
  time.nanos = (int32_t)(wall_ms % 1000) * 1000000;
  return time;
}

/* All but the event. */
static void put_rest(const struct hb_unprocessed_entry *entry, struct hb_buf *out) {
  Holdback__V1__UnprocessedEvent pb = HOLDBACK__V1__UNPROCESSED_EVENT__INIT;
  Google__Protobuf__Timestamp first = time_of(entry->first_seen_wall_ms);
  Google__Protobuf__Timestamp last = time_of(entry->last_seen_wall_ms);
  pb.reason = (Holdback__V1__UnprocessedReason)entry->reason;
  if (entry->reason == HB_UNPROCESSED_EXCEPTION) {
    pb.position_presence_case = HOLDBACK__V1__UNPROCESSED_EVENT__POSITION_PRESENCE_POSITION;
    pb.position = entry->position;
  }
  pb.processor = hb_text_cleaned(entry->processor);
  pb.explanation = hb_text_cleaned(entry->explanation);
  pb.producer = hb_text_cleaned(entry->producer);
  pb.count = entry->count;
  pb.first_seen = &first;
  pb.last_seen = &last;
  size_t size = holdback__v1__unprocessed_event__get_packed_size(&pb);
  out->size += holdback__v1__unprocessed_event__pack(&pb, hb_buf_reserve(out, size));
  free(pb.processor);
  free(pb.explanation);
  free(pb.producer);
}

static void put_entry(const struct hb_unprocessed_entry *entry, struct hb_buf *rest,
                      struct hb_buf *out) {
  hb_buf_clear(rest);
  put_rest(entry, rest);
  uint8_t *head = hb_buf_reserve(out, 1 + HB_VARINT_MAX);
  head[0] = RESPONSE_EVENTS << 3 | HB_WIRE_LEN;
  out->size += 1 + hb_wire_put_varint(head + 1, entry->frame.size + rest->size);
  hb_buf_append(out, entry->frame.data, entry->frame.size);
  hb_buf_append(out, rest->data, rest->size);
}

static void finished(struct hb_read_call *self) {
  struct hb_buf out = {0};
  struct hb_buf rest = {0};
  for (size_t i = 0; i < self->read.unprocessed_count; i++) {
    put_entry(&self->read.unprocessed[i], &rest, &out);
  }
  char *token = hb_read_call_next_token(self);
  if (token[0]) hb_wire_append_bytes(&out, RESPONSE_TOKEN, hb_slice_text(token));
  free(token);
  hb_call_answer(&self->call, hb_pb_wrap(hb_buf_view(&out)));
  hb_buf_done(&rest);
  hb_buf_done(&out);
}

/* ---- the request */

static enum hb_code check_reason(int reason, bool of_processor, struct hb_err *err) {
  switch (reason) {
    case HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_UNSPECIFIED:
    case HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_EXCEPTION:
      return HB_OK;
    case HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_CONFLICT:
    case HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_LATE:
    case HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_BEFORE_FIRST:
      if (!of_processor) return HB_OK;
      return hb_err_set(err, HB_INVALID, "UNPROCESSED_REASON_INVALID",
                        "reason is %d, of a processor only %d (EXCEPTION) is kept", reason,
                        HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_EXCEPTION);
    default:
      return hb_err_set(err, HB_INVALID, "UNPROCESSED_REASON_INVALID",
                        "reason %d is none that events are kept for", reason);
  }
}

static bool take_processor(struct hb_read_call *self, const char *name) {
  struct hb_processor_info info;
  struct hb_call *call = &self->call;
  if (hb_engine_get_processor(call->rpc->engine, self->read.stream, name, &info)) {
    self->read.processor = info.id;
    hb_processor_info_done(&info);
    return true;
  }
  struct hb_err err;
  hb_err_set(&err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "the stream has no processor '%.64s'",
             name);
  hb_call_end(call, &err);
  return false;
}

static bool take(struct hb_read_call *self, const Holdback__V1__ListUnprocessedRequest *request) {
  struct hb_err err;
  struct hb_read *read = &self->read;
  bool of_processor = request->processor[0] != '\0';
  read->stream = hb_unary_find_stream(&self->call, request->stream);
  if (!read->stream) return false;
  if (check_reason((int)request->reason, of_processor, &err)) {
    hb_call_end(&self->call, &err);
    return false;
  }
  read->reason = (uint8_t)request->reason;
  read->has_key =
      request->key_presence_case == HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__KEY_PRESENCE_KEY;
  if (read->has_key && !hb_read_call_set_key(self, "key", &request->key)) return false;
  if (!hb_read_call_set_page(self, request->page_size, request->page_token)) return false;
  return !of_processor || take_processor(self, request->processor);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_read_call *self = (struct hb_read_call *)call;
  Holdback__V1__ListUnprocessedRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_unprocessed_request__descriptor, message);
  if (!request) return;
  self->finished = finished;
  self->read.kind = HB_READ_UNPROCESSED;
  if (take(self, request)) hb_read_call_submit(self);
  holdback__v1__list_unprocessed_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_unprocessed = {
    .path = "/holdback.v1.DeliveryService/ListUnprocessed",
    .size = sizeof(struct hb_read_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_read_call_done,
};
