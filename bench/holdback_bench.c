/* holdback_bench HOLDBACKD [flags]: how fast a real server is, and whether it is right.
 *
 * Decides the form of the report of a single workload. Exit 0 only if every event came out in
 * order, once, with its bytes; figures of a wrong run are not printed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/suite.h"
#include "bench/systems.h"

static const double MIB = 1024.0 * 1024.0;

static void print_head(const struct hb_bench_options *o) {
  (void)printf("%" PRIu64 " events of %" PRIu64 " B, %" PRIu64 "%s keys, %s", o->events, o->payload,
               o->keys, o->zipf ? " Zipf" : "", hb_order_name(o->order));
  if (o->order == HB_ORDER_SLIDING) (void)printf(" by %" PRIu64, o->disorder);
  (void)printf(", %" PRIu64 " producer(s), batches of %" PRIu64 ", %" PRIu64
               " in flight, %s, seed %" PRIu64 "\n",
               o->producers, o->batch, o->in_flight, o->async ? "async" : "durable", o->seed);
}

/* A line of the report; none where a figure is absent. */
static void line(const struct hb_metrics *m, const char *what, const char *format,
                 enum hb_metric first, double first_scale, enum hb_metric second,
                 double second_scale) {
  double a = hb_metrics_get(m, first) * first_scale;
  double b = hb_metrics_get(m, second) * second_scale;
  if (isnan(a) || isnan(b)) return;
  char text[96];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  (void)snprintf(text, sizeof text, format, a, b);
#pragma GCC diagnostic pop
  (void)printf("  %-34s  %s\n", what, text);
}

static void print_text(const struct hb_bench_options *o, const struct hb_metrics *m) {
  print_head(o);
  char what[64];
  (void)snprintf(what, sizeof what, "in order, once, to %" PRIu64 " subscriber(s)", o->subscribers);
  line(m, what, "%.3f s   %.0f events/s", HB_METRIC_SECONDS, 1, HB_METRIC_RATE, 1);
  line(m, "all answered", "%.3f s   %.0f events/s", HB_METRIC_ACK_SECONDS, 1, HB_METRIC_ACK_RATE,
       1);
  line(m, "answers, p50, p99", "%.3f ms  %.3f ms", HB_METRIC_ACK_P50, 1e-3, HB_METRIC_ACK_P99,
       1e-3);
  line(m, "         p99.9, longest", "%.3f ms  %.3f ms", HB_METRIC_ACK_P999, 1e-3,
       HB_METRIC_ACK_MAX, 1e-3);
  line(m, "received, p50, p99", "%.3f ms  %.3f ms", HB_METRIC_RECEIVE_P50, 1e-3,
       HB_METRIC_RECEIVE_P99, 1e-3);
  line(m, "          p99.9, longest", "%.3f ms  %.3f ms", HB_METRIC_RECEIVE_P999, 1e-3,
       HB_METRIC_RECEIVE_MAX, 1e-3);
  line(m, "written to bundles; index after", "%.1f %%   %.3f s", HB_METRIC_HELD_SHARE, 100,
       HB_METRIC_INDEX_SECONDS, 1);
  line(m, "processed; server CPU per event", "%.0f events/s   %.2f us",
       HB_METRIC_PROCESSED_PER_SECOND, 1, HB_METRIC_SERVER_CPU_US, 1);
  line(m, "CPU per event, server, clients", "%.2f us  %.2f us", HB_METRIC_SERVER_CPU_US, 1,
       HB_METRIC_CLIENT_CPU_US, 1);
  line(m, "written per event; syncs in all", "%.0f B   %.0f", HB_METRIC_WRITTEN_BYTES, 1,
       HB_METRIC_SYNCS_TOTAL, 1);
  line(m, "server RSS, peak and at the end", "%.0f MiB  %.0f MiB", HB_METRIC_RSS_PEAK, 1 / MIB,
       HB_METRIC_RSS_END, 1 / MIB);
  line(m, "killed, ready again", "%.3f s   at event %.0f", HB_METRIC_READY_SECONDS, 1,
       HB_METRIC_EVENTS, (double)o->kill_at / (double)o->events);
}

static void print_json(const struct hb_bench_options *o, const struct hb_metrics *m) {
  (void)printf(
      "{\"order\":\"%s\",\"disorder\":%" PRIu64 ",\"payload\":%" PRIu64 ",\"keys\":%" PRIu64
      ",\"producers\":%" PRIu64 ",\"batch\":%" PRIu64 ",\"in_flight\":%" PRIu64
      ",\"subscribers\":%" PRIu64 ",\"slow_subscribers\":%" PRIu64 ",\"rate\":%" PRIu64
      ",\"async\":%s,\"seed\":%" PRIu64,
      hb_order_name(o->order), o->disorder, o->payload, o->keys, o->producers, o->batch,
      o->in_flight, o->subscribers, o->stalled, o->rate, o->async ? "true" : "false", o->seed);
  for (int i = 0; i < HB_METRICS; i++) {
    double value = hb_metrics_get(m, (enum hb_metric)i);
    if (!isnan(value)) (void)printf(",\"%s\":%.9g", hb_metric_name((enum hb_metric)i), value);
  }
  (void)printf("}\n");
}

static bool measure(const struct hb_bench_command *command, const struct hb_bench_options *options,
                    struct hb_metrics *out) {
  enum hb_system_id id = command->system ? hb_system_find(command->system) : HB_SYSTEM_HOLDBACK;
  const char *missing = id < HB_SYSTEMS ? hb_system_missing(id, command) : "there is none";
  if (missing) {
    (void)fprintf(stderr, "holdback_bench: --system is %s: %s\n", command->system, missing);
    return false;
  }
  struct hb_bench_options mine = *options;
  if (id == HB_SYSTEM_FLOOR) mine.server = command->floor;
  if (!hb_measure(hb_system_of(id), &mine, command->counter, out)) return false;
  if (command->json) {
    print_json(options, out);
  } else {
    print_text(options, out);
  }
  (void)fflush(stdout);
  return true;
}

/* One workload; with subscribers that stop reading, once without and once with them. */
static bool run_workload(const struct hb_bench_command *command) {
  struct hb_bench_options plain_options = command->options;
  plain_options.stalled = 0;
  struct hb_metrics plain;
  if (!measure(command, &plain_options, &plain)) return false;
  if (!command->options.stalled) return true;
  struct hb_metrics slow;
  if (!measure(command, &command->options, &slow)) return false;
  if (!command->json) {
    (void)printf(
        "  each of %" PRIu64 " subscribers that stopped reading cost %.2f MiB at the end\n",
        command->options.stalled,
        (hb_metrics_get(&slow, HB_METRIC_RSS_END) - hb_metrics_get(&plain, HB_METRIC_RSS_END)) /
            MIB / (double)command->options.stalled);
  }
  return true;
}

int main(int argc, char **argv) {
  struct hb_bench_command command;
  int code = 0;
  if (!hb_bench_command_parse(&command, argc, argv, &code)) return code;
  if (command.all || command.list || command.rows[0]) return hb_suite_run(&command);
  return run_workload(&command) ? 0 : 1;
}
