/* A disk of 256 MB that fills up: what is refused, what still works, and that all goes on when
 * there is room, in the same process or in the next one.
 *
 * Floor and reserve are small, and so is what is held: a file on the same disk takes the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"
#include "tests/lib/mount.h"
#include "tests/lib/server.h"

#define MIB (UINT64_C(1) << 20)

enum { WAIT_MS = 30000, HELD = 120000, LIVE = 1000000 };

/* 64 MiB + wal_bytes_max; the reserve counts as 64 MiB more, and twice what is held. */
#define FLOOR (72 * MIB)

static const char *holdbackd;
static char faulty[4096]; /* a library that makes the server believe in free space */

struct world {
  struct hbt_tempdir dir;
  char disk[HBT_PATH_SIZE];
  char ballast[HBT_PATH_SIZE]; /* takes what the test doesn't need */
  char filler[HBT_PATH_SIZE];  /* takes the rest */
  struct hbt_server server;
};

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "diskfull");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  hbt_tempdir_join(&world->dir, "disk", world->disk);
  if (mkdir(world->disk, 0700) || !hbt_mount(world->disk, 256 * MIB)) return -1;
  hbt_tempdir_join(&world->dir, "disk/ballast", world->ballast);
  hbt_tempdir_join(&world->dir, "disk/filler", world->filler);
  hbt_tempdir_join(&world->dir, "disk/data", world->server.data_dir);
  world->server.flags[0] = "--disk-reserve=16MiB";
  world->server.flags[1] = "--wal-bytes-max=8MiB";
  *state = world;
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  hbt_server_done(&world->server);
  hbt_unmount(world->disk);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

static void wait_log(struct world *world, const char *what) {
  char line[512];
  if (hbt_child_wait_line(world->server.child, HBT_ERR, what, WAIT_MS, line, sizeof line)) return;
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  (void)fprintf(stderr, "no %s in:\n%s\n", what, log);
  free(log);
  fail();
}

static size_t count_log(struct world *world, const char *what) {
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  size_t count = 0;
  for (const char *at = log; (at = strstr(at, what)) != NULL; at++) count++;
  free(log);
  return count;
}

/* ---- a client */

struct producer {
  struct holdback_client *client;
  struct holdback_appender *appender;
  uint64_t outcomes[8];
  int reason; /* of the last refusal */
};

static void on_result(void *context, const struct holdback_result *result) {
  struct producer *producer = context;
  producer->outcomes[result->outcome] += result->count;
  if (result->outcome == HOLDBACK_WINDOW_FULL) producer->reason = result->reason;
}

static void producer_open(struct producer *producer, struct world *world,
                          uint32_t window_timeout_ms) {
  struct holdback_options options = {.server = world->server.listen};
  struct holdback_error error = {0};
  memset(producer, 0, sizeof *producer);
  assert_int_equal(holdback_client_create(&options, &producer->client, &error), HOLDBACK_OK);
  struct holdback_appender_options appending = {.stream = "s",
                                                .window_timeout_ms = window_timeout_ms,
                                                .on_result = on_result,
                                                .context = producer};
  assert_int_equal(
      holdback_appender_create(producer->client, &appending, &producer->appender, &error),
      HOLDBACK_OK);
}

static void producer_close(struct producer *producer) {
  holdback_appender_destroy(producer->appender);
  holdback_client_destroy(producer->client);
}

static void create_stream(struct world *world) {
  struct producer admin;
  struct holdback_error error = {0};
  struct holdback_stream_config config = {.name = "s", .first_sequence = 1};
  producer_open(&admin, world, 0);
  assert_int_equal(holdback_stream_create(admin.client, &config, &error), HOLDBACK_OK);
  producer_close(&admin);
}

static int append(struct producer *producer, int64_t sequence, struct holdback_error *error) {
  struct hbt_made made;
  hbt_made(&made, sequence);
  return holdback_append(producer->appender, (uint64_t)sequence, &made.event, error);
}

