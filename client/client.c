/* Decides what the client's thread does next: a completion, a task, a timer; and how it ends.
 *
 * - A completion queue's event carries a tag; the tag knows its owner.
 * - A task wakes the thread with an empty batch on a call that goes nowhere.
 * - Timers are the deadline of the wait for the next event. There are a handful of them.
 * - The end: members first (each waits for its calls), then the queue is shut down and drained. */
#include "client/client.h"

#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "client/error.h"

enum { TIMEOUT_DEFAULT_MS = 10000, IN_FLIGHT_DEFAULT = 8 };
static const size_t refused_bytes_default = (size_t)64 << 20;

/* ---- the thread */

static void ignore_wake(struct hbc_tag *tag, bool ok) {
  (void)tag;
  (void)ok;
}
static struct hbc_tag wake_tag = {.done = ignore_wake};

static void wake(void *context) {
  struct holdback_client *client = context;
  grpc_call_error started = grpc_call_start_batch(client->wake_call, NULL, 0, &wake_tag, NULL);
  HB_ASSERT(started == GRPC_CALL_OK);
}

static gpr_timespec next_deadline(const struct holdback_client *client) {
  uint64_t at_ms = UINT64_MAX;
  for (const struct hbc_timer *timer = client->timers; timer; timer = timer->next)
    if (timer->at_ms < at_ms) at_ms = timer->at_ms;
  if (at_ms == UINT64_MAX) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  uint64_t now_ms = hb_clock_mono_ms();
  int64_t left_ms = at_ms > now_ms ? (int64_t)(at_ms - now_ms) : 0;
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(left_ms, GPR_TIMESPAN));
}

static void run_timers(struct holdback_client *client) {
  if (!client->timers) return;
  uint64_t now_ms = hb_clock_mono_ms();
  struct hbc_timer *timer = client->timers;
  while (timer) {
    if (timer->at_ms > now_ms) {
      timer = timer->next;
      continue;
    }
    hbc_timer_clear(client, timer);
    timer->fire(timer);
    timer = client->timers; /* fire may have changed the list */
  }
}

static void run_tasks(struct holdback_client *client) {
  struct hb_node *node;
  while ((node = hb_mailbox_take(client->tasks, SIZE_MAX, 0))) {
    while (node) {
      struct hb_node *next = node->next;
      struct hbc_task *task = (struct hbc_task *)node;
      task->run(task);
      node = next;
    }
  }
}

static void *run(void *context) {
  struct holdback_client *client = context;
  for (;;) {
    grpc_event event = grpc_completion_queue_next(client->queue, next_deadline(client), NULL);
    if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
    if (event.type == GRPC_OP_COMPLETE) {
      struct hbc_tag *tag = event.tag;
      tag->done(tag, event.success != 0);
    }
    run_tasks(client);
    run_timers(client);
  }
}

/* ---- what the thread offers */

void hbc_client_post(struct holdback_client *client, struct hbc_task *task) {
  hb_mailbox_post(client->tasks, &task->node);
}

void hbc_timer_clear(struct holdback_client *client, struct hbc_timer *timer) {
  if (timer->at_ms == 0) return;
  struct hbc_timer **link = &client->timers;
  while (*link != timer) link = &(*link)->next;
  *link = timer->next;
  timer->at_ms = 0;
}

void hbc_timer_set(struct holdback_client *client, struct hbc_timer *timer, uint64_t at_ms) {
  hbc_timer_clear(client, timer);
  timer->at_ms = at_ms ? at_ms : 1;
  timer->next = client->timers;
  client->timers = timer;
}

uint32_t hbc_client_dice(struct holdback_client *client) {
  client->dice = client->dice * 1664525u + 1013904223u;
  return client->dice >> 8;
}

bool hbc_client_is_connected(struct holdback_client *client) {
  return grpc_channel_check_connectivity_state(client->channel, 0) == GRPC_CHANNEL_READY;
}

