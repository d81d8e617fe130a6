/* Decides which figures of a point stand on the terminal: those by which most rows are read. The
 * JSON has all of them, of each run. */
#include "bench/tell.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double MIB = 1024.0 * 1024.0;

/* ---- the terminal */

void hb_tell_head(void) {
  (void)printf("%-12s %-22s %-14s %10s %22s %7s %7s %7s %8s %7s\n", "row", "point", "system",
               "events/s", "(lowest .. highest)", "server", "clients", "written", "syncs", "RSS");
  (void)printf("%-12s %-22s %-14s %10s %22s %7s %7s %7s %8s %7s\n", "", "", "", "median", "",
               "us/ev", "us/ev", "B/ev", "/ev", "MiB");
  (void)fflush(stdout);
}

static void print(double value, int width, int digits) {
  if (isnan(value)) {
    (void)printf(" %*s", width, "-");
  } else {
    (void)printf(" %*.*f", width, digits, value);
  }
}

/* Metrics that only few rows have stand on a second line. */
static void tell_others(const struct hb_point *point) {
  static const enum hb_metric shown[] = {
      HB_METRIC_EVENTS,  HB_METRIC_RATE,        HB_METRIC_SERVER_CPU_US, HB_METRIC_CLIENT_CPU_US,
      HB_METRIC_SYNCS,   HB_METRIC_SYNCS_TOTAL, HB_METRIC_WRITTEN_BYTES, HB_METRIC_RSS_PEAK,
      HB_METRIC_SECONDS, HB_METRIC_ACK_SECONDS, HB_METRIC_HELD_SHARE,    HB_METRIC_RSS_END};
  bool any = false;
  for (int i = 0; i < HB_METRICS; i++) {
    enum hb_metric metric = (enum hb_metric)i;
    bool skip = isnan(hb_point_median(point, metric));
    for (size_t s = 0; s < sizeof shown / sizeof shown[0]; s++) skip = skip || shown[s] == metric;
    if (skip) continue;
    (void)printf("%s%s %.4g %s", any ? ", " : "             ", hb_metric_name(metric),
                 hb_point_median(point, metric), hb_metric_unit(metric));
    any = true;
  }
  if (any) (void)printf("\n");
}

void hb_tell_point(const char *row, const struct hb_point *point) {
  (void)printf("%-12s %-22s %-14s", row, point->name, hb_system_of(point->system)->name);
  if (point->count == 0) {
    (void)printf(" not measured: %s\n", point->missing ? point->missing : "no run");
  } else {
    enum hb_metric rate =
        isnan(hb_point_median(point, HB_METRIC_RATE)) ? HB_METRIC_ACK_RATE : HB_METRIC_RATE;
    char spread[48] = "";
    if (!isnan(hb_point_median(point, rate))) {
      (void)snprintf(spread, sizeof spread, "(%.0f .. %.0f)",
                     hb_metrics_get(&point->spread.min, rate),
                     hb_metrics_get(&point->spread.max, rate));
    }
    print(hb_point_median(point, rate), 10, 0);
    (void)printf(" %22s", spread);
    print(hb_point_median(point, HB_METRIC_SERVER_CPU_US), 7, 2);
    print(hb_point_median(point, HB_METRIC_CLIENT_CPU_US), 7, 2);
    print(hb_point_median(point, HB_METRIC_WRITTEN_BYTES), 7, 0);
    print(hb_point_median(point, HB_METRIC_SYNCS), 8, 5);
    print(hb_point_median(point, HB_METRIC_RSS_PEAK) / MIB, 7, 0);
    (void)printf("\n");
    tell_others(point);
  }
  (void)fflush(stdout);
}

/* ---- goals */

static const char *verdict(double limit, double value, bool at_most) {
  if (isnan(value)) return "not measured";
  if (isnan(limit)) return "-";
  bool met = at_most ? value <= limit : value >= limit;
  return met ? "met" : "NOT MET";
}

static void print_goal(const char *row, const char *what, const char *unit, bool at_most,
                       double limit, double aim, double value) {
  (void)printf("  %-12s %-64s", row, what);
  if (isnan(value)) {
    (void)printf(" %12s", "-");
  } else {
    (void)printf(" %9.4g %-2s", value, unit);
  }
  (void)printf("  %s %-9.4g %-12s", at_most ? "<=" : ">=", limit, verdict(limit, value, at_most));
  if (!isnan(aim)) {
    (void)printf("  aim %s %.4g %s", at_most ? "<=" : ">=", aim, verdict(aim, value, at_most));
  }
  (void)printf("\n");
  (void)fflush(stdout);
}

