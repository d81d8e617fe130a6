/* PER_KEY streams end to end, with the `holdback` command: each key's events come out in the order
 * of its own numbers, once, though they came in any order, more than once, and the server was
 * killed (SIGKILL) on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/lib/command.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

enum { KEYS = 17, PER = 200, EVENTS = KEYS * PER, LINE = 128, KILLS = 3 };

static const char *holdbackd;
static const char *holdback;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_command command;
  struct hbt_rng rng;
};

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  world->rng = hbt_rng_start("per_key_test");
  hbt_tempdir_init(&world->dir, "perkey");
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

/* ---- what is sent */

/* The n-th event of all: sequences of a key are `step` apart in this order. */
static size_t put_line(char *out, uint32_t n) {
  unsigned key = n % KEYS;
  unsigned sequence = n / KEYS;
  return (size_t)snprintf(out, LINE,
                          "{\"sequence\":%u,\"key\":\"key-%u\",\"payload\":\"%u of %u\"}\n",
                          sequence, key, sequence, key);
}

/* All events in a new order, some of them twice. */
static char *make_input(struct world *world) {
  static uint32_t order[EVENTS];
  char *input = hb_alloc(EVENTS * 2 * LINE);
  size_t used = 0;
  hbt_rng_displace(&world->rng, order, EVENTS, 1 + hbt_rng_below(&world->rng, EVENTS));
  for (size_t i = 0; i < EVENTS; i++) {
    used += put_line(input + used, order[i]);
    if (hbt_rng_below(&world->rng, 5) == 0) {
      used += put_line(input + used, order[hbt_rng_below(&world->rng, i + 1)]);
    }
  }
  return input;
}

/* ---- what comes out */

/* Every line is the next event of its key; returns how many there are. */
static size_t check_order(const char *text) {
  json_int_t next[KEYS] = {0};
  size_t count = 0;
  const char *stop = text + strlen(text);
  while (text < stop) { /* a sanitizer's strchr may look at all of the text, each time */
    const char *end = memchr(text, '\n', (size_t)(stop - text));
    assert_non_null(end);
    json_t *root = json_loadb(text, (size_t)(end - text), 0, NULL);
    assert_non_null(root);
    unsigned key;
    unsigned of;
    unsigned sequence;
    assert_int_equal(sscanf(json_string_value(json_object_get(root, "key")), "key-%u", &key), 1);
    assert_int_equal(
        sscanf(json_string_value(json_object_get(root, "payload")), "%u of %u", &sequence, &of), 2);
    assert_true(key < KEYS && of == key);
    assert_int_equal(json_integer_value(json_object_get(root, "sequence")), sequence);
    assert_int_equal(sequence, next[key]);
    next[key]++;
    count++;
    json_decref(root);
    text = end + 1;
  }
  return count;
}

static struct hbt_child *start_tail_of(struct world *world, int events) {
  char count[16];
  (void)snprintf(count, sizeof count, "%d", events);
  const char *const arguments[] = {holdback, "--server", world->server.listen,
                                   "tail",   "--stream", "s",
                                   "--from", "start",    "--count",
                                   count,    NULL};
  return hbt_child_start(arguments, NULL, 0);
}

static struct hbt_child *start_tail(struct world *world) { return start_tail_of(world, EVENTS); }

static struct hbt_child *start_send(struct world *world, const char *input) {
  const char *const arguments[] = {
      holdback, "--server", world->server.listen, "send", "--stream", "s", "-", NULL};
  return hbt_child_start(arguments, input, strlen(input));
}

static void kill_and_start(struct world *world) {
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
}

/* Producers that send through the crashes and one that begins anew; a subscriber that was there
 * all the time and one that comes late see the same. */
