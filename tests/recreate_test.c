/* A stream is deleted and made again while its clients run: the old ones are told, and nothing of
 * one life is ever seen in another.
 *
 * Each life has a producer and a subscriber that go on until they are refused. All lives use the
 * same name, sequences and keys, so only the payload (the life's number) tells them apart. */
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

#include "base/alloc.h"
#include "client/holdback.h"
#include "tests/lib/server.h"

enum { LIVES = 6, ENOUGH = 500, NEXT_MS = 30000 };

static const char *holdbackd;

struct life {
  const char *server;
  int number;
  pthread_t producer, subscriber;
  atomic_int received; /* by the subscriber */
  int producer_status; /* what refused it */
  int subscriber_status;
  int mixed; /* events of another life that the subscriber got */
};

static struct holdback_client *connect_to(const char *server) {
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = server};
  struct holdback_error error = {0};
  return holdback_client_create(&options, &client, &error) == HOLDBACK_OK ? client : NULL;
}

static void *producer_main(void *argument) {
  struct life *life = argument;
  struct holdback_client *client = connect_to(life->server);
  struct holdback_appender *appender = NULL;
  struct holdback_appender_options options = {.stream = "s", .batch_events = 20};
  struct holdback_error error = {0};
  int status = holdback_appender_create(client, &options, &appender, &error);
  for (int64_t sequence = 1; status == HOLDBACK_OK; sequence++) {
    struct holdback_event event = {
        .sequence = sequence, .key = {"key", 3}, .payload = {&life->number, sizeof life->number}};
    status = holdback_append(appender, (uint64_t)sequence, &event, &error);
    /* Not far ahead of the subscriber: a life is about its end, not about its size. */
    if (sequence > atomic_load(&life->received) + 2 * ENOUGH && status == HOLDBACK_OK) {
      status = holdback_appender_flush(appender, &error);
    }
  }
  life->producer_status = status;
  (void)printf("life %d: producer: %d %s\n", life->number, status, error.message);
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
  return NULL;
}

static void count_events(struct life *life, const struct holdback_message *message) {
  struct holdback_event event;
  int64_t position = 0;
  for (size_t cursor = 0; holdback_message_event(message, &cursor, &event, &position);) {
    if (event.payload.size != sizeof life->number ||
        memcmp(event.payload.data, &life->number, sizeof life->number) != 0) {
      life->mixed++;
    }
    atomic_fetch_add(&life->received, 1);
  }
}

static void *subscriber_main(void *argument) {
  struct life *life = argument;
  struct holdback_client *client = connect_to(life->server);
  struct holdback_subscription *subscription = NULL;
  struct holdback_subscribe_options options = {.stream = "s", .start = HOLDBACK_START_EARLIEST};
  struct holdback_error error = {0};
  int status = holdback_subscribe(client, &options, &subscription, &error);
  while (status == HOLDBACK_OK) {
    const struct holdback_message *message = NULL;
    status = holdback_next(subscription, NEXT_MS, &message, &error);
    if (status == HOLDBACK_OK && !message) status = HOLDBACK_DEADLINE_EXCEEDED;
    if (status == HOLDBACK_OK && holdback_message_kind(message) == HOLDBACK_MESSAGE_EVENTS) {
      count_events(life, message);
    }
  }
  life->subscriber_status = status;
  (void)printf("life %d: subscriber: %d %s\n", life->number, status, error.message);
  holdback_subscription_destroy(subscription);
  holdback_client_destroy(client);
  return NULL;
}

static void life_start(struct life *life, const char *server, int number) {
  *life = (struct life){.server = server, .number = number};
  assert_int_equal(pthread_create(&life->producer, NULL, producer_main, life), 0);
  assert_int_equal(pthread_create(&life->subscriber, NULL, subscriber_main, life), 0);
}

/* The clients of a life run until they have moved, so that the deletion meets calls under way. */
static void life_wait(struct holdback_client *admin) {
  struct holdback_error error = {0};
  struct holdback_subscription *subscription = NULL;
  struct holdback_subscribe_options options = {
      .stream = "s", .start = HOLDBACK_START_POSITION, .position = ENOUGH};
  const struct holdback_message *message = NULL;
  assert_int_equal(holdback_subscribe(admin, &options, &subscription, &error), HOLDBACK_OK);
  do {
    assert_int_equal(holdback_next(subscription, NEXT_MS, &message, &error), HOLDBACK_OK);
    assert_non_null(message);
  } while (holdback_message_kind(message) != HOLDBACK_MESSAGE_EVENTS);
  holdback_subscription_destroy(subscription);
}

static bool is_refusal(int status) {
  return status == HOLDBACK_NOT_FOUND || status == HOLDBACK_FAILED_PRECONDITION;
}

static void life_end(struct life *life) {
  pthread_join(life->producer, NULL);
  pthread_join(life->subscriber, NULL);
  assert_true(is_refusal(life->producer_status));
  assert_true(is_refusal(life->subscriber_status));
  assert_int_equal(life->mixed, 0);
}

static void create(struct holdback_client *admin) {
  struct holdback_stream_config config = {.name = "s", .first_sequence = 1};
  struct holdback_error error = {0};
  if (holdback_stream_create(admin, &config, &error) != HOLDBACK_OK) fail_msg("%s", error.message);
}

static void recreate(struct holdback_client *admin) {
  struct holdback_error error = {0};
  if (holdback_stream_delete(admin, "s", &error) != HOLDBACK_OK) fail_msg("%s", error.message);
  create(admin);
}

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *admin;
  struct life lives[LIVES]; /* not on a test's stack: threads outlive a failed test */
};

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "recreate");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  *state = world;
  if (!hbt_server_start(&world->server)) return -1;
  world->admin = connect_to(world->server.listen);
  create(world->admin);
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  holdback_client_destroy(world->admin);
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

/* Under running clients: NOT_FOUND or FAILED_PRECONDITION for the old, a clean stream for the new.
 */
static void test_clients_of_the_old_stream_are_refused(void **state) {
  struct world *world = *state;
  for (int i = 0; i < LIVES; i++) {
    life_start(&world->lives[i], world->server.listen, i + 1);
    life_wait(world->admin);
    recreate(world->admin);
  }
  for (int i = 0; i < LIVES; i++) life_end(&world->lives[i]);
}

/* The server dies and the stream is made again while the clients try to come back: what they hold
 * unanswered must not end up in the new stream. */
static void test_clients_come_back_to_another_stream(void **state) {
  struct world *world = *state;
  for (int i = 0; i < LIVES / 2; i++) {
    life_start(&world->lives[i], world->server.listen, i + 1);
    life_wait(world->admin);
    hbt_server_kill(&world->server);
    assert_true(hbt_server_start(&world->server));
    recreate(world->admin);
  }
  for (int i = 0; i < LIVES / 2; i++) life_end(&world->lives[i]);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  holdbackd = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_clients_of_the_old_stream_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(test_clients_come_back_to_another_stream, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
