/* StreamService.ListKeysWithGaps: one page of the keys of which something is missing. */
#include <stdlib.h>

#include "base/alloc.h"
#include "server/rpc/gaps_call.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"

struct key_pb {
  Holdback__V1__KeyGaps key;
  struct hb_gap_pb gap;
};

/* `pb` borrows the key. */
static void to_pb(const struct hb_key_gaps *key, struct key_pb *pb) {
  holdback__v1__key_gaps__init(&pb->key);
  pb->key.key =
      (ProtobufCBinaryData){.len = key->key.size, .data = (uint8_t *)(uintptr_t)key->key.data};
  if (key->begun) {
    pb->key.complete_to_presence_case = HOLDBACK__V1__KEY_GAPS__COMPLETE_TO_PRESENCE_COMPLETE_TO;
    pb->key.complete_to = key->complete_to;
  }
  pb->key.highest = key->highest;
  pb->key.held_events = key->held;
  pb->key.gaps_total = key->gaps;
  hb_gap_to_pb(&key->gap, 0, &pb->gap);
  if (key->has_gap) pb->key.gap = &pb->gap.gap;
}

static void finished(struct hb_job_call *base) {
  struct hb_gaps_call *self = (struct hb_gaps_call *)base;
  size_t count = self->gaps.count;
  struct key_pb *parts = hb_calloc(count + 1, sizeof *parts);
  Holdback__V1__KeyGaps **list = hb_calloc(count + 1, sizeof(Holdback__V1__KeyGaps *));
  for (size_t i = 0; i < count; i++) {
    to_pb(&self->gaps.keys[i], &parts[i]);
    list[i] = &parts[i].key;
  }
  Holdback__V1__ListKeysWithGapsResponse response =
      HOLDBACK__V1__LIST_KEYS_WITH_GAPS_RESPONSE__INIT;
  response.n_keys = count;
  response.keys = list;
  response.next_page_token = hb_gaps_call_next_token(self);
  hb_call_answer(&base->call, hb_pb_pack(&response.base));
  free(response.next_page_token);
  free((void *)list);
  free(parts);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_gaps_call *self = (struct hb_gaps_call *)call;
  Holdback__V1__ListKeysWithGapsRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_keys_with_gaps_request__descriptor, message);
  if (!request) return;
  self->base.finished = finished;
  self->gaps.of_keys = true;
  hb_gaps_call_submit(self, request->stream, "key_prefix", &request->key_prefix, request->page_size,
                      request->page_token);
  holdback__v1__list_keys_with_gaps_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_keys_with_gaps = {
    .path = "/holdback.v1.StreamService/ListKeysWithGaps",
    .size = sizeof(struct hb_gaps_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = hb_gaps_call_done,
};
