/* Who is at the other end of a call; stands in every handler's context. */
#ifndef HB_SERVER_RPC_PEER_H
#define HB_SERVER_RPC_PEER_H

#include <stddef.h>

enum { HB_PEER_ADDRESS_SIZE = 128 };

struct hb_peer {
  char address[HB_PEER_ADDRESS_SIZE]; /* without the port: "127.0.0.1", "::1", "unix" */
  const char *principal;              /* who authentication says it is; NULL: nobody asked */
};

/* From gRPC's text ("ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711", "unix:/path"). */
struct hb_peer hb_peer_of(const char *uri);

#endif
