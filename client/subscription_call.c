/* Decides where a subscription starts and resumes, how far ahead it reads, and when it gives up.
 *
 * It resumes at the next_position of the last message that was received, whether the reader has
 * taken it or not: nothing is delivered twice. The first Progress tells the incarnation, which is
 * sent along afterwards: a stream made anew under the same name is not taken for the old one. */
#include "base/clock.h"
#include "base/frame/wire.h"
#include "client/bytebuf.h"
#include "client/error.h"
#include "client/status.h"
#include "client/subscription.h"

enum { STILL_CONNECTED_MS = 1000 };
enum { REQUEST_POSITION = 3, REQUEST_INCARNATION = 6 };

#define OWNER(part, member)                                                                       \
  ((struct holdback_subscription *)(void *)((char *)(part)-offsetof(struct holdback_subscription, \
                                                                    member)))

/* The mutex is held. All that was received is decoded, so that the last of it is known. */
static void note_queued(struct holdback_subscription *subscription) {
  while (subscription->reading) pthread_cond_wait(&subscription->changed, &subscription->mutex);
  bool ended = subscription->ended;
  for (struct holdback_message *m = subscription->first; m; m = m->next)
    if (hbc_message_decode(m)) hbc_subscription_note(subscription, m);
  subscription->ended = ended; /* the reader has not come so far */
}

static bool has_end(const struct holdback_subscription *subscription) {
  if (subscription->ended) return true;
  return subscription->last && !subscription->last->received &&
         subscription->last->kind == HOLDBACK_MESSAGE_END;
}

static grpc_byte_buffer *request_of(struct holdback_subscription *subscription) {
  struct hb_buf request = {0};
  hb_buf_append(&request, subscription->request.data, subscription->request.size);
  pthread_mutex_lock(&subscription->mutex);
  note_queued(subscription);
  if (subscription->has_resume) {
    hb_wire_append_varint(&request, REQUEST_POSITION, (uint64_t)subscription->resume);
  } else {
    hb_buf_append(&request, subscription->start.data, subscription->start.size);
  }
  if (subscription->incarnation_size)
    hb_wire_append_bytes(&request, REQUEST_INCARNATION,
                         hb_slice_of(subscription->incarnation, subscription->incarnation_size));
  pthread_mutex_unlock(&subscription->mutex);
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)request.data, request.size);
  hb_buf_done(&request);
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return buffer;
}

static const struct hbc_call_handler handler;

static void open_call(struct holdback_subscription *subscription) {
  if (subscription->closing || hbc_call_is_open(&subscription->call)) return;
  hbc_backoff_attempt(&subscription->backoff, hb_clock_mono_ms());
  hbc_timer_set(subscription->client, &subscription->give_up_at,
                subscription->backoff.failing_ms + subscription->reconnect_timeout_ms);
  hbc_call_start(&subscription->call, subscription->client,
                 "/holdback.v1.DeliveryService/Subscribe", &handler);
  hbc_call_send(&subscription->call, request_of(subscription));
  hbc_call_read(&subscription->call);
}

static void on_sent(struct hbc_call *call) { hbc_call_send_end(call); }

static void on_message(struct hbc_call *call, grpc_byte_buffer *owned) {
  struct holdback_subscription *subscription = OWNER(call, call);
  hbc_backoff_succeeded(&subscription->backoff);
  hbc_timer_clear(subscription->client, &subscription->give_up_at);
  struct holdback_message *message = hbc_message_create(owned);
  pthread_mutex_lock(&subscription->mutex);
  if (subscription->last) {
    subscription->last->next = message;
  } else {
    subscription->first = message;
  }
  subscription->last = message;
  subscription->queued_bytes += message->size;
  subscription->paused = subscription->queued_bytes >= HBC_PREFETCH_MAX;
  bool paused = subscription->paused;
  pthread_cond_broadcast(&subscription->changed);
  pthread_mutex_unlock(&subscription->mutex);
  if (!paused) hbc_call_read(call);
}

