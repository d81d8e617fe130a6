/* Many subscribers of which a few never read: all others get everything in order, and the server
 * pays little for those that don't (slow_readers_test.py says how little). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/abuse/abused.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"

enum { STALLED = 5, WAIT_MS = 240000 };
/* What else may live in the server: its log in memory, shared blocks (64), gRPC, RocksDB. */
enum { RSS_MAX_MIB = 400 };

/* More than a client reads ahead and a socket takes, so that who does not read stands still. */
static uint32_t events = 100000;
static size_t readers = 30;

struct stalled {
  struct holdback_client *client;
  struct holdback_subscription *subscription;
};

static void stall(struct stalled *stalled, const struct hbt_server *server) {
  struct holdback_subscribe_options options = {.stream = "s", .start = HOLDBACK_START_EARLIEST};
  struct holdback_error error = {0};
  stalled->client = hba_connect(server);
  if (holdback_subscribe(stalled->client, &options, &stalled->subscription, &error)) {
    fail_msg("subscribe: %s", error.message);
  }
}

/* It had stood still; reading again it gets all, in order. */
static void read_at_last(struct stalled *stalled) {
  const struct holdback_message *message = NULL;
  struct holdback_error error = {0};
  struct holdback_event event;
  int64_t position;
  for (int64_t next = 1; next <= events;) {
    if (holdback_next(stalled->subscription, WAIT_MS, &message, &error) || !message) {
      fail_msg("next: %s", error.message);
    }
    if (holdback_message_kind(message) != HOLDBACK_MESSAGE_EVENTS) continue;
    for (size_t cursor = 0; holdback_message_event(message, &cursor, &event, &position); next++) {
      assert_int_equal(event.sequence, next);
      assert_true(hbt_made_is(&event));
    }
  }
}

static void append_all(const struct hbt_server *server) {
  struct holdback_client *client = hba_connect(server);
  struct holdback_appender_options options = {.stream = "s"};
  struct holdback_appender *appender = NULL;
  struct holdback_error error = {0};
  assert_int_equal(holdback_appender_create(client, &options, &appender, &error), HOLDBACK_OK);
  for (uint32_t i = 1; i <= events; i++) {
    struct hbt_made made;
    hbt_made(&made, i);
    if (holdback_append(appender, i, &made.event, &error)) fail_msg("append: %s", error.message);
  }
  if (holdback_appender_flush(appender, &error)) fail_msg("flush: %s", error.message);
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
}

/* All on one stream; the five that don't read are the first to come. */
static void a_few_never_read(void **state) {
  struct hbt_server *server = &((struct hba_world *)*state)->server;
  struct stalled stalled[STALLED] = {{0}};
  struct hbt_follower **followers = hb_calloc(readers, sizeof(struct hbt_follower *));
  assert_true(hbt_server_start(server));
  hba_create_stream(server, "s");
  for (int i = 0; i < STALLED; i++) stall(&stalled[i], server);
  for (size_t i = 0; i < readers; i++) followers[i] = hbt_follower_start(server->listen, "s", 1);
  append_all(server);
  for (size_t i = 0; i < readers; i++) {
    assert_true(hbt_follower_wait(followers[i], events + 1, WAIT_MS));
  }
  uint64_t rss_mib = hba_server_check_rss(server, RSS_MAX_MIB);
  print_message("%zu read, %d don't: %llu MiB\n", readers, STALLED, (unsigned long long)rss_mib);
  read_at_last(&stalled[0]);
  for (size_t i = 0; i < readers; i++) assert_true(hbt_follower_destroy(followers[i]));
  for (int i = 0; i < STALLED; i++) {
    holdback_subscription_destroy(stalled[i].subscription);
    holdback_client_destroy(stalled[i].client);
  }
  hba_server_stop_clean(server);
  free(followers);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  hba_init(argv[1], "subscribers");
  if (hba_is_full(argc, argv)) readers = 195;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_few_never_read, hba_setup, hba_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
