/* Beam's cases for global sequences, by their ids, from a producer's calls to results, statuses and
 * ranges, with a loaded processor. docs/CONFORMANCE.md tells what each shows, and where Holdback
 * differs. Each case runs as its events arrive in the table, then a few times shuffled: results and
 * what is refused must be the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>

#include "base/clock.h"
#include "client/holdback.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

static const char *holdbackd;
static char processors[512];

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *client;
  struct hbt_rng rng;
  int streams;
};

static void connect_client(struct world *world) {
  struct holdback_options options = {.server = world->server.listen};
  struct holdback_error error;
  assert_int_equal(holdback_client_create(&options, &world->client, &error), HOLDBACK_OK);
}

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "conformance");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->server.flags[0] = "--processor-dir";
  world->server.flags[1] = processors;
  world->rng = hbt_rng_start("conformance");
  *state = world;
  if (!hbt_server_start(&world->server)) return -1;
  connect_client(world);
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  holdback_client_destroy(world->client);
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

/* ---- cases */

enum { EVENTS_MAX = 320, KEYS_MAX = 3 };

struct sent {
  int64_t sequence;
  const char *key;
  const char *payload;
};

/* A status of Beam's: last processed, buffered, earliest, latest, received, results, duplicates;
 * and beside it what Beam tells as unprocessed events: failed, rejected. */
struct status {
  const char *key; /* NULL ends the list */
  int64_t last;    /* NONE: nothing was processed */
  uint64_t waiting;
  int64_t earliest;
  int64_t latest;
  uint64_t received;
  uint64_t results;
  uint64_t duplicates;
  uint64_t failed;
  uint64_t rejected;
};
#define NONE INT64_MIN

struct gs_case {
  const char *id;
  int64_t first;
  const char *every;      /* F */
  struct sent events[12]; /* key NULL ends them */
  const char *results;    /* "key payload key payload ...", in the order of causes */
  int64_t complete_to;
  struct status statuses[KEYS_MAX + 1];
};