/* One event, by a client of its own; the outcome, or minus the status. */
static int put_one(struct world *world, int64_t sequence, int *out_reason,
                   struct holdback_error *error) {
  struct producer producer;
  producer_open(&producer, world, 1);
  int status = append(&producer, sequence, error);
  if (status == HOLDBACK_OK) status = holdback_appender_flush(producer.appender, error);
  int outcome = 0;
  for (int i = 1; i < 8; i++) {
    if (producer.outcomes[i]) outcome = i;
  }
  producer_close(&producer);
  if (out_reason) *out_reason = producer.reason;
  return outcome ? outcome : -status;
}

static struct holdback_stream_status status_of(struct world *world) {
  struct producer admin;
  struct holdback_stream_status status;
  struct holdback_error error = {0};
  producer_open(&admin, world, 0);
  if (holdback_stream_get(admin.client, "s", NULL, &status, &error) != HOLDBACK_OK) {
    fail_msg("status: %s", error.message);
  }
  producer_close(&admin);
  return status;
}

/* ---- held until refused, then released */

/* Events that wait are taken until the reserve is reached; the event that fills the gap is stored
 * all the same, and everything comes out, what was refused before included. */
static void fill_and_release(struct world *world) {
  struct producer producer;
  struct holdback_error error = {0};
  producer_open(&producer, world, 0);
  for (int64_t i = 2; i <= HELD; i++) assert_int_equal(append(&producer, i, &error), HOLDBACK_OK);
  wait_log(world, "event=disk_reserve");
  int reason = 0;
  assert_int_equal(put_one(world, HELD, &reason, &error), HOLDBACK_WINDOW_FULL);
  assert_string_equal(holdback_reason_name(reason), "DISK_RESERVE");
  struct holdback_stream_status status = status_of(world);
  assert_true(status.held_events > 1000 && status.held_events < HELD - 1);
  assert_int_equal(put_one(world, 1, NULL, &error), HOLDBACK_STORED);
  if (holdback_appender_flush(producer.appender, &error) != HOLDBACK_OK) {
    fail_msg("flush: %s", error.message);
  }
  assert_int_equal(producer.outcomes[HOLDBACK_STORED], HELD - 1);
  producer_close(&producer);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, HELD + 1));
  assert_int_equal(status_of(world).held_events, 0);
}

/* No room at all: appends are refused with the way out, reading goes on. */
static void fill_completely(struct world *world) {
  struct holdback_error error = {0};
  hbt_disk_fill(world->filler, 0);
  wait_log(world, "event=disk_floor");
  assert_int_equal(put_one(world, HELD + 1, NULL, &error), -HOLDBACK_RESOURCE_EXHAUSTED);
  assert_string_equal(error.reason, "DISK_FLOOR");
  assert_non_null(strstr(error.message, "writing needs 75497472"));
  assert_non_null(strstr(error.message, world->server.data_dir));
  assert_true(hbt_follow_once(world->server.listen, "s", 1, HELD + 1));
}

/* A start without enough room ends with 74 and says why, and harms nothing; true: there was enough.
 */
static bool start_with(struct world *world, uint64_t free_bytes) {
  (void)unlink(world->filler);
  hbt_disk_fill(world->filler, free_bytes);
  const char *const arguments[] = {holdbackd,
                                   "--data-dir",
                                   world->server.data_dir,
                                   "--listen",
                                   world->server.listen,
                                   world->server.flags[0],
                                   world->server.flags[1],
                                   NULL};
  struct hbt_child *child = hbt_child_start(arguments, NULL, 0);
  char line[512];
  bool ready = hbt_child_wait_line(child, HBT_ERR, "event=ready", WAIT_MS, line, sizeof line);
  int code = -1;
  if (!ready) assert_true(hbt_child_wait(child, WAIT_MS, &code));
  char *log = hbt_child_text(child, HBT_ERR, NULL);
  bool refused = strstr(log, "event=refused part=engine exit=74 reason=NO_SPACE") != NULL;
  if (!ready && (code != 74 || !refused)) {
    fail_msg("%llu bytes free: exit %d:\n%s", (unsigned long long)free_bytes, code, log);
  }
  free(log);
  hbt_child_destroy(child); /* SIGKILL, where it runs */
  return ready;
}

