/* Decides when the reader of a subscription waits, and what it gets: messages in order, then the
 * error that ended them. */
#include "client/subscription.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/frame/wire.h"
#include "base/limits.h"
#include "client/error.h"

enum { TIMEOUT_DEFAULT_MS = 30000 };
enum { REQUEST_STREAM = 1, REQUEST_AT = 2, REQUEST_POSITION = 3, REQUEST_TIME = 4 };
enum { REQUEST_FILTER = 5, REQUEST_INTERVAL = 7, REQUEST_PROCESSOR = 8, REQUEST_STATUSES = 9 };
enum { FILTER_KEYS = 1, FILTER_PREFIXES = 2, TIME_SECONDS = 1, TIME_NANOS = 2 };

/* ---- the request */

static struct hb_slice slice_of(struct holdback_bytes bytes) {
  return hb_slice_of(bytes.data, bytes.size);
}

static void put_filter(struct hb_buf *request, const struct holdback_subscribe_options *options) {
  struct hb_buf filter = {0};
  for (size_t i = 0; i < options->keys_count; i++)
    hb_wire_append_bytes(&filter, FILTER_KEYS, slice_of(options->keys[i]));
  for (size_t i = 0; i < options->key_prefixes_count; i++)
    hb_wire_append_bytes(&filter, FILTER_PREFIXES, slice_of(options->key_prefixes[i]));
  if (filter.size) hb_wire_append_bytes(request, REQUEST_FILTER, hb_buf_view(&filter));
  hb_buf_done(&filter);
}

static void put_time(struct hb_buf *start, const struct holdback_subscribe_options *options) {
  struct hb_buf time = {0};
  hb_wire_append_varint(&time, TIME_SECONDS, (uint64_t)options->time_seconds);
  hb_wire_append_varint(&time, TIME_NANOS, (uint64_t)options->time_nanos);
  hb_wire_append_bytes(start, REQUEST_TIME, hb_buf_view(&time));
  hb_buf_done(&time);
}

static void put_start(struct hb_buf *start, const struct holdback_subscribe_options *options) {
  switch (options->start) {
    case HOLDBACK_START_POSITION:
      hb_wire_append_varint(start, REQUEST_POSITION, (uint64_t)options->position);
      return;
    case HOLDBACK_START_EVENT_TIME:
      put_time(start, options);
      return;
    case HOLDBACK_START_EARLIEST:
    case HOLDBACK_START_NOW:
      hb_wire_append_varint(start, REQUEST_AT, options->start);
  }
}

static int check_options(const struct holdback_subscribe_options *options,
                         struct holdback_error *error) {
  if (!options->stream || !options->stream[0])
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "STREAM_NAME_INVALID",
                         "stream: the name is empty");
  if (options->start < HOLDBACK_START_EARLIEST || options->start > HOLDBACK_START_EVENT_TIME)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "START_MISSING",
                         "start: %d is none of earliest, now, position, event time",
                         (int)options->start);
  return HOLDBACK_OK;
}

/* ---- life */

static void destroy_member(struct hbc_member *member) {
  holdback_subscription_destroy((struct holdback_subscription *)member);
}

static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

int holdback_subscribe(struct holdback_client *client,
                       const struct holdback_subscribe_options *options,
                       struct holdback_subscription **out, struct holdback_error *error) {
  int status = check_options(options, error);
  if (status) return status;
  struct holdback_subscription *subscription = hb_calloc(1, sizeof *subscription);
  subscription->member.destroy = destroy_member;
  subscription->client = client;
  subscription->reconnect_timeout_ms =
      options->reconnect_timeout_ms ? options->reconnect_timeout_ms : TIMEOUT_DEFAULT_MS;
  hb_wire_append_bytes(&subscription->request, REQUEST_STREAM, hb_slice_text(options->stream));
  put_filter(&subscription->request, options);
  if (options->progress_interval_ms)
    hb_wire_append_varint(&subscription->request, REQUEST_INTERVAL, options->progress_interval_ms);
  if (options->processor)
    hb_wire_append_bytes(&subscription->request, REQUEST_PROCESSOR,
                         hb_slice_text(options->processor));
  if (options->key_statuses) hb_wire_append_varint(&subscription->request, REQUEST_STATUSES, 1);
  put_start(&subscription->start, options);
  pthread_mutex_init(&subscription->mutex, NULL);
  init_condition(&subscription->changed);
  hbc_subscription_call_init(subscription);
  hbc_client_join(client, &subscription->member);
  hbc_client_post(client, &subscription->open);
  *out = subscription;
  return HOLDBACK_OK;
}

struct close {
  struct hbc_task task;
  struct holdback_subscription *subscription;
};

static void run_close(struct hbc_task *task) {
  hbc_subscription_close(((struct close *)task)->subscription);
}

static void destroy_queue(struct holdback_subscription *subscription) {
  while (subscription->first) {
    struct holdback_message *message = subscription->first;
    subscription->first = message->next;
    hbc_message_destroy(message);
  }
}

