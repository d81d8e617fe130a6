/* T9 of tests/README.md: a subscription whose first attempts to come back fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/holdback.h"
#include "tests/lib/follower.h"
#include "tests/lib/made.h"
#include "tests/lib/server.h"

enum { WAIT_MS = 30000 };

static const char *holdbackd;

static void append(const struct hbt_server *server, int64_t from, int64_t to) {
  struct holdback_options options = {.server = server->listen};
  struct holdback_error error = {0};
  struct holdback_client *client;
  assert_int_equal(holdback_client_create(&options, &client, &error), HOLDBACK_OK);
  struct holdback_appender_options appending = {.stream = "default"};
  struct holdback_appender *appender;
  assert_int_equal(holdback_appender_create(client, &appending, &appender, &error), HOLDBACK_OK);
  for (int64_t i = from; i < to; i++) {
    struct hbt_made made;
    hbt_made(&made, i);
    assert_int_equal(holdback_append(appender, (uint64_t)i, &made.event, &error), HOLDBACK_OK);
  }
  assert_int_equal(holdback_appender_flush(appender, &error), HOLDBACK_OK);
  holdback_appender_destroy(appender);
  holdback_client_destroy(client);
}

/* Stands at the server's address, takes `count` connections and closes each at once. */
static void refuse(const struct hbt_server *server, int count) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char *path = server->listen + strlen("unix:");
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  (void)unlink(path);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(listener, 8), 0);
  for (int i = 0; i < count; i++) {
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    int connection = accept(listener, NULL, NULL);
    assert_true(connection >= 0);
    close(connection);
  }
  close(listener);
  (void)unlink(path);
}

/* T9, nats.c 601: coming back fails twice: the third attempt resumes where it was. */
static void t9_the_third_attempt_resumes(void **state) {
  (void)state;
  struct hbt_tempdir dir;
  struct hbt_server server;
  hbt_tempdir_init(&dir, "reconnect");
  hbt_server_init(&server, holdbackd, &dir);
  assert_true(hbt_server_start(&server));
  append(&server, 1, 101);
  struct hbt_follower *follower = hbt_follower_start(server.listen, "default", 1);
  assert_true(hbt_follower_wait(follower, 101, WAIT_MS));
  hbt_server_kill(&server);
  refuse(&server, 2);
  assert_true(hbt_server_start(&server));
  append(&server, 101, 201);
  assert_true(hbt_follower_wait(follower, 201, WAIT_MS));
  assert_true(hbt_follower_destroy(follower));
  hbt_server_done(&server);
  hbt_tempdir_done(&dir);
}

int main(int argc, char **argv) {
  (void)argc;
  holdbackd = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(t9_the_third_attempt_resumes)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
