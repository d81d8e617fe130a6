/* Decides what of a peer's address is kept: a port is new with each connection, so it would make
 * a new sender of each reconnect. */
#include "server/rpc/peer.h"

#include <stdbool.h>
#include <string.h>

static bool take_prefix(const char **text, const char *prefix) {
  size_t size = strlen(prefix);
  if (strncmp(*text, prefix, size) != 0) return false;
  *text += size;
  return true;
}

static void keep(struct hb_peer *peer, const char *text, size_t size) {
  if (size >= sizeof peer->address) size = sizeof peer->address - 1;
  memcpy(peer->address, text, size);
}

struct hb_peer hb_peer_of(const char *uri) {
  struct hb_peer peer = {.address = ""};
  if (take_prefix(&uri, "unix:")) {
    keep(&peer, "unix", strlen("unix"));
    return peer;
  }
  const char *end = strrchr(uri, ':'); /* the port's */
  if (!take_prefix(&uri, "ipv4:") && take_prefix(&uri, "ipv6:")) {
    if (!take_prefix(&uri, "%5B") && !take_prefix(&uri, "[")) end = NULL;
    const char *close = strstr(uri, "%5D");
    if (!close) close = strchr(uri, ']');
    if (close) end = close;
  }
  keep(&peer, uri, end && end > uri ? (size_t)(end - uri) : strlen(uri));
  return peer;
}