static const struct gs_case CASES[] = {
    {"GS1",
     0,
     "1",
     {{0, "k1", "a"},
      {1, "k1", "b"},
      {2, "k1", "c"},
      {3, "k1", "d"},
      {4, "k2", "a"},
      {5, "k2", "b"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab",
     6,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0}, {"k2", 5, 0, 0, 0, 2, 2, 0, 0, 0}}},
    {"GS2",
     0,
     "1",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {5, "k2", "b"},
      {6, "k2", "c"},
      {8, "k2", "e"},
      {4, "k2", "a"},
      {7, "k2", "d"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab k2 abc k2 abcd k2 abcde",
     9,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0}, {"k2", 8, 0, 0, 0, 5, 5, 0, 0, 0}}},
    {"GS3",
     0,
     "1",
     {{3, "k1", "d"},
      {2, "k1", "c"},
      {3, "k1", "d"},
      {3, "k1", "d"},
      {0, "k1", "a"},
      {1, "k1", "b"},
      {1, "k1", "b"},
      {3, "k1", "d"}},
     "k1 a k1 ab k1 abc k1 abcd",
     4,
     {{"k1", 3, 0, 0, 0, 8, 4, 4, 0, 0}}},
    {"GS4",
     0,
     "1",
     {{3, "k1", "d"},
      {2, "k1", "c"},
      {-1, "k1", "early-1"},
      {-2, "k1", "early-2"},
      {0, "k1", "a"},
      {1, "k1", "b"}},
     "k1 a k1 ab k1 abc k1 abcd",
     4,
     {{"k1", 3, 0, 0, 0, 6, 4, 0, 0, 2}}},
    {"GS5",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "BAD"}, {3, "k1", "c"}},
     "k1 a k1 ab k1 abc",
     4,
     {{"k1", 3, 0, 0, 0, 4, 3, 0, 1, 0}}},
    {"GS6",
     0,
     "2",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {4, "k2", "a"},
      {5, "k2", "b"}},
     "k1 a k1 abc k2 a",
     6,
     {{"k1", 3, 0, 0, 0, 4, 2, 0, 0, 0}, {"k2", 5, 0, 0, 0, 2, 1, 0, 0, 0}}},
    {"GS8",
     1,
     "1",
     {{2, "k1", "2-"},
      {3, "k1", "3-"},
      {7, "k1", "7-"},
      {8, "k1", "8-"},
      {9, "k1", "9-"},
      {10, "k1", "10-"},
      {1, "k1", "1-"},
      {4, "k1", "4-"},
      {5, "k1", "5-"},
      {6, "k1", "6-"}},
     "k1 1- k1 1-2- k1 1-2-3- k1 1-2-3-4- k1 1-2-3-4-5- k1 1-2-3-4-5-6- k1 1-2-3-4-5-6-7- "
     "k1 1-2-3-4-5-6-7-8- k1 1-2-3-4-5-6-7-8-9- k1 1-2-3-4-5-6-7-8-9-10-",
     11,
     {{"k1", 10, 0, 0, 0, 10, 10, 0, 0, 0}}},
    {"GS9",
     0,
     "1",
     {{1, "k1", "b"}, {0, "k1", "a"}, {INT64_MAX, "k1", "d"}, {2, "k1", "c"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 4, 3, 0, 0, 1}}},
    {"GS10",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "z"}},
     "k1 a k1 ab k1 abz",
     3,
     {{"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0}}},
    {"GS11 window 1, distinct sequences",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k2", "x"}, {3, "k2", "y"}, {4, "k2", "z"}},
     "k1 a k1 ab k2 x k2 xy k2 xyz",
     5,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0}, {"k2", 4, 0, 0, 0, 3, 3, 0, 0, 0}}},
    {"GS11 window 2",
     0,
     "1",
     {{0, "k1", "c"}, {1, "k1", "d"}},
     "k1 c k1 cd",
     2,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0}}},
    {"GS12",
     1,
     "1",
     {{1, "A", "1"}, {2, "B", "2"}, {3, "A", "3"}, {4, "A", "4"}, {5, "B", "5"}, {7, "B", "7"}},
     "A 1 B 2 A 13 A 134 B 25",
     6,
     {{"A", 4, 0, 0, 0, 3, 3, 0, 0, 0}, {"B", 5, 1, 7, 7, 3, 2, 0, 0, 0}}},
    {"X8",
     0,
     "1",
     {{-5, "k2", "x"}, {0, "k1", "a"}},
     "k1 a",
     1,
     {{"k1", 0, 0, 0, 0, 1, 1, 0, 0, 0}, {"k2", NONE, 0, 0, 0, 1, 0, 0, 0, 1}}},
    {"X9",
     0,
     "1",
     {{-5, "k2", "x"}, {0, "k1", "a"}, {1, "k1", "b"}, {2, "k2", "c"}},
     "k1 a k1 ab k2 c",
     3,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0}, {"k2", 2, 0, 0, 0, 2, 1, 0, 0, 1}}},
    {"X10",
     0,
     "1",
     {{2, "k1", "c"}, {0, "k1", "a"}, {1, "k1", "b"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0}}},
    {"X11",
     INT64_MIN,
     "1",
     {{INT64_MIN + 1, "k1", "b"}, {INT64_MIN, "k1", "a"}},
     "k1 a k1 ab",
     INT64_MIN + 2,
     {{"k1", INT64_MIN + 1, 0, 0, 0, 2, 2, 0, 0, 0}}},
};

/* ---- running one */

static struct holdback_bytes text(const char *text) {
  return (struct holdback_bytes){text, strlen(text)};
}

static void must(int status, const struct holdback_error *error) {
  if (status != HOLDBACK_OK) fail_msg("%s", error->message);
}

static void attach(struct world *world, const char *stream, int64_t first, const char *every) {
  struct holdback_error error;
  struct holdback_stream_config config = {.name = stream, .first_sequence = first};
  must(holdback_stream_create(world->client, &config, &error), &error);
  struct holdback_parameter parameter = {.name = "every", .value = text(every)};
  struct holdback_processor_config processor = {.name = "p",
                                                .processor = "ordered",
                                                .parameters = &parameter,
                                                .parameters_count = 1,
                                                .key_status = HOLDBACK_KEY_STATUS_KEPT};
  must(holdback_processor_attach(world->client, stream, &processor, false, &error), &error);
}

static void take_outcome(void *context, const struct holdback_result *result) {
  *(int *)context = result->outcome;
}

/* One event, as a batch of its own; its outcome. */
static int send(struct world *world, const char *stream, const struct sent *event) {
  int outcome = 0;
  struct holdback_error error;
  struct holdback_appender *appender;
  struct holdback_appender_options options = {
      .stream = stream, .on_result = take_outcome, .context = &outcome};
  must(holdback_appender_create(world->client, &options, &appender, &error), &error);
  struct holdback_event encoded = {
      .sequence = event->sequence, .key = text(event->key), .payload = text(event->payload)};
  must(holdback_append(appender, 0, &encoded, &error), &error);
  must(holdback_appender_flush(appender, &error), &error);
  holdback_appender_destroy(appender);
  return outcome;
}