static void survives(struct world *world, const char *ack) {
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "0", "--ack", ack);
  struct hbt_child *tail = start_tail(world);
  char *input = make_input(world);
  struct hbt_child *send = start_send(world, input);
  for (int i = 0; i < KILLS; i++) {
    size_t some = 1 + hbt_rng_below(&world->rng, EVENTS / KILLS) + (size_t)i * EVENTS / KILLS;
    (void)hbt_child_wait_count(tail, HBT_OUT, "\n", some, 2000); /* disorder may hold all back */
    kill_and_start(world);
  }
  int code = -1;
  assert_true(hbt_child_wait(send, HBT_COMMAND_MS, &code));
  assert_int_equal(code, 0);
  hbt_child_destroy(send);
  free(input);
  assert_true(hbt_child_wait(tail, HBT_COMMAND_MS, &code));
  assert_int_equal(code, 0);
  char *followed = hbt_child_text(tail, HBT_OUT, NULL);
  hbt_child_destroy(tail);
  assert_int_equal(check_order(followed), EVENTS);
  kill_and_start(world);
  char *late = RUN(0, NULL, "tail", "--stream", "s", "--from", "start", "--until-caught-up");
  assert_string_equal(late, followed);
  free(late);
  free(followed);
  input = make_input(world);
  char *summary = RUN(0, input, "send", "--json", "--stream", "s", "-");
  if (!strstr(summary, "\"stored\":0,")) fail_msg("stored again: %s", summary);
  free(summary);
  free(input);
  DO(0, NULL, "verify");
}

static void test_survives_kills(void **state) { survives(*state, "durable"); }
static void test_survives_kills_async(void **state) { survives(*state, "async"); }

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

/* The list of a key: released events in order, then what is held; and it is there after a kill. A
 * subscriber may begin at a position, which is not a sequence. */
static void test_lists_and_positions(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "1");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"a1\"}\n"
     "{\"sequence\":1,\"key\":\"b\",\"payload\":\"b1\"}\n"
     "{\"sequence\":2,\"key\":\"a\",\"payload\":\"a2\"}\n"
     "{\"sequence\":4,\"key\":\"a\",\"payload\":\"a4\"}\n",
     "send", "--stream", "s", "-");
  kill_and_start(world);
  char *list = RUN(0, NULL, "key", "a", "--stream", "s");
  assert_string_equal(list,
                      "{\"sequence\":1,\"key\":\"a\",\"payload\":\"a1\"}\n"
                      "{\"sequence\":2,\"key\":\"a\",\"payload\":\"a2\"}\n"
                      "{\"sequence\":4,\"key\":\"a\",\"payload\":\"a4\",\"state\":\"HELD\"}\n");
  free(list);
  char *from = RUN(0, NULL, "tail", "--stream", "s", "--from", "2", "--until-caught-up");
  assert_int_equal(count_of(from, "\n"), 1);
  free(from);
  char *of_b =
      RUN(0, NULL, "tail", "--stream", "s", "--from", "start", "--key", "b", "--until-caught-up");
  assert_string_equal(of_b, "{\"sequence\":1,\"key\":\"b\",\"payload\":\"b1\"}\n");
  free(of_b);
  char *info = RUN(0, NULL, "status", "--stream", "s", "--json");
  if (!strstr(info, "\"mode\":\"PER_KEY\"") || !strstr(info, "\"gaps_total\":1")) {
    fail_msg("status: %s", info);
  }
  free(info);
  DO(0, NULL, "status", "--stream", "s");
  DO(0, NULL, "stream", "info", "s");
  DO(0, "{\"sequence\":3,\"key\":\"a\",\"payload\":\"a3\"}\n", "send", "--stream", "s", "-");
  char *all = RUN(0, NULL, "tail", "--stream", "s", "--from", "start", "--until-caught-up");
  assert_int_equal(count_of(all, "\n"), 5);
  free(all);
}

static void expect(char *text, const char *expected) {
  assert_string_equal(text, expected);
  free(text);
}

/* What is missing is listed by key, the same after a kill, and until it has come; which keys miss
 * something, too. */
