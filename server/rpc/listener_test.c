/* Addresses to listen on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <grpc/grpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/rpc/listener.h"
#include "server/rpc/test_server.h"

static const struct {
  const char *address;
  bool good;
  bool local;
} addresses[] = {
    {"127.0.0.1:4653", true, true},
    {"127.9.9.9:1", true, true},
    {"localhost:0", true, true},
    {"[::1]:4653", true, true},
    {"0.0.0.0:4653", true, false},
    {"[::]:4653", true, false},
    {"host.example:1", true, false},
    {"unix:/tmp/a.sock", true, true},
    {"unix:", false, true},
    {"127.0.0.1", false, false},
    {":4653", false, false},
    {"127.0.0.1:", false, false},
    {"127.0.0.1:x", false, false},
    {"127.0.0.1:65536", false, false},
    {"::1:4653", false, false},
    {"[]:1", false, false},
    {"", false, false},
};

/* host:port, [ipv6]:port and unix:path; what only this machine can reach is told apart. */
static void addresses_are_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
    enum hb_code code = hb_listener_check(addresses[i].address, NULL);
    if ((code == HB_OK) != addresses[i].good) fail_msg("'%s'", addresses[i].address);
    if (hb_listener_is_local(addresses[i].address) != addresses[i].local) {
      fail_msg("local: '%s'", addresses[i].address);
    }
  }
}

static enum hb_code try_listen(const char *address, struct hb_err *err) {
  struct hb_limits limits = hb_limits_default();
  struct hb_engine *engine = fake_engine_create(&limits);
  struct hb_rpc_options options = {.engine = engine, .listen = &address, .listen_count = 1};
  struct hb_rpc *rpc = NULL;
  enum hb_code code = hb_rpc_start(&options, &rpc, err);
  if (code == HB_OK) {
    hb_rpc_drain(rpc, 1000);
    hb_rpc_stop(rpc);
  }
  fake_engine_destroy(engine);
  return code;
}

/* A port that somebody listens on is HB_ADDRESS_IN_USE, and a start that fails leaves nothing. */
static void taken_port_is_refused(void **state) {
  (void)state;
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof name;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, size), 0);
  assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
  char address[64];
  struct hb_err err;
  (void)snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(name.sin_port));
  assert_int_equal(try_listen(address, &err), HB_ADDRESS_IN_USE);
  assert_int_equal(hb_code_exit(err.code), 69);
  close(fd);
  assert_int_equal(try_listen("127.0.0.1:0", &err), HB_OK);
}

/* A live server's Unix socket is left alone; a stale one is replaced; a plain file is not. */
static void unix_socket_is_not_stolen(void **state) {
  (void)state;
  char folder[] = "/tmp/listener_test.XXXXXX";
  assert_non_null(mkdtemp(folder));
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  char address[128];
  struct hb_err err;
  (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/s", folder);
  (void)snprintf(address, sizeof address, "unix:%s/s", folder);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
  assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(try_listen(address, &err), HB_ADDRESS_IN_USE);
  close(fd); /* the file stays: stale */
  assert_int_equal(access(name.sun_path, F_OK), 0);
  assert_int_equal(try_listen(address, &err), HB_OK);
  FILE *plain = fopen(name.sun_path, "w");
  assert_non_null(plain);
  (void)fclose(plain);
  assert_int_equal(try_listen(address, &err), HB_ADDRESS_IN_USE);
  (void)unlink(name.sun_path);
  (void)rmdir(folder);
}

/* A host that isn't known is a mistake in the settings. */
static void unknown_host_is_invalid(void **state) {
  (void)state;
  struct hb_err err;
  assert_int_equal(try_listen("no such host:1", &err), HB_INVALID);
}

static int start(void **state) {
  (void)state;
  grpc_init();
  return 0;
}

static int stop(void **state) {
  (void)state;
  grpc_shutdown_blocking();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_are_checked), cmocka_unit_test(taken_port_is_refused),
      cmocka_unit_test(unix_socket_is_not_stolen), cmocka_unit_test(unknown_host_is_invalid)};
  return cmocka_run_group_tests(tests, start, stop) ? 1 : 0;
}
