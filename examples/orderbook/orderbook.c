/* orderbook: the order books of many contracts out of one disordered feed, on a real server in a
 * temporary folder. Every result is checked; it exits with 0 only if all are right. */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "demo/stage.h"
#include "examples/orderbook/options.h"
#include "examples/orderbook/outside.h"
#include "examples/orderbook/reader.h"
#include "tests/lib/rng.h"

static const char stream[] = "orders";
static const char attached[] = "depth";

struct run {
  struct ob_options options;
  struct ob_feed feed;
  uint32_t *arrival; /* owned; the events' indexes in the order in which they are sent */
  size_t early;      /* events sent before one with a lower sequence */
  struct demo_stage stage;
  struct ob_judge judge;
  struct ob_table table;
  struct ob_reader reader;
  uint64_t begun_ns;
};

/* ---- the feed */

static void make_feed(struct run *run) {
  ob_feed_make(&run->options.feed, &run->feed);
  size_t count = run->feed.count;
  /* Another order than the feed's own randomness would give. */
  struct hbt_rng rng = {~run->options.feed.seed};
  run->arrival = hb_calloc(count, sizeof *run->arrival);
  hbt_rng_displace(&rng, run->arrival, count, run->options.disorder);
  uint32_t lowest = UINT32_MAX;
  for (size_t i = count; i-- > 0;) {
    if (run->arrival[i] < lowest) lowest = run->arrival[i];
    run->early += run->arrival[i] > lowest;
  }
}

static int append_all(struct run *run, struct holdback_appender *appender,
                      struct holdback_error *error) {
  int status = HOLDBACK_OK;
  for (size_t i = 0; i < run->feed.count && status == HOLDBACK_OK; i++) {
    struct ob_outside room;
    struct holdback_event event = ob_outside(&run->feed.events[run->arrival[i]], &room);
    status = holdback_append(appender, i, &event, error);
  }
  return status == HOLDBACK_OK ? holdback_appender_flush(appender, error) : status;
}

static bool send_feed(struct run *run) {
  struct holdback_error error = {0};
  struct holdback_appender_options options = {.stream = stream};
  struct holdback_appender *appender = NULL;
  struct holdback_append_progress progress = {0};
  if (holdback_appender_create(run->stage.client, &options, &appender, &error) != HOLDBACK_OK) {
    return demo_fail("appender", &error);
  }
  int status = append_all(run, appender, &error);
  holdback_appender_progress(appender, &progress);
  holdback_appender_destroy(appender);
  if (status != HOLDBACK_OK) return demo_fail("append", &error);
  if (!demo_expect(progress.stored == run->feed.count, "every event stored")) return false;
  int64_t end = (int64_t)run->feed.count + 1;
  if (holdback_stream_seal(run->stage.client, stream, end, &error) != HOLDBACK_OK) {
    return demo_fail("seal", &error);
  }
  return true;
}

/* ---- the server */

static bool attach(struct run *run) {
  char depth[24];
  (void)snprintf(depth, sizeof depth, "%zu", run->options.depth);
  struct holdback_parameter parameter = {"depth", {depth, strlen(depth)}};
  struct holdback_processor_config config = {
      .name = attached, .processor = "orderbook", .parameters = &parameter, .parameters_count = 1};
  struct holdback_error error = {0};
  if (holdback_processor_attach(run->stage.client, stream, &config, false, &error) != HOLDBACK_OK) {
    return demo_fail("attach", &error);
  }
  return true;
}

static bool open_stage(struct run *run) {
  static char path[PATH_MAX];
  if (!realpath(run->options.processor, path)) {
    (void)fprintf(stderr, "orderbook: %s: %s\n", run->options.processor, strerror(errno));
    return false;
  }
  static const char *flags[] = {"--processor-dir", NULL, NULL};
  flags[1] = dirname(path);
  return demo_stage_open(&run->stage, run->options.holdbackd, flags) &&
         demo_stage_add_stream(&run->stage, stream) && attach(run);
}

/* ---- the run */

static bool play(struct run *run) {
  ob_judge_init(&run->judge, &run->feed, run->options.depth);
  ob_table_init(&run->table, run->feed.contracts, run->feed.count);
  run->reader = (struct ob_reader){.client = run->stage.client,
                                   .stream = stream,
                                   .processor = attached,
                                   .judge = &run->judge,
                                   .table = &run->table};
  if (!ob_reader_start(&run->reader)) return false;
  run->begun_ns = hb_clock_mono_ns();
  bool sent = send_feed(run);
  if (!sent) atomic_store(&run->reader.stop, true);
  bool right = ob_reader_join(&run->reader);
  if (sent && right) ob_table_finish(&run->table);
  return sent && right;
}

static void conclude(const struct run *run) {
  double seconds = (double)(run->reader.ended_ns - run->begun_ns) / 1e9;
  (void)printf("\nFrom the first event sent to the last result checked: %.2f s. %" PRIu32
               " final books are those\nof the feed in order, and what rests in the matcher.\n"
               "orderbook: ok, %zu events, %zu results, %.0f events/s"
               " (the cloud pipeline published 76,200/s)\n",
               seconds, run->judge.finals, run->judge.events, run->judge.events + run->judge.finals,
               (double)run->judge.events / seconds);
}

static void run_done(struct run *run) {
  demo_stage_close(&run->stage);
  ob_table_done(&run->table);
  ob_judge_done(&run->judge);
  free(run->arrival);
  ob_feed_done(&run->feed);
}

int main(int argc, char **argv) {
  static struct run run;
  int code = ob_options_parse(argc, argv, &run.options);
  if (code >= 0) return code;
  (void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  bool good = open_stage(&run);
  if (good) {
    make_feed(&run);
    (void)printf("%zu order events of %" PRIu32 " contracts, seed %" PRIu64
                 "; %zu are sent before one that is due earlier.\n\n",
                 run.feed.count, run.feed.contracts, run.options.feed.seed, run.early);
    (void)fflush(stdout);
    good = play(&run);
  }
  if (good) conclude(&run);
  run_done(&run);
  return good ? 0 : 1;
}
