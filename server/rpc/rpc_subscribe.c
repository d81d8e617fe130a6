/* DeliveryService.Subscribe: a cursor over the log, with one answer on its way at a time.
 *
 * Here: what is accepted, and the call's beginning and end. What it does in between is in
 * subscription.c, what wakes it in subscription_wake.c, what it sends in subscription_send.c. */
#include <inttypes.h>

#include "base/live.h"
#include "server/engine/processors.h"
#include "server/rpc/key_status.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/subscription.h"
#include "server/rpc/unary.h"

static void begin(struct hb_subscription *self) {
  hb_subscription_watch(self); /* before looking: what is published from now on is told */
  self->progress_due = true;
  hb_subscription_try_start(self, true);
  hb_subscription_go(self);
}

static bool check_incarnation(struct hb_subscription *self, const ProtobufCBinaryData *given) {
  struct hb_slice own = hb_slice_of(hb_stream_incarnation(self->stream), HB_INCARNATION_SIZE);
  if (given->len == 0 || hb_slice_equal(hb_slice_of(given->data, given->len), own)) return true;
  struct hb_err err;
  hb_err_set(&err, HB_PRECONDITION, "INCARNATION_CHANGED",
             "stream '%s' is not the incarnation asked for: it was made again",
             self->request.stream);
  hb_call_end(&self->call, &err);
  return false;
}

static bool tells_no_statuses(struct hb_subscription *self, struct hb_stream *stream) {
  const char *name = self->request.processor;
  struct hb_stream *results = hb_engine_find_results(self->call.rpc->engine, stream, name);
  hb_stream_unref(results);
  return results != NULL && self->request.key_statuses;
}

/* Where a processor is named, its results are what is subscribed to, or its statuses. */
static bool turn_to_results(struct hb_subscription *self) {
  const char *name = self->request.processor;
  if (!name[0]) return true;
  struct hb_stream *stream = self->source = self->stream;
  struct hb_engine *engine = self->call.rpc->engine;
  self->stream = self->request.key_statuses ? hb_engine_find_statuses(engine, stream, name)
                                            : hb_engine_find_results(engine, stream, name);
  bool off = !self->stream && tells_no_statuses(self, stream);
  if (self->stream) return true;
  struct hb_err err;
  if (off) {
    (void)hb_err_key_status_off(name, &err);
    hb_call_end(&self->call, &err);
    return false;
  }
  hb_err_set(&err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "stream '%s' has no processor '%s'",
             self->request.stream, name);
  hb_call_end(&self->call, &err);
  return false;
}

static bool admit(struct hb_subscription *self) {
  struct hb_rpc *rpc = self->call.rpc;
  self->counted = true;
  hb_live_born(HB_LIVE_subscriptions);
  uint64_t open = hb_count(&rpc->counters, HB_COUNTER_subscriptions_open, 1);
  if (open < rpc->limits->subscriptions_max) return true;
  struct hb_err err;
  hb_err_set(&err, HB_LIMIT, "TOO_MANY_SUBSCRIPTIONS",
             "subscriptions_max is %" PRIu64 ", so many are open", rpc->limits->subscriptions_max);
  hb_call_end(&self->call, &err);
  return false;
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct hb_subscription *self = (struct hb_subscription *)call;
  Holdback__V1__SubscribeRequest *request =
      hb_unary_unpack(call, &holdback__v1__subscribe_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  if (hb_subscribe_request_from_pb(request, call->rpc->limits, &self->request, &err)) {
    hb_call_end(&self->call, &err);
  } else {
    self->stream = hb_unary_find_stream(call, self->request.stream);
    bool good = self->stream && turn_to_results(self) &&
                check_incarnation(self, &request->incarnation) && admit(self);
    if (good) begin(self);
  }
  holdback__v1__subscribe_request__free_unpacked(request, NULL);
}

static void opened(struct hb_call *call) { hb_call_read(call); }

static void sent(struct hb_call *call) {
  struct hb_subscription *self = (struct hb_subscription *)call;
  hb_subscription_answer_left(self);
  if (self->told_end) {
    hb_call_end(call, NULL);
  } else {
    hb_subscription_go(self);
  }
}

static void stopped(struct hb_call *call) {
  hb_subscription_unwatch((struct hb_subscription *)call);
}

static void drain(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

static void sweep(struct hb_call *call) { hb_subscription_go((struct hb_subscription *)call); }

static void done(struct hb_call *call) {
  struct hb_subscription *self = (struct hb_subscription *)call;
  hb_subscription_answer_left(self);
  if (self->counted) {
    hb_uncount(&call->rpc->counters, HB_COUNTER_subscriptions_open, 1);
    hb_live_gone(HB_LIVE_subscriptions);
  }
  hb_stream_unref(self->stream);
  hb_stream_unref(self->source);
  hb_subscribe_request_done(&self->request);
}

const struct hb_method hb_method_subscribe = {
    .path = "/holdback.v1.DeliveryService/Subscribe",
    .size = sizeof(struct hb_subscription),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = opened,
    .received = received,
    .sent = sent,
    .stopped = stopped,
    .drain = drain,
    .sweep = sweep,
    .done = done,
};
