/* Single appends on a stream of their own at a fixed rate, while something else is measured: what
 * another user of the same server feels. */
#ifndef HB_BENCH_PROBE_H
#define HB_BENCH_PROBE_H

#include "bench/clients.h"
#include "bench/metrics.h"

struct hb_probe {
  struct hb_gate gate;
  struct hb_bench_options options;
  struct hb_bench_setting setting;
  struct hb_bench_thread thread;
};

/* `rate` a second. False: the stream could not be made. */
bool hb_probe_start(struct hb_probe *probe, const char *address, uint64_t rate);
/* Its latencies into `metrics`. False: an append went wrong. */
bool hb_probe_stop(struct hb_probe *probe, struct hb_metrics *metrics);

#endif
