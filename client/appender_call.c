/* Decides what an appender sends, and what it does when its call ends.
 *
 *   no call --something to send--> call --status--> no call
 *      ^                                              |
 *      '---- transient: everything unanswered again --'     anything else: broken
 *
 * - The first message of a call carries stream, producer and the incarnation of the first answer:
 *   a stream that was deleted and made anew is refused by the server, never filled by mistake.
 * - Only the answer with the next ordinal is taken, for the batch at the front of the outbox: what
 *   was counted once has left the outbox and can't be counted again. */
#include "base/clock.h"
#include "base/frame/wire.h"
#include "client/appender.h"
#include "client/bytebuf.h"
#include "client/error.h"
#include "client/status.h"

enum { CLOSE_TIMEOUT_MS = 1000, STILL_CONNECTED_MS = 1000 };
enum { REQUEST_STREAM = 1, REQUEST_BATCH = 2, REQUEST_PRODUCER = 3, REQUEST_INCARNATION = 4 };

#define OWNER(part, member) \
  ((struct holdback_appender *)(void *)((char *)(part)-offsetof(struct holdback_appender, member)))

/* ---- sending */

/* An AppendStreamRequest: what stands before the frames is written here, the frames are lent. */
static grpc_byte_buffer *request_of(struct holdback_appender *appender, struct hbc_batch *batch) {
  struct hb_buf head = {0};
  if (appender->opening) {
    hb_wire_append_bytes(&head, REQUEST_STREAM, hb_slice_text(appender->stream));
    if (appender->producer)
      hb_wire_append_bytes(&head, REQUEST_PRODUCER, hb_slice_text(appender->producer));
    if (appender->incarnation.size)
      hb_wire_append_bytes(&head, REQUEST_INCARNATION, hb_buf_view(&appender->incarnation));
  }
  uint8_t *at = hb_buf_reserve(&head, 1 + HB_VARINT_MAX);
  *at = REQUEST_BATCH << 3 | HB_WIRE_LEN;
  head.size += 1 + hb_wire_put_varint(at + 1, batch->frames.size);
  grpc_slice slices[2] = {grpc_slice_from_copied_buffer((const char *)head.data, head.size),
                          hbc_batch_slice(batch)};
  hb_buf_done(&head);
  grpc_byte_buffer *request = grpc_raw_byte_buffer_create(slices, 2);
  grpc_slice_unref(slices[0]);
  grpc_slice_unref(slices[1]);
  return request;
}

static const struct hbc_call_handler handler;

void hbc_appender_attempt(struct holdback_appender *appender) {
  hbc_backoff_attempt(&appender->backoff, hb_clock_mono_ms());
  if (!appender->give_up_at.at_ms)
    hbc_timer_set(appender->client, &appender->give_up_at,
                  appender->backoff.failing_ms + appender->reconnect_timeout_ms);
}

static void open_call(struct holdback_appender *appender) {
  hbc_appender_attempt(appender);
  hbc_call_start(&appender->call, appender->client, "/holdback.v1.IngestService/AppendStream",
                 &handler);
  appender->opening = true;
  hbc_call_read(&appender->call);
}

void hbc_appender_pump(struct holdback_appender *appender) {
  struct hbc_batch *batch = hbc_outbox_unsent(&appender->outbox);
  if (!batch || appender->is_broken || appender->closing || appender->again_at.at_ms) return;
  if (!hbc_call_is_open(&appender->call)) open_call(appender);
  if (appender->call.sending || appender->call.at_end) return;
  hbc_call_send(&appender->call, request_of(appender, batch));
  hbc_outbox_sent(&appender->outbox);
  appender->opening = false;
}

static void on_sent(struct hbc_call *call) { hbc_appender_pump(OWNER(call, call)); }

/* ---- receiving */

static void break_malformed(struct holdback_appender *appender) {
  struct holdback_error error;
  (void)hbc_error_set(&error, HOLDBACK_INTERNAL, NULL,
                      "%s: AppendStream: the answer is malformed or answers nothing that was sent",
                      appender->client->server);
  hbc_appender_break(appender, &error);
}

/* False: it answers nothing. */
static bool take_response(struct holdback_appender *appender,
                          const Holdback__V1__AppendStreamResponse *response) {
  if (!response->result) return false;
  struct hbc_batch *batch = hbc_outbox_answered(&appender->outbox, response->ordinal);
  if (!batch) return false;
  if (appender->incarnation.size == 0)
    hb_buf_append(&appender->incarnation, response->result->incarnation.data,
                  response->result->incarnation.len);
  bool taken = hbc_appender_take_answer(appender, batch, response->result);
  hbc_batch_unref(batch);
  return taken;
}

static void on_message(struct hbc_call *call, grpc_byte_buffer *owned) {
  struct holdback_appender *appender = OWNER(call, call);
  ProtobufCMessage *message =
      hbc_bytebuf_unpack(&holdback__v1__append_stream_response__descriptor, owned);
  grpc_byte_buffer_destroy(owned);
  hbc_backoff_succeeded(&appender->backoff);
  hbc_timer_clear(appender->client, &appender->give_up_at);
  if (!appender->is_broken && !appender->closing &&
      (!message || !take_response(appender, (Holdback__V1__AppendStreamResponse *)message)))
    break_malformed(appender);
  if (message) protobuf_c_message_free_unpacked(message, NULL);
  hbc_call_read(call);
  hbc_appender_window_changed(appender);
  hbc_appender_pump(appender);
}

