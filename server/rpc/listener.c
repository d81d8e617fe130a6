/* Decides whether an address is free, and why not.
 *
 * gRPC says only that it could not bind, takes a live server's Unix socket away, and would share a
 * port if it were let. So we look first: connect to a Unix socket's path, bind a socket of our own
 * to a port for a moment. What happens between looking and binding is caught by gRPC's own bind. */
#include "server/rpc/listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"

enum { HOST_SIZE = 256, PORT_SIZE = 8 };

static bool is_unix(const char *address) {
  return strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
}

static const char *unix_path(const char *address) { return address + strlen(UNIX_PREFIX); }

static bool is_port(const char *text) {
  char *end;
  size_t digits = strspn(text, "0123456789");
  return digits > 0 && digits <= 5 && text[digits] == '\0' && strtoul(text, &end, 10) <= 65535;
}

static bool split(const char *address, char host[HOST_SIZE], char port[PORT_SIZE]) {
  const char *colon = strrchr(address, ':');
  if (!colon || colon == address || !is_port(colon + 1)) return false;
  size_t size = (size_t)(colon - address);
  const char *start = address;
  if (start[0] == '[' && start[size - 1] == ']') {
    start++;
    size -= 2;
  } else if (memchr(start, ':', size)) {
    return false; /* an IPv6 address needs its brackets */
  }
  if (size == 0 || size >= HOST_SIZE) return false;
  memcpy(host, start, size);
  host[size] = '\0';
  (void)snprintf(port, PORT_SIZE, "%s", colon + 1);
  return true;
}

enum hb_code hb_listener_check(const char *address, struct hb_err *err) {
  char host[HOST_SIZE];
  char port[PORT_SIZE];
  if (is_unix(address)) {
    size_t size = strlen(unix_path(address));
    size_t max = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (size > 0 && size <= max) return HB_OK;
    return hb_err_set(err, HB_INVALID, "ADDRESS_INVALID",
                      "listen is '%s': the path has %zu bytes, must have from 1 to %zu", address,
                      size, max);
  }
  if (split(address, host, port)) return HB_OK;
  return hb_err_set(err, HB_INVALID, "ADDRESS_INVALID",
                    "listen is '%s', must be host:port, [ipv6]:port or unix:path", address);
}

bool hb_listener_is_local(const char *address) {
  char host[HOST_SIZE];
  char port[PORT_SIZE];
  if (is_unix(address)) return true;
  if (!split(address, host, port)) return false;
  return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
         strcmp(host, "localhost") == 0;
}

static enum hb_code taken(const char *address, struct hb_err *err) {
  return hb_err_set(
      err, HB_ADDRESS_IN_USE, "ADDRESS_IN_USE",
      "%s is taken: another process listens there; stop it or choose another --listen", address);
}

/* Somebody answers at a Unix socket's path, or what lies there is no socket. */
static enum hb_code check_unix(const char *address, struct hb_err *err) {
  struct stat info;
  if (lstat(unix_path(address), &info) != 0) return HB_OK;
  if (!S_ISSOCK(info.st_mode)) {
    return hb_err_set(err, HB_ADDRESS_IN_USE, "ADDRESS_IN_USE",
                      "%s is taken: there is a file that is no socket; remove it or choose "
                      "another --listen",
                      address);
  }
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", unix_path(address));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return HB_OK;
  bool alive = connect(fd, (const struct sockaddr *)&name, sizeof name) == 0 || errno == EAGAIN;
  close(fd);
  return alive ? taken(address, err) : HB_OK; /* a stale file: gRPC replaces it */
}

static enum hb_code explain(const char *address, int error, struct hb_err *err) {
  if (error == EADDRINUSE) return taken(address, err);
  if (error == EACCES || error == EPERM) {
    return hb_err_set(err, HB_ADDRESS_IN_USE, "ADDRESS_NOT_ALLOWED",
                      "%s: %s; ports below 1024 need a privilege", address, strerror(error));
  }
  return hb_err_set(err, HB_INVALID, "ADDRESS_INVALID", "%s can't be listened on: %s", address,
                    strerror(error));
}

static int try_bind(const struct addrinfo *info) {
  int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC, info->ai_protocol);
  if (fd < 0) return errno;
  int on = 1;
  int error = 0;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
  close(fd);
  return error;
}

/* Every address of the host, for "localhost" has two; one that is free is enough where the other
 * family does not exist here, but none may be taken. */
static enum hb_code check_port(const char *address, struct hb_err *err) {
  char host[HOST_SIZE];
  char port[PORT_SIZE];
  if (!split(address, host, port)) return hb_listener_check(address, err);
  struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
  struct addrinfo *found = NULL;
  int failed = getaddrinfo(host, port, &hints, &found);
  if (failed) {
    return hb_err_set(err, HB_INVALID, "ADDRESS_INVALID", "%s: host '%s' is not known: %s", address,
                      host, gai_strerror(failed));
  }
  int last_error = EADDRNOTAVAIL;
  for (const struct addrinfo *info = found; info; info = info->ai_next) {
    int error = try_bind(info);
    if (last_error != 0 || error == EADDRINUSE) last_error = error;
    if (error == EADDRINUSE) break;
  }
  freeaddrinfo(found);
  return last_error ? explain(address, last_error, err) : HB_OK;
}

static void append_text(struct hb_buf *bound, const char *text) {
  if (bound->size) hb_buf_append_u8(bound, ',');
  hb_buf_append(bound, text, strlen(text));
}

enum hb_code hb_listener_probe(const char *address, struct hb_err *err) {
  enum hb_code code = hb_listener_check(address, err);
  if (code) return code;
  return is_unix(address) ? check_unix(address, err) : check_port(address, err);
}

enum hb_code hb_listener_bind(grpc_server *server, const struct hb_listener *listener,
                              struct hb_buf *bound, struct hb_err *err) {
  const char *address = listener->address;
  enum hb_code code = hb_listener_probe(address, err);
  if (code) return code;
  int port = grpc_server_add_http2_port(server, address, listener->credentials);
  if (port == 0) {
    return hb_err_set(err, HB_ADDRESS_IN_USE, "ADDRESS_IN_USE",
                      "%s can't be bound; is the folder writable, was it taken just now?", address);
  }
  if (is_unix(address)) {
    append_text(bound, address);
  } else {
    char text[HOST_SIZE + PORT_SIZE + 8];
    (void)snprintf(text, sizeof text, "%.*s:%d", (int)(strrchr(address, ':') - address), address,
                   port);
    append_text(bound, text);
  }
  return HB_OK;
}
