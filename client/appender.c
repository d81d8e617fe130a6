/* Decides when the caller of an appender waits: for a batch's answer, for room for refused events.
 *
 * - An event is encoded once, at its place in the batch that gRPC will send.
 * - A batch is handed over when it is full or pushed; at most in_flight_batches are unanswered.
 * - While events that the server refused wait to be sent again, they and what is unanswered are
 *   together bounded by refused_bytes_max: all of it may be refused too. */
#include "client/appender.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "client/encode.h"
#include "client/error.h"

enum { BATCH_EVENTS_DEFAULT = 1000, TIMEOUT_DEFAULT_MS = 30000 };
static const size_t batch_bytes_default = (size_t)1 << 20;
/* The server's limit is for the whole request: room for stream, producer and incarnation. */
static const size_t request_overhead = 4096;

static size_t or_default(size_t value, size_t fallback) { return value ? value : fallback; }

static int check_options(const struct holdback_appender_options *options,
                         struct holdback_error *error) {
  struct hb_limits limits = hb_limits_default();
  if (!options->stream || !options->stream[0])
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "STREAM_NAME_INVALID",
                         "stream: the name is empty");
  if (options->batch_events > limits.batch_events_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, NULL,
                         "batch_events: %zu, the limit is %zu", options->batch_events,
                         (size_t)limits.batch_events_max);
  size_t bytes_max = (size_t)limits.batch_bytes_max - request_overhead;
  if (options->batch_bytes > bytes_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, NULL,
                         "batch_bytes: %zu, the limit is %zu", options->batch_bytes, bytes_max);
  if (options->producer && strlen(options->producer) > limits.producer_bytes_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "PRODUCER_TOO_LONG",
                         "producer: %zu bytes, the limit is %zu", strlen(options->producer),
                         (size_t)limits.producer_bytes_max);
  return HOLDBACK_OK;
}

static void destroy_member(struct hbc_member *member) {
  holdback_appender_destroy((struct holdback_appender *)member);
}

int holdback_appender_create(struct holdback_client *client,
                             const struct holdback_appender_options *options,
                             struct holdback_appender **out, struct holdback_error *error) {
  int status = check_options(options, error);
  if (status) return status;
  struct holdback_appender *appender = hb_calloc(1, sizeof *appender);
  appender->member.destroy = destroy_member;
  appender->client = client;
  appender->stream = hb_strdup(options->stream);
  if (options->producer) appender->producer = hb_strdup(options->producer);
  appender->batch_events = or_default(options->batch_events, BATCH_EVENTS_DEFAULT);
  appender->batch_bytes = or_default(options->batch_bytes, batch_bytes_default);
  appender->window_timeout_ms =
      (uint32_t)or_default(options->window_timeout_ms, TIMEOUT_DEFAULT_MS);
  appender->reconnect_timeout_ms =
      (uint32_t)or_default(options->reconnect_timeout_ms, TIMEOUT_DEFAULT_MS);
  appender->on_result = options->on_result;
  appender->context = options->context;
  appender->size_guess = 4096;
  pthread_mutex_init(&appender->mutex, NULL);
  pthread_cond_init(&appender->changed, NULL);
  hbc_appender_call_init(appender);
  hbc_appender_window_init(appender);
  hbc_client_join(client, &appender->member);
  *out = appender;
  return HOLDBACK_OK;
}

/* The mutex is held. */
static bool has_room(const struct holdback_appender *appender, size_t bytes) {
  if (appender->unanswered == 0 && appender->refused == 0) return true;
  if (appender->unanswered >= appender->client->in_flight_batches) return false;
  return appender->refused == 0 || appender->refused_bytes + appender->unanswered_bytes + bytes <=
                                       appender->client->refused_bytes_max;
}

static void run_batch(struct hbc_task *task) {
  struct hbc_batch *batch = (struct hbc_batch *)task;
  struct holdback_appender *appender = batch->owner;
  if (appender->is_broken || appender->closing) {
    hbc_batch_unref(batch);
    return;
  }
  hbc_outbox_push(&appender->outbox, batch);
  hbc_appender_pump(appender);
}

