/* SIGKILL at random moments: what was answered stays, what was delivered was right (I1, I2, I3, I5,
 * I11).
 *
 * A round sends the whole input again, in another order, with duplicates, from a producer that
 * remembers nothing, and kills the server somewhere in it. The check that bites is made by the
 * answers: an event that an earlier round was told is stored must be a DUPLICATE in every later
 * one; STORED would mean that it was lost. HOLDBACK_ROUNDS says how many kills there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

enum { EVENTS = 4000, INPUT = EVENTS + EVENTS / 4, ROUNDS = 6, APPENDERS = 2, WAIT_MS = 30000 };
/* About 9 MB: more than two commits may release. */
enum { LONG_RELEASE = 60000 };

static const char *holdbackd;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_rng rng;
  uint32_t input[INPUT];         /* sequences in the order of this round */
  bool acked_before[EVENTS + 1]; /* answered in an earlier round */
  bool acked[EVENTS + 1];
  uint32_t answers[INPUT]; /* results per index, of this round */
  uint32_t lost;           /* STORED although answered before */
  uint32_t unwanted;       /* any outcome but STORED and DUPLICATE */
  int64_t frontier;        /* the highest ever shown */
};

static void on_result(void *context, const struct holdback_result *result) {
  struct world *world = context;
  for (uint32_t i = 0; i < result->count; i++) {
    uint32_t sequence = world->input[result->index + i];
    world->answers[result->index + i]++;
    world->acked[sequence] = true;
    if (result->outcome == HOLDBACK_STORED && world->acked_before[sequence]) world->lost++;
    if (result->outcome != HOLDBACK_STORED && result->outcome != HOLDBACK_DUPLICATE) {
      world->unwanted++;
    }
  }
}

/* All sequences, displaced by up to a random distance, and a quarter of them once more. */
static void shuffle(struct world *world) {
  static const uint64_t disorders[] = {1, 20, 500, INPUT};
  uint32_t order[INPUT];
  hbt_rng_displace(&world->rng, order, INPUT, disorders[hbt_rng_below(&world->rng, 4)]);
  for (size_t i = 0; i < INPUT; i++) world->input[i] = 1 + order[i] % EVENTS;
  memset(world->answers, 0, sizeof world->answers);
  memcpy(world->acked_before, world->acked, sizeof world->acked);
}

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  world->rng = hbt_rng_start("sigkill_test");
  world->frontier = 1;
  hbt_tempdir_init(&world->dir, "sigkill");
  hbt_server_init(&world->server, holdbackd, &world->dir);
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

/* ---- a producer without memory: client and appenders of one round */

struct producer {
  struct holdback_client *client;
  struct holdback_appender *appenders[APPENDERS];
};

static void producer_open(struct producer *producer, struct world *world, size_t appenders,
                          holdback_on_result *on_result_of) {
  struct holdback_options options = {.server = world->server.listen};
  struct holdback_error error = {0};
  *producer = (struct producer){0};
  assert_int_equal(holdback_client_create(&options, &producer->client, &error), HOLDBACK_OK);
  for (size_t i = 0; i < appenders; i++) {
    struct holdback_appender_options appending = {
        .stream = "s",
        .batch_events = 1 + hbt_rng_below(&world->rng, 200),
        .on_result = on_result_of,
        .context = world};
    assert_int_equal(
        holdback_appender_create(producer->client, &appending, &producer->appenders[i], &error),
        HOLDBACK_OK);
  }
}

static void producer_append(struct producer *producer, size_t which, uint64_t index,
                            uint32_t sequence) {
  struct hbt_made made;
  struct holdback_error error = {0};
  hbt_made(&made, sequence);
  if (holdback_append(producer->appenders[which], index, &made.event, &error) != HOLDBACK_OK) {
    fail_msg("append of %u: %s", sequence, error.message);
  }
}

static void producer_flush(struct producer *producer) {
  struct holdback_error error = {0};
  for (size_t i = 0; i < APPENDERS && producer->appenders[i]; i++) {
    if (holdback_appender_flush(producer->appenders[i], &error) != HOLDBACK_OK) {
      fail_msg("flush: %s", error.message);
    }
  }
}

/* Its thread is gone after this: what on_result wrote may be read. */
static void producer_close(struct producer *producer) {
  for (size_t i = 0; i < APPENDERS; i++) holdback_appender_destroy(producer->appenders[i]);
  holdback_client_destroy(producer->client);
}

static void create_stream(struct world *world, bool async_ack) {
  struct producer admin;
  struct holdback_error error = {0};
  struct holdback_stream_config config = {.name = "s", .first_sequence = 1, .async_ack = async_ack};
  producer_open(&admin, world, 0, NULL);
  assert_int_equal(holdback_stream_create(admin.client, &config, &error), HOLDBACK_OK);
  producer_close(&admin);
}

/* ---- what must hold once the server is back */

static struct holdback_stream_status read_status(struct world *world) {
  struct producer admin;
  struct holdback_stream_status status;
  struct holdback_error error = {0};
  producer_open(&admin, world, 0, NULL);
  if (holdback_stream_get(admin.client, "s", NULL, &status, &error) != HOLDBACK_OK) {
    fail_msg("status: %s", error.message);
  }
  producer_close(&admin);
  return status;
}

static void check_after_restart(struct world *world, struct hbt_follower *follower) {
  int64_t delivered_to = hbt_follower_next(follower);
  struct holdback_stream_status status = read_status(world);
  assert_true(status.frontier >= world->frontier); /* I5 */
  assert_true(status.frontier >= delivered_to);    /* I2; also: the follower has not failed */
  assert_true(status.complete_to >= status.frontier);
  world->frontier = status.frontier;
  assert_true(hbt_follow_once(world->server.listen, "s", 1, status.frontier));
  /* Everything answered is below the frontier or held. */
  uint64_t held = 0;
  for (int64_t i = status.frontier; i <= EVENTS; i++) held += world->acked[i];
  assert_true(status.held_events >= held); /* I1 */
}

