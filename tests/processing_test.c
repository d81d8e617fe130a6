/* Processors through the whole of it: the command, gRPC, the server, a kill, results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/command.h"
#include "tests/lib/server.h"

static const char *holdbackd;
static const char *holdback;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_command command;
};

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "processing");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->command = (struct hbt_command){holdback, world->server.listen};
  *state = world;
  return hbt_server_start(&world->server) ? 0 : -1;
}

static int teardown(void **state) {
  struct world *world = *state;
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

#define RUN(code, input, ...) hbt_command_expect(&world->command, code, input, __VA_ARGS__, NULL)
#define DO(code, input, ...) free(RUN(code, input, __VA_ARGS__))

static void expect(char *owned, const char *expected) {
  assert_string_equal(owned, expected);
  free(owned);
}

static json_t *info_of(struct world *world, const char *stream, const char *name) {
  char *text = RUN(0, NULL, "processor", "info", name, "-S", stream, "--json");
  json_error_t error;
  json_t *root = json_loads(text, 0, &error);
  assert_non_null(root);
  free(text);
  return root;
}

static const char shuffled[] =
    "{\"sequence\":3,\"key\":\"a\",\"payload\":\"2.5\"}\n"
    "{\"sequence\":2,\"key\":\"b\",\"payload\":\"x\"}\n"
    "{\"sequence\":4,\"key\":\"b\",\"payload\":\"7\",\"event_time\":\"2001-01-01T00:00:00Z\"}\n"
    "{\"sequence\":1,\"key\":\"a\",\"payload\":\"1\"}\n";

/* Attach, look, read results with their causes, seal, detach: what a user does. */
static void test_all_of_it(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "sums", "sum", "-S", "s");
  DO(0, NULL, "processor", "add", "sums", "sum", "-S", "s"); /* the same again */
  DO(0, NULL, "processor", "add", "all", "concat", "-S", "s", "-p", "separator=,", "-p",
     "emit=end");
  DO(0, shuffled, "send", "-S", "s", "-");
  static const char RESULTS[] =
      "{\"position\":0,\"key\":\"a\",\"payload\":\"1\",\"cause\":1,\"kind\":\"event\"}\n"
      "{\"position\":1,\"key\":\"a\",\"payload\":\"3.5\",\"cause\":3,\"kind\":\"event\"}\n"
      "{\"position\":2,\"key\":\"b\",\"event_time\":\"2001-01-01T00:00:00Z\",\"payload\":\"7\","
      "\"cause\":4,\"kind\":\"event\"}\n";
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "sums", "--count", "3"), RESULTS);
  json_t *info = info_of(world, "s", "sums");
  assert_string_equal(json_string_value(json_object_get(info, "state")), "RUNNING");
  assert_int_equal(json_integer_value(json_object_get(info, "position")), 5);
  assert_int_equal(json_integer_value(json_object_get(info, "lag")), 0);
  assert_int_equal(json_integer_value(json_object_get(info, "failed")), 1);
  assert_int_equal(json_integer_value(json_object_get(info, "last_failure_position")), 2);
  json_decref(info);
  /* A bounded stream: tail ends by itself, and what is for the end comes. */
  DO(0, NULL, "stream", "seal", "s");
  DO(0, NULL, "stream", "seal", "s", "--last", "4");
  DO(73, NULL, "stream", "seal", "s", "--last", "9");
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "sums"), RESULTS);
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "all"),
         "{\"position\":0,\"key\":\"a\",\"event_time\":\"2001-01-01T00:00:00Z\","
         "\"payload\":\"1,2.5\",\"cause\":5,\"kind\":\"end\"}\n"
         "{\"position\":1,\"key\":\"b\",\"event_time\":\"2001-01-01T00:00:00Z\","
         "\"payload\":\"x,7\",\"cause\":5,\"kind\":\"end\"}\n");
  char *events = RUN(0, NULL, "tail", "-S", "s");
  assert_non_null(strstr(events, "\"sequence\":4"));
  free(events);
  info = info_of(world, "s", "all");
  assert_string_equal(json_string_value(json_object_get(info, "state")), "ENDED");
  json_decref(info);
  DO(0, NULL, "processor", "rm", "sums", "-S", "s", "--drop");
  DO(69, NULL, "tail", "-S", "s", "--processor", "sums");
  char *list = RUN(0, NULL, "processor", "ls", "-S", "s");
  assert_null(strstr(list, "sums"));
  assert_non_null(strstr(list, "all"));
  free(list);
}

