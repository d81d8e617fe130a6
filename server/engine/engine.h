/* The engine: core, store and threads put together, without the network.
 *
 * Threads that it owns: the sequencer (the core and every write), the indexer, readers. Who calls
 * it are gRPC's pumps. Its functions never block for disk or for other calls unless they say so;
 * what takes time ends in a callback, on one of the engine's threads, that should only hand the
 * result on (to a pump's mailbox). */
#ifndef HB_SERVER_ENGINE_ENGINE_H
#define HB_SERVER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"
#include "base/types.h"
#include "ordering/batch.h"
#include "server/engine/stream.h"

struct hb_engine;

struct hb_engine_options {
  const char *data_dir;
  const char *processor_dir; /* NULL: none; copied */
  struct hb_limits limits;
  uint32_t readers;       /* reader threads; 0 = 2 */
  uint32_t async_sync_ms; /* longest time an ASYNC commit stays unsynced; 0 = 10 */
  /* The process must end: a failed sync or write (the error's code gives the exit code). Called
   * once, on any thread; nothing is acknowledged afterwards (I6). */
  void (*on_fatal)(void *context, const struct hb_err *err);
  void *context;
};

struct hb_engine_info {
  uint8_t store_id[16];
  uint8_t incarnation[16];
  bool created; /* the store is new: the stream `default` was made */
  bool damaged; /* a table of the store can't be read; it is served without compaction */
  uint32_t recovery_ms;
  uint64_t streams;
  uint64_t held_events;
};

/* Open the store, rebuild the core, start the threads; blocks until the engine serves.
 * Errors: those of hb_store_open; HB_CORRUPT where bundles and frontier record disagree. */
HB_MUST_CHECK enum hb_code hb_engine_open(const struct hb_engine_options *options,
                                          struct hb_engine **out, struct hb_err *err);
const struct hb_engine_info *hb_engine_info(const struct hb_engine *engine);
const struct hb_limits *hb_engine_limits(const struct hb_engine *engine);
uint64_t hb_engine_served_ms(const struct hb_engine *engine);

/* Whether events are taken; false while the disk is so full that nothing is written. Any thread. */
bool hb_engine_is_ingesting(const struct hb_engine *engine);
/* `changed` is called after each change of it, on the sequencer's thread; it must only hand on.
 * NULL: no more, and it isn't running when this returns. */
void hb_engine_on_ingest(struct hb_engine *engine, void (*changed)(void *context), void *context);

/* Finish what was accepted, refuse what comes (HB_UNAVAILABLE). Blocks: every callback has been
 * made when it returns. All watches must be gone. */
void hb_engine_stop(struct hb_engine *engine);
/* After stop; also every hb_stream reference must be given back. NULL is allowed. */
void hb_engine_close(struct hb_engine *engine);

/* ---- streams: admin jobs, decided in the sequencer, durable when `done` is called */

enum hb_job_kind {
  HB_JOB_CREATE_STREAM,
  HB_JOB_UPDATE_STREAM,
  HB_JOB_DELETE_STREAM,
  HB_JOB_SEAL_STREAM,
  HB_JOB_ATTACH_PROCESSOR, /* processors.h */
  HB_JOB_DETACH_PROCESSOR,
  HB_JOB_LIST_GAPS /* gaps.h; changes nothing */
};

struct hb_processor_request;
struct hb_gap_request;

struct hb_job {
  struct hb_node node; /* the engine's */
  enum hb_job_kind kind;
  /* CREATE: all (limits 0 = default). UPDATE: name; ack 0 and limits 0 = unchanged. DELETE, SEAL:
   * name. Validated by the engine: HB_INVALID with field, value and limit. Out, CREATE and UPDATE:
   * the configuration as it stands. */
  struct hb_stream_config config;
  uint8_t incarnation[HB_INCARNATION_SIZE]; /* out, CREATE */
  int64_t seal_end;                       /* SEAL: HB_PRECONDITION as hb_ordering_check_seal says */
  struct hb_processor_request *processor; /* ATTACH, DETACH; the caller's, until done */
  struct hb_gap_request *gaps;            /* LIST_GAPS; likewise */
  /* CREATE with the settings that the stream has already is HB_OK; with others HB_EXISTS naming
   * the first field that differs. HB_LIMIT: streams_max. */
  struct hb_err error; /* out; code HB_OK on success */
  /* On the threads of hb_append's `answered`, or, before it comes there, of ATTACH. */
  void (*done)(struct hb_job *job);
  void *context;
};
void hb_engine_submit_job(struct hb_engine *engine, struct hb_job *job);

/* A reference, or NULL: no such stream. */
struct hb_stream *hb_engine_find_stream(struct hb_engine *engine, const char *name);
/* Up to `max` configurations in name order, names starting with `prefix` and > `after` ("" = from
 * the first). Returns how many. */
size_t hb_engine_list_streams(struct hb_engine *engine, const char *prefix, const char *after,
                              struct hb_stream_config *out, size_t max, bool *out_more);

/* ---- the store as a whole */

/* hb_store_compact, in the background; see storage/compact.h. */
struct hb_compaction {
  struct hb_node node;                /* the engine's */
  uint64_t bytes_before, bytes_after; /* out: of all files but RocksDB's log */
  struct hb_err error;                /* out; HB_UNAVAILABLE: the server stops */
  /* The background's thread; the caller's own, within hb_engine_compact, once the engine stops. */
  void (*done)(struct hb_compaction *compaction);
  void *context;
};
void hb_engine_compact(struct hb_engine *engine, struct hb_compaction *compaction);
/* Compactions end soon, now and from now on: the server is about to stop. May block for as long as
 * RocksDB takes to notice, a fraction of a second. */
void hb_engine_end_compaction(struct hb_engine *engine);

/* ---- appending */

/* One submitted batch with its answer. The pump makes it together with the events' memory. */
struct hb_append {
  struct hb_batch batch;          /* first: the engine converts between the two */
  struct hb_stream *target;       /* reference held until answered */
  struct hb_stream_status status; /* out: numbers of the answer, as of the last fsynced commit */
  /* The sequencer's thread; the caller's own, within try_append, once the engine stops. */
  void (*answered)(struct hb_append *append);
};
/* False: no room now (append is unchanged, the caller's); be told by hb_engine_on_room. The batch
 * was checked by the caller: scanned, within the stream's event_bytes_max. batch.stream and
 * receipt.received_ms are set here. */
bool hb_engine_try_append(struct hb_engine *engine, struct hb_append *append);

struct hb_room {
  struct hb_node node;
  /* Called once per hb_engine_on_room, on the threads of `answered`. */
  void (*room)(struct hb_room *waiter);
  void *context;
};
/* Call back as soon as there is room again (at once where there is some now). Room for all is not
 * room for each: try_append may still say no. */
void hb_engine_on_room(struct hb_engine *engine, struct hb_room *waiter);

/* Id of who sent, for receipts: stable for one text, interned in the store; 0 ('other') beyond
 * peers_max. Any thread. */
uint32_t hb_engine_intern_peer(struct hb_engine *engine, struct hb_slice text);

#endif