static void test_gaps(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "1");
  DO(0,
     "{\"sequence\":1,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":4,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":6,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":1,\"key\":\"b\",\"payload\":\"\"}\n"
     "{\"sequence\":2,\"key\":\"c\",\"payload\":\"\"}\n",
     "send", "--stream", "s", "-");
  kill_and_start(world);
  expect(RUN(0, NULL, "stream", "gaps", "s", "--key", "a"),
         "[2, 4)  2 missing\n[5, 6)  1 missing\n");
  expect(RUN(0, NULL, "stream", "gaps", "s", "--key", "YQ==", "--base64", "--json"),
         "{\"start\":2,\"end\":4}\n{\"start\":5,\"end\":6}\n");
  expect(RUN(0, NULL, "stream", "gaps", "s", "--key", "b"), "");
  char *keys = RUN(0, NULL, "stream", "gaps", "s");
  assert_int_equal(count_of(keys, "\n"), 2);
  assert_non_null(strstr(keys,
                         "{\"key\":\"a\",\"complete_to\":2,\"highest\":6,\"held_events\":2,"
                         "\"gaps_total\":2,\"gap\":{\"start\":2,\"end\":4}}\n"));
  assert_non_null(strstr(keys, "{\"key\":\"c\",\"complete_to\":1,"));
  free(keys);
  keys = RUN(0, NULL, "stream", "gaps", "s", "--prefix", "c");
  assert_int_equal(count_of(keys, "\n"), 1);
  free(keys);
  DO(0,
     "{\"sequence\":2,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":3,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":5,\"key\":\"a\",\"payload\":\"\"}\n"
     "{\"sequence\":1,\"key\":\"c\",\"payload\":\"\"}\n",
     "send", "--stream", "s", "-");
  expect(RUN(0, NULL, "stream", "gaps", "s", "--key", "a"), "");
  expect(RUN(0, NULL, "stream", "gaps", "s"), "");

  DO(0, NULL, "stream", "add", "g", "--first", "1");
  DO(0, "{\"sequence\":3,\"payload\":\"\"}\n", "send", "--stream", "g", "-");
  char *gaps = RUN(0, NULL, "stream", "gaps", "g");
  assert_memory_equal(gaps, "[1, 3)  2 missing for ", 22);
  free(gaps);
  gaps = RUN(0, NULL, "stream", "gaps", "g", "--json");
  assert_memory_equal(gaps, "{\"start\":1,\"end\":3,\"age_ms\":", 28);
  free(gaps);
  DO(73, NULL, "stream", "gaps", "g", "--key", "a");
  DO(73, NULL, "stream", "gaps", "g", "--prefix", "a");
  DO(69, NULL, "stream", "gaps", "nowhere");
  DO(2, NULL, "stream", "gaps", "s", "--key", "a", "--prefix", "a");
}

/* ---- more waits than memory may hold */

enum { MANY_PER = 6000, MANY = KEYS * MANY_PER, MANY_LINE = 320, MANY_RSS_MORE_MIB = 16 };

/* The numbers [from, to) of every key, each event with a filling of 200 bytes in a header. */
static char *make_rounds(unsigned from, unsigned to) {
  static char filling[201];
  memset(filling, 'f', sizeof filling - 1);
  char *input = hb_alloc((size_t)(to - from) * KEYS * MANY_LINE + 1);
  size_t used = 0;
  for (unsigned sequence = from; sequence < to; sequence++) {
    for (unsigned key = 0; key < KEYS; key++) {
      used += (size_t)snprintf(input + used, MANY_LINE,
                               "{\"sequence\":%u,\"key\":\"key-%u\",\"payload\":\"%u of %u\","
                               "\"headers\":{\"f\":\"%s\"}}\n",
                               sequence, key, sequence, key, filling);
    }
  }
  input[used] = 0;
  return input;
}