/* What was given out before a kill is given out again, the same, and processing goes on. */
static void test_killed(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "counts", "count", "-S", "s");
  char lines[6000];
  size_t size = 0;
  for (int i = 1; i <= 100; i++) {
    size += (size_t)snprintf(lines + size, sizeof lines - size,
                             "{\"sequence\":%d,\"key\":\"k%d\",\"payload\":\"\"}\n", i, i % 3);
  }
  DO(0, lines, "send", "-S", "s", "-");
  char *before = RUN(0, NULL, "tail", "-S", "s", "--processor", "counts", "--count", "100");
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "counts", "--count", "100"), before);
  free(before);
  DO(0, "{\"sequence\":101,\"key\":\"k0\",\"payload\":\"\"}\n", "send", "-S", "s", "-");
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "counts", "--from", "100", "--count", "1"),
         "{\"position\":100,\"key\":\"k0\",\"payload\":\"34\",\"cause\":101,\"kind\":\"event\"}\n");
}

static void expect_status(struct world *world, const char *key, const char *expected) {
  json_t *found = NULL;
  json_t *wanted = json_loads(expected, 0, NULL);
  assert_non_null(wanted);
  char *line = NULL;
  for (int i = 0; i < 500; i++) { /* refusals are counted after they were answered */
    free(line);
    json_decref(found);
    line = RUN(0, NULL, "keys", "-S", "s", "--processor", "p", "--key", key);
    found = json_loads(line, 0, NULL);
    if (json_equal(found, wanted)) break;
  }
  if (!json_equal(found, wanted)) fail_msg("is %s should be %s", line, expected);
  free(line);
  json_decref(found);
  json_decref(wanted);
}

/* How a key stands: what was processed, what failed, what waits and what was refused; the same
 * after a kill; and told after each event. */
