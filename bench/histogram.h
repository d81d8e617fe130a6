/* A histogram of durations, exact to 0.2 % whatever their size: each power of two is cut into 512
 * equal parts, the idea of Gil Tene's HdrHistogram. */
#ifndef HB_BENCH_HISTOGRAM_H
#define HB_BENCH_HISTOGRAM_H

#include <stdint.h>

enum { HB_HISTOGRAM_PARTS = 1024, HB_HISTOGRAM_POWERS = 30 };

/* Of values 0 .. 2^40 ns (18 minutes); longer ones count as that. Zeroed = empty. */
struct hb_histogram {
  uint64_t counts[HB_HISTOGRAM_POWERS + 1][HB_HISTOGRAM_PARTS];
  uint64_t total;
  uint64_t max;
};

void hb_histogram_record(struct hb_histogram *histogram, uint64_t value_ns);
void hb_histogram_merge(struct hb_histogram *into, const struct hb_histogram *from);
/* The smallest recorded value that at least `share` (0 .. 1) of all do not exceed, rounded up to
 * the end of its part; 0 while empty. */
uint64_t hb_histogram_quantile(const struct hb_histogram *histogram, double share);

#endif
