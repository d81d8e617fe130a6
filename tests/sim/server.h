/* A server in virtual time: the real core, a store in memory with a disk that takes its time and
 * forgets what was not synced, readers that are slow, one call per connection.
 *
 * It does what server/engine does with threads: see the README there. What it checks of itself:
 * nothing is answered or delivered before it is durable (I1, I2), memory keeps its bounds (I8). */
#ifndef HB_TESTS_SIM_SERVER_H
#define HB_TESTS_SIM_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ordering/ordering.h"
#include "tests/model/fake_store.h"
#include "tests/sim/network.h"

enum { HB_SIM_STREAMS = 2, HB_SIM_OUT_MAX = 64 };

/* A batch that was read and is not answered yet. */
struct hb_sim_request {
  struct hb_test_batch *batch; /* owned */
  struct hb_sim_conn *conn;
  uint64_t ordinal;
  bool in_core;
};

struct hb_sim_reading {
  uint64_t id;
  struct hb_need *need; /* NULL: a fetch */
  struct hb_bundle_id bundle;
};

/* What goes wrong next, once. */
struct hb_sim_trouble {
  bool fail_write;
  bool fail_write_stored; /* it is on the disk all the same */
  bool fail_sync;
  unsigned fail_reads; /* FETCHes */
  unsigned slow_disk;  /* writes that take long */
};

struct hb_sim_server {
  struct hb_world *world;
  struct hb_sim_network *network;
  struct hb_ordering_options options;
  struct hb_ordering *core;     /* NULL: it is down */
  struct hb_fake_store written; /* survives a kill */
  struct hb_fake_store durable; /* survives a power loss; what is published */
  struct hb_stream_config configs[HB_SIM_STREAMS];
  uint64_t life;                  /* +1 at each end: what was planned before is void */
  const struct hb_commit *commit; /* being written */
  bool syncing;
  bool unsynced, sync_wanted;
  bool turn_planned;
  struct hb_sim_request *requests; /* in order of arrival */
  size_t requests_count, requests_cap;
  size_t mailbox_bytes, mailbox_max;
  uint64_t batches; /* numbers given */
  struct hb_sim_reading out[HB_SIM_OUT_MAX];
  size_t out_count;
  uint64_t readings;
  size_t first_conn; /* who is read first: in turn */
  int64_t wall_step_ms;
  struct hb_sim_trouble trouble;
  unsigned lives, failed_writes, power_losses, refused, needs, fetches; /* tally */
};

/* Streams 1 (durable acks) and 2 (ASYNC). Up at once. */
void hb_sim_server_init(struct hb_sim_server *server, struct hb_sim_network *network);
void hb_sim_server_done(struct hb_sim_server *server);
/* It ends as by SIGKILL, and starts again a little later. `power`: what was not synced is lost, or
 * half of the time not. Does nothing while it is down. */
void hb_sim_server_crash(struct hb_sim_server *server, bool power);
/* Nothing is being done or waits to be done. */
bool hb_sim_server_is_idle(const struct hb_sim_server *server);

#endif
