/* IngestService.AppendStream: batches in a row, answered in the same order.
 *
 *  - Reads go on while the engine takes what was read and at most UNANSWERED_MAX batches (or
 *    UNANSWERED_BYTES) of this call wait for their answers; then the peer waits (I8).
 *  - A bad request ends the reading. Its status is sent when all earlier batches are answered.
 *  - The peer's half-close ends it likewise, with OK; a stopping server with UNAVAILABLE, a
 *    deleted stream with NOT_FOUND.
 *  - An answer with an error (the commit failed, the stream is gone) ends the call in its place. */
#include "server/rpc/append_answer.h"
#include "server/rpc/append_pool.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"

enum { UNANSWERED_MAX = 256 };
#define UNANSWERED_BYTES ((size_t)16 << 20)

struct append_stream {
  struct hb_call call; /* first */
  struct hb_append_target target;
  struct hb_append_batch *first; /* unanswered, in order of arrival */
  struct hb_append_batch *last;
  uint32_t count;
  size_t bytes;
  uint64_t next_ordinal;
  bool waits_for_room;
  bool ending; /* no more reads; ends with `end` when all is answered */
  struct hb_err end;
};

static struct hb_append_batch *take_first(struct append_stream *self) {
  struct hb_append_batch *batch = self->first;
  self->first = batch->next;
  if (!self->first) self->last = NULL;
  self->count--;
  self->bytes -= batch->append.batch.bytes;
  return batch;
}

static void read_more(struct append_stream *self) {
  if (self->call.reading || self->ending || self->waits_for_room || self->call.over) return;
  if (self->count >= UNANSWERED_MAX || self->bytes >= UNANSWERED_BYTES) return;
  hb_call_read(&self->call);
}

static void answer_first(struct append_stream *self) {
  struct hb_append_batch *batch = take_first(self);
  struct hb_err *error = &batch->append.batch.error;
  if (error->code) {
    hb_call_end(&self->call, error);
  } else {
    bool more_follows =
        self->first && self->first->is_answered && !self->first->append.batch.error.code;
    grpc_byte_buffer *answer =
        hb_append_response_stream(&self->call, &batch->append, self->next_ordinal++);
    (void)hb_call_send(&self->call, answer, more_follows);
  }
  hb_append_batch_give(self->call.lane, batch);
}

/* Whatever can be done now. */
static void go(struct append_stream *self) {
  if (self->call.over) return;
  if (!self->call.sending && self->first && self->first->is_answered) answer_first(self);
  if (!self->first && self->ending && !self->call.sending) {
    hb_call_end(&self->call, self->end.code ? &self->end : NULL);
  }
  read_more(self);
}

static void end_after_answers(struct append_stream *self, const struct hb_err *err) {
  if (self->ending) return;
  self->ending = true;
  if (err) self->end = *err;
  go(self);
}

static void submitted(struct hb_append_batch *batch) {
  struct append_stream *self = (struct append_stream *)batch->call;
  self->waits_for_room = false;
  read_more(self);
}

static void answered(struct hb_append_batch *batch) { go((struct append_stream *)batch->call); }

static void received(struct hb_call *call, const grpc_slice *message) {
  struct append_stream *self = (struct append_stream *)call;
  struct hb_err err;
  struct hb_append_batch *batch;
  if (self->ending) return; /* it was on its way when the call began to end */
  if (!message) {
    end_after_answers(self, NULL);
    return;
  }
  if (hb_append_batch_make(call, &self->target, message, &batch, &err)) {
    end_after_answers(self, &err);
    return;
  }
  if (self->last) {
    self->last->next = batch;
  } else {
    self->first = batch;
  }
  self->last = batch;
  self->count++;
  self->bytes += batch->append.batch.bytes;
  self->waits_for_room = true; /* until submitted */
  batch->submitted = submitted;
  batch->answered = answered;
  hb_append_batch_submit(batch);
}

static void opened(struct hb_call *call) { hb_call_read(call); }

static void sent(struct hb_call *call) { go((struct append_stream *)call); }

static void drain(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  end_after_answers((struct append_stream *)call, &err);
}

static void sweep(struct hb_call *call) {
  struct append_stream *self = (struct append_stream *)call;
  if (!self->target.stream || !hb_stream_is_deleted(self->target.stream)) return;
  struct hb_err err;
  hb_err_set(&err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' was deleted", self->target.name);
  end_after_answers(self, &err);
}

static void done(struct hb_call *call) {
  struct append_stream *self = (struct append_stream *)call;
  while (self->first) hb_append_batch_give(call->lane, take_first(self));
  hb_append_target_done(&self->target);
}

const struct hb_method hb_method_append_stream = {
    .path = "/holdback.v1.IngestService/AppendStream",
    .size = sizeof(struct append_stream),
    .budgeted = true,
    .opened = opened,
    .received = received,
    .sent = sent,
    .drain = drain,
    .sweep = sweep,
    .done = done,
};