/* Which outcome it must have after those that were sent before it. */
static int expected_outcome(const struct gs_case *row, const struct sent *events, size_t index) {
  const struct sent *event = &events[index];
  if (event->sequence == INT64_MAX) return HOLDBACK_OUT_OF_RANGE_EVENT;
  if (event->sequence < row->first) return HOLDBACK_BEFORE_FIRST;
  for (size_t i = 0; i < index; i++) {
    if (events[i].sequence == event->sequence) return HOLDBACK_DUPLICATE;
  }
  return HOLDBACK_STORED;
}

struct results {
  char text[60000];
  size_t count;
};

/* Until `count` results came, then until it is caught up: none must follow. */
static void read_results(struct world *world, const char *stream, size_t count,
                         struct results *out) {
  struct holdback_error error;
  struct holdback_subscription *subscription;
  struct holdback_subscribe_options options = {.stream = stream,
                                               .processor = "p",
                                               .start = HOLDBACK_START_EARLIEST,
                                               .progress_interval_ms = 20};
  must(holdback_subscribe(world->client, &options, &subscription, &error), &error);
  *out = (struct results){.count = 0};
  size_t used = 0;
  for (bool caught_up = false; out->count < count || !caught_up;) {
    const struct holdback_message *message;
    must(holdback_next(subscription, 20000, &message, &error), &error);
    assert_non_null(message);
    size_t cursor = 0;
    struct holdback_processor_result result;
    while (holdback_message_result(message, &cursor, &result)) {
      assert_int_equal(result.position, out->count++);
      used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s%.*s %.*s",
                               used ? " " : "", (int)result.key.size, (const char *)result.key.data,
                               (int)result.payload.size, (const char *)result.payload.data);
    }
    struct holdback_progress progress;
    if (holdback_message_progress(message, &progress)) caught_up = progress.caught_up;
  }
  holdback_subscription_destroy(subscription);
}

static size_t count_results(const char *results) {
  size_t words = *results ? 1 : 0;
  for (const char *at = results; *at; at++) words += *at == ' ';
  return words / 2;
}

static bool is_status(const struct holdback_key_status *is, const struct status *wanted) {
  bool waits = wanted->waiting > 0;
  return is->has_last_processed == (wanted->last != NONE) &&
         (wanted->last == NONE || is->last_processed == wanted->last) && is->has_waiting &&
         is->waiting == wanted->waiting && (!waits || is->earliest_waiting == wanted->earliest) &&
         (!waits || is->latest_waiting == wanted->latest) && is->received == wanted->received &&
         is->results == wanted->results && is->duplicates == wanted->duplicates &&
         is->failed == wanted->failed && is->rejected == wanted->rejected;
}

/* Refusals are counted after they were answered: within 20 s. */
static void check_status(struct world *world, const char *id, const char *stream,
                         const struct status *wanted) {
  struct holdback_key_status is;
  struct holdback_error error;
  uint64_t until_ms = hb_clock_mono_ms() + 20000;
  do {
    must(holdback_key_status(world->client, stream, "p", text(wanted->key), &is, &error), &error);
    if (is_status(&is, wanted)) return;
    (void)poll(NULL, 0, 2);
  } while (hb_clock_mono_ms() < until_ms);
  fail_msg("%s, %s: (%" PRId64 ", %" PRIu64 ", %" PRId64 ", %" PRId64 ", %" PRIu64 ", %" PRIu64
           ", %" PRIu64 "), failed %" PRIu64 ", rejected %" PRIu64,
           id, wanted->key, is.last_processed, is.waiting, is.earliest_waiting, is.latest_waiting,
           is.received, is.results, is.duplicates, is.failed, is.rejected);
}

static void check(struct world *world, const struct gs_case *row, const char *stream) {
  struct results results;
  read_results(world, stream, count_results(row->results), &results);
  if (strcmp(results.text, row->results) != 0) {
    fail_msg("%s: '%s', should be '%s'", row->id, results.text, row->results);
  }
  struct holdback_error error;
  struct holdback_stream_status status;
  must(holdback_stream_get(world->client, stream, NULL, &status, &error), &error);
  assert_int_equal(status.first_sequence, row->first);
  assert_int_equal(status.complete_to, row->complete_to);
  for (const struct status *wanted = row->statuses; wanted->key; wanted++) {
    check_status(world, row->id, stream, wanted);
  }
}

static void name_stream(struct world *world, char out[32]) {
  (void)snprintf(out, 32, "case-%d", ++world->streams);
}

static void shuffle(struct hbt_rng *rng, struct sent *events, size_t count) {
  for (size_t i = count; i > 1; i--) {
    size_t other = (size_t)hbt_rng_below(rng, i);
    struct sent kept = events[i - 1];
    events[i - 1] = events[other];
    events[other] = kept;
  }
}

