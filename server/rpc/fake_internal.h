/* What the fake engine is made of. */
#ifndef HB_SERVER_RPC_FAKE_INTERNAL_H
#define HB_SERVER_RPC_FAKE_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/frame/scan.h"
#include "base/limits.h"
#include "base/types.h"
#include "server/engine/engine.h"
#include "server/engine/stream.h"

enum { STREAMS_MAX = 64, BLOCK_EVENTS = 500 };

struct stored {
  struct hb_event event; /* its frame is owned */
};

/* An event that was refused. */
struct refused {
  enum hb_outcome outcome;
  int64_t sequence;
  struct hb_bytes *frame; /* reference */
};

struct hb_stream {
  int refs; /* protected by the engine's mutex, as all */
  struct hb_engine *engine;
  struct hb_stream_config config;
  uint8_t incarnation[HB_INCARNATION_SIZE];
  bool deleted;
  struct stored *events; /* ascending */
  size_t count;
  size_t cap;
  struct refused *refused; /* in the order of coming */
  size_t refused_count;
  size_t refused_cap;
  struct hb_frontier record;
  struct hb_bytes **blocks;
  int64_t *block_ends;
  size_t blocks_count;
  size_t blocks_cap;
  size_t ends_cap;
  struct hb_watch *watches;
  enum hb_code damage;
  struct hb_stream *results; /* of its processors */
  int64_t processed_to;      /* where it is such results */
};

struct hb_engine {
  pthread_mutex_t mutex;
  struct hb_limits limits;
  struct hb_engine_info info;
  struct hb_stream *streams[STREAMS_MAX];
  size_t streams_count;
  uint8_t next_incarnation;
  bool full;
  bool ingest_stopped;
  void (*ingest_changed)(void *context);
  void *ingest_context;
  bool hold;
  enum hb_code fail;
  size_t tail;
  size_t unanswered;
  size_t most_unanswered;
  uint32_t last_peer;
  struct hb_append *waiting[1024];
  size_t waiting_count;
  struct hb_room *rooms[64];
  size_t rooms_count;
  bool hold_compactions;
  struct hb_compaction *compaction; /* held */
};

/* With the engine's mutex: everything but log blocks. */
struct hb_read; /* server/engine/reads.h */
void fake_read_locked(struct hb_read *read);
/* Something changed: call the watches. */
void fake_engine_tell(struct hb_stream *stream);

#endif
