/* Decides what is measured between which two moments.
 *
 * The clock runs from the first send to the moment when the last subscriber has the last event.
 * The server's CPU is counted until the index has caught up: work that is put off is work. */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/clients.h"
#include "bench/load.h"
#include "bench/process.h"
#include "client/holdback.h"
#include "tests/lib/server.h"
#include "tests/lib/tempdir.h"

enum { STUCK_S = 60, LOOK_MS = 200, INDEX_LOOK_MS = 5 };

struct bench {
  const struct hb_bench_options *options;
  uint64_t stalled;
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hb_gate gate;
  struct hb_bench_setting setting;
  struct hb_bench_thread producer;
  struct hb_bench_thread *readers; /* options->subscribers, then stalled */
  double killed_cpu_s;             /* of the process that was killed */
  uint64_t killed_peak;
};

static uint64_t readers_count(const struct bench *bench) {
  return bench->options->subscribers + bench->stalled;
}

static bool make_stream(struct bench *bench) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = bench->server.listen};
  struct holdback_stream_config config = {
      .name = HB_BENCH_STREAM, .first_sequence = 1, .async_ack = bench->options->async};
  int status = holdback_client_create(&options, &client, &error);
  if (status == HOLDBACK_OK) status = holdback_stream_create(client, &config, &error);
  holdback_client_destroy(client);
  if (status != HOLDBACK_OK) hb_gate_fail(&bench->gate, "making the stream: %s", error.message);
  return status == HOLDBACK_OK;
}

static void start_clients(struct bench *bench) {
  uint64_t count = readers_count(bench);
  for (uint64_t i = 0; i < count; i++) {
    hb_bench_start_reader(&bench->readers[i], &bench->setting, i == 0,
                          i >= bench->options->subscribers);
  }
  hb_bench_start_producer(&bench->producer, &bench->setting);
}

/* SIGKILL, a new process on the same folder and address; everybody else just goes on. */
static bool kill_and_restart(struct bench *bench, struct hb_bench_result *out) {
  struct hb_usage usage = hb_usage_of(hbt_child_pid(bench->server.child));
  bench->killed_cpu_s = usage.cpu_s;
  bench->killed_peak = usage.rss_peak;
  hbt_server_kill(&bench->server);
  uint64_t start = hb_clock_mono_ns();
  if (!hbt_server_start(&bench->server)) return false;
  out->ready_seconds = (double)(hb_clock_mono_ns() - start) / 1e9;
  return true;
}

/* Until every reader has everything and every answer is there. */
static bool run(struct bench *bench, struct hb_bench_result *out) {
  uint64_t kill_at = bench->options->kill_at;
  uint64_t received = 0;
  uint64_t moved_ns = hb_clock_mono_ns();
  for (;;) {
    struct hb_counts counts = hb_gate_look(&bench->gate);
    if (counts.failed) return false;
    if (counts.finished == bench->options->subscribers && counts.last_ack_ns) return true;
    if (kill_at && counts.received >= kill_at) {
      kill_at = 0;
      if (!kill_and_restart(bench, out)) return false;
    }
    if (counts.received != received) moved_ns = hb_clock_mono_ns();
    received = counts.received;
    if (hb_clock_mono_ns() - moved_ns > (uint64_t)STUCK_S * 1000000000u) {
      hb_gate_fail(&bench->gate, "nothing came for %d s after event %llu", STUCK_S,
                   (unsigned long long)received);
      return false;
    }
    hb_gate_wait(&bench->gate, LOOK_MS);
  }
}

