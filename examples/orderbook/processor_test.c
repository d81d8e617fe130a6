/* The processor in a real server, loaded from its shared object and fed through gRPC: OB1 to OB5,
 * what it gives up, what it refuses, and a kill in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "examples/orderbook/judge.h"
#include "examples/orderbook/outside.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

enum { WAIT_MS = 30000 };

static const char *holdbackd;
static const char *processor_dir;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *client;
  struct holdback_error error;
  /* of the stream at hand */
  const char *stream;
  struct holdback_appender *appender;
  struct holdback_subscription *results;
  const struct holdback_message *message;
  size_t cursor;
};

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  *state = world;
  hbt_tempdir_init(&world->dir, "orderbook");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->server.flags[0] = "--processor-dir";
  world->server.flags[1] = processor_dir;
  if (!hbt_server_start(&world->server)) return -1;
  struct holdback_options options = {.server = world->server.listen};
  return holdback_client_create(&options, &world->client, &world->error);
}

static void close_stream(struct world *world) {
  holdback_subscription_destroy(world->results);
  holdback_appender_destroy(world->appender);
  world->results = NULL;
  world->appender = NULL;
  world->message = NULL;
}

static int teardown(void **state) {
  struct world *world = *state;
  close_stream(world);
  holdback_client_destroy(world->client);
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

#define OK(world, call)                                                           \
  do {                                                                            \
    if ((call) != HOLDBACK_OK) fail_msg("%s: %s", #call, (world)->error.message); \
  } while (0)

/* ---- a stream with the processor */

static int attach(struct world *world, const char *processor, const char *name, const char *value) {
  struct holdback_parameter parameter = {name, {value, value ? strlen(value) : 0}};
  struct holdback_processor_config config = {.name = "p",
                                             .processor = processor,
                                             .parameters = &parameter,
                                             .parameters_count = name ? 1 : 0,
                                             .key_status = HOLDBACK_KEY_STATUS_KEPT};
  return holdback_processor_attach(world->client, world->stream, &config, false, &world->error);
}

static void open_results(struct world *world) {
  struct holdback_subscribe_options options = {.stream = world->stream,
                                               .processor = "p",
                                               .start = HOLDBACK_START_EARLIEST,
                                               .progress_interval_ms = 100};
  OK(world, holdback_subscribe(world->client, &options, &world->results, &world->error));
}

static void open_stream_as(struct world *world, const char *stream, int mode) {
  struct holdback_stream_config config = {.name = stream, .mode = mode, .first_sequence = 1};
  world->stream = stream;
  OK(world, holdback_stream_create(world->client, &config, &world->error));
  struct holdback_appender_options options = {.stream = stream, .batch_events = 100};
  OK(world, holdback_appender_create(world->client, &options, &world->appender, &world->error));
}

static void open_stream(struct world *world, const char *stream) {
  open_stream_as(world, stream, HOLDBACK_MODE_GLOBAL);
}

static void append(struct world *world, const struct ob_event *order) {
  struct ob_outside room;
  struct holdback_event event = ob_outside(order, &room);
  OK(world, holdback_append(world->appender, 0, &event, &world->error));
}

static void flush(struct world *world) {
  OK(world, holdback_appender_flush(world->appender, &world->error));
}

/* The next result, within the time; false: the stream has ended. It lives until the next call. */
static bool next_result(struct world *world, struct holdback_processor_result *out) {
  while (!world->message || !holdback_message_result(world->message, &world->cursor, out)) {
    world->cursor = 0;
    OK(world, holdback_next(world->results, WAIT_MS, &world->message, &world->error));
    assert_non_null(world->message);
    int kind = holdback_message_kind(world->message);
    if (kind == HOLDBACK_MESSAGE_END) return false;
    if (kind != HOLDBACK_MESSAGE_RESULTS) world->message = NULL;
  }
  return true;
}

/* ---- OB1 to OB5 */

enum { CASE_EVENTS = 4, CASE_LEVELS = 2 };

struct status {
  int64_t last; /* -1: none */
  int64_t buffered, earliest, latest, received, results, duplicates;
  int64_t last_received; /* never: GLOBAL streams have no such flag, and no case ends a contract */
};

/* The contract sequence is the sequence in all of them: with one contract it is both, and OB4's
 * generator writes it so. All but OB4, whose sequence is one over two contracts, run in both modes.
 */
static const struct ob_case {
  const char *id;
  const char *stream;
  const char *depth;
  bool at_once; /* all sent before the processor is attached: Beam's batch */
  size_t count;
  struct ob_event arrivals[CASE_EVENTS];
  struct status statuses[CASE_EVENTS]; /* after each arrival; received 0: not looked at */
  struct {
    int64_t contract, sequence;
    size_t bids, offers;
    struct ob_level levels[CASE_LEVELS];
  } depths[CASE_EVENTS];
} cases[] = {
    {"OB1",
     "ob1",
     "1",
     true,
     2,
     {{.contract = 345, .sequence = 1}, {.contract = 345, .sequence = 2}},
     {{0}},
     {{345, 1, 0, 0, {{0}}}, {345, 2, 0, 0, {{0}}}}},
    {"OB2",
     "ob2",
     "1",
     false,
     3,
     {{.contract = 345, .sequence = 1},
      {.contract = 345, .sequence = 2},
      {.contract = 345, .sequence = 3}},
     {{1, 0, 0, 0, 1, 1, 0, 0}, {2, 0, 0, 0, 2, 2, 0, 0}, {3, 0, 0, 0, 3, 3, 0, 0}},
     {{345, 1, 0, 0, {{0}}}, {345, 2, 0, 0, {{0}}}, {345, 3, 0, 0, {{0}}}}},
    {"OB3",
     "ob3",
     "1",
     false,
     3,
     {{.contract = 345, .sequence = 3},
      {.contract = 345, .sequence = 2},
      {.contract = 345, .sequence = 1}},
     {{-1, 1, 3, 3, 1, 0, 0, 0}, {-1, 2, 2, 3, 2, 0, 0, 0}, {3, 0, 0, 0, 3, 3, 0, 0}},
     {{345, 1, 0, 0, {{0}}}, {345, 2, 0, 0, {{0}}}, {345, 3, 0, 0, {{0}}}}},
    {"OB4",
     "ob4",
     "1",
     false,
     3,
     {{.contract = 345, .sequence = 3},
      {.contract = 345, .sequence = 2},
      {.contract = 678, .sequence = 1}},
     {{0}},
     {{678, 1, 0, 0, {{0}}}, {345, 2, 0, 0, {{0}}}, {345, 3, 0, 0, {{0}}}}},
    {"OB5",
     "ob5",
     "10",
     false,
     2,
     {{OB_NEW, OB_BUY, .contract = 345, .sequence = 1, .price = 100, .remaining = 100},
      {OB_NEW, OB_SELL, .contract = 345, .sequence = 2, .price = 101, .remaining = 100}},
     {{0}},
     {{345, 1, 1, 0, {{100, 100}}}, {345, 2, 1, 1, {{100, 100}, {101, 100}}}}},
};

static void expect_depth(struct world *world, const struct ob_case *row, size_t i) {
  struct holdback_processor_result result;
  struct ob_depth depth;
  char room[OB_KEY_SIZE];
  assert_true(next_result(world, &result));
  assert_null(ob_depth_decode(result.payload.data, result.payload.size, &depth));
  struct holdback_bytes key = ob_key(row->depths[i].contract, room);
  assert_int_equal(result.key.size, key.size);
  assert_memory_equal(result.key.data, key.data, key.size);
  if (depth.contract != row->depths[i].contract || depth.sequence != row->depths[i].sequence ||
      depth.contract_sequence != depth.sequence || depth.bids != row->depths[i].bids ||
      depth.offers != row->depths[i].offers || depth.final || depth.has_trade) {
    fail_msg("%s: result %zu is of contract %lld, sequence %lld, %u bids, %u offers", row->id, i,
             (long long)depth.contract, (long long)depth.sequence, depth.bids, depth.offers);
  }
  for (size_t level = 0; level < (size_t)depth.bids + depth.offers; level++) {
    struct ob_level got = ob_depth_level(&depth, level);
    assert_memory_equal(&got, &row->depths[i].levels[level], sizeof got);
  }
}

struct progress {
  int64_t position;
  char failure[200];
};

static bool note_progress(void *context, const struct holdback_processor_config *config,
                          const struct holdback_processor_status *status) {
  (void)config;
  struct progress *progress = context;
  progress->position = status->has_position ? status->position : 1;
  (void)snprintf(progress->failure, sizeof progress->failure, "%llu %lld %s",
                 (unsigned long long)status->failed, (long long)status->last_failure_position,
                 status->last_failure);
  return true;
}

/* A subscriber may have a result just before the processor says that it is through. */
static struct progress wait_processed(struct world *world, int64_t position) {
  struct progress progress = {.position = 1};
  uint64_t until_ms = hb_clock_mono_ms() + WAIT_MS;
  do {
    OK(world, holdback_processor_list(world->client, world->stream, "p", note_progress, &progress,
                                      &world->error));
    assert_true(hb_clock_mono_ms() < until_ms);
  } while (progress.position < position);
  return progress;
}

static struct status status_of(struct world *world, int64_t contract) {
  char room[OB_KEY_SIZE];
  struct holdback_key_status is;
  OK(world, holdback_key_status(world->client, world->stream, "p", ob_key(contract, room), &is,
                                &world->error));
  assert_true(is.has_waiting);
  return (struct status){.last = is.has_last_processed ? is.last_processed : -1,
                         .buffered = (int64_t)is.waiting,
                         .earliest = is.waiting ? is.earliest_waiting : 0,
                         .latest = is.waiting ? is.latest_waiting : 0,
                         .received = (int64_t)is.received,
                         .results = (int64_t)is.results,
                         .duplicates = (int64_t)is.duplicates,
                         .last_received = is.last_received};
}

static void expect_status(struct world *world, const struct ob_case *row, size_t i) {
  struct status got = status_of(world, row->arrivals[i].contract);
  if (memcmp(&got, &row->statuses[i], sizeof got) == 0) return;
  fail_msg("%s: status %zu is (%lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld)", row->id, i,
           (long long)got.last, (long long)got.buffered, (long long)got.earliest,
           (long long)got.latest, (long long)got.received, (long long)got.results,
           (long long)got.duplicates, (long long)got.last_received);
}

static void send_case(struct world *world, const struct ob_case *row) {
  size_t seen = 0;
  for (size_t i = 0; i < row->count; i++) {
    struct ob_event event = row->arrivals[i];
    event.contract_sequence = event.sequence;
    append(world, &event);
    if (row->statuses[i].received == 0) continue;
    flush(world);
    while ((int64_t)seen < row->statuses[i].results) expect_depth(world, row, seen++);
    expect_status(world, row, i);
  }
  flush(world);
  while (seen < row->count) expect_depth(world, row, seen++);
}

/* Sealed, the stream gives one final book for each contract, and nothing else. */
static void expect_end(struct world *world, const struct ob_case *row) {
  struct holdback_processor_result result;
  struct ob_depth depth;
  size_t finals = 0;
  OK(world,
     holdback_stream_seal(world->client, world->stream, (int64_t)row->count + 1, &world->error));
  for (; next_result(world, &result); finals++) {
    assert_int_equal(result.kind, HOLDBACK_RESULT_END);
    assert_null(ob_depth_decode(result.payload.data, result.payload.size, &depth));
    assert_true(depth.final);
  }
  assert_int_equal(finals, strcmp(row->id, "OB4") == 0 ? 2 : 1);
}

static void run_case(struct world *world, const struct ob_case *row, int mode) {
  char stream[16];
  (void)snprintf(stream, sizeof stream, "%s-%d", row->stream, mode);
  open_stream_as(world, stream, mode);
  if (!row->at_once) {
    OK(world, attach(world, "orderbook", "depth", row->depth));
    open_results(world);
    send_case(world, row);
  } else {
    for (size_t k = 0; k < row->count; k++) {
      struct ob_event event = row->arrivals[k];
      event.contract_sequence = event.sequence;
      append(world, &event);
    }
    flush(world);
    OK(world, attach(world, "orderbook", "depth", row->depth));
    open_results(world);
    for (size_t k = 0; k < row->count; k++) expect_depth(world, row, k);
  }
  if (mode == HOLDBACK_MODE_GLOBAL) expect_end(world, row);
  close_stream(world);
}

/* One depth for each event, in the order of the sequence, whatever the order of arrival; then, of
 * a stream that can be sealed, the final books, and the end. */
static void ob1_to_ob5(void **state) {
  struct world *world = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct ob_case *row = &cases[i];
    bool one_contract = strcmp(row->id, "OB4") != 0;
    run_case(world, row, HOLDBACK_MODE_GLOBAL);
    if (one_contract) run_case(world, row, HOLDBACK_MODE_PER_KEY);
  }
}

/* ---- what is not right */

/* An impossible event, and one that is no order event at all, give no result and change no book;
 * they are kept aside with the reason, and the key goes on. */
static void impossible_events(void **state) {
  struct world *world = *state;
  open_stream(world, "impossible");
  OK(world, attach(world, "orderbook", NULL, NULL));
  open_results(world);
  struct ob_event event = {.type = OB_NEW,
                           .side = OB_SELL,
                           .contract = 7,
                           .sequence = 1,
                           .contract_sequence = 1,
                           .price = 100,
                           .remaining = 10};
  append(world, &event);
  struct holdback_event text = {.sequence = 2, .key = {"7", 1}, .payload = {"an order", 8}};
  OK(world, holdback_append(world->appender, 0, &text, &world->error));
  event.sequence = event.contract_sequence = 3;
  event.type = OB_DELETED;
  event.remaining = 11;
  append(world, &event);
  event.sequence = event.contract_sequence = 4;
  event.remaining = 4;
  append(world, &event);
  flush(world);
  struct holdback_processor_result result;
  struct ob_depth depth;
  assert_true(next_result(world, &result));
  assert_true(next_result(world, &result));
  assert_int_equal(result.cause_position, 4);
  assert_null(ob_depth_decode(result.payload.data, result.payload.size, &depth));
  assert_int_equal(ob_depth_level(&depth, 0).quantity, 6);
  assert_string_equal(wait_processed(world, 5).failure,
                      "2 3 quantity: 10 at price 100 can't change by -11");
}

/* Parameters that are none are refused at attach, each with what it may be. */
static void parameters(void **state) {
  struct world *world = *state;
  static const struct {
    const char *name, *value, *why;
  } wrong[] = {{"depth", "0", "from 1 to 1024"},       {"depth", "1025", "from 1 to 1024"},
               {"depth", "5x", "from 1 to 1024"},      {"depth", "", "from 1 to 1024"},
               {"last_trade", "yes", "true or false"}, {"levels", "5", "depth and last_trade"}};
  open_stream(world, "parameters");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(attach(world, "orderbook", wrong[i].name, wrong[i].value),
                     HOLDBACK_INVALID_ARGUMENT);
    if (!strstr(world->error.message, wrong[i].why)) fail_msg("%s", world->error.message);
  }
  OK(world, attach(world, "orderbook", "last_trade", "false"));
}