/* From no room at all to enough: whatever step of opening finds the disk full. */
static void start_in_vain(struct world *world) {
  assert_false(start_with(world, 0));
  uint64_t free_bytes = 4096;
  while (!start_with(world, free_bytes)) free_bytes += 4096 + free_bytes / 3;
  print_message("a start needed %llu KiB\n", (unsigned long long)free_bytes / 1024);
  assert_true(free_bytes < FLOOR);
}

static void held_then_full_then_killed(void **state) {
  struct world *world = *state;
  struct holdback_error error = {0};
  assert_true(hbt_server_start(&world->server));
  create_stream(world);
  hbt_disk_fill(world->ballast, FLOOR + 100 * MIB);
  fill_and_release(world);
  fill_completely(world);
  hbt_server_kill(&world->server);
  start_in_vain(world);
  assert_int_equal(unlink(world->filler), 0);
  assert_int_equal(unlink(world->ballast), 0);
  assert_true(hbt_server_start(&world->server));
  assert_true(hbt_follow_once(world->server.listen, "s", 1, HELD + 1));
  assert_int_equal(put_one(world, HELD, NULL, &error), HOLDBACK_DUPLICATE);
  assert_int_equal(put_one(world, HELD + 1, NULL, &error), HOLDBACK_STORED);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, HELD + 2));
  assert_int_equal(hbt_server_stop(&world->server), 0);
}

/* Deleting a stream is a way out: it works below the floor, and ingest goes on. */
static void deleting_makes_room(void **state) {
  struct world *world = *state;
  struct holdback_error error = {0};
  assert_true(hbt_server_start(&world->server));
  create_stream(world);
  struct producer producer;
  producer_open(&producer, world, 0);
  for (int64_t i = 1; i <= 2 * HELD; i++) {
    assert_int_equal(append(&producer, i, &error), HOLDBACK_OK);
  }
  assert_int_equal(holdback_appender_flush(producer.appender, &error), HOLDBACK_OK);
  hbt_disk_fill(world->filler, FLOOR - MIB);
  wait_log(world, "event=disk_floor");
  assert_int_equal(put_one(world, 2 * HELD + 1, NULL, &error), -HOLDBACK_RESOURCE_EXHAUSTED);
  assert_int_equal(holdback_stream_delete(producer.client, "s", &error), HOLDBACK_OK);
  producer_close(&producer);
  wait_log(world, "event=disk_reserve");
  create_stream(world);
  assert_int_equal(put_one(world, 1, NULL, &error), HOLDBACK_STORED);
}

/* ---- full under a running load */

struct load {
  struct world *world;
  pthread_t thread;
  _Atomic int64_t next; /* everything below is answered */
  _Atomic bool stop;
};

/* In order, each batch answered before the next; after an error with a new client from there on.
 * What was in an unknown commit is a DUPLICATE then, or STORED. */
static void *produce(void *context) {
  struct load *load = context;
  while (!atomic_load(&load->stop) && atomic_load(&load->next) < LIVE) {
    struct producer producer;
    struct holdback_error error = {0};
    producer_open(&producer, load->world, 0);
    int status = HOLDBACK_OK;
    while (status == HOLDBACK_OK && !atomic_load(&load->stop)) {
      int64_t first = atomic_load(&load->next);
      for (int64_t i = first; status == HOLDBACK_OK && i < first + 50; i++) {
        status = append(&producer, i, &error);
      }
      if (status == HOLDBACK_OK) status = holdback_appender_flush(producer.appender, &error);
      if (status == HOLDBACK_OK) atomic_store(&load->next, first + 50);
    }
    producer_close(&producer);
  }
  return NULL;
}

static void wait_for_more(struct load *load, struct hbt_follower *follower) {
  assert_true(hbt_follower_wait_beyond(follower, atomic_load(&load->next) + 2000, WAIT_MS));
}

/* In the lines of disk_floor and disk_full, and in no other. */
#define STOPPED "level=error event=disk_f"

/* All space goes at once, between two looks at it, so that writes meet a full disk; it comes back,
 * and so does ingest, in the same process; the subscriber has every event once. */
