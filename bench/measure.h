/* One measurement of one system from an empty folder to the end of all work that it put off. */
#ifndef HB_BENCH_MEASURE_H
#define HB_BENCH_MEASURE_H

#include <stdbool.h>

#include "bench/metrics.h"
#include "bench/options.h"
#include "bench/run.h"

/* False: it went wrong, and stderr says how. */
bool hb_measure(const struct hb_system *system, const struct hb_bench_options *options,
                const char *counter, struct hb_metrics *out);

#endif
