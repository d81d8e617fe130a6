/* A producer that sends random history again, at full speed, beside one that sends what is new.
 *
 * Comparing content with what is stored is work for readers, not for the sequencer, and who asks
 * for much of it waits alone: the other goes on. In the gate that is all that is asked; --full
 * measures that it keeps at least half of the throughput that it has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/holdback.h"
#include "tests/abuse/abused.h"
#include "tests/lib/made.h"
#include "tests/lib/rng.h"

static bool full;
static uint32_t history = 200000;
static uint32_t fresh = 50000; /* sent alone, then as many again beside the other */

/* ---- the one that sends history again, on a thread of its own */

struct resender {
  const struct hbt_server *server; /* borrowed */
  struct hbt_rng rng;
  pthread_t thread;
  _Atomic bool stop;
  _Atomic uint64_t answered;
  _Atomic uint64_t unwanted; /* answered, and not DUPLICATE */
  struct holdback_error error;
};

static void on_again(void *context, const struct holdback_result *result) {
  struct resender *resender = context;
  atomic_fetch_add(&resender->answered, result->count);
  if (result->outcome != HOLDBACK_DUPLICATE) {
    atomic_fetch_add(&resender->unwanted, result->count);
  }
}

static void *resender_main(void *context) {
  struct resender *resender = context;
  struct holdback_client *client = NULL;
  struct holdback_appender *appender = NULL;
  struct holdback_options options = {.server = resender->server->listen};
  struct holdback_appender_options appending = {
      .stream = "s", .on_result = on_again, .context = resender};
  bool good =
      holdback_client_create(&options, &client, &resender->error) == HOLDBACK_OK &&
      holdback_appender_create(client, &appending, &appender, &resender->error) == HOLDBACK_OK;
  for (uint64_t index = 0; good && !resender->stop; index++) {
    struct hbt_made made;
    hbt_made(&made, 1 + (int64_t)hbt_rng_below(&resender->rng, history));
    good = holdback_append(appender, index, &made.event, &resender->error) == HOLDBACK_OK;
  }
  if (good) (void)holdback_appender_flush(appender, &resender->error);
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return NULL;
}

/* ---- the one that sends what is new */

/* [first, end), all STORED. Returns the time it took. */
static uint64_t append(const struct hbt_server *server, uint32_t first, uint32_t end) {
  struct holdback_client *client = hba_connect(server);
  struct holdback_appender_options options = {.stream = "s"};
  struct holdback_appender *appender = NULL;
  struct holdback_append_progress progress;
  struct holdback_error error = {0};
  assert_int_equal(holdback_appender_create(client, &options, &appender, &error), HOLDBACK_OK);
  uint64_t began_ms = hb_clock_mono_ms();
  for (uint32_t i = first; i < end; i++) {
    struct hbt_made made;
    hbt_made(&made, i);
    if (holdback_append(appender, i, &made.event, &error)) fail_msg("append: %s", error.message);
  }
  if (holdback_appender_flush(appender, &error)) fail_msg("flush: %s", error.message);
  uint64_t took_ms = hb_clock_mono_ms() - began_ms;
  holdback_appender_progress(appender, &progress);
  assert_int_equal(progress.stored, end - first);
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return took_ms ? took_ms : 1;
}

static void check_share(uint64_t alone_ms, uint64_t beside_ms, uint64_t answered) {
  double share = (double)alone_ms / (double)beside_ms;
  print_message("%u new events: %llu ms alone, %llu ms beside %llu old ones: %.2f\n", fresh,
                (unsigned long long)alone_ms, (unsigned long long)beside_ms,
                (unsigned long long)answered, share);
  if (full && share < 0.5) fail_msg("its share is %.2f, expected at least 0.5", share);
}

static void history_beside_news(void **state) {
  struct hbt_server *server = &((struct hba_world *)*state)->server;
  server->flags[0] = "--shared-blocks-max=1MiB"; /* history is on the disk */
  assert_true(hbt_server_start(server));
  hba_create_stream(server, "s");
  uint32_t next = 1 + history;
  (void)append(server, 1, next);
  uint64_t alone_ms = append(server, next, next + fresh);
  next += fresh;
  struct resender resender = {.server = server, .rng = hbt_rng_start("history_test")};
  assert_int_equal(pthread_create(&resender.thread, NULL, resender_main, &resender), 0);
  while (atomic_load(&resender.answered) == 0) hba_status(server, "s");
  uint64_t before = atomic_load(&resender.answered);
  uint64_t beside_ms = append(server, next, next + fresh);
  uint64_t answered = atomic_load(&resender.answered) - before;
  resender.stop = true;
  pthread_join(resender.thread, NULL);
  if (resender.error.status) fail_msg("history: %s", resender.error.message);
  assert_int_equal(resender.unwanted, 0);
  check_share(alone_ms, beside_ms, answered);
  struct holdback_stream_status status = hba_status(server, "s");
  assert_int_equal(status.frontier, next + fresh);
  assert_int_equal(status.stored_total, history + 2 * fresh);
  assert_true(status.duplicate_total >= answered);
  hba_server_stop_clean(server);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  hba_init(argv[1], "history");
  full = hba_is_full(argc, argv);
  if (full) history *= 10;
  if (full) fresh *= 20;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(history_beside_news, hba_setup, hba_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
