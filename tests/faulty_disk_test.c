/* A disk that fails under a running server: a sync, after which nothing may be believed any more,
 * and a write that finds no space, after which all goes on in the same process (I1, I2, I6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"
#include "tests/lib/server.h"

enum { EVENTS = 4000, BATCH = 100, WAIT_MS = 20000, PAUSE_MS_MAX = 5000 };

static const char *holdbackd;
static char faulty[4096]; /* the preloaded library */

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *client;
  struct holdback_appender *appender;
  bool acked[EVENTS + 1]; /* by sequence; results come with it as index */
  uint32_t outcomes[8];
};

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "faulty");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  setenv("HB_FAULTY_DIR", world->dir.path, 1);
  *state = world;
  return 0;
}

static void close_producer(struct world *world) {
  holdback_appender_destroy(world->appender);
  holdback_client_destroy(world->client);
  world->appender = NULL;
  world->client = NULL;
}

static int teardown(void **state) {
  struct world *world = *state;
  close_producer(world);
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

/* With the library, or as it is. */
static void start(struct world *world, bool with_faults) {
  if (with_faults) setenv("LD_PRELOAD", faulty, 1);
  bool ready = hbt_server_start(&world->server);
  unsetenv("LD_PRELOAD");
  assert_true(ready);
}

static void set_fault(struct world *world, const char *name, bool on) {
  char path[HBT_PATH_SIZE];
  hbt_tempdir_join(&world->dir, name, path);
  if (on) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
  } else {
    assert_int_equal(unlink(path), 0);
  }
}

static void on_result(void *context, const struct holdback_result *result) {
  struct world *world = context;
  for (uint32_t i = 0; i < result->count; i++) world->acked[result->index + i] = true;
  world->outcomes[result->outcome] += result->count;
}

static void open_producer(struct world *world, uint32_t reconnect_timeout_ms) {
  struct holdback_options options = {.server = world->server.listen};
  struct holdback_error error = {0};
  assert_int_equal(holdback_client_create(&options, &world->client, &error), HOLDBACK_OK);
  struct holdback_appender_options appending = {.stream = "s",
                                                .batch_events = BATCH,
                                                .reconnect_timeout_ms = reconnect_timeout_ms,
                                                .on_result = on_result,
                                                .context = world};
  assert_int_equal(holdback_appender_create(world->client, &appending, &world->appender, &error),
                   HOLDBACK_OK);
}

static void create_stream(struct world *world, bool async_ack) {
  struct holdback_error error = {0};
  struct holdback_stream_config config = {.name = "s", .first_sequence = 1, .async_ack = async_ack};
  assert_int_equal(holdback_stream_create(world->client, &config, &error), HOLDBACK_OK);
}

/* [from, to), and until it is answered. */
static int append_range(struct world *world, int64_t from, int64_t to) {
  struct holdback_error error = {0};
  for (int64_t i = from; i < to; i++) {
    struct hbt_made made;
    hbt_made(&made, i);
    int status = holdback_append(world->appender, (uint64_t)i, &made.event, &error);
    if (status != HOLDBACK_OK) return status;
  }
  return holdback_appender_flush(world->appender, &error);
}

static size_t count_lines(const char *text, const char *what) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) count++;
  return count;
}

/* ---- a sync that fails */

/* The server says so in one line and is gone with 74; what it acknowledged before is there when it
 * comes back, and it acknowledged nothing afterwards. */
