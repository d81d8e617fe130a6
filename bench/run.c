/* Decides what is measured between which two moments.
 *
 * The clock runs from the first send to the moment when the last subscriber has the last event. The
 * system's CPU is counted until the work that it put off is done: put off is not saved. */
#include "bench/run.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/load.h"

enum { STUCK_S = 60, LOOK_MS = 200 };

void hb_run_init(struct hb_run *run, const struct hb_system *system,
                 const struct hb_bench_options *options, const char *counter) {
  *run = (struct hb_run){.system = system, .options = *options};
  hb_metrics_clear(&run->metrics);
  hbt_tempdir_init(&run->dir, "bench");
  hb_syncs_begin(&run->syncs, system->counts_syncs ? counter : NULL, &run->dir);
  hb_gate_init(&run->gate);
  run->order = hb_load_order(options);
  if (options->rate) {
    run->place = hb_calloc(options->events + 1, sizeof *run->place);
    for (uint64_t i = 0; i < options->events; i++) run->place[run->order[i]] = (uint32_t)i;
  }
  run->setting = (struct hb_bench_setting){.options = &run->options,
                                           .address = run->address,
                                           .stream = HB_BENCH_STREAM,
                                           .order = run->order,
                                           .place = run->place,
                                           .to = options->events,
                                           .read_to = options->events,
                                           .as_sent = system->as_sent,
                                           .gate = &run->gate};
  run->producers = hb_calloc(options->producers, sizeof *run->producers);
  run->readers = hb_calloc(options->subscribers + options->stalled + 1, sizeof *run->readers);
}

void hb_run_done(struct hb_run *run) {
  hbt_server_done(&run->server);
  hbt_child_destroy(run->child);
  for (uint64_t i = 0; i < run->options.producers; i++) hb_bench_thread_done(&run->producers[i]);
  for (uint64_t i = 0; i < run->options.subscribers; i++) hb_bench_thread_done(&run->readers[i]);
  hb_gate_done(&run->gate);
  hb_syncs_end(&run->syncs);
  hbt_tempdir_done(&run->dir);
  free(run->readers);
  free(run->producers);
  free(run->place);
  free(run->order);
}

pid_t hb_run_pid(const struct hb_run *run) {
  return hbt_child_pid(run->child ? run->child : run->server.child);
}

static void note_before(struct hb_run *run) {
  run->before = hb_usage_of(hb_run_pid(run));
  run->clients_before_s = hb_usage_self_cpu_s();
  if (!hb_syncs_get(&run->syncs, &run->syncs_before)) run->syncs_before = 0;
}

bool hb_run_start_system(struct hb_run *run) {
  if (run->system->start(run)) return true;
  hb_gate_fail(&run->gate, "%s did not start", run->system->name);
  return false;
}

void hb_run_start_readers(struct hb_run *run) {
  note_before(run);
  const struct hb_bench_options *options = &run->options;
  for (uint64_t i = 0; i < options->subscribers + options->stalled; i++) {
    struct hb_bench_thread *reader = &run->readers[i];
    *reader = (struct hb_bench_thread){
        .number = i, .first = i == 0, .stalled = i >= options->subscribers};
    hb_bench_start(reader, &run->setting, run->system->read);
  }
}

void hb_run_start_producers(struct hb_run *run) {
  for (uint64_t i = 0; i < run->options.producers; i++) {
    run->producers[i].number = i;
    hb_bench_start(&run->producers[i], &run->setting, run->system->produce);
  }
}

/* SIGKILL, a new process on the same folder and address; everybody else just goes on. */
static bool kill_and_restart(struct hb_run *run) {
  run->killed = hb_usage_of(hb_run_pid(run));
  hbt_server_kill(&run->server);
  uint64_t start = hb_clock_mono_ns();
  if (!hbt_server_start(&run->server)) return false;
  hb_metrics_set(&run->metrics, HB_METRIC_READY_SECONDS,
                 (double)(hb_clock_mono_ns() - start) / 1e9);
  return true;
}

bool hb_run_wait(struct hb_run *run) {
  return hb_run_wait_for(run, run->options.producers, run->options.subscribers);
}

bool hb_run_wait_for(struct hb_run *run, uint64_t answered, uint64_t finished) {
  uint64_t kill_at = run->options.kill_at;
  uint64_t received = 0;
  uint64_t written = 0;
  uint64_t moved_ns = hb_clock_mono_ns();
  for (;;) {
    struct hb_counts counts = hb_gate_look(&run->gate);
    if (counts.failed) return false;
    if (counts.finished >= finished && counts.answered >= answered) return true;
    if (kill_at && counts.received >= kill_at) {
      kill_at = 0;
      if (!kill_and_restart(run)) return false;
    }
    struct hb_usage usage = hb_usage_of(hb_run_pid(run));
    /* While everything waits behind a gap nothing comes out, but something is written. */
    bool moved = counts.received != received || usage.written != written;
    if (moved) moved_ns = hb_clock_mono_ns();
    received = counts.received;
    written = usage.written;
    if (hb_clock_mono_ns() - moved_ns > (uint64_t)STUCK_S * 1000000000u) {
      hb_gate_fail(&run->gate, "nothing came for %d s after event %llu", STUCK_S,
                   (unsigned long long)counts.received);
      return false;
    }
    hb_gate_wait(&run->gate, LOOK_MS);
  }
}

