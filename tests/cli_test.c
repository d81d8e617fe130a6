/* The `holdback` command: its forms of input and output, and what its exit codes mean. */
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
  hbt_tempdir_init(&world->dir, "cli");
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

/* Shorter below: run, expect the code, give stdout. */
#define RUN(code, input, ...) hbt_command_expect(&world->command, code, input, __VA_ARGS__, NULL)
#define DO(code, input, ...) free(RUN(code, input, __VA_ARGS__))

static void add_stream(struct world *world, const char *name) {
  DO(0, NULL, "stream", "add", name, "--first", "1");
}

static char *tail_all(struct world *world, const char *stream) {
  return RUN(0, NULL, "tail", "--stream", stream, "--from", "start", "--until-caught-up");
}

static json_t *last_line_json(const char *text) {
  size_t size = strlen(text);
  while (size && text[size - 1] == '\n') size--;
  size_t start = size;
  while (start && text[start - 1] != '\n') start--;
  json_error_t error;
  json_t *root = json_loadb(text + start, size - start, 0, &error);
  if (!root) fail_msg("not JSON: %s", text);
  return root;
}

static json_int_t number(const json_t *root, const char *name) {
  const json_t *value = json_object_get(root, name);
  if (!json_is_integer(value)) fail_msg("no number '%s'", name);
  return json_integer_value(value);
}

/* ---- send and tail */

/* Every form of key and payload, times and headers; out in order, whatever the order in. */
static const char forms[] =
    "{\"sequence\":3,\"key\":\"\",\"payload\":\"\"}\n"
    "{\"sequence\":1,\"key\":\"k\\u00e9y\",\"payload\":\"text \\\"quoted\\\" \\u20ac\"}\n"
    "{\"sequence\":2,\"key_base64\":\"/wA=\",\"payload_base64\":\"AP/+\"}\n"
    "{\"sequence\":5,\"key\":\"k\",\"payload\":{\"b\":1,\"a\":[true,null,1.5]}}\n"
    "{\"sequence\":4,\"key\":\"k\",\"event_time\":\"2001-01-01T01:24:00.125Z\",\"payload\":\"p\","
    "\"headers\":[{\"name\":\"h\",\"value\":\"v\"}]}\n"
    "{\"sequence\":6,\"payload\":7}\n";

/* `tail` prints what `send` reads: sent into a second stream it reproduces the first. */
static void test_tail_into_send(void **state) {
  struct world *world = *state;
  add_stream(world, "one");
  add_stream(world, "two");
  DO(0, forms, "send", "--stream", "one", "-");
  char *first = tail_all(world, "one");
  int lines = 0;
  for (const char *at = first; (at = strchr(at, '\n')) != NULL; at++) {
    char wanted[32];
    const char *start = at;
    while (start > first && start[-1] != '\n') start--;
    (void)snprintf(wanted, sizeof wanted, "{\"sequence\":%d,", ++lines);
    assert_memory_equal(start, wanted, strlen(wanted));
  }
  assert_int_equal(lines, 6);
  DO(0, first, "send", "--stream", "two", "-");
  char *second = tail_all(world, "two");
  assert_string_equal(first, second);
  free(first);
  free(second);
}

/* A JSON string is its UTF-8 bytes, another value its compact dump; bytes that are no text are
 * base64. */
static void test_payload_forms(void **state) {
  struct world *world = *state;
  add_stream(world, "forms");
  DO(0, forms, "send", "--stream", "forms", "-");
  char *out = tail_all(world, "forms");
  static const char *const wanted[] = {
      "\"payload\":\"{\\\"b\\\":1,\\\"a\\\":[true,null,1.5]}\"",
      "\"key_base64\":\"/wA=\"",
      "\"payload_base64\":\"AP/+\"",
      "\"event_time\":\"2001-01-01T01:24:00.125Z\"",
      "\"payload\":\"7\"",
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    if (!strstr(out, wanted[i])) fail_msg("%s is not in:\n%s", wanted[i], out);
  }
  free(out);
}

