/* Decides how load is put on the server, and what a correct delivery is.
 *
 * Each side is as simple as a user's program: libholdback, one thread, nothing kept back. What a
 * reader accepts is the next sequence with exactly the bytes that were made for it. */
#include "bench/clients.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
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

static void record(struct hb_bench_thread *thread, uint64_t index, uint64_t now_ns) {
  uint64_t due_ns = hb_pacer_due_ns(&thread->pacer, index);
  hb_histogram_record(thread->latency, now_ns > due_ns ? now_ns - due_ns : 0);
}

/* ---- the producer */

/* Batches are dealt in turn, so that producers work on neighbouring sequences. */
bool hb_bench_share(const struct hb_bench_thread *thread, uint64_t i, uint64_t *out_index,
                    int64_t *out_sequence) {
  const struct hb_bench_setting *setting = thread->setting;
  uint64_t batch = setting->options->batch;
  uint64_t turn = i / batch * setting->options->producers + thread->number;
  uint64_t index = setting->from + turn * batch + i % batch;
  if (index >= setting->to) return false;
  *out_index = index;
  *out_sequence = setting->order ? setting->order[index] : (int64_t)index + 1;
  return true;
}

/* The client's thread. */
static void on_result(void *context, const struct holdback_result *result) {
  struct hb_bench_thread *thread = context;
  struct hb_gate *gate = thread->setting->gate;
  if (result->outcome != HOLDBACK_STORED && result->outcome != HOLDBACK_DUPLICATE) {
    hb_gate_fail(gate, "sequence %lld and %u after it: %s %s %s", (long long)result->first_sequence,
                 result->count - 1, holdback_outcome_name(result->outcome),
                 holdback_reason_name(result->reason), result->text);
    return;
  }
  thread->stored += result->count;
  if (!thread->latency) return;
  uint64_t now_ns = hb_clock_mono_ns();
  for (uint32_t i = 0; i < result->count; i++) record(thread, result->index + i, now_ns);
}

static int send_all(struct hb_bench_thread *thread, struct holdback_appender *appender,
                    struct holdback_error *error) {
  const struct hb_bench_setting *setting = thread->setting;
  struct hb_load load;
  hb_load_init(&load, setting->options);
  hb_pacer_init(&thread->pacer, hb_gate_first_send(setting->gate), setting->options->rate);
  int status = HOLDBACK_OK;
  uint64_t index;
  int64_t sequence;
  for (uint64_t i = 0; !status && hb_bench_share(thread, i, &index, &sequence); i++) {
    struct holdback_event event;
    hb_load_make(&load, sequence, &event);
    if (setting->options->rate) hb_pacer_wait(&thread->pacer, index);
    if (setting->until_stopped && hb_gate_look(setting->gate).stopped) break;
    status = holdback_append(appender, index, &event, error);
  }
  if (status == HOLDBACK_OK) status = holdback_appender_flush(appender, error);
  hb_pacer_done(&thread->pacer);
  hb_load_done(&load);
  return status;
}

void *hb_bench_produce(void *context) {
  struct hb_bench_thread *thread = context;
  const struct hb_bench_setting *setting = thread->setting;
  struct holdback_error error = {0};
  struct holdback_client *client = connect_to(setting);
  if (!client) return NULL;
  struct holdback_appender_options options = {
      .stream = setting->stream,
      .batch_events = setting->options->batch,
      .batch_bytes = (size_t)8 << 20, /* batches are cut by their count */
      .reconnect_timeout_ms = RECONNECT_MS,
      .on_result = on_result,
      .context = thread,
  };
  struct holdback_appender *appender = NULL;
  if (setting->options->rate) thread->latency = hb_calloc(1, sizeof *thread->latency);
  int status = holdback_ping(client, &(struct holdback_server){0}, &error); /* connects */
  if (status == HOLDBACK_OK) status = holdback_appender_create(client, &options, &appender, &error);
  if (status == HOLDBACK_OK && hb_gate_wait_ready(setting->gate, setting->options->subscribers +
                                                                     setting->options->stalled)) {
    status = send_all(thread, appender, &error);
  }
  if (status == HOLDBACK_OK) {
    hb_gate_answered(setting->gate);
  } else {
    hb_gate_fail(setting->gate, "appending: %s", error.message);
  }
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return NULL;
}

