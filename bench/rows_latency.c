/* Rows single, latency: how long an event takes at a rate that is no strain, from the moment it was
 * meant to be sent. Decides the rates. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/suite.h"
#include "tests/lib/tempdir.h"

enum { SINGLE = 1, LATENCY = 2, RATE = 2000 };
static const double CLIENT_MS = 0.4; /* what may be added to the disk's own time */

/* The disk's own times, of the same minute. */
static void note_device(struct hb_suite *suite, struct hb_metrics *metrics) {
  struct hbt_tempdir dir;
  struct hb_histogram *histogram = hb_calloc(1, sizeof *histogram);
  hbt_tempdir_init(&dir, "device");
  if (hb_device_syncs(dir.path, hb_suite_size(suite, 3000, 300), histogram)) {
    hb_metrics_set(metrics, HB_METRIC_SYNC_P50,
                   (double)hb_histogram_quantile(histogram, 0.5) / 1e3);
    hb_metrics_set(metrics, HB_METRIC_SYNC_P99,
                   (double)hb_histogram_quantile(histogram, 0.99) / 1e3);
  }
  hbt_tempdir_done(&dir);
  free(histogram);
}

static void judge_single(struct hb_suite *suite, const struct hb_point *point) {
  double disk_p50 = hb_point_median(point, HB_METRIC_SYNC_P50) / 1e3;
  double disk_p99 = hb_point_median(point, HB_METRIC_SYNC_P99) / 1e3;
  struct hb_goal p50 = {.row = "single",
                        .what = "p50 of the answer; the disk's own + 0.4 ms",
                        .unit = "ms",
                        .at_most = true,
                        .limit = disk_p50 + CLIENT_MS,
                        .aim = NAN,
                        .value = hb_point_median(point, HB_METRIC_ACK_P50) / 1e3};
  hb_suite_judge(suite, &p50);
  struct hb_goal p99 = {.row = "single",
                        .what = "p99 of the answer; 10 ms, or 3 times the disk's own",
                        .unit = "ms",
                        .at_most = true,
                        .limit = fmax(10, 3 * disk_p99),
                        .aim = NAN,
                        .value = hb_point_median(point, HB_METRIC_ACK_P99) / 1e3};
  hb_suite_judge(suite, &p99);
}

static void measure_single(struct hb_suite *suite) {
  struct hb_point *point = hb_calloc(1, sizeof *point);
  *point = (struct hb_point){
      .name = "2,000/s",
      .system = HB_SYSTEM_HOLDBACK,
      .options = hb_suite_options(suite, hb_suite_size(suite, 10 * RATE, RATE / 2))};
  point->options.disorder = 1;
  point->options.batch = 1;
  point->options.in_flight = 1000;
  point->options.rate = RATE;
  suite->row = "single";
  for (uint64_t run = 0; run < suite->runs && !point->missing; run++) {
    struct hb_metrics metrics;
    if (hb_measure(&hb_system_holdback, &point->options, suite->command->counter, &metrics)) {
      note_device(suite, &metrics);
      hb_point_add(point, &metrics);
    } else {
      hb_suite_fail(suite, point);
    }
  }
  hb_suite_tell(suite, point);
  judge_single(suite, point);
  free(point);
}

static void measure_rates(struct hb_suite *suite) {
  enum { SECONDS = 5, PLACES = 6 };
  static const struct {
    const char *name;
    uint64_t rate, disorder;
  } places[PLACES] = {
      {"10,000/s, in order", 10000, 1},   {"10,000/s, disorder 1,000", 10000, 1000},
      {"50,000/s, in order", 50000, 1},   {"50,000/s, disorder 1,000", 50000, 1000},
      {"200,000/s, in order", 200000, 1}, {"200,000/s, disorder 1,000", 200000, 1000},
  };
  struct hb_point *points = hb_calloc(PLACES, sizeof *points);
  for (size_t i = 0; i < PLACES; i++) {
    uint64_t full = places[i].rate * SECONDS;
    points[i] = (struct hb_point){
        .name = places[i].name,
        .system = HB_SYSTEM_HOLDBACK,
        .options = hb_suite_options(suite, hb_suite_size(suite, full, full / 20))};
    points[i].options.rate = places[i].rate;
    points[i].options.disorder = places[i].disorder;
    points[i].options.batch = 100;
    points[i].options.in_flight = 1000;
  }
  suite->row = "latency";
  hb_suite_measure(suite, points, PLACES, suite->runs < 3 ? suite->runs : 3);
  free(points);
}

void hb_measure_latency(struct hb_suite *suite, unsigned wanted) {
  if (wanted & SINGLE) measure_single(suite);
  if (wanted & LATENCY) measure_rates(suite);
}
