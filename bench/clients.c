/* Decides how load is put on the server, and what a correct delivery is.
 *
 * Each side is as simple as a user's program: libholdback, one thread, nothing kept back. What a
 * reader accepts is the next sequence with exactly the bytes that were made for it. */
#include "bench/clients.h"

#include <stdlib.h>

#include "base/assert.h"
#include "bench/load.h"
#include "client/holdback.h"

enum { RECONNECT_MS = 60000, LOOK_MS = 200 };

static struct holdback_client *connect_to(const struct hb_bench_setting *setting) {
  struct holdback_client *client = NULL;
  struct holdback_error error = {0};
  struct holdback_options options = {.server = setting->address,
                                     .in_flight_batches = setting->options->in_flight};
  if (holdback_client_create(&options, &client, &error) != HOLDBACK_OK) {
    hb_gate_fail(setting->gate, "client: %s", error.message);
  }
  return client;
}

/* ---- the producer */

static void on_result(void *context, const struct holdback_result *result) {
  struct hb_gate *gate = context;
  if (result->outcome == HOLDBACK_STORED || result->outcome == HOLDBACK_DUPLICATE) return;
  hb_gate_fail(gate, "sequence %lld and %u after it: %s %s %s", (long long)result->first_sequence,
               result->count - 1, holdback_outcome_name(result->outcome),
               holdback_reason_name(result->reason), result->text);
}

static int send_all(const struct hb_bench_setting *setting, struct holdback_appender *appender,
                    struct holdback_error *error) {
  struct hb_load load;
  hb_load_init(&load, setting->options);
  int status = HOLDBACK_OK;
  hb_gate_first_send(setting->gate);
  for (uint64_t i = 0; i < setting->options->events && status == HOLDBACK_OK; i++) {
    struct holdback_event event;
    hb_load_make(&load, setting->order[i], &event);
    status = holdback_append(appender, i, &event, error);
  }
  if (status == HOLDBACK_OK) status = holdback_appender_flush(appender, error);
  hb_load_done(&load);
  return status;
}

static void *produce(void *context) {
  const struct hb_bench_setting *setting = ((struct hb_bench_thread *)context)->setting;
  struct holdback_error error = {0};
  struct holdback_client *client = connect_to(setting);
  if (!client) return NULL;
  struct holdback_appender_options options = {
      .stream = HB_BENCH_STREAM,
      .batch_events = setting->options->batch,
      .batch_bytes = (size_t)8 << 20, /* batches are cut by their count */
      .reconnect_timeout_ms = RECONNECT_MS,
      .on_result = on_result,
      .context = setting->gate,
  };
  struct holdback_appender *appender = NULL;
  int status = holdback_appender_create(client, &options, &appender, &error);
  if (status == HOLDBACK_OK) status = send_all(setting, appender, &error);
  if (status == HOLDBACK_OK) {
    hb_gate_last_ack(setting->gate);
  } else {
    hb_gate_fail(setting->gate, "appending: %s", error.message);
  }
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return NULL;
}

/* ---- a reader */

/* Checks the events of one message; how many are right from `next` on, or -1. */
static int64_t check(const struct hb_bench_setting *setting, struct hb_load *load,
                     const struct holdback_message *message, int64_t next) {
  size_t cursor = 0;
  int64_t count = 0;
  int64_t position = 0;
  struct holdback_event event;
  while (holdback_message_event(message, &cursor, &event, &position)) {
    if (event.sequence != next + count || position != event.sequence) {
      hb_gate_fail(setting->gate, "sequence %lld at position %lld came where %lld was due",
                   (long long)event.sequence, (long long)position, (long long)(next + count));
      return -1;
    }
    if (!hb_load_is(load, &event)) {
      hb_gate_fail(setting->gate, "sequence %lld: not the bytes that were sent",
                   (long long)event.sequence);
      return -1;
    }
    count++;
  }
  return count;
}

static void read_all(const struct hb_bench_thread *thread, struct hb_load *load,
                     struct holdback_subscription *subscription) {
  const struct hb_bench_setting *setting = thread->setting;
  int64_t next = 1;
  while ((uint64_t)next <= setting->options->events) {
    const struct holdback_message *message = NULL;
    struct holdback_error error = {0};
    if (holdback_next(subscription, LOOK_MS, &message, &error) != HOLDBACK_OK) {
      hb_gate_fail(setting->gate, "subscription at %lld: %s", (long long)next, error.message);
      return;
    }
    if (!message) {
      struct hb_counts counts = hb_gate_look(setting->gate);
      if (counts.failed || counts.stopped) return;
      continue;
    }
    if (holdback_message_kind(message) != HOLDBACK_MESSAGE_EVENTS) continue;
    int64_t count = check(setting, load, message, next);
    if (count < 0) return;
    next += count;
    if (thread->first) hb_gate_received(setting->gate, (uint64_t)next - 1);
    if (thread->stalled) return;
  }
  hb_gate_finished(setting->gate);
}

static void *read_stream(void *context) {
  const struct hb_bench_thread *thread = context;
  const struct hb_bench_setting *setting = thread->setting;
  struct holdback_error error = {0};
  struct holdback_client *client = connect_to(setting);
  if (!client) return NULL;
  struct holdback_subscribe_options options = {.stream = HB_BENCH_STREAM,
                                               .start = HOLDBACK_START_EARLIEST,
                                               .reconnect_timeout_ms = RECONNECT_MS};
  struct holdback_subscription *subscription = NULL;
  if (holdback_subscribe(client, &options, &subscription, &error) == HOLDBACK_OK) {
    struct hb_load load;
    hb_load_init(&load, setting->options);
    read_all(thread, &load, subscription);
    hb_load_done(&load);
  } else {
    hb_gate_fail(setting->gate, "subscribing: %s", error.message);
  }
  if (thread->stalled) {
    hb_gate_stalled(setting->gate);
    struct hb_counts counts = {0};
    while (!counts.stopped && !counts.failed) {
      hb_gate_wait(setting->gate, LOOK_MS);
      counts = hb_gate_look(setting->gate);
    }
  }
  holdback_subscription_destroy(subscription);
  holdback_client_destroy(client);
  return NULL;
}

/* ---- threads */

static void start(struct hb_bench_thread *thread, void *(*run)(void *)) {
  int failed = pthread_create(&thread->thread, NULL, run, thread);
  HB_ASSERT(!failed);
}

void hb_bench_start_producer(struct hb_bench_thread *thread,
                             const struct hb_bench_setting *setting) {
  *thread = (struct hb_bench_thread){.setting = setting};
  start(thread, produce);
}

void hb_bench_start_reader(struct hb_bench_thread *thread, const struct hb_bench_setting *setting,
                           bool first, bool stalled) {
  *thread = (struct hb_bench_thread){.setting = setting, .first = first, .stalled = stalled};
  start(thread, read_stream);
}

void hb_bench_join(struct hb_bench_thread *thread) { (void)pthread_join(thread->thread, NULL); }