/* ---- a feed */

static void send_range(struct world *world, const struct ob_feed *feed, const uint32_t *order,
                       size_t from, size_t end) {
  for (size_t i = from; i < end; i++) append(world, &feed->events[order[i]]);
}

/* A shuffled feed with a SIGKILL of the server in the middle: every result is the one that the feed
 * in order gives, each once, to a subscriber that reads all of them and to one that comes later. */
static void killed_in_the_middle(void **state) {
  struct world *world = *state;
  struct ob_feed feed;
  struct ob_judge judge;
  struct hbt_rng rng = hbt_rng_start("killed_in_the_middle");
  ob_feed_make(&(struct ob_feed_options){4000, 15, hbt_rng_next(&rng)}, &feed);
  uint32_t *order = hb_calloc(feed.count, sizeof *order);
  hbt_rng_displace(&rng, order, feed.count, 700);
  open_stream(world, "killed");
  OK(world, attach(world, "orderbook", "depth", "4"));
  open_results(world);
  send_range(world, &feed, order, 0, feed.count / 2);
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  send_range(world, &feed, order, feed.count / 2, feed.count);
  flush(world);
  OK(world, holdback_stream_seal(world->client, "killed", (int64_t)feed.count + 1, &world->error));
  for (int reader = 0; reader < 2; reader++) {
    struct holdback_processor_result result;
    ob_judge_init(&judge, &feed, 4);
    while (next_result(world, &result)) assert_true(ob_judge_take(&judge, &result));
    assert_true(ob_judge_finish(&judge));
    ob_judge_done(&judge);
    holdback_subscription_destroy(world->results);
    world->message = NULL;
    open_results(world);
  }
  free(order);
  ob_feed_done(&feed);
}

