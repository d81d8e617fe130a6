/* Decides how Holdback, and the floor in its place, is started, settled and checked. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "bench/port.h"
#include "bench/run.h"
#include "client/holdback.h"

enum { STUCK_S = 120, LOOK_MS = 5 };

static const char PROCESSOR[] = "bench";

static bool start_server(struct hb_run *run) {
  hbt_server_init(&run->server, run->options.server, &run->dir);
  if (run->options.tcp) {
    (void)snprintf(run->server.listen, sizeof run->server.listen, "127.0.0.1:%" PRIu16,
                   hb_free_port());
  }
  (void)snprintf(run->address, sizeof run->address, "%s", run->server.listen);
  return hbt_server_start(&run->server);
}

static bool make_stream(struct hb_run *run) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  struct holdback_stream_config config = {
      .name = HB_BENCH_STREAM, .first_sequence = 1, .async_ack = run->options.async};
  int status = holdback_client_create(&options, &client, &error);
  if (status == HOLDBACK_OK) status = holdback_stream_create(client, &config, &error);
  struct holdback_processor_config processor = {.name = PROCESSOR,
                                                .processor = run->options.processor};
  if (status == HOLDBACK_OK && run->options.processor) {
    status = holdback_processor_attach(client, HB_BENCH_STREAM, &processor, false, &error);
  }
  holdback_client_destroy(client);
  if (status != HOLDBACK_OK) hb_gate_fail(&run->gate, "making the stream: %s", error.message);
  return status == HOLDBACK_OK;
}

static bool start_holdback(struct hb_run *run) { return start_server(run) && make_stream(run); }

/* Asks until the index has caught up: that moment has no event that a client could wait for. */
static bool wait_for_index(struct hb_run *run, struct holdback_stream_status *out) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  uint64_t start = hb_clock_mono_ns();
  int code = holdback_client_create(&options, &client, &error);
  while (code == HOLDBACK_OK) {
    code = holdback_stream_get(client, HB_BENCH_STREAM, NULL, out, &error);
    if (code != HOLDBACK_OK || out->indexed_to >= out->frontier) break;
    if (hb_clock_mono_ns() - start > (uint64_t)STUCK_S * 1000000000u) {
      hb_gate_fail(&run->gate, "the index is at %lld of %lld after %d s",
                   (long long)out->indexed_to, (long long)out->frontier, STUCK_S);
      break;
    }
    hb_gate_wait(&run->gate, LOOK_MS);
  }
  holdback_client_destroy(client);
  if (code != HOLDBACK_OK) hb_gate_fail(&run->gate, "status: %s", error.message);
  return !hb_gate_look(&run->gate).failed;
}

static bool take_processed(void *context, const struct holdback_processor_config *config,
                           const struct holdback_processor_status *status) {
  (void)config;
  *(struct holdback_processor_status *)context = *status; /* its texts are gone afterwards */
  return false;
}

/* Likewise, until the processor has caught up: when it had, after the clients began. */
static bool wait_for_processor(struct hb_run *run) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  struct holdback_processor_status status = {0};
  uint64_t start_ns = hb_clock_mono_ns();
  int code = holdback_client_create(&options, &client, &error);
  while (code == HOLDBACK_OK && status.events < run->options.events) {
    code = holdback_processor_list(client, HB_BENCH_STREAM, PROCESSOR, take_processed, &status,
                                   &error);
    if (hb_clock_mono_ns() - start_ns > (uint64_t)STUCK_S * 1000000000u) {
      hb_gate_fail(&run->gate, "processed are %llu events after %d s",
                   (unsigned long long)status.events, STUCK_S);
      break;
    }
    hb_gate_wait(&run->gate, LOOK_MS);
  }
  holdback_client_destroy(client);
  if (code != HOLDBACK_OK) hb_gate_fail(&run->gate, "processor: %s", error.message);
  return !hb_gate_look(&run->gate).failed;
}

static bool settle_holdback(struct hb_run *run) {
  struct hb_counts counts = hb_gate_look(&run->gate);
  struct holdback_stream_status status = {0};
  if (run->options.processor) {
    if (!wait_for_processor(run)) return false;
    double seconds = (double)(hb_clock_mono_ns() - counts.first_send_ns) / 1e9;
    hb_metrics_set(&run->metrics, HB_METRIC_PROCESSED_PER_SECOND,
                   (double)run->options.events / seconds);
  }
  if (!wait_for_index(run, &status)) return false;
  uint64_t last_ns =
      counts.last_receive_ns > counts.last_ack_ns ? counts.last_receive_ns : counts.last_ack_ns;
  hb_metrics_set(&run->metrics, HB_METRIC_INDEX_SECONDS,
                 (double)(hb_clock_mono_ns() - last_ns) / 1e9);
  hb_metrics_set(&run->metrics, HB_METRIC_HELD_SHARE,
                 (double)status.held_total / (double)run->options.events);
  uint64_t end = run->options.events + 1;
  if ((uint64_t)status.frontier != end || status.held_events ||
      status.stored_total != run->options.events) {
    hb_gate_fail(&run->gate,
                 "the frontier is %lld with %llu held and %llu stored, not %llu with none",
                 (long long)status.frontier, (unsigned long long)status.held_events,
                 (unsigned long long)status.stored_total, (unsigned long long)end);
  }
  return !hb_gate_look(&run->gate).failed;
}

/* It puts nothing off and knows no totals: what producers and readers counted is all there is. */
static bool settle_floor(struct hb_run *run) { return !hb_gate_look(&run->gate).failed; }

static bool stop_server(struct hb_run *run) { return hbt_server_stop(&run->server) == 0; }

const struct hb_system hb_system_holdback = {.name = "holdback",
                                             .start = start_holdback,
                                             .produce = hb_bench_produce,
                                             .read = hb_bench_read,
                                             .settle = settle_holdback,
                                             .stop = stop_server,
                                             .counts_syncs = true};

const struct hb_system hb_system_floor = {.name = "floor",
                                          .start = start_server,
                                          .produce = hb_bench_produce,
                                          .read = hb_bench_read,
                                          .settle = settle_floor,
                                          .stop = stop_server,
                                          .as_sent = true,
                                          .counts_syncs = true};