static void test_key_status(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "p", "sum", "-S", "s", "--key-status", "event");
  DO(0, NULL, "processor", "add", "off", "sum", "-S", "s");
  expect_status(world, "a",
                "{\"key\":\"a\",\"last_processed\":null,\"processed\":0,\"failed\":0,\"results\":0,"
                "\"duplicates\":0,\"rejected\":0,\"waiting\":0,\"earliest_waiting\":null,"
                "\"latest_waiting\":null,\"received\":0,\"last_received\":false}");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"1\"}\n"
     "{\"sequence\":2,\"key\":\"a\",\"payload\":\"x\"}\n"
     "{\"sequence\":3,\"key\":\"b\",\"payload\":\"2\"}\n"
     "{\"sequence\":6,\"key\":\"a\",\"payload\":\"3\"}\n"
     "{\"sequence\":8,\"key\":\"a\",\"payload\":\"4\"}\n",
     "send", "-S", "s", "-");
  DO(0, "{\"sequence\":1,\"key\":\"a\",\"payload\":\"1\"}\n", "send", "-S", "s", "-");
  DO(3, "{\"sequence\":1,\"key\":\"a\",\"payload\":\"2\"}\n", "send", "-S", "s", "-");
  static const char BEFORE[] =
      "{\"key\":\"a\",\"last_processed\":1,\"processed\":1,\"failed\":1,\"results\":1,"
      "\"duplicates\":1,\"rejected\":1,\"waiting\":2,\"earliest_waiting\":6,\"latest_waiting\":8,"
      "\"received\":6,\"last_received\":false}";
  expect_status(world, "a", BEFORE);
  char *told =
      RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--key-statuses", "--count", "5");
  assert_non_null(
      strstr(told, "{\"key\":\"a\",\"position\":0,\"last_processed\":1,\"processed\":1,"));
  assert_non_null(strstr(told,
                         "{\"key\":\"a\",\"position\":1,\"last_processed\":1,\"processed\":1,"
                         "\"failed\":1,"));
  assert_non_null(strstr(told, "{\"key\":\"b\",\"position\":2,"));
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  expect_status(world, "a", BEFORE);
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--key-statuses", "--count", "5"),
         told);
  free(told);
  DO(0,
     "{\"sequence\":4,\"key\":\"b\",\"payload\":\"2\"}\n"
     "{\"sequence\":5,\"key\":\"b\",\"payload\":\"2\"}\n"
     "{\"sequence\":7,\"key\":\"b\",\"payload\":\"2\"}\n",
     "send", "-S", "s", "-");
  expect_status(world, "a",
                "{\"key\":\"a\",\"last_processed\":8,\"processed\":3,\"failed\":1,\"results\":3,"
                "\"duplicates\":1,\"rejected\":1,\"waiting\":0,\"earliest_waiting\":null,"
                "\"latest_waiting\":null,\"received\":6,\"last_received\":false}");
  char *all = RUN(0, NULL, "keys", "-S", "s", "--processor", "p");
  assert_non_null(strstr(all, "{\"key\":\"b\",\"last_processed\":7,\"processed\":4,"));
  assert_non_null(strstr(all, "{\"key\":\"a\",\"last_processed\":8,\"processed\":3,"));
  free(all);
  DO(73, NULL, "keys", "-S", "s", "--processor", "off");
  DO(73, NULL, "tail", "-S", "s", "--processor", "off", "--key-statuses");
  DO(69, NULL, "keys", "-S", "s", "--processor", "none");
  DO(67, NULL, "tail", "-S", "s", "--key-statuses");
  DO(70, NULL, "processor", "add", "off", "sum", "-S", "s", "--key-status", "kept");
}

/* Told now and then: each key that changed once, however many events it had. */
static void test_key_status_periodic(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  char lines[6000];
  size_t size = 0;
  for (int i = 1; i <= 100; i++) {
    size += (size_t)snprintf(lines + size, sizeof lines - size,
                             "{\"sequence\":%d,\"key\":\"k%d\",\"payload\":\"\"}\n", i, i % 3);
  }
  DO(0, lines, "send", "-S", "s", "-");
  DO(0, NULL, "processor", "add", "p", "count", "-S", "s", "--key-status", "300ms");
  char *told =
      RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--key-statuses", "--count", "3");
  assert_non_null(strstr(told, "{\"key\":\"k0\","));
  assert_non_null(strstr(told, "{\"key\":\"k1\","));
  assert_non_null(strstr(told, "{\"key\":\"k2\","));
  assert_non_null(strstr(told, "\"last_processed\":100,\"processed\":34,"));
  free(told);
  DO(0, "{\"sequence\":101,\"key\":\"k0\",\"payload\":\"\"}\n", "send", "-S", "s", "-");
  told = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--key-statuses", "--from", "3",
             "--count", "1");
  assert_non_null(strstr(told, "{\"key\":\"k0\",\"position\":3,\"last_processed\":101,"));
  free(told);
}

/* Results by event time: from the first of that time on, whatever the times behind it; where none
 * has it, from what comes next. */
static void test_from_time(void **state) {
  struct world *world = *state;
  static const char *const times[] = {"00:00:10", "00:00:30", "00:00:20", "00:00:40"};
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "p", "passthrough", "-S", "s");
  for (int i = 0; i < 4; i++) {
    char line[160];
    snprintf(line, sizeof line,
             "{\"sequence\":%d,\"key\":\"a\",\"payload\":\"%d\","
             "\"event_time\":\"2001-01-01T%sZ\"}\n",
             i + 1, i + 1, times[i]);
    DO(0, line, "send", "-S", "s", "-");
  }
  char *text = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--from",
                   "@2001-01-01T00:00:25Z", "--count", "3");
  assert_memory_equal(text, "{\"position\":1,", 14);
  assert_non_null(strstr(text, "\"payload\":\"3\",\"cause\":3,"));
  free(text);
  text = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--from", "@2001-01-01T00:00:35Z",
             "--until-caught-up");
  assert_memory_equal(text, "{\"position\":3,", 14);
  free(text);
  expect(RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--from", "@2001-01-01T00:01:00Z",
             "--until-caught-up"),
         "");
}

