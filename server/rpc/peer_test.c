/* Peers' addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/rpc/peer.h"

static const struct {
  const char *uri;
  const char *address;
} peers[] = {
    {"ipv4:127.0.0.1:4711", "127.0.0.1"},
    {"ipv6:%5B::1%5D:4711", "::1"},
    {"ipv6:[fe80::1]:4711", "fe80::1"},
    {"unix:/tmp/a.sock", "unix"},
    {"unix:", "unix"},
    {"fd:7", "fd"},
    {"", ""},
};

/* The port is left out, for it is another one with each connection. */
static void address_without_port(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
    struct hb_peer peer = hb_peer_of(peers[i].uri);
    assert_string_equal(peer.address, peers[i].address);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(address_without_port)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