static void run_case(struct world *world, const struct gs_case *row, bool shuffled) {
  char stream[32];
  struct sent events[12];
  size_t count = 0;
  while (count < 12 && row->events[count].key) count++;
  memcpy(events, row->events, sizeof events);
  if (shuffled) shuffle(&world->rng, events, count);
  name_stream(world, stream);
  attach(world, stream, row->first, row->every);
  for (size_t i = 0; i < count; i++) {
    int outcome = send(world, stream, &events[i]);
    if (outcome != expected_outcome(row, events, i)) {
      fail_msg("%s: event %zu, %" PRId64 ": %s", row->id, i, events[i].sequence,
               holdback_outcome_name(outcome));
    }
  }
  check(world, row, stream);
}

/* As Beam's streaming tests send them, and in any other order, as its batch tests do. */
static void test_cases(void **state) {
  enum { SHUFFLED = 3 };
  struct world *world = *state;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    for (int run = 0; run <= SHUFFLED; run++) run_case(world, &CASES[i], run > 0);
  }
}

/* What a case left is the same after a kill. */
static void test_killed(void **state) {
  struct world *world = *state;
  size_t count = sizeof CASES / sizeof *CASES;
  for (size_t i = 0; i < count; i++) run_case(world, &CASES[i], true);
  holdback_client_destroy(world->client);
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  connect_client(world);
  for (size_t i = 0; i < count; i++) {
    char stream[32];
    (void)snprintf(stream, sizeof stream, "case-%zu", i + 1);
    check(world, &CASES[i], stream);
  }
}

/* GS7: 300 events of one key wait for the first; then one result each, in order. */
static void test_gs7(void **state) {
  struct world *world = *state;
  enum { EVENTS = 300 };
  char stream[32];
  name_stream(world, stream);
  attach(world, stream, 1, "1");
  struct sent event = {.key = "k1", .payload = "."};
  for (event.sequence = 2; event.sequence <= EVENTS; event.sequence++) {
    assert_int_equal(send(world, stream, &event), HOLDBACK_STORED);
  }
  struct status waiting = {"k1", NONE, 299, 2, 300, 299, 0, 0, 0, 0};
  check_status(world, "GS7", stream, &waiting);
  event.sequence = 1;
  assert_int_equal(send(world, stream, &event), HOLDBACK_STORED);
  struct results results;
  read_results(world, stream, EVENTS, &results);
  const char *at = results.text;
  for (int i = 1; i <= EVENTS; i++) {
    char expected[EVENTS + 4];
    memcpy(expected, "k1 ", 3);
    memset(expected + 3, '.', (size_t)i);
    assert_memory_equal(at, expected, (size_t)i + 3);
    at += i + 4;
  }
  struct status done = {"k1", EVENTS, 0, 0, 0, EVENTS, EVENTS, 0, 0, 0};
  check_status(world, "GS7", stream, &done);
}

/* GS11 as it is written: the same number under another key is another content, so CONFLICT. */
static void test_gs11(void **state) {
  struct world *world = *state;
  static const struct sent EVENTS[] = {
      {0, "k1", "a"}, {1, "k1", "b"}, {0, "k2", "x"}, {1, "k2", "y"}, {2, "k2", "z"}};
  char stream[32];
  name_stream(world, stream);
  attach(world, stream, 0, "1");
  for (size_t i = 0; i < 5; i++) {
    bool conflict = i == 2 || i == 3;
    assert_int_equal(send(world, stream, &EVENTS[i]),
                     conflict ? HOLDBACK_CONFLICT : HOLDBACK_STORED);
  }
  struct results results;
  read_results(world, stream, 3, &results);
  assert_string_equal(results.text, "k1 a k1 ab k2 z");
  struct status second = {"k2", 2, 0, 0, 0, 3, 1, 0, 0, 2};
  check_status(world, "GS11", stream, &second);
}

/* AM8, X12: two statements of where a stream begins that differ are an error that names both. */
static void test_am8(void **state) {
  struct world *world = *state;
  struct holdback_error error;
  struct holdback_stream_config config = {.name = "two-initials", .first_sequence = 1};
  must(holdback_stream_create(world->client, &config, &error), &error);
  config.first_sequence = 3;
  assert_int_equal(holdback_stream_create(world->client, &config, &error), HOLDBACK_ALREADY_EXISTS);
  assert_non_null(strstr(error.message, "first_sequence"));
  assert_non_null(strstr(error.message, "1"));
  assert_non_null(strstr(error.message, "3"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  (void)snprintf(processors, sizeof processors, "%s", argv[2]);
  *strrchr(processors, '/') = '\0';
  const struct CMUnitTest tests[] = {TEST(test_cases), TEST(test_killed), TEST(test_gs7),
                                     TEST(test_gs11), TEST(test_am8)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