void holdback_subscription_destroy(struct holdback_subscription *subscription) {
  if (!subscription) return;
  hbc_client_leave(subscription->client, &subscription->member);
  struct close close = {.task = {.run = run_close}, .subscription = subscription};
  hbc_client_post(subscription->client, &close.task);
  pthread_mutex_lock(&subscription->mutex);
  while (!subscription->closed) pthread_cond_wait(&subscription->changed, &subscription->mutex);
  pthread_mutex_unlock(&subscription->mutex);
  hbc_message_destroy(subscription->current);
  destroy_queue(subscription);
  pthread_cond_destroy(&subscription->changed);
  pthread_mutex_destroy(&subscription->mutex);
  hb_buf_done(&subscription->request);
  hb_buf_done(&subscription->start);
  free(subscription);
}

/* ---- reading */

/* The mutex is held. False: nothing came in time. */
static bool wait_for_message(struct holdback_subscription *subscription, uint32_t timeout_ms) {
  uint64_t until_ns = hb_clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;
  struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                           .tv_nsec = (long)(until_ns % 1000000000u)};
  while (!subscription->first && !subscription->failed.status && !subscription->ended) {
    if (timeout_ms == 0) return false;
    if (timeout_ms == UINT32_MAX) {
      pthread_cond_wait(&subscription->changed, &subscription->mutex);
    } else if (pthread_cond_timedwait(&subscription->changed, &subscription->mutex, &until) ==
               ETIMEDOUT) {
      return subscription->first || subscription->failed.status;
    }
  }
  return true;
}

/* The mutex is held; there is one. Sets *out_go_on where the client's thread must be told. */
static struct holdback_message *take_first(struct holdback_subscription *subscription,
                                           bool *out_go_on) {
  struct holdback_message *message = subscription->first;
  subscription->first = message->next;
  if (!subscription->first) subscription->last = NULL;
  subscription->queued_bytes -= message->size;
  subscription->reading = true;
  *out_go_on = subscription->paused && subscription->queued_bytes < HBC_PREFETCH_LOW &&
               !subscription->go_on_posted;
  if (*out_go_on) {
    subscription->paused = false;
    subscription->go_on_posted = true;
  }
  return message;
}

void hbc_subscription_note(struct holdback_subscription *subscription,
                           const struct holdback_message *message) {
  if (message->has_next_position) {
    subscription->has_resume = true;
    subscription->resume = message->next_position;
  }
  if (message->incarnation_size) {
    memcpy(subscription->incarnation, message->incarnation, message->incarnation_size);
    subscription->incarnation_size = message->incarnation_size;
  }
  if (message->kind == HOLDBACK_MESSAGE_END) subscription->ended = true;
}

static int fail_malformed(struct holdback_subscription *subscription,
                          struct holdback_error *error) {
  pthread_mutex_lock(&subscription->mutex);
  if (!subscription->failed.status)
    (void)hbc_error_set(&subscription->failed, HOLDBACK_INTERNAL, NULL,
                        "%s: Subscribe: a message is malformed", subscription->client->server);
  int status = hbc_error_copy(error, &subscription->failed);
  pthread_mutex_unlock(&subscription->mutex);
  return status;
}

static int take(struct holdback_subscription *subscription, uint32_t timeout_ms,
                struct holdback_message **out, struct holdback_error *error) {
  bool go_on = false;
  int status = HOLDBACK_OK;
  *out = NULL;
  pthread_mutex_lock(&subscription->mutex);
  if (wait_for_message(subscription, timeout_ms)) {
    if (subscription->first) {
      *out = take_first(subscription, &go_on);
    } else if (subscription->ended) {
      status = hbc_error_set(error, HOLDBACK_OUT_OF_RANGE, "ENDED",
                             "the stream is sealed and everything was delivered");
    } else {
      status = hbc_error_copy(error, &subscription->failed);
    }
  }
  pthread_mutex_unlock(&subscription->mutex);
  if (go_on) hbc_client_post(subscription->client, &subscription->go_on);
  return status;
}

int holdback_next(struct holdback_subscription *subscription, uint32_t timeout_ms,
                  const struct holdback_message **out, struct holdback_error *error) {
  struct holdback_message *before = subscription->current;
  subscription->current = NULL;
  bool malformed = before && before->scratch && before->scratch->malformed;
  hbc_message_destroy(before);
  if (malformed) return fail_malformed(subscription, error);
  struct holdback_message *message;
  int status = take(subscription, timeout_ms, &message, error);
  if (status) return status;
  if (!message) {
    *out = NULL;
    return HOLDBACK_OK;
  }
  bool good = hbc_message_decode(message);
  pthread_mutex_lock(&subscription->mutex);
  if (good) hbc_subscription_note(subscription, message);
  subscription->reading = false;
  pthread_cond_broadcast(&subscription->changed);
  pthread_mutex_unlock(&subscription->mutex);
  subscription->current = message;
  if (!good) return fail_malformed(subscription, error);
  *out = message;
  return HOLDBACK_OK;
}
