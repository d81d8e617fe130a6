/* Shared objects: what is refused at attach, and what a crash in their code does. Beam's cases with
 * a loaded processor: tests/conformance. */
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
static char processors[512];

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_command command;
};

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "load");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->server.flags[0] = "--processor-dir";
  world->server.flags[1] = processors;
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

/* ---- attaching */

static void expect_refused(struct world *world, const char *processor, int code,
                           const char *reason) {
  struct hbt_run run = hbt_command(&world->command, NULL, "processor", "add", "p", processor, NULL);
  assert_int_equal(run.code, code);
  if (!strstr(run.err, reason)) fail_msg("%s", run.err);
  hbt_run_done(&run);
}

/* Another interface, no symbol, no file: each is told as what it is, and nothing is attached. */
static void test_refused(void **state) {
  struct world *world = *state;
  expect_refused(world, "old", 73, "PROCESSOR_ABI_MISMATCH");
  expect_refused(world, "empty", 73, "PROCESSOR_SYMBOL_MISSING");
  expect_refused(world, "none", 69, "PROCESSOR_NOT_FOUND");
  char *list = RUN(0, NULL, "processor", "ls");
  assert_string_equal(list, "");
  free(list);
}

/* ---- events and results in short */

static char *lines_of(const char *events) {
  char *copy = strdup(events);
  char *lines = calloc(1, 100 * strlen(events) + 1);
  char *rest = copy;
  for (char *sequence; (sequence = strtok_r(rest, " ", &rest)) != NULL;) {
    const char *key = strtok_r(rest, " ", &rest);
    const char *payload = strtok_r(rest, " ", &rest);
    sprintf(lines + strlen(lines), "{\"sequence\":%s,\"key\":\"%s\",\"payload\":\"%s\"}\n",
            sequence, key, payload);
  }
  free(copy);
  return lines;
}

/* "key payload key payload ..." */
static char *results_of(const char *lines) {
  char *out = calloc(1, strlen(lines) + 1);
  while (*lines) {
    json_error_t error;
    json_t *root = json_loads(lines, JSON_DISABLE_EOF_CHECK, &error);
    assert_non_null(root);
    sprintf(out + strlen(out), "%s%s %s", *out ? " " : "",
            json_string_value(json_object_get(root, "key")),
            json_string_value(json_object_get(root, "payload")));
    json_decref(root);
    lines = strchr(lines, '\n') + 1;
  }
  return out;
}

/* ---- crashes */

static json_t *info_of(struct world *world) {
  char *text = RUN(0, NULL, "processor", "info", "p", "-S", "s", "--json");
  json_error_t error;
  json_t *root = json_loads(text, 0, &error);
  assert_non_null(root);
  free(text);
  return root;
}

/* Starts the server anew until its end is not by that code any more: twice, or three times where
 * one came before the mark. Owned: how the processor stands then, suspended. */
static json_t *crash_until_suspended(struct world *world) {
  int code;
  int crashes = 0;
  for (; crashes < 6 && hbt_child_wait(world->server.child, 3000, &code); crashes++) {
    assert_int_equal(code, 128 + 6);
    hbt_server_kill(&world->server);
    while (!hbt_server_start(&world->server)) assert_true(++crashes < 6);
  }
  assert_true(crashes >= 2 && crashes <= 3);
  json_t *info = info_of(world);
  assert_string_equal(json_string_value(json_object_get(info, "state")), "SUSPENDED");
  assert_non_null(strstr(json_string_value(json_object_get(info, "reason")), "2 times"));
  return info;
}

/* Code that ends the process twice at one event is suspended there, with the reason; everything
 * else serves, and what came before is there, once. */
static void test_crash(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "other", "count", "-S", "s");
  char *lines = lines_of("1 k a 2 k b 3 k CRASH 4 k d");
  DO(0, lines, "send", "-S", "s", "-");
  free(lines);
  /* The process ends while this call is on its way, or just before it. */
  struct hbt_run run =
      hbt_command(&world->command, NULL, "processor", "add", "p", "ordered", "-S", "s", NULL);
  hbt_run_done(&run);
  json_t *info = crash_until_suspended(world);
  assert_int_equal(json_integer_value(json_object_get(info, "stopped_at")), 3);
  json_decref(info);
  char *all = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--until-caught-up");
  char *results = results_of(all);
  assert_string_equal(results, "k a k ab");
  free(all);
  free(results);
  DO(0, "{\"sequence\":5,\"key\":\"k\",\"payload\":\"e\"}\n", "send", "-S", "s", "-");
  DO(0, NULL, "tail", "-S", "s", "--processor", "other", "--count", "5");
}

/* So is code that ends the process at a copy which it is given in place of an event that failed. */
static void test_crash_at_copy(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "1");
  DO(0, NULL, "processor", "add", "p", "ordered", "-S", "s");
  char *lines = lines_of("1 k a 2 k BAD 3 k c 1 l x");
  DO(0, lines, "send", "-S", "s", "-");
  free(lines);
  char *before = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--count", "2");
  /* The process ends while this call is on its way, or behind it. */
  struct hbt_run run =
      hbt_command(&world->command, "{\"sequence\":2,\"key\":\"k\",\"payload\":\"CRASH\"}\n", "send",
                  "-S", "s", "-", NULL);
  hbt_run_done(&run);
  json_t *info = crash_until_suspended(world);
  json_decref(info);
  char *after = RUN(0, NULL, "tail", "-S", "s", "--processor", "p", "--until-caught-up");
  assert_string_equal(before, after);
  free(before);
  free(after);
  DO(0, "{\"sequence\":4,\"key\":\"k\",\"payload\":\"e\"}\n", "send", "-S", "s", "-");
}

/* Kills that have nothing to do with its code suspend nothing. */
static void test_kill(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--first", "1");
  DO(0, NULL, "processor", "add", "p", "ordered", "-S", "s");
  for (int i = 1; i <= 4; i++) {
    char line[100];
    char count[8];
    snprintf(line, sizeof line, "{\"sequence\":%d,\"key\":\"k\",\"payload\":\"%d\"}\n", i, i);
    snprintf(count, sizeof count, "%d", i);
    DO(0, line, "send", "-S", "s", "-");
    DO(0, NULL, "tail", "-S", "s", "--processor", "p", "--count", count);
    hbt_server_kill(&world->server);
    assert_true(hbt_server_start(&world->server));
  }
  json_t *info = info_of(world);
  assert_string_equal(json_string_value(json_object_get(info, "state")), "RUNNING");
  assert_int_equal(json_integer_value(json_object_get(info, "results")), 4);
  json_decref(info);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
  snprintf(processors, sizeof processors, "%s", argv[3]);
  *strrchr(processors, '/') = '\0';
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
      cmocka_unit_test_setup_teardown(test_crash_at_copy, setup, teardown),
      cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
