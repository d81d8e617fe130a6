/* Rows catch-up, cold-keys, restart: a store with a long history. Decides what "cold" is (a server
 * that was just started, on files that were synced and dropped from the page cache) and makes the
 * store once for all three. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/files.h"
#include "bench/load.h"
#include "bench/suite.h"
#include "client/holdback.h"

enum { CATCH_UP = 1, COLD_KEYS = 2, RESTART = 4 };
enum { SPREAD_EVENTS = 1000, COLD_ROUNDS = 3, RESTARTS = 3 };

struct history {
  struct hb_suite *suite;
  struct hb_run run; /* options.events of history; `held` more after a gap of one */
  uint64_t held;
  struct hb_point *point; /* of the row at hand */
};

static double seconds_since(uint64_t start_ns) {
  return (double)(hb_clock_mono_ns() - start_ns) / 1e9;
}

static bool fail(struct history *history, const char *what) {
  hb_gate_fail(&history->run.gate, "%s", what);
  return false;
}

/* ---- the store */

static bool fill(struct history *history) {
  struct hb_run *run = &history->run;
  run->setting.to = run->options.events;
  if (!hb_run_start_system(run)) return false;
  hb_run_start_readers(run);
  hb_run_start_producers(run);
  if (!hb_run_wait(run) || !run->system->settle(run)) return false;
  for (uint64_t i = 0; i < run->options.producers; i++) hb_bench_join(&run->producers[i]);
  return true;
}

/* The server again, its files out of the page cache before it opens them and after. */
static bool start_cold(struct history *history) {
  struct hb_run *run = &history->run;
  if (!run->system->stop(run)) return fail(history, "the server did not stop");
  if (!hb_files_drop(run->server.data_dir)) return fail(history, "files can't be dropped");
  if (!hbt_server_start(&run->server)) return fail(history, "the server did not start");
  return hb_files_drop(run->server.data_dir) || fail(history, "files can't be dropped");
}

/* ---- catch-up */

static bool catch_up(struct history *history, struct hb_metrics *metrics) {
  struct hb_run *run = &history->run;
  double events = (double)run->options.events;
  if (!run->system->stop(run)) return fail(history, "the server did not stop");
  if (!hb_files_drop(run->server.data_dir)) return fail(history, "files can't be dropped");
  uint64_t start_ns = hb_clock_mono_ns();
  uint64_t bytes = hb_files_read(run->server.data_dir);
  hb_metrics_set(metrics, HB_METRIC_FILES_RATE, events / seconds_since(start_ns));
  hb_metrics_set(metrics, HB_METRIC_FILES_BYTES, (double)bytes);
  if (!hbt_server_start(&run->server)) return fail(history, "the server did not start");
  if (!bytes || !start_cold(history)) return false;
  struct hb_bench_thread reader = {.number = 0};
  double cpu_s = hb_usage_of(hb_run_pid(run)).cpu_s;
  double clients_s = hb_usage_self_cpu_s();
  start_ns = hb_clock_mono_ns();
  hb_bench_start(&reader, &run->setting, run->system->read);
  hb_bench_join(&reader);
  double seconds = seconds_since(start_ns);
  struct hb_usage usage = hb_usage_of(hb_run_pid(run));
  hb_metrics_set(metrics, HB_METRIC_EVENTS, events);
  hb_metrics_set(metrics, HB_METRIC_SECONDS, seconds);
  hb_metrics_set(metrics, HB_METRIC_RATE, events / seconds);
  hb_metrics_set(metrics, HB_METRIC_SERVER_CPU_US, 1e6 * (usage.cpu_s - cpu_s) / events);
  hb_metrics_set(metrics, HB_METRIC_CLIENT_CPU_US,
                 1e6 * (hb_usage_self_cpu_s() - clients_s) / events);
  hb_metrics_set(metrics, HB_METRIC_RSS_PEAK, (double)usage.rss_peak);
  return !hb_gate_look(&run->gate).failed;
}

static void judge_catch_up(struct hb_suite *suite, const struct hb_point *point) {
  double files = hb_point_median(point, HB_METRIC_FILES_RATE);
  struct hb_goal goal = {.row = "catch-up",
                         .what = "from disk; 0.6 of reading the files, or 1,200,000/s",
                         .unit = "/s",
                         .limit = isnan(files) ? 1200000 : fmin(0.6 * files, 1200000),
                         .aim = NAN,
                         .value = hb_point_median(point, HB_METRIC_RATE)};
  hb_suite_judge(suite, &goal);
}

/* ---- cold keys */

struct key_read {
  struct history *history;
  struct hb_load load;
  uint64_t key;
  uint64_t start_ns;
  int64_t last;
  uint64_t count;
  double first_ms, all_ms;
  bool wrong;
};