/* ---- figures */

static void set(struct hb_run *run, enum hb_metric metric, double value) {
  hb_metrics_set(&run->metrics, metric, value);
}

static void fill_times(struct hb_run *run) {
  struct hb_counts counts = hb_gate_look(&run->gate);
  double events = (double)run->options.events;
  double answered = (double)(counts.last_ack_ns - counts.first_send_ns) / 1e9;
  double received = (double)(counts.last_receive_ns - counts.first_send_ns) / 1e9;
  set(run, HB_METRIC_EVENTS, events);
  set(run, HB_METRIC_ACK_SECONDS, answered);
  set(run, HB_METRIC_ACK_RATE, events / answered);
  if (!run->options.subscribers) return;
  double last = received > answered ? received : answered;
  set(run, HB_METRIC_SECONDS, last);
  set(run, HB_METRIC_RATE, events / last);
  set(run, HB_METRIC_OUT_BYTES_RATE,
      events * (double)run->options.payload * (double)run->options.subscribers / last);
}

static void fill_usage(struct hb_run *run) {
  double events = (double)run->options.events;
  struct hb_usage usage = hb_usage_of(hb_run_pid(run));
  double server_s = usage.cpu_s + run->killed.cpu_s - run->before.cpu_s;
  double written = (double)(usage.written + run->killed.written - run->before.written);
  set(run, HB_METRIC_SERVER_CPU_US, 1e6 * server_s / events);
  set(run, HB_METRIC_CLIENT_CPU_US, 1e6 * (hb_usage_self_cpu_s() - run->clients_before_s) / events);
  set(run, HB_METRIC_WRITTEN_BYTES, written / events);
  uint64_t peak = usage.rss_peak > run->killed.rss_peak ? usage.rss_peak : run->killed.rss_peak;
  set(run, HB_METRIC_RSS_PEAK, (double)peak);
  set(run, HB_METRIC_RSS_END, (double)usage.rss);
  uint64_t syncs;
  if (!hb_syncs_get(&run->syncs, &syncs)) return;
  set(run, HB_METRIC_SYNCS_TOTAL, (double)(syncs - run->syncs_before));
  set(run, HB_METRIC_SYNCS, (double)(syncs - run->syncs_before) / events);
}

/* Into four metrics in a row: p50, p99, p99.9, the longest. */
static void fill_latency(struct hb_run *run, const struct hb_bench_thread *threads, uint64_t count,
                         enum hb_metric first) {
  static const double shares[] = {0.5, 0.99, 0.999, 1};
  struct hb_histogram *all = hb_calloc(1, sizeof *all);
  for (uint64_t i = 0; i < count; i++) {
    if (threads[i].latency) hb_histogram_merge(all, threads[i].latency);
  }
  for (int i = 0; all->total && i < 4; i++) {
    set(run, (enum hb_metric)((int)first + i), (double)hb_histogram_quantile(all, shares[i]) / 1e3);
  }
  free(all);
}

void hb_run_fill(struct hb_run *run) {
  fill_times(run);
  fill_usage(run);
  fill_latency(run, run->producers, run->options.producers, HB_METRIC_ACK_P50);
  fill_latency(run, run->readers, run->options.subscribers, HB_METRIC_RECEIVE_P50);
}

/* ---- the end */

/* Each producer counts what was answered; together that must be everything, once. */
static void check_stored(struct hb_run *run) {
  uint64_t stored = 0;
  for (uint64_t i = 0; i < run->options.producers; i++) stored += run->producers[i].stored;
  if (stored == run->options.events) return;
  hb_gate_fail(&run->gate, "%llu events were answered, %llu were sent", (unsigned long long)stored,
               (unsigned long long)run->options.events);
}

bool hb_run_read_afterwards(struct hb_run *run) {
  if (run->options.subscribers) return true;
  struct hb_bench_thread reader = {.first = true};
  hb_bench_start(&reader, &run->setting, run->system->read);
  hb_bench_join(&reader);
  hb_bench_thread_done(&reader);
  return !hb_gate_look(&run->gate).failed;
}

bool hb_run_finish(struct hb_run *run, bool good) {
  hb_gate_stop(&run->gate);
  /* A system that is gone ends every client's wait, also where something failed. */
  if (!good && run->server.child) hbt_server_kill(&run->server);
  if (!good && run->child) hbt_child_signal(run->child, 9);
  for (uint64_t i = 0; i < run->options.producers; i++) hb_bench_join(&run->producers[i]);
  uint64_t readers = run->options.subscribers + run->options.stalled;
  for (uint64_t i = 0; i < readers; i++) hb_bench_join(&run->readers[i]);
  if (good) check_stored(run);
  if (good && !run->system->stop(run)) {
    hb_gate_fail(&run->gate, "%s did not end in good order", run->system->name);
  }
  return good && !hb_gate_look(&run->gate).failed;
}