/* The last line with --json: a count per outcome, and where the stream stands. */
static void test_send_json(void **state) {
  struct world *world = *state;
  static const char input[] =
      "{\"sequence\":1,\"payload\":\"a\"}\n{\"sequence\":1,\"payload\":\"a\"}\n"
      "{\"sequence\":1,\"payload\":\"other\"}\n{\"sequence\":0,\"payload\":\"z\"}\n"
      "{\"sequence\":2,\"payload\":\"b\"}\n{\"sequence\":4,\"payload\":\"d\"}\n";
  static const struct {
    const char *name;
    json_int_t value;
  } wanted[] = {{"stored", 3},      {"duplicate", 1},    {"conflict", 1},
                {"late", 0},        {"before_first", 1}, {"out_of_range", 0},
                {"window_full", 0}, {"frontier", 3},     {"held", 1}};
  char *out = RUN(3, input, "send", "--json", "-"); /* into `default`; not all were stored */
  json_t *summary = last_line_json(out);
  assert_int_equal(json_object_size(summary), sizeof wanted / sizeof *wanted);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    if (number(summary, wanted[i].name) != wanted[i].value) {
      fail_msg("%s, expected %lld: %s", wanted[i].name, (long long)wanted[i].value, out);
    }
  }
  json_decref(summary);
  free(out);
  DO(0, "{\"sequence\":1,\"payload\":\"a\"}\n", "send", "-"); /* a duplicate is fine */
}

/* Each event that was not stored is named by its own line and sequence, whatever else had the
 * same outcome beside it: here with a line between them that is no event. */
static void test_send_names_refused(void **state) {
  struct world *world = *state;
  static const char input[] =
      "{\"sequence\":1,\"payload\":\"a\"}\n{\"sequence\":2,\"payload\":\"b\"}\n";
  static const char other[] =
      "{\"sequence\":1,\"payload\":\"x\"}\n\n{\"sequence\":2,\"payload\":\"x\"}\n";
  DO(0, input, "send", "-");
  struct hbt_run run = hbt_command(&world->command, other, "send", "-", NULL);
  assert_int_equal(run.code, 3);
  assert_string_equal(run.err,
                      "-:1: CONFLICT: sequence 1 is stored with other content\n"
                      "-:3: CONFLICT: sequence 2\n");
  hbt_run_done(&run);
}

/* A file by name, and no input at all. */
static void test_send_file(void **state) {
  struct world *world = *state;
  char path[HBT_PATH_SIZE];
  hbt_tempdir_join(&world->dir, "in.jsonl", path);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_true(fputs(forms, file) >= 0);
  assert_int_equal(fclose(file), 0);
  DO(0, NULL, "send", path);
  DO(0, "", "send", "-");
  DO(1, NULL, "send", "/nowhere/in.jsonl");
  char *out = tail_all(world, "default");
  assert_non_null(strstr(out, "\"sequence\":6"));
  free(out);
}

/* Where to start, what to take, when to stop. */
static void test_tail_options(void **state) {
  struct world *world = *state;
  static const char input[] =
      "{\"sequence\":1,\"key\":\"aa\",\"payload\":\"1\",\"event_time\":\"2001-01-01T00:00:01Z\"}\n"
      "{\"sequence\":2,\"key\":\"ab\",\"payload\":\"2\",\"event_time\":\"2001-01-01T00:00:02Z\"}\n"
      "{\"sequence\":3,\"key\":\"b\",\"payload\":\"3\",\"event_time\":\"2001-01-01T00:00:03Z\"}\n"
      "{\"sequence\":4,\"key\":\"aa\",\"payload\":\"4\",\"event_time\":\"2001-01-01T00:00:04Z\"}\n";
  static const struct {
    const char *option, *value, *sequences;
  } rows[] = {
      {"--from", "3", "34"},    {"--from", "@2001-01-01T00:00:02Z", "234"},
      {"--from", "now", ""},    {"--from", "start", "1234"},
      {"--key", "aa", "14"},    {"--key", "nobody", ""},
      {"--prefix", "a", "124"}, {"--count", "2", "12"},
  };
  DO(0, input, "send", "-");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool from = strcmp(rows[i].option, "--from") == 0;
    char *out = RUN(0, NULL, "tail", "--until-caught-up", "--from", from ? rows[i].value : "start",
                    from ? "--until-caught-up" : rows[i].option,
                    from ? "--until-caught-up" : rows[i].value);
    char got[16] = "";
    size_t count = 0;
    for (const char *at = out; (at = strstr(at, "\"sequence\":")) != NULL; at++) {
      got[count++] = at[strlen("\"sequence\":")];
    }
    if (strcmp(got, rows[i].sequences) != 0) {
      fail_msg("tail %s %s: got %s, expected %s", rows[i].option, rows[i].value, got,
               rows[i].sequences);
    }
    free(out);
  }
}

