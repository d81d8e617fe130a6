/* ServerService.VerifyStore: one piece, one answer, in turn. The next piece is asked for when the
 * answer was taken by the transport, so a caller that does not read costs nothing but its place. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "holdback/v1/server.pb-c.h"
#include "server/engine/verify.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

struct verify_store {
  struct hb_call call; /* first */
  struct hb_verification verification;
  struct hb_post post;
  uint64_t began_ms;
};

/* ---- the answer */

static void finding_to_pb(const struct hb_finding *finding, Holdback__V1__VerifyFinding *pb,
                          Holdback__V1__SequenceRange *range) {
  holdback__v1__verify_finding__init(pb);
  pb->stream_id = finding->stream;
  pb->stream = (char *)(uintptr_t)finding->name;
  pb->family = (char *)(uintptr_t)finding->family;
  pb->text = (char *)(uintptr_t)finding->text;
  if (!finding->has_range) return;
  holdback__v1__sequence_range__init(range);
  range->start = finding->range.start;
  range->end = finding->range.end;
  pb->range = range;
}

static Holdback__V1__VerifyProgress progress_of(const struct verify_store *self) {
  const struct hb_verify_counts *counts = &self->verification.counts;
  Holdback__V1__VerifyProgress progress = HOLDBACK__V1__VERIFY_PROGRESS__INIT;
  progress.streams = counts->streams;
  progress.blocks = counts->blocks;
  progress.events = counts->events;
  progress.bundles = counts->bundles;
  progress.held_events = counts->held_events;
  progress.index_entries = counts->index_entries;
  progress.rows = counts->rows;
  progress.bytes = counts->bytes;
  progress.findings = counts->findings;
  progress.done = counts->done;
  progress.total = counts->total;
  progress.elapsed_ms = hb_clock_mono_ms() - self->began_ms;
  return progress;
}

static void send_answer(struct verify_store *self) {
  const struct hb_verification *verification = &self->verification;
  size_t count = verification->findings_count;
  Holdback__V1__VerifyFinding *parts = hb_calloc(count + 1, sizeof *parts);
  Holdback__V1__SequenceRange *ranges = hb_calloc(count + 1, sizeof *ranges);
  Holdback__V1__VerifyFinding **list = hb_calloc(count + 1, sizeof *list);
  for (size_t i = 0; i < count; i++) {
    finding_to_pb(&verification->findings[i], &parts[i], &ranges[i]);
    list[i] = &parts[i];
  }
  Holdback__V1__VerifyProgress progress = progress_of(self);
  Holdback__V1__VerifyStoreResponse response = HOLDBACK__V1__VERIFY_STORE_RESPONSE__INIT;
  response.n_findings = count;
  response.findings = list;
  response.progress = &progress;
  response.finished = verification->finished;
  (void)hb_call_send(&self->call, hb_pb_pack(&response.base), false);
  free(list);
  free(ranges);
  free(parts);
}

/* ---- one piece after another */

static void arrived(struct hb_post *post) {
  struct verify_store *self = HB_CONTAINER_OF(post, struct verify_store, post);
  if (self->verification.error.code) {
    hb_call_end(&self->call, &self->verification.error);
  } else if (!self->call.over) {
    send_answer(self);
  }
  hb_call_release(&self->call);
}

/* A reader's thread. */
static void step_done(struct hb_verification *verification) {
  struct verify_store *self = verification->context;
  hb_pump_post(self->call.lane->pump, &self->post);
}

static void step(struct verify_store *self) {
  hb_call_hold(&self->call);
  hb_engine_verify_step(self->call.rpc->engine, &self->verification);
}

static void sent(struct hb_call *call) {
  struct verify_store *self = (struct verify_store *)call;
  if (self->verification.finished) {
    hb_call_end(call, NULL);
  } else {
    step(self);
  }
}

static void begin(struct verify_store *self, const struct hb_stream *stream) {
  struct hb_err err;
  self->verification.done = step_done;
  self->verification.context = self;
  self->post.fire = arrived;
  self->began_ms = hb_clock_mono_ms();
  if (hb_engine_verify_begin(self->call.rpc->engine, &self->verification, stream, &err)) {
    hb_call_end(&self->call, &err);
  } else {
    step(self);
  }
}

static void received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__VerifyStoreRequest *request =
      hb_unary_unpack(call, &holdback__v1__verify_store_request__descriptor, message);
  if (!request) return;
  struct verify_store *self = (struct verify_store *)call;
  if (request->stream[0] == '\0') {
    begin(self, NULL);
  } else {
    struct hb_stream *stream = hb_unary_find_stream(call, request->stream);
    if (stream) begin(self, stream);
    hb_stream_unref(stream);
  }
  holdback__v1__verify_store_request__free_unpacked(request, NULL);
}

static void drain(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

static void done(struct hb_call *call) {
  struct verify_store *self = (struct verify_store *)call;
  hb_engine_verify_end(call->rpc->engine, &self->verification);
}

const struct hb_method hb_method_verify_store = {
    .path = "/holdback.v1.ServerService/VerifyStore",
    .size = sizeof(struct verify_store),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .sent = sent,
    .drain = drain,
    .done = done,
};
