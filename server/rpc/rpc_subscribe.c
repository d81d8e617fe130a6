/* DeliveryService.Subscribe: a cursor over the log, with one answer on its way at a time.
 *
 *   STARTING ──(start is known)──> DELIVERING <──(published)──> CAUGHT_UP
 *                                      │ ^
 *                        (below the tail) └─(blocks were read)── READING
 *
 *  - go() does the next thing whenever something has changed: an answer was taken by the
 *    transport, the stream published, a read came back, the timer fired. A slow reader costs its
 *    one answer; everything else stays in shared blocks or on disk (I8).
 *  - Only what is published is looked at, so nothing is delivered before it is durable and
 *    complete (I2), and positions only go up (I3).
 *  - Progress goes out at once, at each catch-up and each progress_interval_ms. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/live.h"
#include "server/engine/reads.h"
#include "server/rpc/container.h"
#include "server/rpc/delivery.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/progress.h"
#include "server/rpc/subscribe_request.h"
#include "server/rpc/unary.h"

enum { BLOCKS_MAX = 64 };
#define ANSWER_BYTES ((size_t)256 << 10)   /* blocks are joined up to about this */
#define ANSWER_BYTES_MAX ((size_t)1 << 20) /* never passed, but by a single event */

/* Rounds that bring nothing to send (a filter that matches little) before others have their turn.
 */
enum { ROUNDS_MAX = 8 };

struct subscription {
  struct hb_call call; /* first */
  struct hb_subscribe_request request;
  struct hb_stream *stream;
  bool counted; /* in subscriptions_open */

  bool started; /* position is valid */
  int64_t position;
  struct hb_time until; /* present: events before the first of that time are left out */

  bool progress_due;
  bool told_caught_up; /* since the position moved last */
  struct hb_timer timer;
  size_t in_flight; /* bytes of the answer on its way */

  struct hb_watch watch;
  bool watching;
  bool armed; /* the stream will tell */
  struct hb_post changed_post;
  _Atomic bool changed_posted;
  bool release_when_changed;

  bool reading;
  struct hb_read read;
  struct hb_post read_post;
  bool yielded;
  struct hb_post yield_post;
};

static void go(struct subscription *self);

static void end(struct subscription *self, const struct hb_err *err) {
  hb_call_end(&self->call, err);
}

/* ---- what wakes a subscription */

static void changed_arrived(struct hb_post *post) {
  struct subscription *self = HB_CONTAINER_OF(post, struct subscription, changed_post);
  self->changed_posted = false;
  self->armed = false;
  if (self->release_when_changed) {
    hb_call_release(&self->call);
  } else {
    go(self);
  }
}

/* Any thread. */
static void changed(struct hb_watch *watch) {
  struct subscription *self = watch->context;
  self->changed_posted = true;
  hb_pump_post(self->call.lane->pump, &self->changed_post);
}

static void timer_fired(struct hb_timer *timer) {
  struct subscription *self = HB_CONTAINER_OF(timer, struct subscription, timer);
  self->progress_due = true;
  go(self);
}

static void yield_ended(struct hb_post *post) {
  struct subscription *self = HB_CONTAINER_OF(post, struct subscription, yield_post);
  self->yielded = false;
  go(self);
  hb_call_release(&self->call);
}

static void yield(struct subscription *self) {
  self->yielded = true;
  hb_call_hold(&self->call);
  hb_pump_post(self->call.lane->pump, &self->yield_post);
}

/* True: look again. False: nothing is new, the stream will tell. */
static bool arm(struct subscription *self) {
  if (self->armed) return false;
  bool news = hb_watch_arm(&self->watch);
  self->armed = !news;
  return news;
}

/* ---- sending */

static void send(struct subscription *self, grpc_byte_buffer *answer) {
  self->in_flight = hb_call_send(&self->call, answer, false);
  hb_count(&self->call.rpc->counters, HB_COUNTER_answers_in_flight, self->in_flight);
}

static void send_progress(struct subscription *self) {
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
  hb_pump_set_timer(self->call.lane->pump, &self->timer,
                    hb_clock_mono_ns() + self->request.progress_interval_ms * UINT64_C(1000000));
  send(self, hb_progress_encode(&progress));
}

/* Make one answer of the blocks and send it; where nothing passes, only the position moves.
 * The references are given back. */
