/* A lane: a pump with the calls that belong to it. Internal to server/rpc. */
#ifndef HB_SERVER_RPC_LANE_H
#define HB_SERVER_RPC_LANE_H

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/slice.h"
#include "server/engine/engine.h"
#include "server/rpc/append_pool.h"
#include "server/rpc/call.h"
#include "server/rpc/counters.h"
#include "server/rpc/pressure.h"
#include "server/rpc/pump.h"

/* So many calls can arrive at once without waiting for the pump to ask for the next. */
enum { HB_ACCEPTORS = 8, HB_LANES_MAX = 64 };

/* Batches that a lane has received and the engine has no room for. Each call may have one, so
 * their number says nothing; once they weigh this much (one commit's worth), later messages are
 * not taken out of gRPC's hands. Passed by at most one batch. */
#define HB_LANE_WAITING_MAX ((size_t)16 << 20)

struct hb_acceptor {
  struct hb_tag tag;
  struct hb_lane *lane;
  grpc_call *grpc;
  grpc_call_details details;
  grpc_metadata_array metadata;
};

struct hb_lane {
  struct hb_rpc *rpc;
  struct hb_pump *pump;
  struct hb_call *calls; /* the pump's thread only, as all below but the flags */
  struct hb_acceptor acceptors[HB_ACCEPTORS];
  struct hb_append_pool appends;
  struct hb_call *first_parked; /* in order of arrival */
  struct hb_call *last_parked;
  struct hb_post drain_post;
  struct hb_post sweep_post;
  struct hb_post stop_post;
  struct hb_post room_post; /* there is room for parked messages again */
  bool room_posted;
  struct hb_timer cut_timer;
  struct hb_timer farewell_timer; /* the first lane's, as the next */
  bool was_quiet;                 /* no call was open at the last look */
  struct hb_shedder shedder;
  _Atomic bool sweep_posted;
};

struct hb_rpc {
  struct hb_engine *engine;       /* borrowed; immutable, as all up to counters */
  const struct hb_limits *limits; /* the engine's */
  grpc_server *server;
  uint32_t lanes_count;
  struct hb_lane *lanes;
  void (*drained)(void *context);
  void *context;
  struct hb_buf bound; /* text: addresses that it listens on */
  struct hb_tag shutdown_tag;
  uint64_t cut_ms; /* from the start of draining; set before the lanes are told */

  struct hb_gauge gauge; /* the first lane's */
  struct hb_counters counters;
  _Atomic uint64_t next_call;
  _Atomic bool draining;
  _Atomic bool farewell_said;
  _Atomic uint64_t open; /* acceptors, calls, the server itself: 0 = all is drained */

  pthread_mutex_t mutex;
  pthread_cond_t all_closed;
  bool is_closed; /* protected by mutex, as lanes_stopped */
  uint32_t lanes_stopped;
};

/* The batches of the lane that are not answered yet are as many bytes as may be (I8). */
static inline bool hb_lane_is_full(const struct hb_lane *lane) {
  const struct hb_limits *limits = lane->rpc->limits;
  return lane->appends.bytes >= limits->ingest_mailbox_max + limits->waiting_bytes_max;
}

/* accept.c */
void hb_lane_accept(struct hb_lane *lane); /* keep requests for calls pending */
/* rpc.c */
void hb_rpc_closed(struct hb_rpc *rpc); /* one of rpc->open went */
void hb_rpc_sweep(struct hb_rpc *rpc);  /* any thread: hb_method.sweep of all calls */

#endif
