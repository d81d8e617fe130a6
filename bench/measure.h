/* One measurement from an empty folder to the caught-up index. */
#ifndef HB_BENCH_MEASURE_H
#define HB_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/options.h"

struct hb_bench_result {
  double seconds;       /* first send to last ordered receive, all subscribers */
  double ack_seconds;   /* first send to last answer */
  double index_seconds; /* last receive to indexed_to = frontier */
  uint64_t held_total;  /* events that were written to bundles */
  double server_cpu_s;  /* first send to caught-up index, both processes where one was killed */
  double client_cpu_s;  /* producer, subscribers and what libholdback does for them */
  uint64_t rss_peak;    /* server, bytes */
  uint64_t rss_end;     /* server with everything done and subscribers still there */
  double ready_seconds; /* of the second process: from its start to event=ready; 0 = none killed */
};

/* `stalled` overrides the option. False: it went wrong, and stderr says how. */
bool hb_bench_measure(const struct hb_bench_options *options, uint64_t stalled,
                      struct hb_bench_result *out);

#endif