/* Each refusal has its status, and says what is wrong. */
static void wait_blocked(struct world *world, int64_t blocked) {
  for (;;) {
    json_t *info = info_of(world, "s", "p");
    bool is = json_integer_value(json_object_get(info, "blocked_keys")) == blocked;
    json_decref(info);
    if (is) return;
  }
}

/* A key of a PER_KEY stream waits at a failed event; asked again it fails again, and says why; a
 * copy is refused at ingest and taken by the processor. */
static void test_blocked(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "1");
  expect(RUN(0, NULL, "unprocessed", "retry", "-S", "s"), "0 tried\n");
  DO(0, NULL, "processor", "add", "p", "sum", "-S", "s", "--on-error", "wait", "--key-status",
     "kept");
  DO(0, NULL, "processor", "add", "p", "sum", "-S", "s", "--key-status", "kept"); /* the default */
  DO(70, NULL, "processor", "add", "p", "sum", "-S", "s", "--on-error", "continue");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"x\"}\n"
     "{\"sequence\":2,\"key\":\"a\",\"payload\":\"2\"}\n",
     "send", "-S", "s", "-");
  expect_status(world, "a",
                "{\"key\":\"a\",\"last_processed\":null,\"processed\":0,\"failed\":1,\"results\":0,"
                "\"duplicates\":0,\"rejected\":0,\"waiting\":1,\"earliest_waiting\":2,"
                "\"latest_waiting\":2,\"received\":2,\"blocked_at\":1,\"last_received\":false}");
  expect(
      RUN(0, NULL, "unprocessed", "retry", "-S", "s", "--json"),
      "{\"processor\":\"p\",\"tried\":1,\"processed\":0,\"blocked\":1,\"reason\":\"payload 'x' is "
      "no number: digits, a '-' before them, at most 9 after a '.'\"}\n");
  expect(RUN(0, NULL, "unprocessed", "retry", "-S", "s", "--processor", "p", "--key", "b"),
         "p: 0 tried, 0 processed, 1 blocked\n");
  DO(3, "{\"sequence\":1,\"key\":\"a\",\"payload\":\"5\"}\n", "send", "-S", "s", "-");
  wait_blocked(world, 0);
  char *results = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--count", "2");
  assert_non_null(strstr(results, "\"payload\":\"5\""));
  assert_non_null(strstr(results, "\"payload\":\"7\""));
  free(results);
  DO(0,
     "{\"sequence\":3,\"key\":\"a\",\"payload\":\"x\"}\n"
     "{\"sequence\":4,\"key\":\"a\",\"payload\":\"4\"}\n"
     "{\"sequence\":5,\"key\":\"a\",\"payload\":\"y\"}\n",
     "send", "-S", "s", "-");
  wait_blocked(world, 1);
  DO(73, NULL, "unprocessed", "skip", "p", "b", "-S", "s");
  DO(73, NULL, "unprocessed", "skip", "p", "a", "5", "-S", "s");
  DO(69, NULL, "unprocessed", "skip", "q", "a", "-S", "s");
  DO(2, NULL, "unprocessed", "skip", "p", "-S", "s");
  expect(RUN(0, NULL, "unprocessed", "skip", "p", "a", "3", "-S", "s"),
         "p: skipped 3, 1 blocked\n  blocked again at 5\n");
  expect(RUN(0, NULL, "unprocessed", "skip", "p", "--base64", "YQ==", "-S", "s", "--json"),
         "{\"processor\":\"p\",\"skipped\":5,\"blocked_at\":null,\"blocked\":0}\n");
  expect_status(world, "a",
                "{\"key\":\"a\",\"last_processed\":4,\"processed\":3,\"failed\":2,\"results\":3,"
                "\"duplicates\":0,\"rejected\":1,\"waiting\":0,\"earliest_waiting\":null,"
                "\"latest_waiting\":null,\"received\":6,\"last_received\":false}");
  results = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--count", "3");
  assert_non_null(strstr(results, "\"payload\":\"11\""));
  free(results);
  /* All three that failed are told, made good or not, and the copy that was refused. */
  char *kept = RUN(0, NULL, "unprocessed", "ls", "-S", "s", "--key", "a");
  static const char *const expected[] = {"CONFLICT 1 ", "EXCEPTION 1 ",
                                         ", at position 0 of p: ", "EXCEPTION 3 ", "EXCEPTION 5 "};
  char *at = kept;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    at = strstr(at, expected[i]);
    assert_non_null(at);
  }
  assert_null(strstr(at + 1, "EXCEPTION"));
  free(kept);
  DO(69, NULL, "unprocessed", "retry", "-S", "s", "--processor", "q");
  DO(0, NULL, "processor", "rm", "p", "-S", "s", "--keep");
  DO(73, NULL, "unprocessed", "retry", "-S", "s", "--processor", "p");
  DO(0, NULL, "stream", "add", "g", "--first", "1");
  DO(67, NULL, "processor", "add", "p", "sum", "-S", "g", "--on-error", "wait");
}

