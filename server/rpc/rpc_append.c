/* IngestService.Append: one batch, one answer. Decides nothing that AppendStream does not. */
#include "server/rpc/append_answer.h"
#include "server/rpc/append_pool.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/unary.h"

struct append_call {
  struct hb_call call; /* first */
  struct hb_append_target target;
};

static void submitted(struct hb_append_batch *batch) { (void)batch; }

static void answered(struct hb_append_batch *batch) {
  struct hb_call *call = batch->call;
  if (batch->append.batch.error.code) {
    hb_call_end(call, &batch->append.batch.error);
  } else if (!call->over) {
    hb_call_answer(call, hb_append_response(call, &batch->append));
  }
  hb_append_batch_give(call->lane, batch);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct append_call *self = (struct append_call *)call;
  struct hb_err err;
  struct hb_append_batch *batch;
  if (!message) {
    hb_err_set(&err, HB_INVALID, "REQUEST_MISSING", "the call has no request");
    hb_call_end(call, &err);
  } else if (hb_append_batch_make(call, &self->target, message, &batch, &err)) {
    hb_call_end(call, &err);
  } else {
    batch->submitted = submitted;
    batch->answered = answered;
    hb_append_batch_submit(batch);
  }
}

static void done(struct hb_call *call) {
  hb_append_target_done(&((struct append_call *)call)->target);
}

const struct hb_method hb_method_append = {
    .path = "/holdback.v1.IngestService/Append",
    .size = sizeof(struct append_call),
    .budgeted = true,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
    .done = done,
};
