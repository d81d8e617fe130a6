/* ServerService.CompactStore: in the background of the engine, answered when it is done. */
#include "holdback/v1/server.pb-c.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

struct compact_call {
  struct hb_call call; /* first */
  struct hb_compaction compaction;
  struct hb_post post;
};

static void finished(struct hb_post *post) {
  struct compact_call *self = HB_CONTAINER_OF(post, struct compact_call, post);
  const struct hb_compaction *compaction = &self->compaction;
  if (compaction->error.code) {
    hb_call_end(&self->call, &compaction->error);
  } else if (!self->call.over) {
    Holdback__V1__CompactStoreResponse response = HOLDBACK__V1__COMPACT_STORE_RESPONSE__INIT;
    response.bytes_before = compaction->bytes_before;
    response.bytes_after = compaction->bytes_after;
    hb_call_answer(&self->call, hb_pb_pack(&response.base));
  }
  hb_call_release(&self->call);
}

/* The engine's thread. */
static void done(struct hb_compaction *compaction) {
  struct compact_call *self = compaction->context;
  hb_pump_post(self->call.lane->pump, &self->post);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct compact_call *self = (struct compact_call *)call;
  Holdback__V1__CompactStoreRequest *request =
      hb_unary_unpack(call, &holdback__v1__compact_store_request__descriptor, message);
  if (!request) return;
  holdback__v1__compact_store_request__free_unpacked(request, NULL);
  hb_call_hold(call);
  self->post.fire = finished;
  self->compaction.done = done;
  self->compaction.context = self;
  hb_engine_compact(call->rpc->engine, &self->compaction);
}

/* It would hold up the server's stop for as long as it takes. */
static void drain(struct hb_call *call) {
  hb_unary_drain(call);
  if (!call->over) hb_engine_end_compaction(call->rpc->engine);
}

const struct hb_method hb_method_compact_store = {
    .path = "/holdback.v1.ServerService/CompactStore",
    .size = sizeof(struct compact_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = drain,
};