static bool take_entry(void *context, const struct holdback_key_entry *entry) {
  struct key_read *read = context;
  if (read->count++ == 0) read->first_ms = 1e3 * seconds_since(read->start_ns);
  int64_t sequence = entry->event.sequence;
  bool good = sequence > read->last && hb_load_is(&read->load, &entry->event) &&
              hb_load_key(&read->history->run.options, sequence) == read->key;
  read->last = sequence;
  if (!good) read->wrong = true;
  return good;
}

/* How many events of the history have this key. */
static uint64_t count_of(const struct hb_bench_options *options, uint64_t key) {
  uint64_t count = 0;
  for (uint64_t i = 1; i <= options->events; i++) {
    if (hb_load_key(options, (int64_t)i) == key) count++;
  }
  return count;
}

static bool read_cold(struct history *history, uint64_t key, struct key_read *read) {
  struct hb_run *run = &history->run;
  char text[24];
  size_t size = hb_load_key_bytes(key, text);
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = run->address};
  *read = (struct key_read){.history = history, .key = key};
  if (!start_cold(history)) return false;
  hb_load_init(&read->load, &run->options);
  int code = holdback_client_create(&options, &client, &error);
  if (code == HOLDBACK_OK) code = holdback_ping(client, &(struct holdback_server){0}, &error);
  read->start_ns = hb_clock_mono_ns();
  if (code == HOLDBACK_OK) {
    code = holdback_read_key(client, HB_BENCH_STREAM, (struct holdback_bytes){text, size}, false, 0,
                             true, take_entry, read, &error);
  }
  read->all_ms = 1e3 * seconds_since(read->start_ns);
  holdback_client_destroy(client);
  hb_load_done(&read->load);
  if (code != HOLDBACK_OK) return fail(history, error.message);
  if (read->wrong || read->count != count_of(&run->options, key)) {
    return fail(history, "a key's list is not what was sent");
  }
  return true;
}

static bool cold_keys(struct history *history, struct hb_metrics *metrics, uint64_t round) {
  const struct hb_bench_options *options = &history->run.options;
  struct key_read few;
  struct key_read spread;
  uint64_t key = options->keys / 2 + round * 7919; /* another one each time */
  if (!read_cold(history, key % options->keys, &few)) return false;
  if (!read_cold(history, options->keys, &spread)) return false;
  hb_metrics_set(metrics, HB_METRIC_FIRST_MS, few.first_ms);
  hb_metrics_set(metrics, HB_METRIC_ALL_MS, few.all_ms);
  hb_metrics_set(metrics, HB_METRIC_SPREAD_FIRST_MS, spread.first_ms);
  hb_metrics_set(metrics, HB_METRIC_SPREAD_ALL_MS, spread.all_ms);
  return true;
}

static void judge_cold_keys(struct hb_suite *suite, const struct hb_point *point) {
  struct hb_goal first = {.row = "cold-keys",
                          .what = "first event of one key in a million",
                          .unit = "ms",
                          .at_most = true,
                          .limit = 5,
                          .aim = NAN,
                          .value = hb_point_median(point, HB_METRIC_FIRST_MS)};
  hb_suite_judge(suite, &first);
  struct hb_goal all = {.row = "cold-keys",
                        .what = "all 1,000 events of a key that is everywhere",
                        .unit = "ms",
                        .at_most = true,
                        .limit = 500,
                        .aim = NAN,
                        .value = hb_point_median(point, HB_METRIC_SPREAD_ALL_MS)};
  hb_suite_judge(suite, &all);
}

/* ---- restart */

static bool get_status(struct history *history, struct holdback_stream_status *out) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = history->run.address};
  int code = holdback_client_create(&options, &client, &error);
  if (code == HOLDBACK_OK) code = holdback_stream_get(client, HB_BENCH_STREAM, NULL, out, &error);
  holdback_client_destroy(client);
  return code == HOLDBACK_OK || fail(history, error.message);
}

/* Sequences from + 1 .. to. */
static bool append(struct history *history, uint64_t from, uint64_t to) {
  struct hb_run *run = &history->run;
  struct hb_bench_setting setting = run->setting;
  setting.order = NULL;
  setting.from = from;
  setting.to = to;
  struct hb_bench_thread producer = {.number = 0};
  hb_bench_start(&producer, &setting, run->system->produce);
  hb_bench_join(&producer);
  return !hb_gate_look(&run->gate).failed && producer.stored == to - from;
}

static bool is_held(struct history *history, uint64_t frontier, uint64_t held) {
  struct holdback_stream_status status = {0};
  if (!get_status(history, &status)) return false;
  if ((uint64_t)status.frontier == frontier && status.held_events == held) return true;
  hb_gate_fail(&history->run.gate,
               "after a restart the frontier is %lld with %llu held, not %llu with %llu",
               (long long)status.frontier, (unsigned long long)status.held_events,
               (unsigned long long)frontier, (unsigned long long)held);
  return false;
}

