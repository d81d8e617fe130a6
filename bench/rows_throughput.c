/* Rows device, disordered, in-order, far: what the disk can do; how fast events go from the first
 * send to the last ordered receive, beside what else there is.
 *
 * Decides the sizes: each system gets as many events as it passes in a few seconds. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/machine.h"
#include "bench/suite.h"
#include "tests/lib/tempdir.h"

void hb_measure_device(struct hb_suite *suite, unsigned wanted) {
  (void)wanted;
  struct hb_point *point = hb_calloc(1, sizeof *point);
  *point = (struct hb_point){.name = "append and fdatasync", .system = HB_SYSTEM_HOLDBACK};
  for (uint64_t run = 0; run < suite->runs; run++) {
    struct hbt_tempdir dir;
    struct hb_metrics metrics;
    struct hb_histogram *histogram = hb_calloc(1, sizeof *histogram);
    hbt_tempdir_init(&dir, "device");
    hb_metrics_clear(&metrics);
    if (hb_device_syncs(dir.path, hb_suite_size(suite, 3000, 300), histogram)) {
      hb_metrics_set(&metrics, HB_METRIC_SYNC_P50,
                     (double)hb_histogram_quantile(histogram, 0.5) / 1e3);
      hb_metrics_set(&metrics, HB_METRIC_SYNC_P99,
                     (double)hb_histogram_quantile(histogram, 0.99) / 1e3);
      hb_metrics_set(&metrics, HB_METRIC_DEVICE_RATE,
                     hb_device_write_rate(dir.path, hb_suite_size(suite, 1 << 30, 32 << 20)));
      hb_point_add(point, &metrics);
    }
    hbt_tempdir_done(&dir);
    free(histogram);
  }
  hb_suite_tell(suite, point);
  free(point);
}

enum { DISORDERED = 1, IN_ORDER = 2, FAR = 4 };
enum point_id { W1000, W1, W1000000, FLOOR, REDIS_ALWAYS, REDIS_EVERYSEC, NATS, POINTS };

static struct hb_point point_of(const struct hb_suite *suite, const char *name,
                                enum hb_system_id system, uint64_t events, uint64_t disorder,
                                bool wanted) {
  struct hb_point point = {.name = name,
                           .system = system,
                           .options = hb_suite_options(suite, events),
                           .missing = wanted ? NULL : "not asked for"};
  point.options.disorder = disorder;
  return point;
}

static void set_points(const struct hb_suite *suite, unsigned wanted, struct hb_point *points) {
  bool peers = wanted & DISORDERED;
  uint64_t few = hb_suite_size(suite, 500000, 20000);
  uint64_t many = hb_suite_size(suite, 2000000, 100000);
  uint64_t most = hb_suite_size(suite, 4000000, 200000);
  points[W1000] = point_of(suite, "disorder 1,000", HB_SYSTEM_HOLDBACK, many, 1000, peers);
  points[W1] = point_of(suite, "in order", HB_SYSTEM_HOLDBACK, many, 1, wanted & IN_ORDER);
  points[W1000000] = point_of(suite, "disorder 1,000,000", HB_SYSTEM_HOLDBACK, most,
                              hb_suite_size(suite, 1000000, 50000), wanted & FAR);
  points[FLOOR] = point_of(suite, "in order", HB_SYSTEM_FLOOR, many, 1, true);
  points[REDIS_ALWAYS] = point_of(suite, "in order", HB_SYSTEM_REDIS_ALWAYS, few, 1, peers);
  points[REDIS_EVERYSEC] = point_of(suite, "in order", HB_SYSTEM_REDIS_EVERYSEC, few, 1, peers);
  points[NATS] = point_of(suite, "in order", HB_SYSTEM_NATS, few, 1, peers);
}

static double rate(const struct hb_point *point) { return hb_point_median(point, HB_METRIC_RATE); }

static void judge(struct hb_suite *suite, const char *row, const char *what, double limit,
                  double aim, const struct hb_point *ours, const struct hb_point *theirs) {
  struct hb_goal goal = {.row = row,
                         .what = what,
                         .unit = "x",
                         .limit = limit,
                         .aim = aim,
                         .value = rate(ours) / rate(theirs)};
  hb_suite_judge(suite, &goal);
}

void hb_measure_throughput(struct hb_suite *suite, unsigned wanted) {
  struct hb_point *points = hb_calloc(POINTS, sizeof *points);
  set_points(suite, wanted, points);
  hb_suite_measure(suite, points, POINTS, suite->runs);
  if (wanted & DISORDERED) {
    const struct hb_point *ours = &points[W1000];
    judge(suite, "disordered", "x Redis appendfsync always with a consumer", 2.5, 5, ours,
          &points[REDIS_ALWAYS]);
    judge(suite, "disordered", "x NATS JetStream with a consumer", 6, 10, ours, &points[NATS]);
    judge(suite, "disordered", "of the floor", 0.75, 0.9, ours, &points[FLOOR]);
    struct hb_goal absolute = {.row = "disordered",
                               .what = "events a second",
                               .unit = "/s",
                               .limit = NAN,
                               .aim = 1000000,
                               .value = rate(ours)};
    hb_suite_judge(suite, &absolute);
  }
  if (wanted & IN_ORDER) {
    judge(suite, "in-order", "of the floor", 0.85, 0.95, &points[W1], &points[FLOOR]);
  }
  if (wanted & FAR) {
    judge(suite, "far", "of the floor", 0.4, 0.6, &points[W1000000], &points[FLOOR]);
  }
  free(points);
}
