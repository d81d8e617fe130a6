/* Decides which part of the histogram a value falls into. */
#include "bench/histogram.h"

#include <math.h>
#include <stddef.h>

static const uint64_t VALUE_MAX = (UINT64_C(1) << 40) - 1;

/* Row 0 has the values below 1,024 as they are; row p those of [2^(p+9), 2^(p+10)) in steps of
 * 2^(p-1), in its upper half. The lower half of a row stays empty: simple beats compact. */
static unsigned row_of(uint64_t value) {
  if (value < HB_HISTOGRAM_PARTS) return 0;
  return (unsigned)(63 - __builtin_clzll(value)) - 9;
}

void hb_histogram_record(struct hb_histogram *histogram, uint64_t value_ns) {
  if (value_ns > VALUE_MAX) value_ns = VALUE_MAX;
  unsigned row = row_of(value_ns);
  histogram->counts[row][value_ns >> row]++;
  histogram->total++;
  if (value_ns > histogram->max) histogram->max = value_ns;
}

void hb_histogram_merge(struct hb_histogram *into, const struct hb_histogram *from) {
  for (size_t row = 0; row <= HB_HISTOGRAM_POWERS; row++) {
    for (size_t part = 0; part < HB_HISTOGRAM_PARTS; part++) {
      into->counts[row][part] += from->counts[row][part];
    }
  }
  into->total += from->total;
  if (from->max > into->max) into->max = from->max;
}

uint64_t hb_histogram_quantile(const struct hb_histogram *histogram, double share) {
  uint64_t wanted = (uint64_t)ceil(share * (double)histogram->total);
  uint64_t seen = 0;
  if (wanted == 0) wanted = 1;
  for (unsigned row = 0; row <= HB_HISTOGRAM_POWERS; row++) {
    for (uint64_t part = 0; part < HB_HISTOGRAM_PARTS; part++) {
      seen += histogram->counts[row][part];
      if (seen < wanted) continue;
      uint64_t end = ((part + 1) << row) - 1;
      return end < histogram->max ? end : histogram->max;
    }
  }
  return histogram->max;
}
