/* Addresses that the server listens on. */
#ifndef HB_SERVER_RPC_LISTENER_H
#define HB_SERVER_RPC_LISTENER_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

struct hb_listener {
  const char *address;                  /* borrowed: "host:port", "[::1]:port" or "unix:path" */
  grpc_server_credentials *credentials; /* borrowed */
};

/* HB_INVALID: neither host:port nor unix:path. */
HB_MUST_CHECK enum hb_code hb_listener_check(const char *address, struct hb_err *err);
/* Only this machine can reach it. */
bool hb_listener_is_local(const char *address);
/* Whether it could be bound now: for a start that fails before it has opened anything.
 * HB_ADDRESS_IN_USE: somebody listens there, or it needs a privilege; HB_INVALID: no such host or
 * address on this machine. */
HB_MUST_CHECK enum hb_code hb_listener_probe(const char *address, struct hb_err *err);
/* Bind, and append the address as bound (port 0 -> the real port) to `bound`, separated by
 * commas. Errors: hb_listener_probe's. */
HB_MUST_CHECK enum hb_code hb_listener_bind(grpc_server *server, const struct hb_listener *listener,
                                            struct hb_buf *bound, struct hb_err *err);

#endif
