/* Decides when refused events are sent again, when the stream is asked, and when to give up.
 *
 * - One batch of refused events is on its way at a time: the lowest, since those fill gaps.
 * - While something is refused and nothing else is on its way, GetStream is asked each second: it
 *   shows what others did (complete_to moved, bundles drained, limits raised). Memory and disk of
 *   the server show nowhere: for those reasons each poll is followed by a try.
 * - complete_to standing still for window_timeout_ms, with a connection, ends the appender. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/appender.h"
#include "client/bytebuf.h"
#include "client/error.h"
#include "client/status.h"
#include "holdback/v1/stream.pb-c.h"

enum { POLL_MS = 1000 };
enum { REASON_SERVER_MEMORY = 4, REASON_DISK_RESERVE = 5 };

#define OWNER(part, member) \
  ((struct holdback_appender *)(void *)((char *)(part)-offsetof(struct holdback_appender, member)))

/* ---- again */

static struct hbc_batch *collect(struct holdback_appender *appender) {
  struct hbc_window *window = &appender->window;
  struct hbc_batch *batch = hbc_batch_create(hbc_window_lowest(window)->size);
  while (batch->count < appender->batch_events && hbc_window_may_retry(window)) {
    size_t size = hbc_window_lowest(window)->size;
    if (batch->count && batch->frames.size + size > appender->batch_bytes) break;
    struct hbc_refused refused = hbc_window_take(window);
    hb_buf_append(&batch->frames, refused.frame, refused.size);
    hbc_batch_added(batch, refused.index);
    free(refused.frame);
  }
  batch->again = true;
  batch->owner = appender;
  return batch;
}

static void send_again(struct holdback_appender *appender) {
  struct hbc_window *window = &appender->window;
  if (appender->retrying || !hbc_window_may_retry(window)) return;
  struct hbc_batch *batch = collect(appender);
  window->hope = false;
  appender->retrying = true;
  pthread_mutex_lock(&appender->mutex);
  appender->unanswered++;
  appender->unanswered_bytes += batch->frames.size;
  appender->refused = window->count;
  appender->refused_bytes = window->bytes;
  pthread_mutex_unlock(&appender->mutex);
  hbc_outbox_push_first(&appender->outbox, batch);
}

static void set_timers(struct holdback_appender *appender) {
  struct holdback_client *client = appender->client;
  if (appender->window.count == 0) {
    hbc_timer_clear(client, &appender->poll_at);
    hbc_timer_clear(client, &appender->window_at);
    return;
  }
  if (!appender->poll_at.at_ms)
    hbc_timer_set(client, &appender->poll_at, hb_clock_mono_ms() + POLL_MS);
  if (appender->window_timeout_ms != UINT32_MAX)
    hbc_timer_set(client, &appender->window_at,
                  appender->window.moved_ms + appender->window_timeout_ms);
}

void hbc_appender_window_changed(struct holdback_appender *appender) {
  if (appender->is_broken || appender->closing) return;
  send_again(appender);
  set_timers(appender);
}

/* ---- asking */

static int64_t add_saturated(int64_t start, uint64_t width) {
  uint64_t room = (uint64_t)INT64_MAX - (uint64_t)start; /* exact for negative starts too */
  return width > room ? INT64_MAX : (int64_t)((uint64_t)start + width);
}

static void compare_room(struct holdback_appender *appender,
                         const Holdback__V1__GetStreamResponse *got) {
  static const Holdback__V1__StreamLimits none = HOLDBACK__V1__STREAM_LIMITS__INIT;
  const Holdback__V1__StreamLimits *limits = got->config->limits ? got->config->limits : &none;
  struct hbc_room room = {.known = true,
                          .held_events = got->status->held_events,
                          .held_bytes = got->status->held_bytes,
                          .gaps_total = got->status->gaps_total,
                          .limits = {limits->ahead_max, limits->held_bytes_max,
                                     limits->held_events_max, limits->gaps_max}};
  const struct hbc_room *before = &appender->room;
  bool more = room.held_events < before->held_events || room.held_bytes < before->held_bytes ||
              room.gaps_total < before->gaps_total;
  for (size_t i = 0; i < sizeof room.limits / sizeof *room.limits; i++)
    more = more || room.limits[i] != before->limits[i];
  if (before->known && more) appender->window.hope = true;
  appender->room = room;
  bool one_window = got->config->mode != HOLDBACK__V1__STREAM_MODE__STREAM_MODE_PER_KEY;
  if (one_window && got->status->complete_to_presence_case && limits->ahead_max)
    hbc_window_saw_end(&appender->window,
                       add_saturated(got->status->complete_to, limits->ahead_max));
}

static void take_poll(struct holdback_appender *appender,
                      const Holdback__V1__GetStreamResponse *got) {
  const struct hbc_refused *lowest = hbc_window_lowest(&appender->window);
  if (!got->config || !got->status || !lowest) return;
  if (got->status->complete_to_presence_case)
    hbc_window_saw_complete_to(&appender->window, got->status->complete_to, hb_clock_mono_ms());
  compare_room(appender, got);
  appender->missing = (struct holdback_gap){0};
  if (got->status->n_gaps)
    appender->missing = (struct holdback_gap){.start = got->status->gaps[0]->start,
                                              .end = got->status->gaps[0]->end};
  if (lowest->reason == REASON_SERVER_MEMORY || lowest->reason == REASON_DISK_RESERVE)
    appender->window.hope = true;
}

