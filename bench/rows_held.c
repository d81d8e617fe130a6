/* Rows reversed, gap, alternating: as much waits as can. Decides how a gap is filled and what is
 * looked at meanwhile: memory, the rate of the release, and another stream's appends. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "bench/probe.h"
#include "bench/suite.h"
#include "client/holdback.h"

/* A release takes about a second, so one stall of the disk is all of a run's p99: medians. */
enum { REVERSED = 1, GAP = 2, ALTERNATING = 4, PROBE_RATE = 1000, RUNS_MAX = 3 };
static const double RSS_MAX = 500e6;

/* ---- one run of gap or alternating: all that waits, then what fills */

/* How many events come first: everything that has to wait. */
static uint64_t waiting(const struct hb_bench_options *options) {
  return options->order == HB_ORDER_GAP ? options->events - 1 : options->events / 2;
}

static bool check_held(struct hb_run *run, uint64_t expected) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  struct holdback_stream_status status = {0};
  int code = holdback_client_create(&options, &client, &error);
  if (code == HOLDBACK_OK) {
    code = holdback_stream_get(client, HB_BENCH_STREAM, NULL, &status, &error);
  }
  holdback_client_destroy(client);
  if (code != HOLDBACK_OK) {
    hb_gate_fail(&run->gate, "status: %s", error.message);
  } else if (status.held_events != expected || status.frontier != 1) {
    hb_gate_fail(&run->gate, "%llu wait and the frontier is %lld, not %llu and 1",
                 (unsigned long long)status.held_events, (long long)status.frontier,
                 (unsigned long long)expected);
  }
  return !hb_gate_look(&run->gate).failed;
}

/* From the first send that fills to the last receive. */
static bool fill_gaps(struct hb_run *run, struct hb_probe *probe) {
  uint64_t first = waiting(&run->options);
  if (!hb_probe_start(probe, run->address, PROBE_RATE)) return false;
  run->setting.from = first;
  run->setting.to = run->options.events;
  uint64_t start_ns = hb_clock_mono_ns();
  hb_run_start_producers(run);
  bool good = hb_run_wait_for(run, 2 * run->options.producers, run->options.subscribers);
  good = hb_probe_stop(probe, &run->metrics) && good;
  double seconds = (double)(hb_gate_look(&run->gate).last_receive_ns - start_ns) / 1e9;
  if (good) {
    hb_metrics_set(&run->metrics, HB_METRIC_RELEASE_RATE, (double)run->options.events / seconds);
  }
  return good;
}

static bool hold_and_fill(struct hb_run *run, struct hb_probe *probe) {
  uint64_t first = waiting(&run->options);
  run->setting.to = first;
  hb_run_start_readers(run);
  hb_run_start_producers(run);
  if (!hb_run_wait_for(run, run->options.producers, 0) || !check_held(run, first)) return false;
  for (uint64_t i = 0; i < run->options.producers; i++) hb_bench_join(&run->producers[i]);
  if (!fill_gaps(run, probe) || !run->system->settle(run)) return false;
  hb_run_fill(run);
  return true;
}

/* The folder of the run before has just been removed, some 7 GB. Where the file system hands freed
 * space on (mount option discard) the disk has work of its own for some seconds, and each of its
 * stalls would count as this run's: p99 61 and 77 ms right after another run, 29 to 31 ms so much
 * later. */
static void let_the_disk_rest(const struct hb_suite *suite, struct hb_run *run) {
  enum { REST_MS = 8000 };
  uint32_t ms = (uint32_t)hb_suite_size(suite, REST_MS, 0);
  if (ms) hb_gate_wait(&run->gate, ms);
}

static bool measure_gap(const struct hb_suite *suite, const struct hb_bench_options *options,
                        struct hb_metrics *out) {
  struct hb_run run;
  struct hb_probe *probe = hb_calloc(1, sizeof *probe);
  hb_run_init(&run, &hb_system_holdback, options, suite->command->counter);
  let_the_disk_rest(suite, &run);
  bool good = hb_run_start_system(&run) && hold_and_fill(&run, probe);
  good = hb_run_finish(&run, good);
  *out = run.metrics;
  hb_run_done(&run);
  free(probe);
  return good;
}

/* ---- rows */

static void judge_rss(struct hb_suite *suite, const struct hb_point *point) {
  struct hb_goal goal = {.row = suite->row,
                         .what = "server RSS, peak",
                         .unit = "MB",
                         .at_most = true,
                         .limit = RSS_MAX / 1e6,
                         .aim = NAN,
                         .value = hb_point_median(point, HB_METRIC_RSS_PEAK) / 1e6};
  hb_suite_judge(suite, &goal);
}

static void judge_release(struct hb_suite *suite, const struct hb_point *point) {
  struct hb_goal rate = {.row = suite->row,
                         .what = "released once the gaps are filled",
                         .unit = "/s",
                         .limit = 500000,
                         .aim = NAN,
                         .value = hb_point_median(point, HB_METRIC_RELEASE_RATE)};
  hb_suite_judge(suite, &rate);
  struct hb_goal probe = {.row = suite->row,
                          .what = "p99 of another stream's answers meanwhile",
                          .unit = "ms",
                          .at_most = true,
                          .limit = 50,
                          .aim = NAN,
                          .value = hb_point_median(point, HB_METRIC_PROBE_P99) / 1e3};
  hb_suite_judge(suite, &probe);
}

static void measure(struct hb_suite *suite, const char *row, const char *name, uint64_t events,
                    enum hb_order order) {
  struct hb_point *point = hb_calloc(1, sizeof *point);
  struct hb_metrics metrics;
  *point = (struct hb_point){
      .name = name, .system = HB_SYSTEM_HOLDBACK, .options = hb_suite_options(suite, events)};
  point->options.order = order;
  suite->row = row;
  for (uint64_t run = 0; run < suite->runs && run < RUNS_MAX; run++) {
    bool good = order == HB_ORDER_REVERSED ? hb_measure(&hb_system_holdback, &point->options,
                                                        suite->command->counter, &metrics)
                                           : measure_gap(suite, &point->options, &metrics);
    if (good) {
      hb_point_add(point, &metrics);
    } else {
      hb_suite_fail(suite, point);
    }
  }
  hb_suite_tell(suite, point);
  judge_rss(suite, point);
  if (order != HB_ORDER_REVERSED) judge_release(suite, point);
  free(point);
}

void hb_measure_held(struct hb_suite *suite, unsigned wanted) {
  if (wanted & REVERSED) {
    measure(suite, "reversed", "everything held", hb_suite_size(suite, 5000000, 100000),
            HB_ORDER_REVERSED);
  }
  if (wanted & GAP) {
    measure(suite, "gap", "one gap", hb_suite_size(suite, 10000001, 100001), HB_ORDER_GAP);
  }
  if (wanted & ALTERNATING) {
    measure(suite, "alternating", "every second one missing", hb_suite_size(suite, 2000000, 100000),
            HB_ORDER_ALTERNATING);
  }
}
