/* Beam's cases for a sequence per key, by their ids, from a producer's calls to results and
 * statuses, with a loaded processor. docs/CONFORMANCE.md tells what each shows, and where Holdback
 * differs. Each runs twice: keys begin at the first_sequence that is stated, or at an event flagged
 * `initial`. runner.h has how a row runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "tests/conformance/runner.h"

static const struct hbt_case CASES[] = {
    {"PK1",
     0,
     "1",
     {{0, "k1", "a"},
      {1, "k1", "b"},
      {2, "k1", "c"},
      {3, "k1", "d"},
      {0, "k2", "a"},
      {1, "k2", "b"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab",
     6,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0, 0}, {"k2", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
    {"PK2",
     0,
     "1",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {1, "k2", "b"},
      {2, "k2", "c"},
      {4, "k2", "e"},
      {0, "k2", "a"},
      {3, "k2", "d"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab k2 abc k2 abcd k2 abcde",
     9,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0, 0}, {"k2", 4, 0, 0, 0, 5, 5, 0, 0, 0, 0}}},
    {"PK3",
     0,
     "1",
     {{2, "k1", "c"}, {0, "k1", "a"}, {3, "k1", "d"}, {0, "k2", "a"}, {1, "k2", "b"}},
     "k1 a k2 a k2 ab",
     3,
     {{"k1", 0, 2, 2, 3, 3, 1, 0, 0, 0, 0}, {"k2", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
    {"PK4",
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
     {{"k1", 3, 0, 0, 0, 8, 4, 4, 0, 0, 0}}},
    /* The key waits at 2 for a good one. */
    {"PK5",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "BAD"}, {3, "k1", "c"}},
     "k1 a k1 ab",
     4,
     {{"k1", 1, 1, 3, 3, 4, 2, 0, 1, 0, 0}}},
    {"PK6",
     0,
     "2",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {0, "k2", "a"},
      {1, "k2", "b"}},
     "k1 a k1 abc k2 a",
     6,
     {{"k1", 3, 0, 0, 0, 4, 2, 0, 0, 0, 0}, {"k2", 1, 0, 0, 0, 2, 1, 0, 0, 0, 0}}},
    {"PK9",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {INT64_MAX, "k1", "c"}},
     "k1 a k1 ab",
     2,
     {{"k1", 1, 0, 0, 0, 3, 2, 0, 0, 1, 0}}},
    {"PK10",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "z"}},
     "k1 a k1 ab k1 abz",
     3,
     {{"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0, 1}}},
    {"X4",
     0,
     "1",
     {{2, "k1", "c"}, {-1, "k1", "x"}, {0, "k1", "a"}, {1, "k1", "b"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 4, 3, 0, 0, 1, 0}}},
    /* Whichever of the copies comes first is stored, the other one kept: 2 is processed once. */
    {"X5",
     0,
     "1",
     {{1, "k1", "b"}, {2, "k1", "BAD"}, {0, "k1", "a"}, {2, "k1", "c"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 4, 3, 0, 0, 1, 0}}},
    {"X6",
     0,
     "1",
     {{1, "k1", "b"}, {2, "k1", "BAD"}, {2, "k1", "c"}, {0, "k1", "a"}, {3, "k1", "d"}},
     "k1 a k1 ab k1 abc k1 abcd",
     4,
     {{"k1", 3, 0, 0, 0, 5, 4, 0, 0, 1, 0}}},
    {"X11",
     INT64_MIN,
     "1",
     {{INT64_MIN + 1, "k1", "b"}, {INT64_MIN, "k1", "a"}},
     "k1 a k1 ab",
     2,
     {{"k1", INT64_MIN + 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
};

/* As Beam's streaming tests send them, and in any other order, as its batch tests do. */
static void test_cases(void **state) {
  hbt_run_cases(*state, CASES, sizeof CASES / sizeof *CASES, HBT_PER_KEY);
}

static void test_cases_initial(void **state) {
  hbt_run_cases(*state, CASES, sizeof CASES / sizeof *CASES, HBT_PER_KEY_SEEN);
}

/* What a case left is the same after a kill. */
static void test_killed(void **state) {
  hbt_run_killed(*state, CASES, sizeof CASES / sizeof *CASES, HBT_PER_KEY);
}

static void test_killed_initial(void **state) {
  hbt_run_killed(*state, CASES, sizeof CASES / sizeof *CASES, HBT_PER_KEY_SEEN);
}

/* ---- a status after every event */

/* How a key stands after each arrival; and what was told in the end. */
struct steps {
  const char *id;
  int64_t first;
  struct {
    struct hbt_sent event;
    struct hbt_standing after;
  } steps[HBT_EVENTS_MAX]; /* a NULL key ends them */
  const char *results;
  struct hbt_standing told[HBT_EVENTS_MAX]; /* likewise */
};

/* PK8's results are dots in Beam; digits show the order too. Beam cuts them after 3, so its last
 * status but one says that 8 is processed. */
static const struct steps STEPS[] = {
    {"PK8",
     1,
     {{{2, "k1", "2"}, {"k1", HBT_NONE, 1, 2, 2, 1, 0, 0, 0, 0, 0}},
      {{3, "k1", "3"}, {"k1", HBT_NONE, 2, 2, 3, 2, 0, 0, 0, 0, 0}},
      {{7, "k1", "7"}, {"k1", HBT_NONE, 3, 2, 7, 3, 0, 0, 0, 0, 0}},
      {{8, "k1", "8"}, {"k1", HBT_NONE, 4, 2, 8, 4, 0, 0, 0, 0, 0}},
      {{9, "k1", "9"}, {"k1", HBT_NONE, 5, 2, 9, 5, 0, 0, 0, 0, 0}},
      {{10, "k1", "A"}, {"k1", HBT_NONE, 6, 2, 10, 6, 0, 0, 0, 0, 0}},
      {{1, "k1", "1"}, {"k1", 3, 4, 7, 10, 7, 3, 0, 0, 0, 0}},
      {{4, "k1", "4"}, {"k1", 4, 4, 7, 10, 8, 4, 0, 0, 0, 0}},
      {{5, "k1", "5"}, {"k1", 5, 4, 7, 10, 9, 5, 0, 0, 0, 0}},
      {{6, "k1", "6"}, {"k1", 10, 0, 0, 0, 10, 10, 0, 0, 0, 0}}},
     "k1 1 k1 12 k1 123 k1 1234 k1 12345 k1 123456 k1 1234567 k1 12345678 k1 123456789 "
     "k1 123456789A",
     {{"k1", 1, 0, 0, 0, 0, 1, 0, 0, 0, 0},
      {"k1", 2, 0, 0, 0, 0, 2, 0, 0, 0, 0},
      {"k1", 3, 0, 0, 0, 0, 3, 0, 0, 0, 0},
      {"k1", 4, 0, 0, 0, 0, 4, 0, 0, 0, 0},
      {"k1", 5, 0, 0, 0, 0, 5, 0, 0, 0, 0},
      {"k1", 6, 0, 0, 0, 0, 6, 0, 0, 0, 0},
      {"k1", 7, 0, 0, 0, 0, 7, 0, 0, 0, 0},
      {"k1", 8, 0, 0, 0, 0, 8, 0, 0, 0, 0},
      {"k1", 9, 0, 0, 0, 0, 9, 0, 0, 0, 0},
      {"k1", 10, 0, 0, 0, 0, 10, 0, 0, 0, 0}}},
    {"PK11, window [0, 5)",
     0,
     {{{0, "k1", "a"}, {"k1", 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}},
      {{1, "k1", "b"}, {"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}},
      {{0, "k2", "x"}, {"k2", 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}},
      {{1, "k2", "y"}, {"k2", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}},
      {{2, "k2", "z"}, {"k2", 2, 0, 0, 0, 3, 3, 0, 0, 0, 1}}},
     "k1 a k1 ab k2 x k2 xy k2 xyz",
     {{"k1", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
      {"k1", 1, 0, 0, 0, 0, 2, 0, 0, 0, 0},
      {"k2", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
      {"k2", 1, 0, 0, 0, 0, 2, 0, 0, 0, 0},
      {"k2", 2, 0, 0, 0, 0, 3, 0, 0, 0, 1}}},
    {"PK11, window [10, 15)",
     0,
     {{{0, "k1", "c"}, {"k1", 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}},
      {{1, "k1", "d"}, {"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
     "k1 c k1 cd",
     {{"k1", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {"k1", 1, 0, 0, 0, 0, 2, 0, 0, 0, 0}}},
    {"X7",
     0,
     {{{2, "k1", "z"}, {"k1", HBT_NONE, 1, 2, 2, 1, 0, 0, 0, 0, 1}},
      {{0, "k1", "a"}, {"k1", 0, 1, 2, 2, 2, 1, 0, 0, 0, 1}},
      {{1, "k1", "b"}, {"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0, 1}}},
     "k1 a k1 ab k1 abz",
     {{"k1", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
      {"k1", 1, 0, 0, 0, 0, 2, 0, 0, 0, 0},
      {"k1", 2, 0, 0, 0, 0, 3, 0, 0, 0, 1}}},
};
enum { STEPS_COUNT = sizeof STEPS / sizeof *STEPS };

static void check_end(struct hbt_conformance *world, const struct steps *row, const char *stream) {
  size_t told = 0;
  while (told < HBT_EVENTS_MAX && row->told[told].key) told++;
  hbt_check_results(world, row->id, stream, HBT_PER_KEY, row->results);
  hbt_check_told(world, row->id, stream, row->told, told);
}

static void run_steps(struct hbt_conformance *world, const struct steps *row, enum hbt_mode mode) {
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, mode, row->first, "1", HOLDBACK_KEY_STATUS_EVERY_EVENT);
  for (size_t i = 0; i < HBT_EVENTS_MAX && row->steps[i].event.key; i++) {
    const struct hbt_sent *event = &row->steps[i].event;
    bool initial = mode == HBT_PER_KEY_SEEN && event->sequence == row->first;
    assert_int_equal(hbt_send(world, stream, mode, event, initial), HOLDBACK_STORED);
    hbt_check_standing(world, row->id, stream, &row->steps[i].after);
  }
  check_end(world, row, stream);
}

/* GetKeyStatus after each arrival says what Beam tells; told is each event that was processed, once
 * for all, so that a kill changes nothing. */
static void every_event(struct hbt_conformance *world, enum hbt_mode mode) {
  for (size_t i = 0; i < STEPS_COUNT; i++) run_steps(world, &STEPS[i], mode);
  hbt_conformance_kill_and_start(world);
  for (size_t i = 0; i < STEPS_COUNT; i++) {
    char stream[32];
    check_end(world, &STEPS[i], hbt_name((int)i + 1, stream));
  }
}

static void test_every_event(void **state) { every_event(*state, HBT_PER_KEY); }

static void test_every_event_initial(void **state) { every_event(*state, HBT_PER_KEY_SEEN); }

/* PK7: 300 events of one key wait for the first, one more in each status; then one result each. */
static void test_pk7(void **state) {
  struct hbt_conformance *world = *state;
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_PER_KEY, 1, "1", HOLDBACK_KEY_STATUS_EVERY_EVENT);
  struct hbt_sent event = {.key = "k1", .payload = "."};
  for (uint64_t n = 1; n < HBT_DOTS; n++) {
    event.sequence = (int64_t)n + 1;
    assert_int_equal(hbt_send(world, stream, HBT_PER_KEY, &event, false), HOLDBACK_STORED);
    struct hbt_standing waiting = {"k1", HBT_NONE, n, 2, event.sequence, n, 0, 0, 0, 0, 0};
    hbt_check_standing(world, "PK7", stream, &waiting);
  }
  event.sequence = 1;
  assert_int_equal(hbt_send(world, stream, HBT_PER_KEY, &event, false), HOLDBACK_STORED);
  struct hbt_standing done = {"k1", HBT_DOTS, 0, 0, 0, HBT_DOTS, HBT_DOTS, 0, 0, 0, 0};
  hbt_check_standing(world, "PK7", stream, &done);
  hbt_check_dots(world, "PK7", stream, HBT_DOTS);
  struct hbt_standing told[HBT_DOTS];
  for (size_t i = 0; i < HBT_DOTS; i++) {
    told[i] = (struct hbt_standing){.key = "k1", .last = (int64_t)i + 1, .results = i + 1};
  }
  hbt_check_told(world, "PK7", stream, told, HBT_DOTS);
}

/* A key whose event left a bundle in which another key's still waits has nothing that waits. */
static void test_shared_bundle(void **state) {
  struct hbt_conformance *world = *state;
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_PER_KEY, 0, "1", HOLDBACK_KEY_STATUS_KEPT);
  struct holdback_error error;
  struct holdback_appender *appender;
  struct holdback_appender_options options = {.stream = stream};
  hbt_must(holdback_appender_create(world->client, &options, &appender, &error), &error);
  static const struct hbt_sent HELD[] = {{1, "k1", "b"}, {2, "k2", "c"}, {5, "k2", "f"}};
  for (size_t i = 0; i < sizeof HELD / sizeof *HELD; i++) {
    struct holdback_event event = {.sequence = HELD[i].sequence,
                                   .key = hbt_text(HELD[i].key),
                                   .payload = hbt_text(HELD[i].payload)};
    hbt_must(holdback_append(appender, 0, &event, &error), &error);
  }
  hbt_must(holdback_appender_flush(appender, &error), &error);
  holdback_appender_destroy(appender);
  struct hbt_sent first = {0, "k1", "a"};
  assert_int_equal(hbt_send(world, stream, HBT_PER_KEY, &first, false), HOLDBACK_STORED);
  struct hbt_standing out = {"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0};
  struct hbt_standing held = {"k2", HBT_NONE, 2, 2, 5, 2, 0, 0, 0, 0, 0};
  hbt_check_standing(world, "shared bundle", stream, &out);
  hbt_check_standing(world, "shared bundle", stream, &held);
}

/* ---- keys that wait */

static bool see_processor(void *context, const struct holdback_processor_config *config,
                          const struct holdback_processor_status *status) {
  (void)config;
  *(struct holdback_processor_status *)context = *status;
  return true;
}

static struct holdback_processor_status processor_of(struct hbt_conformance *world,
                                                     const char *stream) {
  struct holdback_error error;
  struct holdback_processor_status status;
  hbt_must(holdback_processor_list(world->client, stream, "p", see_processor, &status, &error),
           &error);
  return status;
}

static void send(struct hbt_conformance *world, const char *stream, int64_t sequence,
                 const char *key, const char *payload, int outcome) {
  struct hbt_sent event = {sequence, key, payload};
  assert_int_equal(hbt_send(world, stream, HBT_PER_KEY, &event, false), outcome);
}

/* PK5, then X6's copies, one step after the other: the status says where the key waits; a copy that
 * fails too changes nothing, the good one behind it is taken, and what waited follows; other keys
 * never noticed. Each failure counted once, and a kill changes nothing. */
static void test_waiting(void **state) {
  struct hbt_conformance *world = *state;
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_PER_KEY, 0, "1", HOLDBACK_KEY_STATUS_KEPT);
  send(world, stream, 0, "k1", "a", HOLDBACK_STORED);
  send(world, stream, 1, "k1", "BAD", HOLDBACK_STORED);
  send(world, stream, 2, "k1", "c", HOLDBACK_STORED);
  send(world, stream, 0, "k2", "x", HOLDBACK_STORED);
  struct hbt_standing waiting = {"k1", 0, 1, 2, 2, 3, 1, 0, 1, 0, 0};
  hbt_check_standing(world, "waiting", stream, &waiting);
  struct holdback_key_status status;
  struct holdback_error error;
  hbt_must(holdback_key_status(world->client, stream, "p", hbt_text("k1"), &status, &error),
           &error);
  assert_true(status.has_blocked_at);
  assert_int_equal(status.blocked_at, 1);
  assert_int_equal(processor_of(world, stream).blocked_keys, 1);
  hbt_check_results(world, "waiting", stream, HBT_PER_KEY, "k1 a k2 x");

  struct holdback_retried retried;
  struct holdback_bytes k2 = hbt_text("k2");
  hbt_must(holdback_retry_blocked(world->client, stream, "p", &k2, &retried, &error), &error);
  assert_int_equal(retried.tried, 0);
  hbt_must(holdback_retry_blocked(world->client, stream, "p", NULL, &retried, &error), &error);
  assert_int_equal(retried.tried, 1);
  assert_int_equal(retried.processed, 0);
  assert_int_equal(retried.blocked, 1);
  assert_non_null(strstr(retried.reason, "Validation failed"));
  assert_int_equal(processor_of(world, stream).failed, 1);

  hbt_conformance_kill_and_start(world);
  send(world, stream, 1, "k1", "b", HOLDBACK_CONFLICT);
  struct hbt_standing good = {"k1", 2, 0, 0, 0, 4, 3, 0, 0, 1, 0};
  hbt_check_standing(world, "waiting", stream, &good);
  hbt_check_results(world, "waiting", stream, HBT_PER_KEY, "k1 a k1 ab k1 abc k2 x");
  hbt_must(holdback_key_status(world->client, stream, "p", hbt_text("k1"), &status, &error),
           &error);
  assert_false(status.has_blocked_at);
  assert_int_equal(processor_of(world, stream).blocked_keys, 0);
  assert_int_equal(processor_of(world, stream).failed, 1);
  hbt_must(holdback_retry_blocked(world->client, stream, "p", NULL, &retried, &error), &error);
  assert_int_equal(retried.tried, 0);
}

/* X5 without a good event: the failed one is given up, and the key goes on as in GS5; a kill, a
 * copy that comes too late and other keys change nothing. */
static void test_given_up(void **state) {
  struct hbt_conformance *world = *state;
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_PER_KEY, 0, "1", HOLDBACK_KEY_STATUS_KEPT);
  send(world, stream, 1, "k1", "b", HOLDBACK_STORED);
  send(world, stream, 2, "k1", "BAD", HOLDBACK_STORED);
  send(world, stream, 0, "k1", "a", HOLDBACK_STORED);
  send(world, stream, 3, "k1", "d", HOLDBACK_STORED);
  struct hbt_standing waiting = {"k1", 1, 1, 3, 3, 4, 2, 0, 1, 0, 0};
  hbt_check_standing(world, "given up", stream, &waiting);
  hbt_conformance_kill_and_start(world);

  struct holdback_error error;
  struct holdback_skipped skipped;
  int64_t sequence = 1;
  assert_int_equal(holdback_skip_blocked(world->client, stream, "p", hbt_text("k1"), &sequence,
                                         &skipped, &error),
                   HOLDBACK_FAILED_PRECONDITION);
  sequence = 2;
  hbt_must(holdback_skip_blocked(world->client, stream, "p", hbt_text("k1"), &sequence, &skipped,
                                 &error),
           &error);
  assert_int_equal(skipped.skipped, 2);
  assert_false(skipped.has_blocked_at);
  assert_int_equal(skipped.blocked, 0);
  hbt_conformance_kill_and_start(world);
  send(world, stream, 2, "k1", "c", HOLDBACK_CONFLICT);
  send(world, stream, 4, "k1", "e", HOLDBACK_STORED);
  struct hbt_standing good = {"k1", 4, 0, 0, 0, 6, 4, 0, 1, 1, 0};
  hbt_check_standing(world, "given up", stream, &good);
  hbt_check_results(world, "given up", stream, HBT_PER_KEY, "k1 a k1 ab k1 abd k1 abde");
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, hbt_conformance_setup, hbt_conformance_teardown)

int main(int argc, char **argv) {
  if (!hbt_conformance_arguments(argc, argv)) return 2;
  const struct CMUnitTest tests[] = {TEST(test_cases),       TEST(test_cases_initial),
                                     TEST(test_killed),      TEST(test_killed_initial),
                                     TEST(test_every_event), TEST(test_every_event_initial),
                                     TEST(test_pk7),         TEST(test_shared_bundle),
                                     TEST(test_waiting),     TEST(test_given_up)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
