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

/* Each refusal has its status, and says what is wrong. */
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
  DO(76, NULL, "tail", "--processor", "x", "--from", "@2001-01-01T00:00:00Z");
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
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