static void sync_fails(struct world *world, const char *fault, bool async_ack) {
  start(world, true);
  open_producer(world, 500);
  create_stream(world, async_ack);
  assert_int_equal(append_range(world, 1, 1001), HOLDBACK_OK);
  assert_int_equal(append_range(world, 1501, 2001), HOLDBACK_OK); /* held */
  set_fault(world, fault, true);
  int status = append_range(world, 1001, 1201);
  /* ASYNC answers before the sync that fails: these must be there too, after an end of the process
   * alone. */
  if (!async_ack) assert_int_not_equal(status, HOLDBACK_OK);
  int code = 0;
  assert_true(hbt_child_wait(world->server.child, WAIT_MS, &code));
  assert_int_equal(code, 74);
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  assert_int_equal(count_lines(log, "level=error"), 1);
  assert_int_equal(count_lines(log, "event=fatal exit=74"), 1);
  assert_non_null(strstr(log, "fdatasync"));
  free(log);
  close_producer(world);
  if (!async_ack) {
    for (int64_t i = 1001; i < 1201; i++) assert_false(world->acked[i]);
  }
  bool acked[EVENTS + 1];
  memcpy(acked, world->acked, sizeof acked);
  set_fault(world, fault, false);
  hbt_server_kill(&world->server);
  start(world, false);
  open_producer(world, 0);
  memset(world->outcomes, 0, sizeof world->outcomes);
  uint32_t before = 0;
  for (int64_t i = 1; i <= EVENTS; i++) {
    if (!acked[i]) continue;
    before++;
    assert_int_equal(append_range(world, i, i + 1), HOLDBACK_OK);
  }
  assert_true(before >= 1500);
  assert_int_equal(world->outcomes[HOLDBACK_DUPLICATE], before);
  assert_int_equal(append_range(world, 1001, 1501), HOLDBACK_OK);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, 2001));
}

static void sync_eio(void **state) { sync_fails(*state, "sync_eio", false); }

static void sync_eio_async(void **state) { sync_fails(*state, "sync_eio", true); }

/* Whatever errno it has: no space at a sync is not what no space at a write is. */
static void sync_enospc(void **state) { sync_fails(*state, "sync_enospc", false); }

/* ---- a write that finds no space */

/* The store is opened again in the same process. A producer sends again what was not answered, each
 * event gets one answer; a subscriber goes on at its cursor, without loss or repeat. */
static void write_enospc(void **state) {
  struct world *world = *state;
  start(world, true);
  pid_t pid = hbt_child_pid(world->server.child);
  open_producer(world, 0);
  create_stream(world, false);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  for (int64_t from = 1; from < EVENTS; from += 1000) {
    assert_int_equal(append_range(world, from + 500, from + 1000), HOLDBACK_OK); /* held */
    set_fault(world, "write_enospc", true);
    assert_int_equal(append_range(world, from, from + 500), HOLDBACK_OK);
    assert_true(hbt_follower_wait(follower, from + 1000, WAIT_MS));
  }
  assert_int_equal(world->outcomes[HOLDBACK_STORED] + world->outcomes[HOLDBACK_DUPLICATE], EVENTS);
  assert_int_equal(hbt_child_pid(world->server.child), pid);
  char line[512];
  char ms[32];
  assert_true(hbt_child_wait_line(world->server.child, HBT_ERR, "event=store_reopened", 0, line,
                                  sizeof line));
  assert_true(hbt_log_value(line, "ms", ms, sizeof ms));
  assert_true(strtoll(ms, NULL, 10) < PAUSE_MS_MAX);
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  assert_int_equal(count_lines(log, "event=disk_full"), EVENTS / 1000);
  assert_int_equal(count_lines(log, "event=store_reopened"), EVENTS / 1000);
  assert_int_equal(count_lines(log, "event=disk_ok"), EVENTS / 1000);
  free(log);
  assert_true(hbt_follower_destroy(follower));
  close_producer(world);
  assert_int_equal(hbt_server_stop(&world->server), 0);
  start(world, false);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, EVENTS + 1));
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  if (!realpath(argv[2], faulty)) return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(sync_eio, setup, teardown),
      cmocka_unit_test_setup_teardown(sync_eio_async, setup, teardown),
      cmocka_unit_test_setup_teardown(sync_enospc, setup, teardown),
      cmocka_unit_test_setup_teardown(write_enospc, setup, teardown),
  };
  hbt_allow_preload();
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