/* The small one of README.md: each result is what its contract traded up to there. */
static void volume(void **state) {
  struct world *world = *state;
  struct ob_feed feed;
  ob_feed_make(&(struct ob_feed_options){500, 3, 1}, &feed);
  open_stream(world, "volume");
  assert_int_equal(attach(world, "volume", "depth", "1"), HOLDBACK_INVALID_ARGUMENT);
  assert_non_null(strstr(world->error.message, "no parameters"));
  OK(world, attach(world, "volume", NULL, NULL));
  open_results(world);
  for (size_t i = feed.count; i-- > 0;) append(world, &feed.events[i]);
  flush(world);
  OK(world, holdback_stream_seal(world->client, "volume", (int64_t)feed.count + 1, &world->error));
  int64_t traded[3] = {0};
  struct holdback_processor_result result;
  for (size_t i = 0; i < feed.count; i++) {
    const struct ob_event *event = &feed.events[i];
    if (event->type != OB_EXECUTED) continue;
    assert_true(next_result(world, &result));
    assert_int_equal(result.cause_position, event->sequence);
    assert_int_equal(result.payload.size, 8);
    traded[event->contract - 1] += event->filled;
    assert_int_equal(ob_get_i64(result.payload.data), traded[event->contract - 1]);
  }
  assert_false(next_result(world, &result));
  ob_feed_done(&feed);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  processor_dir = dirname(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ob1_to_ob5, setup, teardown),
      cmocka_unit_test_setup_teardown(impossible_events, setup, teardown),
      cmocka_unit_test_setup_teardown(parameters, setup, teardown),
      cmocka_unit_test_setup_teardown(killed_in_the_middle, setup, teardown),
      cmocka_unit_test_setup_teardown(volume, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