/* ---- exit codes */

/* 5: the line is named by file and number, with what is wrong; lines before it are stored. */
static void test_bad_lines(void **state) {
  struct world *world = *state;
  static const struct {
    const char *line, *word;
  } rows[] = {
      {"{\"sequence\":2", ""},
      {"[]", "object"},
      {"{\"key\":\"k\",\"payload\":\"p\"}", "sequence"},
      {"{\"sequence\":\"2\",\"payload\":\"p\"}", "sequence"},
      {"{\"sequence\":1.5,\"payload\":\"p\"}", "sequence"},
      {"{\"sequence\":9223372036854775808,\"payload\":\"p\"}", ""},
      {"{\"sequence\":2,\"key\":7,\"payload\":\"p\"}", "key"},
      {"{\"sequence\":2,\"key\":\"k\",\"key_base64\":\"aw==\",\"payload\":\"p\"}", "key_base64"},
      {"{\"sequence\":2,\"key_base64\":\"!\",\"payload\":\"p\"}", "key_base64"},
      {"{\"sequence\":2,\"payload_base64\":\"a\"}", "payload_base64"},
      {"{\"sequence\":2,\"payload\":\"p\",\"event_time\":\"yesterday\"}", "event_time"},
      {"{\"sequence\":2,\"payload\":\"p\",\"event_time\":\"2001-02-30T00:00:00Z\"}", "event_time"},
      {"{\"sequence\":2,\"payload\":\"p\",\"headers\":7}", "headers"},
      {"{\"sequence\":2,\"payload\":\"p\",\"colour\":\"red\"}", "colour"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char input[512];
    (void)snprintf(input, sizeof input, "{\"sequence\":1,\"payload\":\"a\"}\n%s\n", rows[i].line);
    struct hbt_run run = hbt_command(&world->command, input, "send", "-", NULL);
    if (run.code != 5 || !strstr(run.err, ":2") || !strstr(run.err, rows[i].word)) {
      fail_msg("%s: exit code %d: %s", rows[i].line, run.code, run.err);
    }
    hbt_run_done(&run);
  }
  char *out = tail_all(world, "default");
  assert_non_null(strstr(out, "\"sequence\":1"));
  assert_null(strstr(out, "\"sequence\":2"));
  free(out);
}

/* --on-error=skip goes on behind the bad line, and says at the end that there was one. */
static void test_skip_bad_lines(void **state) {
  struct world *world = *state;
  struct hbt_run run = hbt_command(
      &world->command,
      "{\"sequence\":1,\"payload\":\"a\"}\nrubbish\n{\"sequence\":2,\"payload\":\"b\"}\n", "send",
      "--on-error=skip", "-", NULL);
  assert_int_equal(run.code, 5);
  assert_non_null(strstr(run.err, ":2"));
  hbt_run_done(&run);
  char *out = tail_all(world, "default");
  assert_non_null(strstr(out, "\"sequence\":2"));
  free(out);
}

/* 4: the window is full and complete_to stays where it is; the missing range is named. */
static void test_window_full(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "narrow", "--first", "1", "--ahead-max", "5");
  struct hbt_run run = hbt_command(
      &world->command, "{\"sequence\":3,\"payload\":\"a\"}\n{\"sequence\":9,\"payload\":\"b\"}\n",
      "send", "--stream", "narrow", "--window-timeout", "1", "-", NULL);
  if (run.code != 4) fail_msg("exit code %d: %s", run.code, run.err);
  assert_non_null(strstr(run.err, "1"));
  assert_non_null(strstr(run.err, "missing"));
  hbt_run_done(&run);
}