/* Asks until the index has caught up: that moment has no event that a client could wait for. */
static bool wait_for_index(struct bench *bench, struct hb_bench_result *out) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = bench->server.listen};
  struct holdback_stream_status status = {0};
  uint64_t start = hb_gate_look(&bench->gate).last_receive_ns;
  int code = holdback_client_create(&options, &client, &error);
  while (code == HOLDBACK_OK) {
    code = holdback_stream_get(client, HB_BENCH_STREAM, NULL, &status, &error);
    if (code != HOLDBACK_OK || status.indexed_to >= status.frontier) break;
    if (hb_clock_mono_ns() - start > (uint64_t)STUCK_S * 1000000000u) {
      hb_gate_fail(&bench->gate, "the index is at %lld of %lld after %d s",
                   (long long)status.indexed_to, (long long)status.frontier, STUCK_S);
      break;
    }
    hb_gate_wait(&bench->gate, INDEX_LOOK_MS);
  }
  holdback_client_destroy(client);
  if (code != HOLDBACK_OK) hb_gate_fail(&bench->gate, "status: %s", error.message);
  out->index_seconds = (double)(hb_clock_mono_ns() - start) / 1e9;
  out->held_total = status.held_total;
  if ((uint64_t)status.frontier != bench->options->events + 1 || status.held_events) {
    hb_gate_fail(&bench->gate, "the frontier is %lld with %llu held, not %llu with none",
                 (long long)status.frontier, (unsigned long long)status.held_events,
                 (unsigned long long)(bench->options->events + 1));
  }
  return !hb_gate_look(&bench->gate).failed;
}

static void fill(struct bench *bench, double server_before, double client_before,
                 struct hb_bench_result *out) {
  struct hb_counts counts = hb_gate_look(&bench->gate);
  struct hb_usage usage = hb_usage_of(hbt_child_pid(bench->server.child));
  out->seconds = (double)(counts.last_receive_ns - counts.first_send_ns) / 1e9;
  out->ack_seconds = (double)(counts.last_ack_ns - counts.first_send_ns) / 1e9;
  out->server_cpu_s = usage.cpu_s + bench->killed_cpu_s - server_before;
  out->client_cpu_s = hb_usage_self_cpu_s() - client_before;
  out->rss_peak = usage.rss_peak > bench->killed_peak ? usage.rss_peak : bench->killed_peak;
  out->rss_end = usage.rss;
}

static bool measure(struct bench *bench, struct hb_bench_result *out) {
  if (!hbt_server_start(&bench->server) || !make_stream(bench)) return false;
  double server_before = hb_usage_of(hbt_child_pid(bench->server.child)).cpu_s;
  double client_before = hb_usage_self_cpu_s();
  start_clients(bench);
  bool good = run(bench, out) && wait_for_index(bench, out);
  if (good) fill(bench, server_before, client_before, out);
  hb_gate_stop(&bench->gate);
  /* A server that is gone ends every client's wait, also where something failed. */
  if (!good) hbt_server_kill(&bench->server);
  hb_bench_join(&bench->producer);
  for (uint64_t i = 0; i < readers_count(bench); i++) hb_bench_join(&bench->readers[i]);
  if (good && hbt_server_stop(&bench->server) != 0) {
    hb_gate_fail(&bench->gate, "the server did not end with exit code 0");
  }
  return good && !hb_gate_look(&bench->gate).failed;
}

bool hb_bench_measure(const struct hb_bench_options *options, uint64_t stalled,
                      struct hb_bench_result *out) {
  *out = (struct hb_bench_result){0};
  struct bench bench = {.options = options, .stalled = stalled};
  uint32_t *order = hb_load_order(options);
  hbt_tempdir_init(&bench.dir, "bench");
  hbt_server_init(&bench.server, options->server, &bench.dir);
  hb_gate_init(&bench.gate);
  bench.setting = (struct hb_bench_setting){
      .options = options, .address = bench.server.listen, .order = order, .gate = &bench.gate};
  bench.readers = hb_calloc(readers_count(&bench), sizeof *bench.readers);
  bool good = measure(&bench, out);
  hbt_server_done(&bench.server);
  hb_gate_done(&bench.gate);
  hbt_tempdir_done(&bench.dir);
  free(bench.readers);
  free(order);
  return good;
}