/* ---- a reader */

int64_t hb_bench_expected(const struct hb_bench_setting *setting, uint64_t i) {
  return setting->as_sent && setting->order ? setting->order[i] : (int64_t)i + 1;
}

/* Checks the events of one message; how many are right from the `done`-th on, or -1. */
static int64_t check(struct hb_bench_thread *thread, struct hb_load *load,
                     const struct holdback_message *message, uint64_t done) {
  const struct hb_bench_setting *setting = thread->setting;
  size_t cursor = 0;
  int64_t count = 0;
  int64_t position = 0;
  struct holdback_event event;
  uint64_t now_ns = thread->latency ? hb_clock_mono_ns() : 0;
  while (holdback_message_event(message, &cursor, &event, &position)) {
    int64_t due = hb_bench_expected(setting, done + (uint64_t)count);
    if (event.sequence != due || (!setting->as_sent && position != due)) {
      hb_gate_fail(setting->gate, "sequence %lld at position %lld came where %lld was due",
                   (long long)event.sequence, (long long)position, (long long)due);
      return -1;
    }
    if (!hb_load_is(load, &event)) {
      hb_gate_fail(setting->gate, "sequence %lld: not the bytes that were sent",
                   (long long)event.sequence);
      return -1;
    }
    if (thread->latency) record(thread, setting->place[event.sequence], now_ns);
    count++;
  }
  return count;
}

/* The schedule is known when the first event has been sent, so before any is here. */
static void begin_latency(struct hb_bench_thread *thread) {
  const struct hb_bench_setting *setting = thread->setting;
  if (!setting->options->rate || !setting->place || thread->latency) return;
  thread->latency = hb_calloc(1, sizeof *thread->latency);
  thread->pacer = (struct hb_pacer){.start_ns = hb_gate_look(setting->gate).first_send_ns,
                                    .rate = setting->options->rate};
}

static void read_all(struct hb_bench_thread *thread, struct hb_load *load,
                     struct holdback_subscription *subscription) {
  const struct hb_bench_setting *setting = thread->setting;
  uint64_t done = 0;
  bool ready = false;
  while (done < setting->read_to) {
    const struct holdback_message *message = NULL;
    struct holdback_error error = {0};
    if (holdback_next(subscription, LOOK_MS, &message, &error) != HOLDBACK_OK) {
      hb_gate_fail(setting->gate, "subscription after %llu events: %s", (unsigned long long)done,
                   error.message);
      return;
    }
    if (!message) {
      struct hb_counts counts = hb_gate_look(setting->gate);
      if (counts.failed || counts.stopped) return;
      continue;
    }
    if (!ready) hb_gate_ready(setting->gate);
    ready = true;
    if (holdback_message_kind(message) != HOLDBACK_MESSAGE_EVENTS) continue;
    begin_latency(thread);
    int64_t count = check(thread, load, message, done);
    if (count < 0) return;
    done += (uint64_t)count;
    if (thread->first) hb_gate_received(setting->gate, done);
    if (thread->stalled) return;
  }
  hb_gate_finished(setting->gate);
}

void *hb_bench_read(void *context) {
  struct hb_bench_thread *thread = context;
  const struct hb_bench_setting *setting = thread->setting;
  struct holdback_error error = {0};
  struct holdback_client *client = connect_to(setting);
  if (!client) return NULL;
  struct holdback_subscribe_options options = {.stream = setting->stream,
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

void hb_bench_start(struct hb_bench_thread *thread, const struct hb_bench_setting *setting,
                    void *(*run)(void *)) {
  thread->setting = setting;
  thread->running = true;
  int failed = pthread_create(&thread->thread, NULL, run, thread);
  HB_ASSERT(!failed);
}

void hb_bench_join(struct hb_bench_thread *thread) {
  if (thread->running) (void)pthread_join(thread->thread, NULL);
  thread->running = false;
}

void hb_bench_thread_done(struct hb_bench_thread *thread) {
  free(thread->latency);
  thread->latency = NULL;
}
