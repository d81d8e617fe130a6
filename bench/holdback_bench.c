/* holdback_bench HOLDBACKD [flags]: how fast a real server is, and whether it is right.
 *
 * Decides the form of the report. Exit 0 only if every event came out in order, once, with its
 * bytes; figures of a wrong run are not printed. */
#include <inttypes.h>
#include <stdio.h>

#include "bench/measure.h"
#include "bench/options.h"

static const double MIB = 1024.0 * 1024.0;

static void print_text(const struct hb_bench_options *o, const struct hb_bench_result *r) {
  double events = (double)o->events;
  (void)printf("%" PRIu64 " events of %" PRIu64 " B, %" PRIu64 " keys, disorder %" PRIu64
               ", batches of %" PRIu64 ", %" PRIu64 " in flight, %s, seed %" PRIu64 "\n",
               o->events, o->payload, o->keys, o->disorder, o->batch, o->in_flight,
               o->async ? "async" : "durable", o->seed);
  (void)printf("  in order, once, to %" PRIu64 " subscriber(s)   %.3f s   %.0f events/s\n",
               o->subscribers, r->seconds, events / r->seconds);
  (void)printf("  all answered                        %.3f s\n", r->ack_seconds);
  (void)printf("  written to bundles (held_total)     %" PRIu64 "   %.1f %%\n", r->held_total,
               100.0 * (double)r->held_total / events);
  (void)printf("  index caught up after               %.3f s\n", r->index_seconds);
  (void)printf("  server CPU, index included          %.2f s   %.2f us/event\n", r->server_cpu_s,
               1e6 * r->server_cpu_s / events);
  (void)printf("  clients' CPU                        %.2f s   %.2f us/event\n", r->client_cpu_s,
               1e6 * r->client_cpu_s / events);
  (void)printf("  server RSS, peak and at the end     %.0f MiB, %.0f MiB\n",
               (double)r->rss_peak / MIB, (double)r->rss_end / MIB);
  if (r->ready_seconds > 0) {
    (void)printf("  killed at %" PRIu64 " events, ready again  %.3f s\n", o->kill_at,
                 r->ready_seconds);
  }
}

static void print_json(const struct hb_bench_options *o, uint64_t stalled,
                       const struct hb_bench_result *r) {
  (void)printf("{\"events\":%" PRIu64 ",\"disorder\":%" PRIu64 ",\"payload\":%" PRIu64
               ",\"keys\":%" PRIu64 ",\"batch\":%" PRIu64 ",\"in_flight\":%" PRIu64
               ",\"subscribers\":%" PRIu64 ",\"slow_subscribers\":%" PRIu64
               ",\"async\":%s,\"seed\":%" PRIu64 ",",
               o->events, o->disorder, o->payload, o->keys, o->batch, o->in_flight, o->subscribers,
               stalled, o->async ? "true" : "false", o->seed);
  (void)printf(
      "\"seconds\":%.6f,\"events_per_second\":%.0f,\"ack_seconds\":%.6f,"
      "\"index_seconds\":%.6f,\"held_total\":%" PRIu64
      ",\"server_cpu_seconds\":%.2f,"
      "\"client_cpu_seconds\":%.2f,\"rss_peak\":%" PRIu64 ",\"rss_end\":%" PRIu64
      ",\"ready_seconds\":%.6f}\n",
      r->seconds, (double)o->events / r->seconds, r->ack_seconds, r->index_seconds, r->held_total,
      r->server_cpu_s, r->client_cpu_s, r->rss_peak, r->rss_end, r->ready_seconds);
}

static bool measure(const struct hb_bench_options *options, uint64_t stalled,
                    struct hb_bench_result *out) {
  if (!hb_bench_measure(options, stalled, out)) return false;
  if (options->json) {
    print_json(options, stalled, out);
  } else {
    print_text(options, out);
  }
  (void)fflush(stdout);
  return true;
}

int main(int argc, char **argv) {
  struct hb_bench_options options;
  int code = 0;
  if (!hb_bench_options_parse(&options, argc, argv, &code)) return code;
  struct hb_bench_result plain;
  if (!measure(&options, 0, &plain)) return 1;
  if (!options.stalled) return 0;
  struct hb_bench_result slow;
  if (!measure(&options, options.stalled, &slow)) return 1;
  if (!options.json) {
    (void)printf("  each of %" PRIu64
                 " subscribers that stopped reading cost %.2f MiB at the end\n",
                 options.stalled,
                 ((double)slow.rss_end - (double)plain.rss_end) / MIB / (double)options.stalled);
  }
  return 0;
}
