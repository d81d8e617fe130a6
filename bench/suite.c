/* Decides what is run in which order, and what counts as met. */
#include "bench/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/tell.h"

enum { RUNS = 5 };

uint64_t hb_suite_size(const struct hb_suite *suite, uint64_t full, uint64_t quick) {
  return suite->command->quick ? quick : full;
}

struct hb_bench_options hb_suite_options(const struct hb_suite *suite, uint64_t events) {
  struct hb_bench_options options = hb_bench_options_default();
  options.server = suite->command->options.server;
  options.events = events;
  options.tcp = true;
  return options;
}

/* ---- points */

void hb_point_add(struct hb_point *point, const struct hb_metrics *run) {
  if (point->count < HB_RUNS_MAX) point->runs[point->count++] = *run;
}

double hb_point_median(const struct hb_point *point, enum hb_metric metric) {
  return hb_metrics_get(&point->spread.median, metric);
}

void hb_suite_fail(struct hb_suite *suite, struct hb_point *point) {
  suite->failed = true;
  point->missing = "went wrong";
}

static void run_point(struct hb_suite *suite, struct hb_point *point) {
  struct hb_bench_options options = point->options;
  if (point->system == HB_SYSTEM_FLOOR) options.server = suite->command->floor;
  struct hb_metrics metrics;
  if (hb_measure(hb_system_of(point->system), &options, suite->command->counter, &metrics)) {
    hb_point_add(point, &metrics);
  } else {
    hb_suite_fail(suite, point);
  }
}

void hb_suite_measure(struct hb_suite *suite, struct hb_point *points, size_t count,
                      uint64_t runs) {
  for (uint64_t round = 0; round < runs; round++) {
    for (size_t i = 0; i < count; i++) {
      if (!points[i].missing) {
        points[i].missing = hb_system_missing(points[i].system, suite->command);
      }
      if (!points[i].missing) run_point(suite, &points[i]);
    }
  }
  for (size_t i = 0; i < count; i++) hb_suite_tell(suite, &points[i]);
}

void hb_suite_tell(struct hb_suite *suite, struct hb_point *point) {
  hb_metrics_spread(point->runs, point->count, &point->spread);
  suite->good += point->count;
  hb_tell_point(suite->row, point);
  (void)json_array_append_new(suite->points, hb_json_point(suite->row, point));
}

/* ---- goals */

void hb_suite_judge(struct hb_suite *suite, const struct hb_goal *goal) {
  hb_tell_goal(goal);
  (void)json_array_append_new(suite->goals, hb_json_goal(goal));
}

/* ---- rows */

static bool is_wanted(const struct hb_bench_command *command, const char *name) {
  for (size_t i = 0; command->rows[i]; i++) {
    if (strcmp(command->rows[i], name) == 0) return true;
  }
  return command->all;
}

static bool rows_exist(const struct hb_bench_command *command) {
  for (size_t i = 0; command->rows[i]; i++) {
    bool found = false;
    for (size_t row = 0; row < hb_rows_count; row++) {
      found = found || strcmp(command->rows[i], hb_rows[row].name) == 0;
    }
    if (found) continue;
    (void)fprintf(stderr, "holdback_bench: --row is %s; --list has the names\n", command->rows[i]);
    return false;
  }
  return true;
}

/* Rows with one function, from `first` on; which of them are wanted. */
static size_t rows_together(const struct hb_bench_command *command, size_t first,
                            unsigned *out_wanted) {
  size_t count = 0;
  *out_wanted = 0;
  while (first + count < hb_rows_count &&
         hb_rows[first + count].measure == hb_rows[first].measure) {
    if (is_wanted(command, hb_rows[first + count].name)) *out_wanted |= 1u << count;
    count++;
  }
  return count;
}

static void list_rows(void) {
  for (size_t i = 0; i < hb_rows_count; i++) {
    (void)printf("%-12s %s\n", hb_rows[i].name, hb_rows[i].what);
  }
}

static int write_json(const struct hb_suite *suite) {
  json_t *all = json_object();
  (void)json_object_set_new(all, "format", json_integer(1));
  (void)json_object_set_new(all, "quick", json_boolean(suite->command->quick));
  (void)json_object_set_new(all, "runs", json_integer((json_int_t)suite->runs));
  (void)json_object_set_new(all, "machine", hb_json_machine());
  (void)json_object_set(all, "points", suite->points);
  (void)json_object_set(all, "goals", suite->goals);
  int failed = json_dump_file(all, suite->command->out, JSON_INDENT(1));
  json_decref(all);
  if (failed) (void)fprintf(stderr, "holdback_bench: can't write %s\n", suite->command->out);
  return failed ? 1 : 0;
}

int hb_suite_run(const struct hb_bench_command *command) {
  if (command->list) {
    list_rows();
    return 0;
  }
  if (!rows_exist(command)) return 64;
  struct hb_suite suite = {.command = command,
                           .runs = command->runs    ? command->runs
                                   : command->quick ? 1
                                                    : RUNS,
                           .points = json_array(),
                           .goals = json_array()};
  hb_tell_head();
  unsigned wanted = 0;
  for (size_t at = 0; at < hb_rows_count;) {
    size_t count = rows_together(command, at, &wanted);
    suite.row = hb_rows[at].name;
    if (wanted) hb_rows[at].measure(&suite, wanted);
    at += count;
  }
  hb_tell_goals(suite.goals);
  int code = command->out ? write_json(&suite) : 0;
  if (suite.failed) (void)fprintf(stderr, "holdback_bench: some runs went wrong, see above\n");
  json_decref(suite.points);
  json_decref(suite.goals);
  return suite.failed || suite.good == 0 ? 1 : code;
}