static json_t *unprocessed_line(char **rest) {
  char *end = strchr(*rest, '\n');
  assert_non_null(end);
  *end = '\0';
  json_t *line = json_loads(*rest, 0, NULL);
  assert_non_null(line);
  *rest = end + 1;
  return line;
}

/* Takes the line. */
static void expect_unprocessed(json_t *line, const char *reason, int64_t sequence,
                               const char *payload, int64_t count) {
  json_t *event = json_object_get(line, "event");
  assert_string_equal(json_string_value(json_object_get(line, "reason")), reason);
  assert_int_equal(json_integer_value(json_object_get(event, "sequence")), sequence);
  assert_string_equal(json_string_value(json_object_get(event, "payload")), payload);
  assert_int_equal(json_integer_value(json_object_get(line, "count")), count);
  bool failed = strcmp(reason, "EXCEPTION") == 0;
  const char *why = json_string_value(json_object_get(line, "explanation"));
  assert_int_equal(why && strstr(why, "is no number"), failed);
  assert_int_equal(json_object_get(line, "position") != NULL, failed);
  assert_int_equal(json_object_get(line, "processor") != NULL, failed);
  assert_int_equal(json_object_get(line, "producer") != NULL, !failed);
  json_decref(line);
}

/* What was refused and what user code failed at is listed: all, or of a processor, a reason, a key
 * alone; after a SIGKILL as before it, with the counts. */
