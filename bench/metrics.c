/* Decides what the middle of several runs is. */
#include "bench/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static const struct {
  const char *name;
  const char *unit;
} table[HB_METRICS] = {
#define HB_METRIC_ROW(id, name, unit) [HB_METRIC_##id] = {name, unit},
    HB_METRIC_TABLE(HB_METRIC_ROW)
#undef HB_METRIC_ROW
};

const char *hb_metric_name(enum hb_metric metric) { return table[metric].name; }
const char *hb_metric_unit(enum hb_metric metric) { return table[metric].unit; }

void hb_metrics_clear(struct hb_metrics *metrics) {
  for (size_t i = 0; i < HB_METRICS; i++) metrics->value[i] = NAN;
}

void hb_metrics_set(struct hb_metrics *metrics, enum hb_metric metric, double value) {
  metrics->value[metric] = value;
}

double hb_metrics_get(const struct hb_metrics *metrics, enum hb_metric metric) {
  return metrics->value[metric];
}

static int ascending(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

void hb_metrics_spread(const struct hb_metrics *runs, size_t count, struct hb_spread *out) {
  double *values = hb_calloc(count + 1, sizeof *values);
  hb_metrics_clear(&out->median);
  hb_metrics_clear(&out->min);
  hb_metrics_clear(&out->max);
  for (size_t i = 0; i < HB_METRICS; i++) {
    size_t found = 0;
    for (size_t run = 0; run < count; run++) {
      if (!isnan(runs[run].value[i])) values[found++] = runs[run].value[i];
    }
    if (found == 0) continue;
    qsort(values, found, sizeof *values, ascending);
    out->min.value[i] = values[0];
    out->max.value[i] = values[found - 1];
    out->median.value[i] =
        found % 2 ? values[found / 2] : (values[found / 2 - 1] + values[found / 2]) / 2;
  }
  free(values);
}