/* Hand the filled batch over, when there is room. The batch is kept where the appender is broken.
 * With `wait` false, only if there is room now. */
static int hand_over(struct holdback_appender *appender, bool wait, struct holdback_error *error) {
  struct hbc_batch *batch = appender->filling;
  size_t bytes = batch ? batch->frames.size : 0;
  pthread_mutex_lock(&appender->mutex);
  while (batch && wait && !appender->broken.status && !has_room(appender, bytes))
    pthread_cond_wait(&appender->changed, &appender->mutex);
  int status = appender->broken.status;
  if (status) (void)hbc_error_copy(error, &appender->broken);
  bool go = batch && !status && has_room(appender, bytes);
  if (go) {
    appender->unanswered++;
    appender->unanswered_bytes += bytes;
    appender->progress.sent += batch->count;
  }
  pthread_mutex_unlock(&appender->mutex);
  if (!go) return status;
  appender->size_guess = bytes + bytes / 8;
  appender->filling = NULL;
  batch->task.run = run_batch;
  batch->owner = appender;
  hbc_client_post(appender->client, &batch->task);
  return HOLDBACK_OK;
}

int holdback_append(struct holdback_appender *appender, uint64_t index,
                    const struct holdback_event *event, struct holdback_error *error) {
  size_t event_size = hbc_event_size(event);
  int status = hbc_event_check(event, event_size, error);
  if (status) return status;
  if (atomic_load_explicit(&appender->failed, memory_order_relaxed))
    return hand_over(appender, false, error);
  size_t frame_size = hbc_frame_size(event_size);
  struct hbc_batch *batch = appender->filling;
  if (batch && (batch->count >= appender->batch_events ||
                batch->frames.size + frame_size > appender->batch_bytes)) {
    status = hand_over(appender, true, error);
    if (status) return status;
    batch = NULL;
  }
  if (!batch) {
    size_t room = appender->size_guess > frame_size ? appender->size_guess : frame_size;
    batch = appender->filling = hbc_batch_create(room);
  }
  hbc_event_encode(&batch->frames, event, event_size);
  hbc_batch_added(batch, index);
  if (batch->count < appender->batch_events && batch->frames.size < appender->batch_bytes)
    return HOLDBACK_OK;
  return hand_over(appender, true, error);
}

int holdback_appender_push(struct holdback_appender *appender, struct holdback_error *error) {
  return hand_over(appender, false, error);
}

int holdback_appender_flush(struct holdback_appender *appender, struct holdback_error *error) {
  int status = hand_over(appender, true, error);
  if (status) return status;
  pthread_mutex_lock(&appender->mutex);
  while (!appender->broken.status && (appender->unanswered || appender->refused))
    pthread_cond_wait(&appender->changed, &appender->mutex);
  status = appender->broken.status;
  if (status) (void)hbc_error_copy(error, &appender->broken);
  pthread_mutex_unlock(&appender->mutex);
  return status;
}

void holdback_appender_progress(struct holdback_appender *appender,
                                struct holdback_append_progress *out) {
  pthread_mutex_lock(&appender->mutex);
  *out = appender->progress;
  pthread_mutex_unlock(&appender->mutex);
}

struct close {
  struct hbc_task task;
  struct holdback_appender *appender;
};

static void run_close(struct hbc_task *task) {
  hbc_appender_close(((struct close *)task)->appender);
}

void holdback_appender_destroy(struct holdback_appender *appender) {
  if (!appender) return;
  hbc_client_leave(appender->client, &appender->member);
  struct close close = {.task = {.run = run_close}, .appender = appender};
  hbc_client_post(appender->client, &close.task);
  pthread_mutex_lock(&appender->mutex);
  while (!appender->closed) pthread_cond_wait(&appender->changed, &appender->mutex);
  pthread_mutex_unlock(&appender->mutex);
  if (appender->filling) hbc_batch_unref(appender->filling);
  hbc_outbox_done(&appender->outbox);
  hbc_window_done(&appender->window);
  hb_buf_done(&appender->incarnation);
  pthread_cond_destroy(&appender->changed);
  pthread_mutex_destroy(&appender->mutex);
  free(appender->stream);
  free(appender->producer);
  free(appender);
}
