/* Decides what one answer holds, and brings from disk what is not in the shared tail any more.
 *
 * A slow reader costs its one answer; everything else stays in shared blocks or on disk (I8). */
#include "base/clock.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/container.h"
#include "server/rpc/delivery.h"
#include "server/rpc/lane.h"
#include "server/rpc/pb.h"
#include "server/rpc/progress.h"
#include "server/rpc/subscription.h"

#define ANSWER_BYTES ((size_t)256 << 10)   /* blocks are joined up to about this */
#define ANSWER_BYTES_MAX ((size_t)1 << 20) /* never passed, but by a single event */

static void send_answer(struct hb_subscription *self, grpc_byte_buffer *answer) {
  self->in_flight = hb_call_send(&self->call, answer, false);
  hb_count(&self->call.rpc->counters, HB_COUNTER_answers_in_flight, self->in_flight);
}

void hb_subscription_send_progress(struct hb_subscription *self) {
  struct hb_stream_status status;
  hb_stream_get_status(self->stream, &status);
  struct hb_progress progress = {
      .status = &status,
      .has_position = self->started || self->request.start == HB_START_POSITION,
      .position = self->started ? self->position : self->request.position,
      .served_ms = hb_engine_served_ms(self->call.rpc->engine),
      .incarnation = hb_stream_incarnation(self->stream),
  };
  self->progress_due = false;
  if (self->started && status.record.frozen && self->position >= status.record.frontier) {
    self->told_caught_up = true;
  }
  hb_pump_set_timer(self->call.lane->pump, &self->timer,
                    hb_clock_mono_ns() + self->request.progress_interval_ms * UINT64_C(1000000));
  send_answer(self, hb_progress_encode(&progress));
}

void hb_subscription_send_end(struct hb_subscription *self, int64_t end) {
  Holdback__V1__End pb = HOLDBACK__V1__END__INIT;
  pb.end = end;
  Holdback__V1__SubscribeResponse response = HOLDBACK__V1__SUBSCRIBE_RESPONSE__INIT;
  response.message_case = HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_END;
  response.end = &pb;
  self->told_end = true;
  send_answer(self, hb_pb_pack(&response.base));
}

static enum hb_delivered what_is(const struct hb_subscribe_request *request) {
  if (request->key_statuses) return HB_DELIVERED_STATUSES;
  return request->processor[0] ? HB_DELIVERED_RESULTS : HB_DELIVERED_EVENTS;
}

void hb_subscription_take_blocks(struct hb_subscription *self, struct hb_bytes **blocks,
                                 size_t count) {
  struct hb_err err;
  enum hb_code code = HB_OK;
  struct hb_delivery delivery;
  hb_delivery_init(&delivery, self->position);
  for (size_t i = 0; !code && i < count; i++) {
    bool fits = delivery.frames_bytes + blocks[i]->size <= ANSWER_BYTES_MAX;
    if (delivery.events > 0 && !fits) break;
    code = hb_delivery_add(&delivery, blocks[i], &self->request.filter, &err);
  }
  for (size_t i = 0; i < count; i++) hb_bytes_unref(blocks[i]);
  if (code) {
    hb_call_end(&self->call, &err);
  } else if (delivery.next_position > self->position) {
    self->position = delivery.next_position;
    self->told_caught_up = false;
  }
  if (!code && delivery.events > 0) {
    hb_count(&self->call.rpc->counters, HB_COUNTER_delivered_bytes_total, delivery.frames_bytes);
    send_answer(self, hb_delivery_finish(&delivery, what_is(&self->request)));
  }
  hb_delivery_done(&delivery);
}

/* Where all subscribers together have too much on its way, each answer is one block. */
size_t hb_subscription_answer_bytes(struct hb_subscription *self) {
  uint64_t in_flight = hb_counter_get(&self->call.rpc->counters, HB_COUNTER_answers_in_flight);
  return in_flight < self->call.rpc->limits->answers_in_flight_max ? ANSWER_BYTES : 1;
}

/* ---- reading from disk */

static void read_arrived(struct hb_post *post) {
  struct hb_subscription *self = HB_CONTAINER_OF(post, struct hb_subscription, read_post);
  struct hb_read *read = &self->read;
  self->reading = false;
  if (read->error.code) {
    hb_call_end(&self->call, &read->error);
  } else if (self->call.over) {
    /* hb_read_done gives the blocks back */
  } else if (read->kind == HB_READ_TIME && read->stream == self->source) {
    self->has_due = true;
    self->due = read->found_position;
  } else if (read->kind != HB_READ_LOG) {
    hb_subscription_start_at(self, read->found_position);
  } else {
    hb_subscription_take_blocks(self, read->blocks, read->blocks_count);
    read->blocks_count = 0;
  }
  hb_read_done(read);
  hb_subscription_go(self);
  hb_call_release(&self->call);
}

/* A reader's thread. */
static void read_done(struct hb_read *read) {
  struct hb_subscription *self = read->context;
  hb_pump_post(self->call.lane->pump, &self->read_post);
}

void hb_subscription_read(struct hb_subscription *self, enum hb_read_kind kind) {
  bool in_source = kind == HB_READ_TIME && self->source && !self->has_due;
  self->reading = true;
  self->read_post.fire = read_arrived;
  self->read = (struct hb_read){.kind = kind,
                                .stream = in_source ? self->source : self->stream,
                                .position = self->position,
                                .bytes_max = hb_subscription_answer_bytes(self),
                                .time = self->request.time,
                                .done = read_done,
                                .context = self};
  hb_call_hold(&self->call);
  hb_engine_read(self->call.rpc->engine, &self->read);
}

void hb_subscription_answer_left(struct hb_subscription *self) {
  hb_uncount(&self->call.rpc->counters, HB_COUNTER_answers_in_flight, self->in_flight);
  self->in_flight = 0;
}