static void fail(struct holdback_subscription *subscription, const struct holdback_error *error) {
  hbc_timer_clear(subscription->client, &subscription->again_at);
  hbc_timer_clear(subscription->client, &subscription->give_up_at);
  hbc_call_cancel(&subscription->call);
  pthread_mutex_lock(&subscription->mutex);
  if (!subscription->failed.status) subscription->failed = *error;
  pthread_cond_broadcast(&subscription->changed);
  pthread_mutex_unlock(&subscription->mutex);
}

static bool is_over(struct holdback_subscription *subscription) {
  pthread_mutex_lock(&subscription->mutex);
  bool over = subscription->failed.status != HOLDBACK_OK;
  if (!over) {
    note_queued(subscription);
    over = has_end(subscription);
  }
  pthread_mutex_unlock(&subscription->mutex);
  return over;
}

static void tell_closed(struct holdback_subscription *subscription) {
  pthread_mutex_lock(&subscription->mutex);
  subscription->closed = true;
  pthread_cond_broadcast(&subscription->changed);
  pthread_mutex_unlock(&subscription->mutex);
}

static void try_again_later(struct holdback_subscription *subscription,
                            const struct holdback_error *error) {
  uint64_t now_ms = hb_clock_mono_ms();
  subscription->last_failure = *error;
  hbc_backoff_attempt(&subscription->backoff, now_ms);
  if (hbc_backoff_is_over(&subscription->backoff, now_ms, subscription->reconnect_timeout_ms)) {
    fail(subscription, error);
    return;
  }
  uint32_t delay_ms =
      hbc_backoff_failed(&subscription->backoff, hbc_client_dice(subscription->client));
  hbc_timer_set(subscription->client, &subscription->again_at, now_ms + delay_ms);
}

static void on_ended(struct hbc_call *call, const struct holdback_error *error) {
  struct holdback_subscription *subscription = OWNER(call, call);
  if (subscription->closing) {
    tell_closed(subscription);
    return;
  }
  if (is_over(subscription)) return;
  struct holdback_error ended = *error;
  if (!ended.status)
    (void)hbc_error_set(&ended, HOLDBACK_UNAVAILABLE, NULL, "%s: the server ended the call",
                        subscription->client->server);
  if (hbc_status_is_transient(&ended)) {
    try_again_later(subscription, &ended);
  } else {
    fail(subscription, &ended);
  }
}

static const struct hbc_call_handler handler = {
    .sent = on_sent, .message = on_message, .ended = on_ended};

static void on_again(struct hbc_timer *timer) { open_call(OWNER(timer, again_at)); }

static void on_give_up(struct hbc_timer *timer) {
  struct holdback_subscription *subscription = OWNER(timer, give_up_at);
  if (hbc_call_is_open(&subscription->call) && hbc_client_is_connected(subscription->client)) {
    hbc_timer_set(subscription->client, timer, hb_clock_mono_ms() + STILL_CONNECTED_MS);
    return;
  }
  struct holdback_error error = subscription->last_failure;
  if (!error.status)
    (void)hbc_error_set(&error, HOLDBACK_UNAVAILABLE, NULL, "%s: no connection for %u ms",
                        subscription->client->server, (unsigned)subscription->reconnect_timeout_ms);
  fail(subscription, &error);
}

static void run_open(struct hbc_task *task) { open_call(OWNER(task, open)); }

static void run_go_on(struct hbc_task *task) {
  struct holdback_subscription *subscription = OWNER(task, go_on);
  pthread_mutex_lock(&subscription->mutex);
  subscription->go_on_posted = false;
  pthread_mutex_unlock(&subscription->mutex);
  hbc_call_read(&subscription->call);
}

void hbc_subscription_call_init(struct holdback_subscription *subscription) {
  subscription->again_at.fire = on_again;
  subscription->give_up_at.fire = on_give_up;
  subscription->open.run = run_open;
  subscription->go_on.run = run_go_on;
}

void hbc_subscription_close(struct holdback_subscription *subscription) {
  subscription->closing = true;
  hbc_timer_clear(subscription->client, &subscription->again_at);
  hbc_timer_clear(subscription->client, &subscription->give_up_at);
  if (hbc_call_is_open(&subscription->call)) {
    hbc_call_cancel(&subscription->call);
  } else {
    tell_closed(subscription);
  }
}