static void test_unprocessed(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  expect(RUN(0, NULL, "unprocessed", "ls", "-S", "s"), "");
  DO(0, NULL, "processor", "add", "p", "sum", "-S", "s");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"1\"}\n"
     "{\"sequence\":2,\"key\":\"b\",\"payload\":\"x\"}\n"
     "{\"sequence\":3,\"key\":\"a\",\"payload\":\"3\"}\n",
     "send", "-S", "s", "-");
  for (int i = 0; i < 2; i++) {
    DO(3,
       "{\"sequence\":1,\"key\":\"a\",\"payload\":\"other\"}\n"
       "{\"sequence\":0,\"key\":\"a\",\"payload\":\"early\"}\n",
       "send", "-S", "s", "-");
  }
  free(RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--count", "2"));
  for (int start = 0; start < 2; start++) {
    char *text = RUN(0, NULL, "unprocessed", "ls", "-S", "s", "--json");
    char *rest = text;
    expect_unprocessed(unprocessed_line(&rest), "CONFLICT", 1, "other", 2);
    expect_unprocessed(unprocessed_line(&rest), "BEFORE_FIRST", 0, "early", 2);
    expect_unprocessed(unprocessed_line(&rest), "EXCEPTION", 2, "x", 1);
    assert_string_equal(rest, "");
    free(text);
    if (start == 1) break;
    hbt_server_kill(&world->server);
    assert_true(hbt_server_start(&world->server));
  }
  char *text = RUN(0, NULL, "unprocessed", "ls", "-S", "s", "--processor", "p");
  static const char FAILED[] = "EXCEPTION 2 \"b\"  1 bytes, once, at ";
  assert_memory_equal(text, FAILED, sizeof FAILED - 1);
  assert_non_null(strstr(text, ", at position 2 of p: \"payload 'x' is no number"));
  free(text);
  text = RUN(0, NULL, "unprocessed", "ls", "-S", "s", "--reason", "conflict", "--key", "a");
  static const char REFUSED[] = "CONFLICT 1 \"a\"  5 bytes, 2 times, last at ";
  assert_memory_equal(text, REFUSED, sizeof REFUSED - 1);
  assert_null(strchr(strchr(text, '\n') + 1, '\n'));
  free(text);
  expect(RUN(0, NULL, "unprocessed", "ls", "-S", "s", "--key", "YWI=", "--base64"), "");
  DO(69, NULL, "unprocessed", "ls", "-S", "s", "--processor", "q");
  DO(69, NULL, "unprocessed", "ls", "-S", "nowhere");
  DO(2, NULL, "unprocessed", "ls", "-S", "s", "--reason", "duplicate");
  DO(2, NULL, "unprocessed", "ls", "-S", "s", "--base64");
}

/* Statuses that are told say where the key is blocked, and when it is no more. */
static void test_blocked_told(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "1");
  DO(0, NULL, "processor", "add", "p", "sum", "-S", "s", "--key-status", "event");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"x\"}\n"
     "{\"sequence\":2,\"key\":\"a\",\"payload\":\"2\"}\n",
     "send", "-S", "s", "-");
  wait_blocked(world, 1);
  DO(0, NULL, "unprocessed", "skip", "p", "a", "-S", "s");
  char *text = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--key-statuses", "--from",
                   "start", "--count", "3");
  char *blocked = strstr(text, "\"failed\":1,");
  assert_true(blocked && blocked < strchr(text, '\n'));
  blocked = strstr(text, "\"blocked_at\":1,");
  assert_true(blocked && blocked < strchr(text, '\n'));
  assert_null(strstr(blocked + 1, "\"blocked_at\""));
  assert_non_null(strstr(blocked, "\"processed\":1,"));
  free(text);
}

static void test_refusals(void **state) {
  struct world *world = *state;
  DO(69, NULL, "processor", "add", "x", "count", "-S", "nowhere");
  DO(69, NULL, "processor", "add", "x", "nothing");
  DO(67, NULL, "processor", "add", "x", "count", "-p", "what=1");
  DO(67, NULL, "processor", "add", "Bad", "count");
  DO(0, NULL, "processor", "add", "x", "count");
  DO(70, NULL, "processor", "add", "x", "sum");
  DO(69, NULL, "processor", "info", "y");
  DO(69, NULL, "processor", "rm", "y", "--keep");
  DO(69, NULL, "tail", "--processor", "y");
  DO(67, NULL, "tail", "--processor", "x", "--key-statuses", "--from", "@2001-01-01T00:00:00Z");
  DO(0, "{\"sequence\":1,\"payload\":\"\"}\n", "send", "-");
  DO(0, NULL, "stream", "seal", "default");
  DO(3, "{\"sequence\":2,\"payload\":\"\"}\n", "send", "-");
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_all_of_it, setup, teardown),
      cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
      cmocka_unit_test_setup_teardown(test_from_time, setup, teardown),
      cmocka_unit_test_setup_teardown(test_key_status, setup, teardown),
      cmocka_unit_test_setup_teardown(test_key_status_periodic, setup, teardown),
      cmocka_unit_test_setup_teardown(test_blocked, setup, teardown),
      cmocka_unit_test_setup_teardown(test_unprocessed, setup, teardown),
      cmocka_unit_test_setup_teardown(test_blocked_told, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
