/* The table of docs/PERFORMANCE.md: rows, the points that they measure, the goals that they judge.
 *
 * A row is a function that measures points and judges goals by them; one function may stand for
 * several rows that share what is dear (a store of twenty million events). Points of one call are
 * run in turn, round by round, so that what the machine does meanwhile hits all of them. */
#ifndef HB_BENCH_SUITE_H
#define HB_BENCH_SUITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/metrics.h"
#include "bench/options.h"
#include "bench/systems.h"

enum { HB_RUNS_MAX = 100 };

struct hb_suite {
  const struct hb_bench_command *command;
  uint64_t runs;  /* of what is compared */
  json_t *points; /* owned, as the next */
  json_t *goals;
  const char *row; /* being measured */
  uint64_t good;   /* measurements that went well */
  bool failed;     /* some run was wrong: the exit code says so */
};

/* One workload on one system. */
struct hb_point {
  const char *name; /* within the row */
  enum hb_system_id system;
  struct hb_bench_options options;
  struct hb_metrics runs[HB_RUNS_MAX];
  size_t count;
  struct hb_spread spread; /* all absent where nothing was measured */
  const char *missing;     /* why not */
};

/* full, or the small size of --quick. */
uint64_t hb_suite_size(const struct hb_suite *suite, uint64_t full, uint64_t quick);
/* Defaults of the table: over loopback, the rest as hb_bench_options_default. */
struct hb_bench_options hb_suite_options(const struct hb_suite *suite, uint64_t events);

/* Measure all points in turn, `runs` rounds; then tell them. Points with a reason in `missing`, or
 * whose system is missing, are told as not measured. */
void hb_suite_measure(struct hb_suite *suite, struct hb_point *points, size_t count, uint64_t runs);
/* For rows that measure by themselves: take a run's figures; tell a point that has them all. */
void hb_point_add(struct hb_point *point, const struct hb_metrics *run);
void hb_suite_tell(struct hb_suite *suite, struct hb_point *point);
/* The row's measurement went wrong; stderr has been told how. */
void hb_suite_fail(struct hb_suite *suite, struct hb_point *point);

/* A median, NAN where there is none; its scale. */
double hb_point_median(const struct hb_point *point, enum hb_metric metric);

struct hb_goal {
  const char *row;
  const char *what;
  const char *unit; /* "x", "/s", "ms", "MB", ... */
  bool at_most;     /* else at least */
  double limit;     /* NAN: nothing is asked for */
  double aim;       /* NAN: none */
  double value;     /* NAN: not measured */
};
/* Tell it, and keep it for the end. */
void hb_suite_judge(struct hb_suite *suite, const struct hb_goal *goal);

/* ---- the rows */

struct hb_row {
  const char *name;
  const char *what;
  /* `wanted`: bits of the rows with the same function, bit 0 the first of them in the table. */
  void (*measure)(struct hb_suite *suite, unsigned wanted);
};
extern const struct hb_row hb_rows[];
extern const size_t hb_rows_count;

/* The rows asked for; the report at the end. The exit code. */
int hb_suite_run(const struct hb_bench_command *command);

/* rows_*.c */
void hb_measure_device(struct hb_suite *suite, unsigned wanted);
void hb_measure_throughput(struct hb_suite *suite, unsigned wanted);
void hb_measure_sweeps(struct hb_suite *suite, unsigned wanted);
void hb_measure_latency(struct hb_suite *suite, unsigned wanted);
void hb_measure_held(struct hb_suite *suite, unsigned wanted);
void hb_measure_fan_out(struct hb_suite *suite, unsigned wanted);
void hb_measure_many(struct hb_suite *suite, unsigned wanted);
void hb_measure_history(struct hb_suite *suite, unsigned wanted);
void hb_measure_disk(struct hb_suite *suite, unsigned wanted);
void hb_measure_index(struct hb_suite *suite, unsigned wanted);

#endif
