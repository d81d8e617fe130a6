/* Many producers that send overlapping ranges at once: delivered is exactly 1..N, and their
 * outcomes fit together: each event was STORED for just one of them, DUPLICATE for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/abuse/abused.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"
#include "tests/lib/rng.h"

enum { PRODUCERS = 64, WAIT_MS = 60000, FULL_TIMES = 20 };

static uint32_t events = 12000;

/* One thread each; what it counts is read when it has ended. */
struct producer {
  const struct hbt_server *server; /* borrowed */
  struct hbt_rng rng;
  pthread_t thread;
  uint32_t first; /* of its own part of 1..events; it sends others' too */
  uint32_t end;
  uint64_t sent;
  uint64_t answered;
  uint64_t stored;
  uint64_t duplicate;
  uint64_t other;
  struct holdback_error error; /* of what failed, where status is not OK */
};

static void on_result(void *context, const struct holdback_result *result) {
  struct producer *producer = context;
  producer->answered += result->count;
  if (result->outcome == HOLDBACK_STORED) {
    producer->stored += result->count;
  } else if (result->outcome == HOLDBACK_DUPLICATE) {
    producer->duplicate += result->count;
  } else {
    producer->other += result->count;
  }
}

static bool send(struct producer *producer, struct holdback_appender *appender, uint32_t sequence) {
  struct hbt_made made;
  hbt_made(&made, sequence);
  return holdback_append(appender, producer->sent++, &made.event, &producer->error) == HOLDBACK_OK;
}

/* A range somewhere, upwards or downwards. */
static bool send_range(struct producer *producer, struct holdback_appender *appender) {
  uint32_t size = 1 + (uint32_t)hbt_rng_below(&producer->rng, events / 8);
  uint32_t first = 1 + (uint32_t)hbt_rng_below(&producer->rng, events - size + 1);
  bool down = hbt_rng_below(&producer->rng, 2) == 0;
  for (uint32_t i = 0; i < size; i++) {
    if (!send(producer, appender, down ? first + size - 1 - i : first + i)) return false;
  }
  return true;
}

static bool produce(struct producer *producer, struct holdback_appender *appender) {
  for (int i = 0; i < 2; i++) {
    if (!send_range(producer, appender)) return false;
  }
  for (uint32_t i = producer->first; i < producer->end; i++) {
    if (!send(producer, appender, i)) return false;
  }
  return send_range(producer, appender) &&
         holdback_appender_flush(appender, &producer->error) == HOLDBACK_OK;
}

static void *producer_main(void *context) {
  struct producer *producer = context;
  struct holdback_options options = {.server = producer->server->listen};
  struct holdback_client *client = NULL;
  struct holdback_appender *appender = NULL;
  struct holdback_appender_options appending = {
      .stream = "s",
      .batch_events = 1 + (size_t)hbt_rng_below(&producer->rng, 500),
      .on_result = on_result,
      .context = producer};
  if (holdback_client_create(&options, &client, &producer->error) == HOLDBACK_OK &&
      holdback_appender_create(client, &appending, &appender, &producer->error) == HOLDBACK_OK) {
    (void)produce(producer, appender);
  }
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return NULL;
}

static void check(const struct producer *producers) {
  uint64_t sent = 0;
  uint64_t stored = 0;
  uint64_t duplicate = 0;
  for (int i = 0; i < PRODUCERS; i++) {
    const struct producer *producer = &producers[i];
    if (producer->error.status) fail_msg("producer %d: %s", i, producer->error.message);
    assert_int_equal(producer->answered, producer->sent);
    assert_int_equal(producer->other, 0);
    sent += producer->sent;
    stored += producer->stored;
    duplicate += producer->duplicate;
  }
  assert_int_equal(stored, events);
  assert_int_equal(stored + duplicate, sent);
  print_message("%d producers sent %llu events for %u\n", PRODUCERS, (unsigned long long)sent,
                events);
}

/* 64 of them, and one subscriber that accepts nothing but the next event. */
static void overlapping_ranges(void **state) {
  struct hbt_server *server = &((struct hba_world *)*state)->server;
  struct hbt_rng rng = hbt_rng_start("producers_test");
  struct producer *producers = hb_calloc(PRODUCERS, sizeof *producers);
  assert_true(hbt_server_start(server));
  hba_create_stream(server, "s");
  struct hbt_follower *follower = hbt_follower_start(server->listen, "s", 1);
  for (uint32_t i = 0; i < PRODUCERS; i++) {
    producers[i] = (struct producer){.server = server,
                                     .rng = {hbt_rng_next(&rng)},
                                     .first = 1 + i * events / PRODUCERS,
                                     .end = 1 + (i + 1) * events / PRODUCERS};
    assert_int_equal(pthread_create(&producers[i].thread, NULL, producer_main, &producers[i]), 0);
  }
  for (int i = 0; i < PRODUCERS; i++) pthread_join(producers[i].thread, NULL);
  check(producers);
  assert_true(hbt_follower_wait(follower, events + 1, WAIT_MS));
  assert_true(hbt_follower_destroy(follower));
  assert_true(hbt_follow_once(server->listen, "s", 1, events + 1));
  struct holdback_stream_status status = hba_status(server, "s");
  assert_int_equal(status.stored_total, events);
  assert_int_equal(status.conflict_total, 0);
  assert_int_equal(status.held_events, 0);
  hba_server_stop_clean(server);
  free(producers);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  hba_init(argv[1], "producers");
  if (hba_is_full(argc, argv)) events *= FULL_TIMES;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(overlapping_ranges, hba_setup, hba_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