/* That the server can't be asked just now is no news of the stream; for too long, it is the end.
 * Anything else it says of the stream is: it may be gone. */
static void poll_failed(struct holdback_appender *appender, const struct holdback_error *error) {
  bool transient = hbc_status_is_transient(error) || error->status == HOLDBACK_DEADLINE_EXCEEDED;
  bool over =
      hbc_backoff_is_over(&appender->backoff, hb_clock_mono_ms(), appender->reconnect_timeout_ms);
  if (!transient || over) hbc_appender_break(appender, error);
}

static void on_polled(struct hbc_unary *unary, grpc_byte_buffer *answer,
                      const struct holdback_error *error) {
  struct holdback_appender *appender = OWNER(unary, poll);
  appender->polling = false;
  if (appender->is_broken || appender->closing) {
    hbc_appender_closed_maybe(appender);
    return;
  }
  if (!answer) {
    poll_failed(appender, error);
    return;
  }
  hbc_backoff_succeeded(&appender->backoff);
  hbc_timer_clear(appender->client, &appender->give_up_at);
  ProtobufCMessage *got =
      hbc_bytebuf_unpack(&holdback__v1__get_stream_response__descriptor, answer);
  if (got) {
    take_poll(appender, (Holdback__V1__GetStreamResponse *)got);
    protobuf_c_message_free_unpacked(got, NULL);
  }
  hbc_appender_window_changed(appender);
  hbc_appender_pump(appender);
}

static void on_poll_time(struct hbc_timer *timer) {
  struct holdback_appender *appender = OWNER(timer, poll_at);
  hbc_timer_set(appender->client, timer, hb_clock_mono_ms() + POLL_MS);
  if (appender->polling || appender->outbox.count) return;
  Holdback__V1__GetStreamRequest request = HOLDBACK__V1__GET_STREAM_REQUEST__INIT;
  request.stream = appender->stream;
  appender->poll = (struct hbc_unary){.client = appender->client,
                                      .method = "/holdback.v1.StreamService/GetStream",
                                      .request = hbc_bytebuf_pack(&request.base),
                                      .done = on_polled};
  appender->polling = true;
  hbc_appender_attempt(appender);
  hbc_unary_start(&appender->poll);
}

/* ---- giving up */

/* What nobody sent: from complete_to up to the lowest thing that is there, stored or refused. */
static struct holdback_gap missing_range(const struct holdback_appender *appender) {
  const struct hbc_window *window = &appender->window;
  struct holdback_gap missing = appender->missing;
  if (missing.start == missing.end) {
    missing.start = window->complete_to;
    missing.end = INT64_MAX;
  }
  int64_t lowest = hbc_window_lowest(window)->sequence;
  if (lowest > missing.start && lowest < missing.end) missing.end = lowest;
  return missing;
}

static void tell_given_up(struct holdback_appender *appender) {
  struct hbc_window *window = &appender->window;
  while (window->count) {
    struct hbc_refused refused = hbc_window_take(window);
    struct holdback_result result = {.index = refused.index,
                                     .count = 1,
                                     .first_sequence = refused.sequence,
                                     .outcome = HOLDBACK_WINDOW_FULL,
                                     .reason = refused.reason,
                                     .text = ""};
    if (appender->on_result) appender->on_result(appender->context, &result);
    free(refused.frame);
  }
}

static void give_up(struct holdback_appender *appender) {
  const struct hbc_refused *lowest = hbc_window_lowest(&appender->window);
  struct holdback_gap missing = missing_range(appender);
  size_t count = appender->window.count;
  struct holdback_error error;
  (void)hbc_error_set(
      &error, HOLDBACK_RESOURCE_EXHAUSTED, "WINDOW_FULL",
      "stream '%s': [%" PRId64 ", %" PRId64
      ") is missing and complete_to did not move for %u ms; %zu %s not taken (%s), the "
      "lowest is %" PRId64,
      appender->stream, missing.start, missing.end, (unsigned)appender->window_timeout_ms, count,
      count == 1 ? "event was" : "events were", holdback_reason_name(lowest->reason),
      lowest->sequence);
  tell_given_up(appender);
  pthread_mutex_lock(&appender->mutex);
  appender->progress.window_full += count;
  appender->refused = 0;
  appender->refused_bytes = 0;
  pthread_mutex_unlock(&appender->mutex);
  hbc_appender_break(appender, &error);
}

static void on_window_time(struct hbc_timer *timer) {
  struct holdback_appender *appender = OWNER(timer, window_at);
  uint64_t now_ms = hb_clock_mono_ms();
  if (appender->backoff.failing_ms && !hbc_client_is_connected(appender->client)) {
    /* Without a server nothing can move: that time does not count. */
    appender->window.moved_ms = now_ms;
    set_timers(appender);
    return;
  }
  if (appender->retrying || appender->backoff.failing_ms) {
    hbc_timer_set(appender->client, timer, now_ms + POLL_MS); /* its answer may be the movement */
    return;
  }
  if (appender->window.count) give_up(appender);
}

void hbc_appender_window_init(struct holdback_appender *appender) {
  appender->poll_at.fire = on_poll_time;
  appender->window_at.fire = on_window_time;
}