static void send_rounds(struct world *world, unsigned from, unsigned to) {
  char *input = make_rounds(from, to);
  DO(0, input, "send", "--stream", "s", "-");
  free(input);
}

/* Twenty-five times the memory that is for it waits; the server comes up with it after a kill, in
 * little more memory than with nothing, and then everything comes, in order. */
static void test_more_waits_than_memory_holds(void **state) {
  struct world *world = *state;
  hbt_server_kill(&world->server);
  world->server.flags[0] = "--key-held-memory-max=1048576";
  assert_true(hbt_server_start(&world->server));
  uint64_t before = hbt_server_rss_mib(&world->server);
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first", "0");
  send_rounds(world, 1, MANY_PER);
  kill_and_start(world);
  uint64_t after = hbt_server_rss_mib(&world->server);
  assert_true(before > 0 && after > 0);
  char *gaps = RUN(0, NULL, "stream", "gaps", "s"); /* of what is not in memory, too */
  assert_int_equal(count_of(gaps, "\"gap\":{\"start\":0,\"end\":1}}\n"), KEYS);
  free(gaps);
  if (after > before + MANY_RSS_MORE_MIB && hbt_rss_is_own()) {
    fail_msg("RSS %llu MiB, %llu with nothing held", (unsigned long long)after,
             (unsigned long long)before);
  }
  struct hbt_child *tail = start_tail_of(world, MANY);
  send_rounds(world, 0, 1);
  int code = -1;
  assert_true(hbt_child_wait(tail, HBT_COMMAND_MS, &code));
  assert_int_equal(code, 0);
  char *text = hbt_child_text(tail, HBT_OUT, NULL);
  hbt_child_destroy(tail);
  assert_int_equal(check_order(text), MANY);
  free(text);
  DO(0, NULL, "verify");
}

/* Keys begin where an event says so: what came before waits, or is told that it came before. */
static void test_initial(void **state) {
  struct world *world = *state;
  DO(0, NULL, "stream", "add", "s", "--mode", "per-key", "--first-seen");
  DO(0, "{\"sequence\":8,\"key\":\"a\",\"payload\":\"8\"}\n", "send", "--stream", "s", "-");
  char *none = RUN(0, NULL, "tail", "--stream", "s", "--from", "start", "--until-caught-up");
  assert_string_equal(none, "");
  free(none);
  kill_and_start(world);
  expect(RUN(0, NULL, "stream", "gaps", "s", "--key", "a", "--json"),
         "{\"initial_missing\":true}\n");
  expect(RUN(0, NULL, "stream", "gaps", "s"),
         "{\"key\":\"a\",\"complete_to\":null,\"highest\":8,\"held_events\":1,\"gaps_total\":1,"
         "\"gap\":null}\n");
  DO(0,
     "{\"sequence\":7,\"key\":\"a\",\"payload\":\"7\",\"initial\":true}\n"
     "{\"sequence\":9,\"key\":\"a\",\"payload\":\"9\",\"last\":true}\n",
     "send", "--stream", "s", "-");
  char *all = RUN(0, NULL, "tail", "--stream", "s", "--from", "start", "--until-caught-up");
  assert_string_equal(all,
                      "{\"sequence\":7,\"key\":\"a\",\"payload\":\"7\",\"initial\":true}\n"
                      "{\"sequence\":8,\"key\":\"a\",\"payload\":\"8\"}\n"
                      "{\"sequence\":9,\"key\":\"a\",\"payload\":\"9\",\"last\":true}\n");
  free(all);
  DO(3, "{\"sequence\":6,\"key\":\"a\",\"payload\":\"6\"}\n", "send", "--stream", "s", "-");
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {T(test_survives_kills),
                                     T(test_survives_kills_async),
                                     T(test_lists_and_positions),
                                     T(test_initial),
                                     T(test_gaps),
                                     T(test_more_waits_than_memory_holds)};
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