/* A refused event is sent again when the window has moved, later input first. */
static void test_window_moves(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "narrow", "--first", "1", "--ahead-max", "5");
  char input[40 * 64];
  size_t used = 0;
  for (int i = 40; i >= 1; i--) { /* the very first number comes last */
    used += (size_t)snprintf(input + used, sizeof input - used,
                             "{\"sequence\":%d,\"payload\":\"p\"}\n", i);
  }
  DO(0, input, "send", "--stream", "narrow", "-");
  char *out = RUN(0, NULL, "status", "--stream", "narrow", "--json");
  json_t *status = last_line_json(out);
  assert_int_equal(number(status, "frontier"), 41);
  json_decref(status);
  free(out);
}

/* 2: usage. 64 + status: what the server answered, or that nobody was there. */
static void test_exit_codes(void **state) {
  struct world *world = *state;
  DO(2, NULL, "no-such-command");
  DO(2, NULL, "tail", "--no-such-flag");
  DO(2, NULL, "tail", "--from", "yesterday");
  DO(2, NULL, "stream");
  DO(64 + 5, NULL, "status", "--stream", "nobody");
  DO(64 + 5, "{\"sequence\":1,\"payload\":\"a\"}\n", "send", "--stream", "nobody", "-");
  DO(64 + 3, NULL, "stream", "add", "NoName", "--first", "1");
  add_stream(world, "twice");
  add_stream(world, "twice"); /* the same settings */
  DO(64 + 6, NULL, "stream", "add", "twice", "--first", "2");
  struct hbt_command nobody = {holdback, "unix:/tmp/hb-nobody-listens-here"};
  struct hbt_run run =
      hbt_command(&nobody, "{\"sequence\":1}\n", "send", "-", "--reconnect-timeout", "200ms", NULL);
  if (run.code != 64 + 14) fail_msg("exit code %d: %s", run.code, run.err);
  hbt_run_done(&run);
}

/* What failed comes with what to do about it. */
static void test_way_out(void **state) {
  struct world *world = *state;
  struct hbt_command nobody = {holdback, "unix:/tmp/hb-nobody-listens-here"};
  struct hbt_run run = hbt_command(&nobody, NULL, "ping", NULL);
  assert_non_null(strstr(run.err, "HOLDBACK_SERVER"));
  hbt_run_done(&run);
  run = hbt_command(&world->command, NULL, "status", "--stream", "nobody", NULL);
  assert_non_null(strstr(run.err, "stream add"));
  hbt_run_done(&run);
  run = hbt_command(&world->command, NULL, "tail", "--from", "0", NULL);
  assert_int_equal(run.code, 64 + 11);
  assert_non_null(strstr(run.err, "position is 0, earliest is 1"));
  assert_non_null(strstr(run.err, "--from start"));
  hbt_run_done(&run);
}

/* ---- the rest */

