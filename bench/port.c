/* Decides a port by asking the kernel for one and giving it back: systems that print no port of
 * their own get it on the command line. Should another process be faster, theirs does not start,
 * and the run fails with its words. */
#include "bench/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

uint16_t hb_free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  HB_ASSERT(fd >= 0);
  int failed = bind(fd, (struct sockaddr *)&address, size);
  failed |= getsockname(fd, (struct sockaddr *)&address, &size);
  HB_ASSERT(!failed);
  (void)close(fd);
  return ntohs(address.sin_port);
}
