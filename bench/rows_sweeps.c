/* Rows payload, keys, disorder, producers, subscribers, batch, ack: one thing varied, the rest as
 * in row disordered. Decides the places of each sweep. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/suite.h"

enum { PLACES_MAX = 8, RUNS = 3 };

struct sweep {
  struct hb_point points[PLACES_MAX];
  size_t count;
};

/* One more place, with `events` of them; the caller changes what it is about. */
static struct hb_bench_options *place(struct hb_suite *suite, struct sweep *sweep, const char *name,
                                      uint64_t events, uint64_t quick) {
  struct hb_point *point = &sweep->points[sweep->count++];
  *point =
      (struct hb_point){.name = name,
                        .system = HB_SYSTEM_HOLDBACK,
                        .options = hb_suite_options(suite, hb_suite_size(suite, events, quick))};
  return &point->options;
}

static void payload(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "100 B", 1000000, 30000)->payload = 100;
  place(suite, sweep, "1 KB", 400000, 10000)->payload = 1000;
  /* A batch of 1,000 would be 10 MB: 100 make the 1 MB that the client sends by default. */
  struct hb_bench_options *large = place(suite, sweep, "10 KB, batches of 100", 60000, 2000);
  large->payload = 10000;
  large->batch = 100;
}

static void keys(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "1", 1000000, 30000)->keys = 1;
  place(suite, sweep, "1,000", 1000000, 30000)->keys = 1000;
  place(suite, sweep, "1,000,000", 1000000, 30000)->keys = 1000000;
  struct hb_bench_options *zipf = place(suite, sweep, "1,000,000, Zipf", 1000000, 30000);
  zipf->keys = 1000000;
  zipf->zipf = true;
}

static void disorder(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "1", 1000000, 30000)->disorder = 1;
  place(suite, sweep, "1,000", 1000000, 30000)->disorder = 1000;
  place(suite, sweep, "10,000", 1000000, 30000)->disorder = 10000;
  place(suite, sweep, "100,000", 1000000, 30000)->disorder = 100000;
  place(suite, sweep, "1,000,000", 3000000, 60000)->disorder = hb_suite_size(suite, 1000000, 30000);
}

static void producers(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "1", 1000000, 30000)->producers = 1;
  place(suite, sweep, "8", 1000000, 30000)->producers = 8;
  place(suite, sweep, "64", 1000000, 64000)->producers = 64;
}

static void subscribers(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "0", 1000000, 30000)->subscribers = 0;
  place(suite, sweep, "1", 1000000, 30000)->subscribers = 1;
  place(suite, sweep, "16", 500000, 10000)->subscribers = 16;
  place(suite, sweep, "100", 200000, 2000)->subscribers = 100;
  place(suite, sweep, "1, and one stopped", 1000000, 30000)->stalled = 1;
}

static void batch(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "1", 100000, 2000)->batch = 1;
  place(suite, sweep, "10", 300000, 10000)->batch = 10;
  place(suite, sweep, "100", 1000000, 30000)->batch = 100;
  place(suite, sweep, "1,000", 1000000, 30000)->batch = 1000;
}

static void ack(struct hb_suite *suite, struct sweep *sweep) {
  place(suite, sweep, "durable", 1000000, 30000)->async = false;
  place(suite, sweep, "async", 1000000, 30000)->async = true;
  struct hb_bench_options *durable = place(suite, sweep, "durable, batches of 10", 300000, 10000);
  durable->batch = 10;
  struct hb_bench_options *async = place(suite, sweep, "async, batches of 10", 300000, 10000);
  async->batch = 10;
  async->async = true;
}

/* How much slower the slowest of the uniform sizes is than the fastest. */
static void judge_keys(struct hb_suite *suite, const struct sweep *sweep) {
  double lowest = INFINITY;
  double highest = 0;
  for (size_t i = 0; i < 3; i++) {
    double rate = hb_point_median(&sweep->points[i], HB_METRIC_RATE);
    if (isnan(rate)) return;
    lowest = fmin(lowest, rate);
    highest = fmax(highest, rate);
  }
  struct hb_goal goal = {.row = "keys",
                         .what = "fastest / slowest, 1 to 1,000,000 keys",
                         .unit = "x",
                         .at_most = true,
                         .limit = 1.5,
                         .aim = 1.2,
                         .value = highest / lowest};
  hb_suite_judge(suite, &goal);
}

static const struct {
  const char *name;
  void (*places)(struct hb_suite *suite, struct sweep *sweep);
  void (*judge)(struct hb_suite *suite, const struct sweep *sweep);
} sweeps[] = {
    {"payload", payload, NULL},
    {"keys", keys, judge_keys},
    {"disorder", disorder, NULL},
    {"producers", producers, NULL},
    {"subscribers", subscribers, NULL},
    {"batch", batch, NULL},
    {"ack", ack, NULL},
};

void hb_measure_sweeps(struct hb_suite *suite, unsigned wanted) {
  uint64_t runs = suite->runs < RUNS ? suite->runs : RUNS;
  for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
    if (!(wanted & 1u << i)) continue;
    struct sweep *sweep = hb_calloc(1, sizeof *sweep);
    suite->row = sweeps[i].name;
    sweeps[i].places(suite, sweep);
    hb_suite_measure(suite, sweep->points, sweep->count, runs);
    if (sweeps[i].judge) sweeps[i].judge(suite, sweep);
    free(sweep);
  }
}