/* status: all fields, and the picture for a person. */
static void test_status(void **state) {
  struct world *world = *state;
  static const char *const numbers[] = {"first_sequence", "frontier",    "complete_to",
                                        "highest",        "held_events", "held_bytes",
                                        "gaps_total",     "earliest",    "indexed_to"};
  static const json_int_t values[] = {1, 3, 3, 7, 2, -1, 2, 1, -1};
  DO(0,
     "{\"sequence\":1,\"payload\":\"a\"}\n{\"sequence\":2,\"payload\":\"a\"}\n"
     "{\"sequence\":4,\"payload\":\"a\"}\n{\"sequence\":7,\"payload\":\"a\"}\n",
     "send", "-");
  char *out = RUN(0, NULL, "status", "--json");
  json_t *status = last_line_json(out);
  assert_string_equal(json_string_value(json_object_get(status, "stream")), "default");
  assert_string_equal(json_string_value(json_object_get(status, "mode")), "GLOBAL");
  assert_true(json_is_null(json_object_get(status, "max_event_time")));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    json_int_t value = number(status, numbers[i]);
    if (values[i] >= 0 && value != values[i]) fail_msg("%s: %s", numbers[i], out);
  }
  const json_t *gaps = json_object_get(status, "gaps");
  assert_int_equal(json_array_size(gaps), 2);
  assert_int_equal(number(json_array_get(gaps, 0), "start"), 3);
  assert_int_equal(number(json_array_get(gaps, 0), "end"), 4);
  assert_int_equal(number(json_array_get(gaps, 1), "start"), 5);
  assert_int_equal(number(json_array_get(gaps, 1), "end"), 7);
  (void)number(json_array_get(gaps, 0), "age_ms");
  json_decref(status);
  free(out);
  out = RUN(0, NULL, "status");
  assert_non_null(strstr(out, "default"));
  free(out);
}

/* stream add, ls, info, set, rm. */
static void test_streams(void **state) {
  struct world *world = *state;
  add_stream(world, "b");
  DO(0, NULL, "stream", "add", "a", "--first-seen");
  char *out = RUN(0, NULL, "stream", "ls");
  const char *a = strstr(out, "a");
  const char *b = strstr(out, "\nb");
  assert_true(a && b && a < b && strstr(out, "\ndefault"));
  free(out);
  DO(0, NULL, "stream", "set", "b", "--gaps-max", "77");
  out = RUN(0, NULL, "stream", "info", "b");
  assert_non_null(strstr(out, "77"));
  free(out);
  DO(0, NULL, "stream", "rm", "b");
  DO(64 + 5, NULL, "stream", "info", "b");
}

/* ping says that somebody is there. */
static void test_ping(void **state) {
  struct world *world = *state;
  char *out = RUN(0, NULL, "ping");
  assert_true(strlen(out) > 0);
  free(out);
}

/* compact waits for its end and says what it gave back; what was stored is still there. */
static void test_compact(void **state) {
  struct world *world = *state;
  DO(0, "{\"sequence\":1,\"key\":\"a\",\"payload\":\"x\"}\n", "send", "-");
  char *out = RUN(0, NULL, "compact", "--json");
  json_t *done = json_loads(out, 0, NULL);
  assert_non_null(done);
  assert_true(number(done, "bytes_after") > 0);
  (void)number(done, "bytes_before");
  json_decref(done);
  free(out);
  out = RUN(0, NULL, "compact");
  assert_non_null(strstr(out, "MiB after"));
  free(out);
  out = tail_all(world, "default");
  assert_non_null(strstr(out, "\"x\""));
  free(out);
}

/* The server by environment; the flag is stronger. */
static void test_server_by_environment(void **state) {
  struct world *world = *state;
  assert_int_equal(setenv("HOLDBACK_SERVER", world->server.listen, 1), 0);
  const char *const arguments[] = {holdback, "ping", NULL};
  struct hbt_run run = hbt_run(arguments, NULL, 0, HBT_COMMAND_MS);
  assert_int_equal(run.code, 0);
  hbt_run_done(&run);
  assert_int_equal(setenv("HOLDBACK_SERVER", "unix:/nowhere", 1), 0);
  DO(0, NULL, "ping");
  assert_int_equal(unsetenv("HOLDBACK_SERVER"), 0);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_tail_into_send), T(test_payload_forms),
      T(test_send_json),      T(test_send_names_refused),
      T(test_way_out),        T(test_send_file),
      T(test_tail_options),   T(test_bad_lines),
      T(test_skip_bad_lines), T(test_window_full),
      T(test_window_moves),   T(test_exit_codes),
      T(test_status),         T(test_streams),
      T(test_ping),           T(test_server_by_environment),
      T(test_compact),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
