/* The lists of all keys, merged by sequence, are the stream: `holdback key` of each of `holdback
 * keys` against `holdback tail`, at each stage of an event's way through log, tail and index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/lib/command.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

enum { EVENTS = 3000, KEYS = 12, LINE = 128 };

static const char *holdbackd;
static const char *holdback;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_command command;
  struct hbt_rng rng;
  uint32_t order[EVENTS];
};

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  world->rng = hbt_rng_start("keys_test");
  hbt_tempdir_init(&world->dir, "keys");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->command = (struct hbt_command){holdback, world->server.listen};
  hbt_rng_displace(&world->rng, world->order, EVENTS, 300);
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

/* Sequences order[from .. end) + 1, without `but`. Keys are words, so that no escape hides them. */
static void send_events(struct world *world, size_t from, size_t end, int64_t but) {
  char *input = hb_alloc(EVENTS * LINE);
  size_t used = 0;
  for (size_t i = from; i < end; i++) {
    int64_t sequence = world->order[i] + 1;
    if (sequence == but) continue;
    used += (size_t)snprintf(
        input + used, LINE, "{\"sequence\":%lld,\"key\":\"key-%lld\",\"payload\":\"of %lld\"}\n",
        (long long)sequence, (long long)(sequence * 7 % KEYS), (long long)sequence);
  }
  input[used] = 0;
  free(hbt_command_expect(&world->command, 0, input, "send", "-", NULL));
  free(input);
}

/* Payloads by sequence, from the lines of one key or of the stream; sequences must rise. */
static size_t collect(char *text, const char *key, const char **payloads) {
  size_t count = 0;
  json_int_t last = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    json_t *event = json_loads(line, 0, NULL);
    json_int_t sequence = json_integer_value(json_object_get(event, "sequence"));
    const char *payload = json_string_value(json_object_get(event, "payload"));
    const char *its_key = json_string_value(json_object_get(event, "key"));
    if (!payload || !its_key || sequence <= last || (key && strcmp(key, its_key) != 0)) {
      fail_msg("unexpected: %s (after %lld, key %s)", line, (long long)last, key ? key : "any");
    }
    if (payloads[sequence]) fail_msg("sequence %lld came twice", (long long)sequence);
    payloads[sequence] = hb_strdup(payload);
    last = sequence;
    count++;
    json_decref(event);
  }
  return count;
}

static size_t collect_keys(struct world *world, const char **payloads) {
  size_t count = 0;
  size_t keys = 0;
  char *list = hbt_command_expect(&world->command, 0, NULL, "keys", NULL);
  char *rest = NULL;
  for (char *key = strtok_r(list, "\n", &rest); key; key = strtok_r(NULL, "\n", &rest)) {
    char *out = hbt_command_expect(&world->command, 0, NULL, "key", "--released-only", key, NULL);
    count += collect(out, key, payloads);
    keys++;
    free(out);
  }
  free(list);
  assert_int_equal(keys, KEYS);
  return count;
}

static void compare(struct world *world, size_t expected) {
  const char **by_key = hb_calloc(EVENTS + 1, sizeof *by_key);
  const char **by_tail = hb_calloc(EVENTS + 1, sizeof *by_tail);
  char *out = hbt_command_expect(&world->command, 0, NULL, "tail", "--from", "start",
                                 "--until-caught-up", NULL);
  assert_int_equal(collect(out, NULL, by_tail), expected);
  assert_int_equal(collect_keys(world, by_key), expected);
  for (size_t i = 1; i <= EVENTS; i++) {
    assert_true((by_key[i] == NULL) == (by_tail[i] == NULL));
    if (by_key[i]) assert_string_equal(by_key[i], by_tail[i]);
    free((void *)(uintptr_t)by_key[i]);
    free((void *)(uintptr_t)by_tail[i]);
  }
  free(by_key);
  free(by_tail);
  free(out);
}

/* Fresh in the log; with a gap in the middle; after a kill; after the gap was filled. */
static void test_keys_merge_to_the_stream(void **state) {
  struct world *world = *state;
  enum { MISSING = 2 * EVENTS / 3 };
  send_events(world, 0, EVENTS / 3, MISSING);
  send_events(world, EVENTS / 3, EVENTS, MISSING);
  compare(world, MISSING - 1);
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  compare(world, MISSING - 1);
  send_events(world, 0, EVENTS, 0); /* all again: the missing one, and duplicates */
  compare(world, EVENTS);
}

/* What is held is in its key's list too, behind what is released. */
static void test_held_entries(void **state) {
  struct world *world = *state;
  static const char input[] =
      "{\"sequence\":1,\"key\":\"k\",\"payload\":\"a\"}\n"
      "{\"sequence\":3,\"key\":\"k\",\"payload\":\"c\"}\n";
  free(hbt_command_expect(&world->command, 0, input, "send", "-", NULL));
  char *out = hbt_command_expect(&world->command, 0, NULL, "key", "k", NULL);
  const char *first = strstr(out, "\"sequence\":1");
  const char *third = strstr(out, "\"sequence\":3");
  assert_true(first && third && first < third);
  assert_non_null(strstr(third, "HELD"));
  free(out);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_keys_merge_to_the_stream, setup, teardown),
      cmocka_unit_test_setup_teardown(test_held_entries, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