void hbc_client_join(struct holdback_client *client, struct hbc_member *member) {
  pthread_mutex_lock(&client->mutex);
  member->next = client->members;
  client->members = member;
  pthread_mutex_unlock(&client->mutex);
}

void hbc_client_leave(struct holdback_client *client, struct hbc_member *member) {
  pthread_mutex_lock(&client->mutex);
  struct hbc_member **link = &client->members;
  while (*link && *link != member) link = &(*link)->next;
  if (*link) *link = member->next;
  pthread_mutex_unlock(&client->mutex);
}

/* ---- life */

static grpc_arg int_arg(const char *name, int value) {
  return (grpc_arg){
      .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)name, .value.integer = value};
}

static grpc_channel *create_channel(const char *server) {
  grpc_arg args[] = {
      /* A server that is restarted is found again within a second. */
      int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100),
      int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000),
      int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000),
      /* A peer that is gone without a word is noticed within 25 s; servers allow 10 s. */
      int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 15000),
      int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000),
      int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
      /* The address is used as it was given: no proxy, no TXT records, no shared connection. */
      int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
      int_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
      int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
  };
  grpc_channel_args all = {.num_args = sizeof args / sizeof *args, .args = args};
  grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
  grpc_channel *channel = grpc_channel_create(server, credentials, &all);
  grpc_channel_credentials_release(credentials);
  return channel;
}

static void create_wake_call(struct holdback_client *client) {
  client->wake_channel = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "wake");
  grpc_slice method = grpc_slice_from_static_string("/wake");
  client->wake_call =
      grpc_channel_create_call(client->wake_channel, NULL, GRPC_PROPAGATE_DEFAULTS, client->queue,
                               method, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

static void take_options(struct holdback_client *client, const struct holdback_options *options) {
  static const struct holdback_options defaults = {0};
  if (!options) options = &defaults;
  client->server = hb_strdup(options->server ? options->server : "127.0.0.1:4653");
  client->timeout_ms =
      options->connect_timeout_ms ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
  client->in_flight_batches =
      options->in_flight_batches ? options->in_flight_batches : IN_FLIGHT_DEFAULT;
  client->refused_bytes_max =
      options->refused_bytes_max ? options->refused_bytes_max : refused_bytes_default;
}

/* The thread, and those that gRPC starts, must not take the program's signals. */
static void start(struct holdback_client *client) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  grpc_init();
  client->channel = create_channel(client->server);
  client->queue = grpc_completion_queue_create_for_next(NULL);
  create_wake_call(client);
  int failed = pthread_create(&client->thread, NULL, run, client);
  HB_ASSERT(!failed);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int holdback_client_create(const struct holdback_options *options, struct holdback_client **out,
                           struct holdback_error *error) {
  if (options && options->server && !options->server[0])
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, NULL, "server: the address is empty");
  struct holdback_client *client = hb_calloc(1, sizeof *client);
  take_options(client, options);
  client->tasks = hb_mailbox_create(SIZE_MAX, wake, client);
  client->dice = (uint32_t)hb_clock_mono_ns();
  pthread_mutex_init(&client->mutex, NULL);
  start(client);
  *out = client;
  return HOLDBACK_OK;
}

static struct hbc_member *first_member(struct holdback_client *client) {
  pthread_mutex_lock(&client->mutex);
  struct hbc_member *member = client->members;
  pthread_mutex_unlock(&client->mutex);
  return member;
}

void holdback_client_destroy(struct holdback_client *client) {
  if (!client) return;
  struct hbc_member *member;
  while ((member = first_member(client))) member->destroy(member);
  /* Here and not in a task: the thread must not see the queue's end while a wake is under way. */
  grpc_completion_queue_shutdown(client->queue);
  pthread_join(client->thread, NULL);
  grpc_call_unref(client->wake_call);
  grpc_completion_queue_destroy(client->queue);
  grpc_channel_destroy(client->wake_channel);
  grpc_channel_destroy(client->channel);
  grpc_shutdown_blocking();
  hb_mailbox_destroy(client->tasks);
  pthread_mutex_destroy(&client->mutex);
  free(client->server);
  free(client);
}
