/* Row disk-size: what an event takes on disk when nothing takes room that nothing needs. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/files.h"
#include "bench/suite.h"
#include "client/holdback.h"

enum { KEY_BYTES = 8, OVERHEAD_BYTES = 16 };

static bool compact(struct hb_run *run) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  struct holdback_compaction done;
  uint64_t start_ns = hb_clock_mono_ns();
  int code = holdback_client_create(&options, &client, &error);
  if (code == HOLDBACK_OK) code = holdback_compact(client, &done, &error);
  holdback_client_destroy(client);
  if (code != HOLDBACK_OK) {
    hb_gate_fail(&run->gate, "compacting: %s", error.message);
    return false;
  }
  hb_metrics_set(&run->metrics, HB_METRIC_COMPACT_SECONDS,
                 (double)(hb_clock_mono_ns() - start_ns) / 1e9);
  return true;
}

static void measure_files(struct hb_run *run) {
  double bytes = (double)hb_files_bytes(run->server.data_dir, true);
  double events = (double)run->options.events;
  double least = events * ((double)run->options.payload + KEY_BYTES + OVERHEAD_BYTES);
  hb_metrics_set(&run->metrics, HB_METRIC_FILES_BYTES, bytes);
  hb_metrics_set(&run->metrics, HB_METRIC_DISK_RATIO, bytes / least);
}

static bool measure(const struct hb_suite *suite, const struct hb_bench_options *options,
                    struct hb_metrics *out) {
  struct hb_run run;
  hb_run_init(&run, &hb_system_holdback, options, suite->command->counter);
  bool good = hb_run_start_system(&run);
  if (good) {
    hb_run_start_readers(&run);
    hb_run_start_producers(&run);
    good = hb_run_wait(&run) && run.system->settle(&run);
    if (good) hb_run_fill(&run);
    good = good && compact(&run);
    if (good) measure_files(&run);
    good = good && hb_run_read_afterwards(&run);
  }
  good = hb_run_finish(&run, good);
  *out = run.metrics;
  hb_run_done(&run);
  return good;
}

void hb_measure_disk(struct hb_suite *suite, unsigned wanted) {
  (void)wanted;
  static const struct {
    const char *name;
    uint64_t payload, full, quick;
  } places[] = {{"100 B", 100, 2000000, 50000}, {"1 KB", 1000, 500000, 10000}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    struct hb_point *point = hb_calloc(1, sizeof *point);
    struct hb_metrics metrics;
    *point = (struct hb_point){
        .name = places[i].name,
        .system = HB_SYSTEM_HOLDBACK,
        .options = hb_suite_options(suite, hb_suite_size(suite, places[i].full, places[i].quick))};
    point->options.payload = places[i].payload;
    point->options.subscribers = 0;
    if (measure(suite, &point->options, &metrics)) {
      hb_point_add(point, &metrics);
    } else {
      hb_suite_fail(suite, point);
    }
    hb_suite_tell(suite, point);
    struct hb_goal goal = {.row = "disk-size",
                           .what = i ? "1 KB: files / (payload + key + 16 B)"
                                     : "100 B: files / (payload + key + 16 B)",
                           .unit = "x",
                           .at_most = true,
                           .limit = 1.4,
                           .aim = 1.2,
                           .value = hb_point_median(point, HB_METRIC_DISK_RATIO)};
    hb_suite_judge(suite, &goal);
    free(point);
  }
}