/* Every block, row and index entry is what it should be, and what a kill left is gone. */
static void check_verified(struct world *world) {
  const char *arguments[] = {holdbackd, "--data-dir", world->server.data_dir, "--verify", NULL};
  assert_int_equal(hbt_server_stop(&world->server), 0);
  struct hbt_run run = hbt_run(arguments, NULL, 0, WAIT_MS);
  if (run.code) fail_msg("--verify: code %d, said: %s%s", run.code, run.out, run.err);
  hbt_run_done(&run);
}

static void check_end(struct world *world, struct hbt_follower *follower) {
  assert_true(hbt_follower_wait(follower, EVENTS + 1, WAIT_MS));
  struct holdback_stream_status status = read_status(world);
  assert_int_equal(status.frontier, EVENTS + 1);
  assert_int_equal(status.complete_to, EVENTS + 1);
  assert_int_equal(status.held_events, 0);
  assert_int_equal(status.gaps_total, 0);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, EVENTS + 1));
  assert_int_equal(world->lost, 0);
  assert_int_equal(world->unwanted, 0);
}

static void restart(struct world *world) {
  assert_true(hbt_server_start(&world->server));
  /* Sometimes at once again, while what recovery began still runs. */
  if (hbt_rng_below(&world->rng, 3) == 0) {
    hbt_server_kill(&world->server);
    assert_true(hbt_server_start(&world->server));
  }
}

/* Send up to `end` of this round's input, then pull the plug where not all was sent. */
static void send_and_kill(struct world *world, size_t end) {
  struct producer producer;
  producer_open(&producer, world, 1, on_result);
  for (size_t i = 0; i < end; i++) producer_append(&producer, 0, i, world->input[i]);
  if (end < INPUT) {
    hbt_server_kill(&world->server);
  } else {
    producer_flush(&producer);
  }
  producer_close(&producer);
}

static void run_rounds(struct world *world, bool async_ack) {
  create_stream(world, async_ack);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  const char *rounds = getenv("HOLDBACK_ROUNDS");
  for (long round = rounds ? strtol(rounds, NULL, 10) : ROUNDS; round > 0; round--) {
    shuffle(world);
    send_and_kill(world, hbt_rng_below(&world->rng, INPUT));
    restart(world);
    check_after_restart(world, follower);
  }
  shuffle(world);
  send_and_kill(world, INPUT);
  check_end(world, follower);
  assert_true(hbt_follower_destroy(follower));
  check_verified(world);
}

/* A producer that forgets all and sends all again, a subscriber that resumes: each event once. */
static void test_resend_all(void **state) { run_rounds(*state, false); }

/* ASYNC moves the answer ahead of the sync only: SIGKILL takes back nothing that was answered. */
static void test_resend_all_async(void **state) { run_rounds(*state, true); }

/* Appenders that live through the crashes: each event gets exactly one answer, none is lost. */
static void test_appenders_survive(void **state) {
  struct world *world = *state;
  struct producer producer;
  create_stream(world, false);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  shuffle(world);
  producer_open(&producer, world, APPENDERS, on_result);
  size_t next_kill = hbt_rng_below(&world->rng, INPUT / 3);
  for (size_t i = 0; i < INPUT; i++) {
    if (i == next_kill) {
      hbt_server_kill(&world->server);
      restart(world);
      next_kill += 1 + hbt_rng_below(&world->rng, INPUT / 3);
    }
    /* Each half goes to one appender, so that a run's indexes are consecutive. */
    size_t index = i % APPENDERS * (INPUT / APPENDERS) + i / APPENDERS;
    producer_append(&producer, i % APPENDERS, index, world->input[index]);
  }
  producer_flush(&producer);
  producer_close(&producer);
  for (size_t i = 0; i < INPUT; i++) assert_int_equal(world->answers[i], 1);
  check_end(world, follower);
  assert_true(hbt_follower_destroy(follower));
  check_verified(world);
}

/* A release that takes several commits is cut short: after the restart it goes on by itself. */
static void test_kill_in_long_release(void **state) {
  struct world *world = *state;
  struct producer producer;
  create_stream(world, false);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  producer_open(&producer, world, 1, NULL);
  for (uint32_t i = 2; i <= LONG_RELEASE; i++) producer_append(&producer, 0, i, i);
  producer_flush(&producer);
  producer_append(&producer, 0, 1, 1);
  producer_flush(&producer);
  hbt_server_kill(&world->server);
  print_message("killed when %lld of %d were delivered\n",
                (long long)hbt_follower_next(follower) - 1, LONG_RELEASE);
  assert_true(hbt_server_start(&world->server));
  assert_true(hbt_follower_wait(follower, LONG_RELEASE + 1, WAIT_MS));
  assert_true(hbt_follow_once(world->server.listen, "s", 1, LONG_RELEASE + 1));
  assert_int_equal(read_status(world).held_events, 0);
  producer_close(&producer);
  assert_true(hbt_follower_destroy(follower));
  check_verified(world);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  holdbackd = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_resend_all, setup, teardown),
      cmocka_unit_test_setup_teardown(test_resend_all_async, setup, teardown),
      cmocka_unit_test_setup_teardown(test_appenders_survive, setup, teardown),
      cmocka_unit_test_setup_teardown(test_kill_in_long_release, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
