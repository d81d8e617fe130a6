/* What happens when gRPC's memory for receiving is nearly used up. Internal to server/rpc. */
#ifndef HB_SERVER_RPC_PRESSURE_H
#define HB_SERVER_RPC_PRESSURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rpc/pump.h"

struct hb_rpc;

enum hb_pressure { HB_PRESSURE_UNKNOWN, HB_PRESSURE_LOW, HB_PRESSURE_HIGH };

/* Of the first bytes that a server sends on a fresh connection. UNKNOWN: more are needed. */
enum hb_pressure hb_pressure_of(const uint8_t *bytes, size_t size);

/* The first lane's; its pump's thread only. */
struct hb_gauge {
  struct hb_rpc *rpc; /* NULL: not started */
  struct hb_post start_post;
  struct hb_timer timer;
  int fd; /* our end of the connection that is being looked at, where has_fd */
  bool has_fd;
};

/* Each lane's. */
struct hb_shedder {
  struct hb_post post;
  _Atomic bool posted;
};

/* Any thread, once, when the server serves. */
void hb_pressure_start(struct hb_rpc *rpc);
/* The first lane's thread: look no more. Also where it was never started. */
void hb_pressure_stop(struct hb_rpc *rpc);

#endif