static void take_blocks(struct subscription *self, struct hb_bytes **blocks, size_t count) {
  struct hb_err err;
  enum hb_code code = HB_OK;
  struct hb_delivery delivery;
  hb_delivery_init(&delivery, self->position);
  for (size_t i = 0; !code && i < count; i++) {
    bool fits = delivery.frames_bytes + blocks[i]->size <= ANSWER_BYTES_MAX;
    if (delivery.events > 0 && !fits) break;
    code = hb_delivery_add(&delivery, blocks[i], &self->request.filter, &self->until, &err);
  }
  for (size_t i = 0; i < count; i++) hb_bytes_unref(blocks[i]);
  if (code) {
    end(self, &err);
  } else if (delivery.next_position > self->position) {
    self->position = delivery.next_position;
    self->told_caught_up = false;
  }
  if (!code && delivery.events > 0) {
    hb_count(&self->call.rpc->counters, HB_COUNTER_delivered_bytes_total, delivery.frames_bytes);
    send(self, hb_delivery_finish(&delivery));
  }
  hb_delivery_done(&delivery);
}

/* Where all subscribers together have too much on its way, each answer is one block. */
static size_t answer_bytes(struct subscription *self) {
  uint64_t in_flight = hb_counter_get(&self->call.rpc->counters, HB_COUNTER_answers_in_flight);
  return in_flight < self->call.rpc->limits->answers_in_flight_max ? ANSWER_BYTES : 1;
}

/* ---- reading from disk */

static void start_position(struct subscription *self, int64_t position) {
  self->started = true;
  self->position = position;
}

static void read_arrived(struct hb_post *post) {
  struct subscription *self = HB_CONTAINER_OF(post, struct subscription, read_post);
  struct hb_read *read = &self->read;
  self->reading = false;
  if (read->error.code) {
    end(self, &read->error);
  } else if (self->call.over) {
    /* hb_read_done gives the blocks back */
  } else if (read->kind == HB_READ_TIME) {
    start_position(self, read->found_position);
    self->until = self->request.time;
  } else {
    take_blocks(self, read->blocks, read->blocks_count);
    read->blocks_count = 0;
  }
  hb_read_done(read);
  go(self);
  hb_call_release(&self->call);
}

/* A reader's thread. */
static void read_done(struct hb_read *read) {
  struct subscription *self = read->context;
  hb_pump_post(self->call.lane->pump, &self->read_post);
}

static void start_read(struct subscription *self, enum hb_read_kind kind) {
  self->reading = true;
  self->read = (struct hb_read){.kind = kind,
                                .stream = self->stream,
                                .position = self->position,
                                .bytes_max = answer_bytes(self),
                                .time = self->request.time,
                                .done = read_done,
                                .context = self};
  hb_call_hold(&self->call);
  hb_engine_read(self->call.rpc->engine, &self->read);
}

/* ---- where it begins */

static void start_at_position(struct subscription *self, const struct hb_frontier *record) {
  int64_t asked = self->request.position;
  if (asked >= record->earliest) {
    start_position(self, asked);
    return;
  }
  struct hb_err err;
  hb_err_set(&err, HB_OUT_OF_RANGE, "BELOW_EARLIEST",
             "position is %" PRId64 ", earliest is %" PRId64, asked, record->earliest);
  end(self, &err);
}

/* Nothing happens where the stream has no first event yet: earliest and now are there. */
static void try_start(struct subscription *self, bool just_accepted) {
  struct hb_stream_status status;
  hb_stream_get_status(self->stream, &status);
  const struct hb_frontier *record = &status.record;
  if (!record->frozen) return;
  switch (self->request.start) {
    case HB_START_EARLIEST:
      start_position(self, record->earliest);
      break;
    case HB_START_NOW:
      start_position(self, just_accepted ? record->frontier : record->earliest);
      break;
    case HB_START_POSITION:
      start_at_position(self, record);
      break;
    case HB_START_TIME:
      start_read(self, HB_READ_TIME);
      break;
  }
}

/* ---- the next thing */

enum step { WAIT, AGAIN };

static enum step deliver(struct subscription *self) {
  struct hb_bytes *blocks[BLOCKS_MAX];
  size_t count = 0;
  switch (hb_stream_read_tail(self->stream, self->position, blocks, BLOCKS_MAX, answer_bytes(self),
                              &count)) {
    case HB_TAIL_BLOCKS:
      take_blocks(self, blocks, count);
      return AGAIN;
    case HB_TAIL_BEHIND:
      start_read(self, HB_READ_LOG);
      return WAIT;
    case HB_TAIL_CAUGHT_UP:
      break;
  }
  if (!self->told_caught_up) {
    self->told_caught_up = true;
    send_progress(self);
    return WAIT;
  }
  return arm(self) ? AGAIN : WAIT;
}

static enum step next_step(struct subscription *self) {
  if (hb_stream_is_deleted(self->stream)) {
    struct hb_err err;
    hb_err_set(&err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' was deleted",
               self->request.stream);
    end(self, &err);
    return WAIT;
  }
  if (!self->started) try_start(self, false);
  if (self->call.over || self->reading) return WAIT;
  if (self->progress_due) {
    send_progress(self);
    return WAIT;
  }
  if (!self->started) return arm(self) ? AGAIN : WAIT;
  return deliver(self);
}