/* A long release goes on after its first answer. */
static bool is_released(struct history *history, uint64_t frontier) {
  enum { STUCK_S = 60, LOOK_MS = 5 };
  struct holdback_stream_status status = {0};
  uint64_t start_ns = hb_clock_mono_ns();
  while (get_status(history, &status) && (uint64_t)status.frontier < frontier) {
    if (seconds_since(start_ns) > STUCK_S) break;
    hb_gate_wait(&history->run.gate, LOOK_MS);
  }
  return is_held(history, frontier, 0);
}

static bool restart(struct history *history, struct hb_metrics *metrics) {
  struct hb_run *run = &history->run;
  uint64_t start_ns = hb_clock_mono_ns();
  hbt_server_kill(&run->server);
  double killed_s = seconds_since(start_ns);
  start_ns = hb_clock_mono_ns();
  if (!hbt_server_start(&run->server)) return fail(history, "the server did not start");
  hb_metrics_set(metrics, HB_METRIC_READY_SECONDS, seconds_since(start_ns));
  hb_metrics_set(metrics, HB_METRIC_SECONDS, killed_s + seconds_since(start_ns));
  return is_held(history, run->options.events + 1, history->held);
}

static bool restarts(struct history *history) {
  uint64_t events = history->run.options.events;
  if (!append(history, events + 1, events + 1 + history->held)) return false;
  for (int i = 0; i < RESTARTS; i++) {
    struct hb_metrics metrics;
    hb_metrics_clear(&metrics);
    if (!restart(history, &metrics)) return false;
    hb_point_add(history->point, &metrics);
  }
  /* What was held is still right: the gap is filled and everything comes out. */
  return append(history, events, events + 1) && is_released(history, events + 2 + history->held);
}

static void judge_restart(struct hb_suite *suite, const struct hb_point *point) {
  struct hb_goal goal = {.row = "restart",
                         .what = "ready after SIGKILL, warm cache",
                         .unit = "s",
                         .at_most = true,
                         .limit = 1.5,
                         .aim = 0.5,
                         .value = hb_point_median(point, HB_METRIC_READY_SECONDS)};
  hb_suite_judge(suite, &goal);
}

/* ---- the rows */

typedef bool measure_fn(struct history *history);
typedef void judge_fn(struct hb_suite *suite, const struct hb_point *point);

static bool measure_catch_up(struct history *history) {
  struct hb_metrics metrics;
  hb_metrics_clear(&metrics);
  if (!catch_up(history, &metrics)) return false;
  hb_point_add(history->point, &metrics);
  return true;
}

static bool measure_cold_keys(struct history *history) {
  for (uint64_t i = 0; i < COLD_ROUNDS; i++) {
    struct hb_metrics metrics;
    hb_metrics_clear(&metrics);
    if (!cold_keys(history, &metrics, i)) return false;
    hb_point_add(history->point, &metrics);
  }
  return true;
}

static void measure_row(struct history *history, const char *row, const char *name,
                        measure_fn *measure, judge_fn *judge) {
  struct hb_suite *suite = history->suite;
  struct hb_point *point = hb_calloc(1, sizeof *point);
  *point = (struct hb_point){
      .name = name, .system = HB_SYSTEM_HOLDBACK, .options = history->run.options};
  history->point = point;
  suite->row = row;
  if (hb_gate_look(&history->run.gate).failed) {
    point->missing = "the store could not be made";
  } else if (!measure(history)) {
    hb_suite_fail(suite, point);
    point->count = 0;
  }
  hb_suite_tell(suite, point);
  judge(suite, point);
  free(point);
}

void hb_measure_history(struct hb_suite *suite, unsigned wanted) {
  struct hb_bench_options options = hb_suite_options(suite, hb_suite_size(suite, 20000000, 100000));
  options.keys = hb_suite_size(suite, 1000000, 5000);
  options.spread_every = options.events / SPREAD_EVENTS;
  options.subscribers = 0;
  struct history *history = hb_calloc(1, sizeof *history);
  *history = (struct history){.suite = suite, .held = hb_suite_size(suite, 100000, 10000)};
  hb_run_init(&history->run, &hb_system_holdback, &options, NULL);
  bool good = fill(history);
  if (!good) suite->failed = true;
  if (wanted & CATCH_UP) {
    measure_row(history, "catch-up", "one subscriber", measure_catch_up, judge_catch_up);
  }
  if (wanted & COLD_KEYS) {
    measure_row(history, "cold-keys", "one key", measure_cold_keys, judge_cold_keys);
  }
  if (wanted & RESTART) {
    measure_row(history, "restart", "killed", restarts, judge_restart);
  }
  good = !hb_gate_look(&history->run.gate).failed;
  if (!hb_run_finish(&history->run, good)) suite->failed = true;
  hb_run_done(&history->run);
  free(history);
}
