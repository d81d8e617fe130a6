/* Decides the next thing that a subscription does.
 *
 *  - Only what is published is looked at, so nothing is delivered before it is durable and
 *    complete (I2), and positions only go up (I3).
 *  - Progress goes out at once, at each catch-up and each progress_interval_ms.
 *  - When a sealed stream is delivered as a whole, End goes out after the last Progress. */
#include "server/rpc/subscription.h"

#include <inttypes.h>

#include "server/rpc/lane.h"

enum { BLOCKS_MAX = 64 };

/* Rounds that bring nothing to send, where a filter matches little, before others have a turn. */
enum { ROUNDS_MAX = 8 };

void hb_subscription_start_at(struct hb_subscription *self, int64_t position) {
  self->started = true;
  self->position = position;
}

/* ---- where it begins */

static void start_at_position(struct hb_subscription *self, const struct hb_frontier *record) {
  int64_t asked = self->request.position;
  if (asked >= record->earliest) {
    hb_subscription_start_at(self, asked);
    return;
  }
  struct hb_err err;
  hb_err_set(&err, HB_OUT_OF_RANGE, "BELOW_EARLIEST",
             "position is %" PRId64 ", earliest is %" PRId64, asked, record->earliest);
  hb_call_end(&self->call, &err);
}

/* Results begin at the first of that time. Which one that is, is known once the processor came to
 * the stream's first event of it: until then what comes next may be earlier. */
static void start_at_result(struct hb_subscription *self, const struct hb_stream_status *status) {
  if (self->has_due) {
    if (status->processed_to >= self->due) hb_subscription_read(self, HB_READ_TIME);
    return;
  }
  struct hb_stream_status source;
  hb_stream_get_status(self->source, &source);
  if (source.record.frozen) {
    hb_subscription_read(self, HB_READ_TIME);
  } else {
    hb_subscription_start_at(self, status->record.earliest); /* all will be later than now */
  }
}

void hb_subscription_try_start(struct hb_subscription *self, bool just_accepted) {
  struct hb_stream_status status;
  hb_stream_get_status(self->stream, &status);
  const struct hb_frontier *record = &status.record;
  if (!record->frozen) return;
  switch (self->request.start) {
    case HB_START_EARLIEST:
      hb_subscription_start_at(self, record->earliest);
      break;
    case HB_START_NOW:
      hb_subscription_start_at(self, just_accepted ? record->frontier : record->earliest);
      break;
    case HB_START_POSITION:
      start_at_position(self, record);
      break;
    case HB_START_TIME:
      if (self->source) {
        start_at_result(self, &status);
      } else if (just_accepted) {
        hb_subscription_read(self, HB_READ_TIME);
      } else {
        hb_subscription_start_at(self, record->earliest);
      }
      break;
  }
}

/* ---- the next thing */

enum step { WAIT, AGAIN };

static enum step deliver(struct hb_subscription *self) {
  struct hb_bytes *blocks[BLOCKS_MAX];
  size_t count = 0;
  switch (hb_stream_read_tail(self->stream, self->position, blocks, BLOCKS_MAX,
                              hb_subscription_answer_bytes(self), &count)) {
    case HB_TAIL_BLOCKS:
      hb_subscription_take_blocks(self, blocks, count);
      return AGAIN;
    case HB_TAIL_BEHIND:
      hb_subscription_read(self, HB_READ_LOG);
      return WAIT;
    case HB_TAIL_CAUGHT_UP:
      break;
  }
  struct hb_err err;
  if (hb_stream_get_damage(self->stream, &err)) {
    hb_call_end(&self->call, &err); /* what it waits for does not come */
    return WAIT;
  }
  if (!self->told_caught_up) {
    hb_subscription_send_progress(self);
    self->told_caught_up = true; /* even if the frontier moved meanwhile: then more is sent */
    return WAIT;
  }
  struct hb_stream_status status;
  hb_stream_get_status(self->stream, &status);
  const struct hb_frontier *record = &status.record;
  if (record->sealed && record->frontier >= record->seal_end) {
    hb_subscription_send_end(self, record->seal_end);
    return WAIT;
  }
  return hb_subscription_arm(self) ? AGAIN : WAIT;
}

static enum step next_step(struct hb_subscription *self) {
  if (hb_stream_is_deleted(self->stream)) {
    struct hb_err err;
    if (self->request.processor[0]) {
      hb_err_set(&err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                 "processor '%s' of stream '%s' was detached, or the stream deleted",
                 self->request.processor, self->request.stream);
      hb_call_end(&self->call, &err);
      return WAIT;
    }
    hb_err_set(&err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' was deleted",
               self->request.stream);
    hb_call_end(&self->call, &err);
    return WAIT;
  }
  if (!self->started) hb_subscription_try_start(self, false);
  if (self->call.over || self->reading) return WAIT;
  if (self->progress_due) {
    hb_subscription_send_progress(self);
    return WAIT;
  }
  if (!self->started) return hb_subscription_arm(self) ? AGAIN : WAIT;
  return deliver(self);
}

void hb_subscription_go(struct hb_subscription *self) {
  for (int round = 0;; round++) {
    bool busy = self->call.sending || self->reading || self->yielded;
    if (self->call.over || busy || !self->watching) return;
    if (round == ROUNDS_MAX) {
      hb_subscription_yield(self);
      return;
    }
    if (next_step(self) == WAIT) return;
  }
}