static void go(struct subscription *self) {
  for (int round = 0;; round++) {
    bool busy = self->call.sending || self->reading || self->yielded;
    if (self->call.over || busy || !self->watching) return;
    if (round == ROUNDS_MAX) {
      yield(self);
      return;
    }
    if (next_step(self) == WAIT) return;
  }
}

/* ---- the call */

static void watch(struct subscription *self) {
  self->watch.changed = changed;
  self->watch.context = self;
  self->watching = true;
  self->armed = true;
  hb_watch_start(&self->watch, self->stream);
}

static void begin(struct subscription *self) {
  watch(self); /* before looking: what is published from now on is told */
  self->progress_due = true;
  try_start(self, true);
  go(self);
}

static bool check_incarnation(struct subscription *self, const ProtobufCBinaryData *given) {
  struct hb_slice own = hb_slice_of(hb_stream_incarnation(self->stream), HB_INCARNATION_SIZE);
  if (given->len == 0 || hb_slice_equal(hb_slice_of(given->data, given->len), own)) return true;
  struct hb_err err;
  hb_err_set(&err, HB_PRECONDITION, "INCARNATION_CHANGED",
             "stream '%s' is not the incarnation asked for: it was made again",
             self->request.stream);
  end(self, &err);
  return false;
}

static bool admit(struct subscription *self) {
  struct hb_rpc *rpc = self->call.rpc;
  self->counted = true;
  hb_live_born(HB_LIVE_subscriptions);
  uint64_t open = hb_count(&rpc->counters, HB_COUNTER_subscriptions_open, 1);
  if (open < rpc->limits->subscriptions_max) return true;
  struct hb_err err;
  hb_err_set(&err, HB_LIMIT, "TOO_MANY_SUBSCRIPTIONS",
             "subscriptions_max is %" PRIu64 ", so many are open", rpc->limits->subscriptions_max);
  end(self, &err);
  return false;
}

static void received(struct hb_call *call, const grpc_slice *message) {
  struct subscription *self = (struct subscription *)call;
  Holdback__V1__SubscribeRequest *request =
      hb_unary_unpack(call, &holdback__v1__subscribe_request__descriptor, message);
  if (!request) return;
  struct hb_err err;
  if (hb_subscribe_request_from_pb(request, call->rpc->limits, &self->request, &err)) {
    end(self, &err);
  } else {
    self->stream = hb_unary_find_stream(call, self->request.stream);
    bool good = self->stream && check_incarnation(self, &request->incarnation) && admit(self);
    if (good) begin(self);
  }
  holdback__v1__subscribe_request__free_unpacked(request, NULL);
}

static void opened(struct hb_call *call) {
  struct subscription *self = (struct subscription *)call;
  self->timer.fire = timer_fired;
  self->changed_post.fire = changed_arrived;
  self->read_post.fire = read_arrived;
  self->yield_post.fire = yield_ended;
  hb_call_read(call);
}

static void answer_left(struct subscription *self) {
  hb_uncount(&self->call.rpc->counters, HB_COUNTER_answers_in_flight, self->in_flight);
  self->in_flight = 0;
}

static void sent(struct hb_call *call) {
  struct subscription *self = (struct subscription *)call;
  answer_left(self);
  go(self);
}

static void stopped(struct hb_call *call) {
  struct subscription *self = (struct subscription *)call;
  hb_pump_clear_timer(call->lane->pump, &self->timer);
  if (!self->watching) return;
  self->watching = false;
  hb_watch_stop(&self->watch);
  if (self->changed_posted) { /* it is in the pump's mailbox still */
    self->release_when_changed = true;
    hb_call_hold(call);
  }
}

static void drain(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

static void sweep(struct hb_call *call) { go((struct subscription *)call); }

static void done(struct hb_call *call) {
  struct subscription *self = (struct subscription *)call;
  answer_left(self);
  if (self->counted) {
    hb_uncount(&call->rpc->counters, HB_COUNTER_subscriptions_open, 1);
    hb_live_gone(HB_LIVE_subscriptions);
  }
  hb_stream_unref(self->stream);
  hb_subscribe_request_done(&self->request);
}

const struct hb_method hb_method_subscribe = {
    .path = "/holdback.v1.DeliveryService/Subscribe",
    .size = sizeof(struct subscription),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = opened,
    .received = received,
    .sent = sent,
    .stopped = stopped,
    .drain = drain,
    .sweep = sweep,
    .done = done,
};
