/* Decides which method an arriving call gets. Generic requests alone: with registered methods a
 * call to any other method would hang until its deadline. */
#include <grpc/slice.h>

#include "base/assert.h"
#include "base/handoff.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"

static void request(struct hb_acceptor *acceptor) {
  struct hb_lane *lane = acceptor->lane;
  grpc_completion_queue *queue = hb_pump_queue(lane->pump);
  grpc_call_details_init(&acceptor->details);
  grpc_metadata_array_init(&acceptor->metadata);
  hb_handoff_give(&acceptor->tag);
  grpc_call_error error =
      grpc_server_request_call(lane->rpc->server, &acceptor->grpc, &acceptor->details,
                               &acceptor->metadata, queue, queue, &acceptor->tag);
  HB_ASSERT(error == GRPC_CALL_OK);
}

static const struct hb_method *choose(struct hb_acceptor *acceptor) {
  struct hb_rpc *rpc = acceptor->lane->rpc;
  uint64_t open = hb_count(&rpc->counters, HB_COUNTER_calls_open, 1);
  hb_count(&rpc->counters, HB_COUNTER_calls_total, 1);
  if (rpc->draining) return &hb_method_stopping;
  if (open >= rpc->limits->calls_max) {
    hb_count(&rpc->counters, HB_COUNTER_calls_refused_total, 1);
    return &hb_method_refused;
  }
  grpc_slice path = acceptor->details.method;
  const struct hb_method *method =
      hb_method_find((const char *)GRPC_SLICE_START_PTR(path), GRPC_SLICE_LENGTH(path));
  return method ? method : &hb_method_unknown;
}

static void arrived(struct hb_tag *tag, bool ok) {
  struct hb_acceptor *acceptor = (struct hb_acceptor *)tag; /* its first member */
  struct hb_lane *lane = acceptor->lane;
  const struct hb_method *method = ok ? choose(acceptor) : NULL;
  grpc_call *grpc = acceptor->grpc;
  grpc_call_details_destroy(&acceptor->details);
  grpc_metadata_array_destroy(&acceptor->metadata);
  if (!ok) { /* the server stops */
    hb_rpc_closed(lane->rpc);
    return;
  }
  request(acceptor);
  hb_call_open(lane, grpc, method);
}

void hb_lane_accept(struct hb_lane *lane) {
  for (size_t i = 0; i < HB_ACCEPTORS; i++) {
    struct hb_acceptor *acceptor = &lane->acceptors[i];
    acceptor->tag.fire = arrived;
    acceptor->lane = lane;
    atomic_fetch_add(&lane->rpc->open, 1);
    request(acceptor);
  }
}
