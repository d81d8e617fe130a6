/* The floor: what a durable relay over gRPC costs that orders nothing and gathers nothing.
 *
 * It speaks as much of the contract as the benchmark's clients need, so that the same clients
 * measure it, and does the least that "acknowledged means durable" allows: each AppendStream batch
 * is one synced RocksDB put, then it is answered and relayed as it came. Three threads: two pumps
 * that own the calls, one writer. See relay.c, pump.c, call.c. */
#ifndef HB_BENCH_FLOOR_FLOOR_H
#define HB_BENCH_FLOOR_FLOOR_H

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/mailbox.h"

enum { HB_FLOOR_PUMPS = 2 };

struct hb_floor;
struct hb_floor_call;

/* What comes back from a completion queue. Embedded in its owner. */
struct hb_floor_tag {
  void (*fire)(struct hb_floor_tag *tag, bool ok);
};

/* One batch from its receipt to its answer. */
struct hb_floor_job {
  struct hb_node node; /* the writer's, then the pump's */
  struct hb_floor_call *call;
  struct hb_bytes *frames; /* owned until relayed */
  uint32_t count;          /* of events */
  int64_t first_sequence;
};

struct hb_floor_pump {
  struct hb_floor *floor;
  pthread_t thread;
  grpc_completion_queue *queue;
  struct hb_mailbox *written; /* jobs of this pump's calls */
  grpc_channel *lame;         /* its call is the bell that other threads ring */
  grpc_call *bell;
  struct hb_floor_tag bell_tag;
  atomic_bool rung;              /* the bell's tag is under way */
  struct hb_floor_call *readers; /* Subscribe calls that wait for something new */
};

/* What was relayed, in order: kept for the whole life of the process. */
struct hb_floor_entry {
  struct hb_bytes *frames;
  int64_t position; /* of its first event, from 1 */
  uint32_t count;
};

struct hb_floor {
  grpc_server *server;
  struct hb_floor_pump pumps[HB_FLOOR_PUMPS];
  /* relay.c */
  void *db; /* rocksdb_t */
  pthread_t writer;
  struct hb_mailbox *jobs;
  pthread_mutex_t mutex;
  struct hb_floor_entry *entries; /* protected by mutex, as the rest */
  size_t count;
  size_t cap;
  int64_t next_position;
};

/* relay.c: false, with a message on stderr, where the database can't be opened. */
bool hb_floor_open(struct hb_floor *floor, const char *path);
void hb_floor_submit(struct hb_floor *floor, struct hb_floor_job *job);
/* Up to `max` entries from number `from` on, with references. */
size_t hb_floor_take(struct hb_floor *floor, size_t from, struct hb_floor_entry *out, size_t max);

/* pump.c */
void hb_floor_pump_create(struct hb_floor *floor, struct hb_floor_pump *pump);
void hb_floor_pump_start(struct hb_floor_pump *pump); /* the server has started */
void hb_floor_pump_ring(struct hb_floor_pump *pump);
void hb_floor_batch(grpc_call *call, const grpc_op *ops, size_t count, struct hb_floor_tag *tag);

/* call.c: wait for the next call on this pump. */
void hb_floor_accept(struct hb_floor_pump *pump);
/* The writer's thread. */
void hb_floor_job_written(struct hb_floor_job *job);
/* The pump's thread: a job is written; there is something new to relay. */
void hb_floor_job_answer(struct hb_floor_job *job);
void hb_floor_go_on(struct hb_floor_pump *pump);

#endif
