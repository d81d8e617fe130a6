/* The network side of the server: listeners, pumps, every method of the contract. */
#ifndef HB_SERVER_RPC_RPC_H
#define HB_SERVER_RPC_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/engine/engine.h"

struct hb_rpc;

struct hb_rpc_options {
  struct hb_engine *engine;  /* borrowed; must outlive the rpc */
  const char *const *listen; /* "host:port" (port 0: any), "unix:path" */
  size_t listen_count;       /* 0: only file descriptors that are added later (tests) */
  uint32_t pumps;            /* 0 = 2 */
  /* After hb_rpc_drain: no call is open any more. Once, on a pump's thread; must only hand on. */
  void (*drained)(void *context);
  void *context;
};

/* Between grpc_init and grpc_shutdown. Serves when it returns.
 * Errors: hb_listener_bind's. */
HB_MUST_CHECK enum hb_code hb_rpc_start(const struct hb_rpc_options *options, struct hb_rpc **out,
                                        struct hb_err *err);
/* Addresses as bound, separated by commas. Lives as long as the rpc. */
const char *hb_rpc_bound(const struct hb_rpc *rpc);
/* Serve one connected socket (taken over). */
void hb_rpc_add_connection(struct hb_rpc *rpc, int fd);

/* Stop accepting; health says NOT_SERVING; subscriptions and watches end with UNAVAILABLE "server
 * stops", append streams likewise after what they sent is answered. After half of `timeout_ms`
 * peers that don't read, or don't answer, are left to themselves. Once. */
void hb_rpc_drain(struct hb_rpc *rpc, uint64_t timeout_ms);
/* What is still open is cancelled. */
void hb_rpc_cancel(struct hb_rpc *rpc);
/* After hb_rpc_drain; blocks until it has drained, then frees. */
void hb_rpc_stop(struct hb_rpc *rpc);

#endif
