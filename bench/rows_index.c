/* Row index: how far the per-key index is behind when the run is over, and whether its making, with
 * RocksDB's compactions, holds up single appends on another stream. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/probe.h"
#include "bench/suite.h"

enum { PROBE_RATE = 1000, RUNS = 3 };

/* The probe begins before the load and ends when the index has caught up. */
static bool measure(const struct hb_suite *suite, const struct hb_bench_options *options,
                    struct hb_metrics *out) {
  struct hb_run run;
  struct hb_probe *probe = hb_calloc(1, sizeof *probe);
  hb_run_init(&run, &hb_system_holdback, options, suite->command->counter);
  bool good = hb_run_start_system(&run);
  if (good && hb_probe_start(probe, run.address, PROBE_RATE)) {
    hb_run_start_readers(&run);
    hb_run_start_producers(&run);
    good = hb_run_wait(&run) && run.system->settle(&run);
    good = hb_probe_stop(probe, &run.metrics) && good;
    if (good) hb_run_fill(&run);
  } else {
    good = false;
  }
  good = hb_run_finish(&run, good);
  *out = run.metrics;
  hb_run_done(&run);
  free(probe);
  return good;
}

void hb_measure_index(struct hb_suite *suite, unsigned wanted) {
  (void)wanted;
  struct hb_point *point = hb_calloc(1, sizeof *point);
  *point =
      (struct hb_point){.name = "with a probe",
                        .system = HB_SYSTEM_HOLDBACK,
                        .options = hb_suite_options(suite, hb_suite_size(suite, 4000000, 100000))};
  point->options.keys = 1000000;
  for (uint64_t i = 0; i < suite->runs && i < RUNS && !point->missing; i++) {
    struct hb_metrics metrics;
    if (measure(suite, &point->options, &metrics)) {
      hb_point_add(point, &metrics);
    } else {
      hb_suite_fail(suite, point);
    }
  }
  hb_suite_tell(suite, point);
  struct hb_goal behind = {.row = "index",
                           .what = "caught up after the last receive",
                           .unit = "s",
                           .at_most = true,
                           .limit = 5,
                           .aim = NAN,
                           .value = hb_point_median(point, HB_METRIC_INDEX_SECONDS)};
  hb_suite_judge(suite, &behind);
  struct hb_goal probe = {.row = "index",
                          .what = "longest answer to a single append each 1 ms",
                          .unit = "ms",
                          .at_most = true,
                          .limit = 100,
                          .aim = NAN,
                          .value = hb_point_median(point, HB_METRIC_PROBE_MAX) / 1e3};
  hb_suite_judge(suite, &probe);
  free(point);
}