void hb_tell_goal(const struct hb_goal *goal) {
  print_goal(goal->row, goal->what, goal->unit, goal->at_most, goal->limit, goal->aim, goal->value);
}

static double number(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

void hb_tell_goals(const json_t *goals) {
  size_t i;
  const json_t *goal;
  (void)printf("\n");
  json_array_foreach(goals, i, goal) {
    print_goal(json_string_value(json_object_get(goal, "row")),
               json_string_value(json_object_get(goal, "what")),
               json_string_value(json_object_get(goal, "unit")),
               json_is_true(json_object_get(goal, "at_most")), number(goal, "limit"),
               number(goal, "aim"), number(goal, "value"));
  }
}

/* ---- JSON */

static void set_number(json_t *object, const char *name, double value) {
  (void)json_object_set_new(object, name, isnan(value) ? json_null() : json_real(value));
}

static void set_count(json_t *object, const char *name, uint64_t value) {
  (void)json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *json_metrics(const struct hb_metrics *metrics) {
  json_t *object = json_object();
  for (int i = 0; i < HB_METRICS; i++) {
    double value = hb_metrics_get(metrics, (enum hb_metric)i);
    if (!isnan(value)) set_number(object, hb_metric_name((enum hb_metric)i), value);
  }
  return object;
}

static json_t *json_options(const struct hb_bench_options *o) {
  json_t *object = json_object();
  set_count(object, "events", o->events);
  (void)json_object_set_new(object, "order", json_string(hb_order_name(o->order)));
  set_count(object, "disorder", o->disorder);
  set_count(object, "payload", o->payload);
  set_count(object, "keys", o->keys);
  (void)json_object_set_new(object, "zipf", json_boolean(o->zipf));
  set_count(object, "producers", o->producers);
  set_count(object, "batch", o->batch);
  set_count(object, "in_flight", o->in_flight);
  set_count(object, "subscribers", o->subscribers);
  set_count(object, "slow_subscribers", o->stalled);
  set_count(object, "rate", o->rate);
  (void)json_object_set_new(object, "async", json_boolean(o->async));
  set_count(object, "seed", o->seed);
  return object;
}

json_t *hb_json_point(const char *row, const struct hb_point *point) {
  json_t *object = json_object();
  json_t *runs = json_array();
  (void)json_object_set_new(object, "row", json_string(row));
  (void)json_object_set_new(object, "name", json_string(point->name));
  (void)json_object_set_new(object, "system", json_string(hb_system_of(point->system)->name));
  (void)json_object_set_new(object, "workload", json_options(&point->options));
  if (point->count == 0) {
    (void)json_object_set_new(object, "missing",
                              json_string(point->missing ? point->missing : "no run"));
  }
  (void)json_object_set_new(object, "median", json_metrics(&point->spread.median));
  (void)json_object_set_new(object, "min", json_metrics(&point->spread.min));
  (void)json_object_set_new(object, "max", json_metrics(&point->spread.max));
  for (size_t i = 0; i < point->count; i++) {
    (void)json_array_append_new(runs, json_metrics(&point->runs[i]));
  }
  (void)json_object_set_new(object, "runs", runs);
  return object;
}

json_t *hb_json_goal(const struct hb_goal *goal) {
  json_t *object = json_object();
  (void)json_object_set_new(object, "row", json_string(goal->row));
  (void)json_object_set_new(object, "what", json_string(goal->what));
  (void)json_object_set_new(object, "unit", json_string(goal->unit));
  (void)json_object_set_new(object, "at_most", json_boolean(goal->at_most));
  set_number(object, "limit", goal->limit);
  set_number(object, "aim", goal->aim);
  set_number(object, "value", goal->value);
  (void)json_object_set_new(object, "verdict",
                            json_string(verdict(goal->limit, goal->value, goal->at_most)));
  (void)json_object_set_new(object, "aim_verdict",
                            json_string(verdict(goal->aim, goal->value, goal->at_most)));
  return object;
}