/* ---- the end of a call, and of the appender */

static void try_again_later(struct holdback_appender *appender,
                            const struct holdback_error *error) {
  uint64_t now_ms = hb_clock_mono_ms();
  appender->last_failure = *error;
  hbc_outbox_rewind(&appender->outbox);
  if (appender->outbox.count == 0) {
    /* Nothing is owed: the next batch connects, and its time begins then. */
    hbc_backoff_succeeded(&appender->backoff);
    hbc_timer_clear(appender->client, &appender->give_up_at);
    return;
  }
  hbc_backoff_attempt(&appender->backoff, now_ms);
  if (hbc_backoff_is_over(&appender->backoff, now_ms, appender->reconnect_timeout_ms)) {
    hbc_appender_break(appender, error);
    return;
  }
  hbc_timer_set(appender->client, &appender->give_up_at,
                appender->backoff.failing_ms + appender->reconnect_timeout_ms);
  uint32_t delay_ms = hbc_backoff_failed(&appender->backoff, hbc_client_dice(appender->client));
  hbc_timer_set(appender->client, &appender->again_at, now_ms + delay_ms);
}

static void on_ended(struct hbc_call *call, const struct holdback_error *error) {
  struct holdback_appender *appender = OWNER(call, call);
  if (appender->closing) {
    hbc_appender_closed_maybe(appender);
    return;
  }
  if (appender->is_broken) return;
  struct holdback_error ended = *error;
  if (!ended.status)
    (void)hbc_error_set(&ended, HOLDBACK_UNAVAILABLE, NULL, "%s: the server ended the call",
                        appender->client->server);
  if (hbc_status_is_transient(&ended)) {
    try_again_later(appender, &ended);
  } else {
    hbc_appender_break(appender, &ended);
  }
}

static const struct hbc_call_handler handler = {
    .sent = on_sent, .message = on_message, .ended = on_ended};

static void on_again(struct hbc_timer *timer) { hbc_appender_pump(OWNER(timer, again_at)); }

/* A connected server that is slow to answer is waited for: it may be syncing, or drowning. */
static void on_give_up(struct hbc_timer *timer) {
  struct holdback_appender *appender = OWNER(timer, give_up_at);
  bool asked = hbc_call_is_open(&appender->call) || appender->polling;
  if (asked && hbc_client_is_connected(appender->client)) {
    hbc_timer_set(appender->client, timer, hb_clock_mono_ms() + STILL_CONNECTED_MS);
    return;
  }
  struct holdback_error error = appender->last_failure;
  if (!error.status)
    (void)hbc_error_set(&error, HOLDBACK_UNAVAILABLE, NULL, "%s: no connection for %u ms",
                        appender->client->server, (unsigned)appender->reconnect_timeout_ms);
  hbc_appender_break(appender, &error);
}

static void clear_timers(struct holdback_appender *appender) {
  hbc_timer_clear(appender->client, &appender->again_at);
  hbc_timer_clear(appender->client, &appender->give_up_at);
  hbc_timer_clear(appender->client, &appender->poll_at);
  hbc_timer_clear(appender->client, &appender->window_at);
  hbc_timer_clear(appender->client, &appender->close_at);
}

void hbc_appender_break(struct holdback_appender *appender, const struct holdback_error *error) {
  if (appender->is_broken) return;
  appender->is_broken = true;
  clear_timers(appender);
  hbc_call_cancel(&appender->call);
  if (appender->polling) hbc_unary_cancel(&appender->poll);
  hbc_outbox_done(&appender->outbox);
  pthread_mutex_lock(&appender->mutex);
  appender->broken = *error;
  atomic_store(&appender->failed, true);
  pthread_cond_broadcast(&appender->changed);
  pthread_mutex_unlock(&appender->mutex);
}

static void on_close_late(struct hbc_timer *timer) {
  hbc_call_cancel(&OWNER(timer, close_at)->call);
}

void hbc_appender_close(struct holdback_appender *appender) {
  appender->closing = true;
  clear_timers(appender);
  if (appender->polling) hbc_unary_cancel(&appender->poll);
  struct hbc_call *call = &appender->call;
  if (hbc_call_is_open(call) && !call->sending && !call->at_end && appender->outbox.count == 0) {
    hbc_call_send_end(call);
    hbc_timer_set(appender->client, &appender->close_at, hb_clock_mono_ms() + CLOSE_TIMEOUT_MS);
  } else {
    hbc_call_cancel(call);
  }
  hbc_appender_closed_maybe(appender);
}

void hbc_appender_closed_maybe(struct holdback_appender *appender) {
  if (!appender->closing || appender->polling || hbc_call_is_open(&appender->call)) return;
  hbc_timer_clear(appender->client, &appender->close_at);
  pthread_mutex_lock(&appender->mutex);
  appender->closed = true;
  pthread_cond_broadcast(&appender->changed);
  pthread_mutex_unlock(&appender->mutex);
}

void hbc_appender_call_init(struct holdback_appender *appender) {
  appender->again_at.fire = on_again;
  appender->give_up_at.fire = on_give_up;
  appender->close_at.fire = on_close_late;
}