static void full_under_load(void **state) {
  enum { ROUNDS = 4 };
  struct world *world = *state;
  assert_true(hbt_server_start(&world->server));
  create_stream(world);
  pid_t pid = hbt_child_pid(world->server.child);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  struct load load = {.world = world, .next = 1};
  assert_int_equal(pthread_create(&load.thread, NULL, produce, &load), 0);
  for (size_t round = 1; round <= ROUNDS; round++) {
    wait_for_more(&load, follower);
    size_t before = count_log(world, STOPPED);
    hbt_disk_fill(world->filler, 0);
    assert_true(hbt_child_wait_count(world->server.child, HBT_ERR, STOPPED, before + 1, WAIT_MS));
    assert_int_equal(unlink(world->filler), 0);
  }
  wait_for_more(&load, follower);
  atomic_store(&load.stop, true);
  pthread_join(load.thread, NULL);
  int64_t next = atomic_load(&load.next);
  assert_true(hbt_follower_wait_beyond(follower, next, WAIT_MS));
  assert_true(hbt_follower_destroy(follower));
  assert_int_equal(hbt_child_pid(world->server.child), pid);
  print_message("%zu times full, %zu times at the floor, %zu times opened again, %lld events\n",
                count_log(world, "event=disk_full"), count_log(world, "event=disk_floor"),
                count_log(world, "event=store_reopened"), (long long)next);
  assert_true(hbt_follow_once(world->server.listen, "s", 1, next));
  assert_int_equal(hbt_server_stop(&world->server), 0);
  assert_true(hbt_server_start(&world->server));
  assert_true(hbt_follow_once(world->server.listen, "s", 1, next));
}

static void believe_in_space(struct world *world, bool believe) {
  char path[HBT_PATH_SIZE];
  hbt_tempdir_join(&world->dir, "statvfs_plenty", path);
  if (believe) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
  } else {
    assert_int_equal(unlink(path), 0);
  }
}

/* A server that does not see the disk fill up writes until it is full, and can't even open the
 * store again; when it sees, and there is room, it does and goes on, in the same process. */
static void full_unseen(void **state) {
  struct world *world = *state;
  setenv("HB_FAULTY_DIR", world->dir.path, 1);
  setenv("LD_PRELOAD", faulty, 1);
  bool ready = hbt_server_start(&world->server);
  unsetenv("LD_PRELOAD");
  assert_true(ready);
  create_stream(world);
  struct hbt_follower *follower = hbt_follower_start(world->server.listen, "s", 1);
  struct load load = {.world = world, .next = 1};
  assert_int_equal(pthread_create(&load.thread, NULL, produce, &load), 0);
  wait_for_more(&load, follower);
  believe_in_space(world, true);
  hbt_disk_fill(world->filler, 0);
  wait_log(world, "event=disk_full");
  wait_log(world, "event=reopen_delayed");
  assert_int_equal(unlink(world->filler), 0);
  believe_in_space(world, false);
  wait_log(world, "event=store_reopened");
  wait_for_more(&load, follower);
  atomic_store(&load.stop, true);
  pthread_join(load.thread, NULL);
  int64_t next = atomic_load(&load.next);
  assert_true(hbt_follower_wait_beyond(follower, next, WAIT_MS));
  assert_true(hbt_follower_destroy(follower));
  assert_true(hbt_follow_once(world->server.listen, "s", 1, next));
  assert_int_equal(hbt_server_stop(&world->server), 0);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  if (!realpath(argv[2], faulty)) return 2;
  char why[256];
  if (!hbt_mount_allowed(why, sizeof why)) {
    (void)printf("SKIPPED: this test needs a small disk, which can't be mounted here: %s\n", why);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(held_then_full_then_killed, setup, teardown),
      cmocka_unit_test_setup_teardown(deleting_makes_room, setup, teardown),
      cmocka_unit_test_setup_teardown(full_under_load, setup, teardown),
      cmocka_unit_test_setup_teardown(full_unseen, setup, teardown),
  };
  hbt_allow_preload();
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
