/* Rows fan-out, many: many readers of the same events, many producers with little each. Decides who
 * is cheap (raw.h) and who checks everything. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/raw.h"
#include "bench/suite.h"

enum { SUBSCRIBERS = 100, PRODUCERS = 64, RUNS = 3 };

/* ---- fan-out */

/* One subscriber checks every byte, the others the sequences. */
static bool fan_out(const struct hb_suite *suite, const struct hb_point *point,
                    struct hb_metrics *out) {
  struct hb_run run;
  struct hb_bench_options options = point->options;
  if (point->system == HB_SYSTEM_FLOOR) options.server = suite->command->floor;
  hb_run_init(&run, hb_system_of(point->system), &options, suite->command->counter);
  bool good = hb_run_start_system(&run);
  struct hb_raw *crowd = NULL;
  if (good) {
    crowd = hb_raw_subscribe(&run.setting, SUBSCRIBERS - 1);
    hb_run_start_readers(&run);
    good = hb_gate_wait_ready(&run.gate, SUBSCRIBERS);
    hb_run_start_producers(&run);
    good = good && hb_run_wait_for(&run, 1, SUBSCRIBERS) && run.system->settle(&run);
    if (good) hb_run_fill(&run);
  }
  if (good) {
    hb_metrics_set(&run.metrics, HB_METRIC_OUT_BYTES_RATE,
                   SUBSCRIBERS * hb_metrics_get(&run.metrics, HB_METRIC_OUT_BYTES_RATE));
  }
  hb_gate_stop(&run.gate);
  hb_raw_destroy(crowd);
  good = hb_run_finish(&run, good);
  *out = run.metrics;
  hb_run_done(&run);
  return good;
}

void hb_measure_fan_out(struct hb_suite *suite, unsigned wanted) {
  (void)wanted;
  enum { OURS, FLOOR, POINTS };
  struct hb_point *points = hb_calloc(POINTS, sizeof *points);
  uint64_t events = hb_suite_size(suite, 500000, 10000);
  points[OURS] = (struct hb_point){.name = "100 subscribers",
                                   .system = HB_SYSTEM_HOLDBACK,
                                   .options = hb_suite_options(suite, events)};
  points[OURS].options.disorder = 1;
  points[FLOOR] = points[OURS];
  points[FLOOR].system = HB_SYSTEM_FLOOR;
  points[FLOOR].missing = hb_system_missing(HB_SYSTEM_FLOOR, suite->command);
  for (uint64_t run = 0; run < suite->runs && run < RUNS; run++) {
    for (size_t i = 0; i < POINTS; i++) {
      struct hb_metrics metrics;
      if (points[i].missing) continue;
      if (fan_out(suite, &points[i], &metrics)) {
        hb_point_add(&points[i], &metrics);
      } else {
        hb_suite_fail(suite, &points[i]);
      }
    }
  }
  for (size_t i = 0; i < POINTS; i++) {
    points[i].options.subscribers = SUBSCRIBERS;
    hb_suite_tell(suite, &points[i]);
  }
  struct hb_goal share = {.row = "fan-out",
                          .what = "bytes out, of the floor's",
                          .unit = "x",
                          .limit = 0.6,
                          .aim = NAN,
                          .value = hb_point_median(&points[OURS], HB_METRIC_OUT_BYTES_RATE) /
                                   hb_point_median(&points[FLOOR], HB_METRIC_OUT_BYTES_RATE)};
  hb_suite_judge(suite, &share);
  struct hb_goal rss = {.row = "fan-out",
                        .what = "server RSS, peak",
                        .unit = "MB",
                        .at_most = true,
                        .limit = 500,
                        .aim = NAN,
                        .value = hb_point_median(&points[OURS], HB_METRIC_RSS_PEAK) / 1e6};
  hb_suite_judge(suite, &rss);
  free(points);
}

/* ---- many producers */

static bool append_singly(const struct hb_suite *suite, const struct hb_point *point,
                          struct hb_metrics *out) {
  struct hb_run run;
  struct hb_bench_options options = point->options;
  options.producers = 1; /* they are one client's: it counts and is told of once */
  hb_run_init(&run, &hb_system_holdback, &options, suite->command->counter);
  bool good = hb_run_start_system(&run);
  struct hb_raw *producers = NULL;
  if (good) {
    hb_run_start_readers(&run);
    producers = hb_raw_append(&run.setting, point->options.producers);
    good = hb_run_wait_for(&run, 1, 0) && run.system->settle(&run);
    if (good) hb_run_fill(&run);
    run.producers[0].stored = options.events; /* each answer was looked at */
    good = good && hb_run_read_afterwards(&run);
  }
  hb_gate_stop(&run.gate);
  hb_raw_destroy(producers);
  good = hb_run_finish(&run, good);
  *out = run.metrics;
  hb_run_done(&run);
  return good;
}

static void judge_many(struct hb_suite *suite, const struct hb_point *one,
                       const struct hb_point *many) {
  double rate = hb_point_median(many, HB_METRIC_ACK_RATE);
  struct hb_goal times = {.row = "many",
                          .what = "x one producer",
                          .unit = "x",
                          .limit = 8,
                          .aim = NAN,
                          .value = rate / hb_point_median(one, HB_METRIC_ACK_RATE)};
  hb_suite_judge(suite, &times);
  struct hb_goal absolute = {.row = "many",
                             .what = "events a second",
                             .unit = "/s",
                             .limit = 15000,
                             .aim = NAN,
                             .value = rate};
  hb_suite_judge(suite, &absolute);
  struct hb_goal syncs = {.row = "many",
                          .what = "syncs per event",
                          .unit = "",
                          .at_most = true,
                          .limit = 0.1,
                          .aim = NAN,
                          .value = hb_point_median(many, HB_METRIC_SYNCS)};
  hb_suite_judge(suite, &syncs);
}

void hb_measure_many(struct hb_suite *suite, unsigned wanted) {
  (void)wanted;
  enum { ONE, MANY, POINTS };
  struct hb_point *points = hb_calloc(POINTS, sizeof *points);
  points[ONE] =
      (struct hb_point){.name = "1 producer",
                        .system = HB_SYSTEM_HOLDBACK,
                        .options = hb_suite_options(suite, hb_suite_size(suite, 10000, 500))};
  points[MANY] =
      (struct hb_point){.name = "64 producers",
                        .system = HB_SYSTEM_HOLDBACK,
                        .options = hb_suite_options(suite, hb_suite_size(suite, 200000, 6400))};
  points[MANY].options.producers = PRODUCERS;
  for (size_t i = 0; i < POINTS; i++) {
    points[i].options.disorder = 1;
    points[i].options.batch = 1;
    points[i].options.in_flight = 1;
    points[i].options.subscribers = 0;
  }
  for (uint64_t run = 0; run < suite->runs && run < RUNS; run++) {
    for (size_t i = 0; i < POINTS; i++) {
      struct hb_metrics metrics;
      if (append_singly(suite, &points[i], &metrics)) {
        hb_point_add(&points[i], &metrics);
      } else {
        hb_suite_fail(suite, &points[i]);
      }
    }
  }
  for (size_t i = 0; i < POINTS; i++) hb_suite_tell(suite, &points[i]);
  judge_many(suite, &points[ONE], &points[MANY]);
  free(points);
}
