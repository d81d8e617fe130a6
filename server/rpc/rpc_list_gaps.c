/* StreamService.ListGaps: one page of what is missing of a stream, or of a key. */
#include <stdlib.h>

#include "base/alloc.h"
#include "server/rpc/gaps_call.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"

static void finished(struct hb_job_call *base) {
  struct hb_gaps_call *self = (struct hb_gaps_call *)base;
  size_t count = self->gaps.count;
  uint64_t served_ms = hb_engine_served_ms(base->call.rpc->engine);
  struct hb_gap_pb *parts = hb_calloc(count + 1, sizeof *parts);
  Holdback__V1__Gap **list = hb_calloc(count + 1, sizeof(Holdback__V1__Gap *));
  for (size_t i = 0; i < count; i++) {
    hb_gap_to_pb(&self->gaps.gaps[i], served_ms, &parts[i]);
    list[i] = &parts[i].gap;
  }
  Holdback__V1__ListGapsResponse response = HOLDBACK__V1__LIST_GAPS_RESPONSE__INIT;
  response.n_gaps = count;
  response.gaps = list;
  response.initial_missing = self->gaps.initial_missing;
  response.next_page_token = hb_gaps_call_next_token(self);
  hb_call_answer(&base->call, hb_pb_pack(&response.base));
  free(response.next_page_token);
  free((void *)list);
  free(parts);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_gaps_call *self = (struct hb_gaps_call *)call;
  Holdback__V1__ListGapsRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_gaps_request__descriptor, message);
  if (!request) return;
  self->base.finished = finished;
  self->gaps.has_key = request->key_presence_case != 0;
  const ProtobufCBinaryData none = {0};
  hb_gaps_call_submit(self, request->stream, "key", self->gaps.has_key ? &request->key : &none,
                      request->page_size, request->page_token);
  holdback__v1__list_gaps_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_gaps = {
    .path = "/holdback.v1.StreamService/ListGaps",
    .size = sizeof(struct hb_gaps_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_gaps_call_done,
};
