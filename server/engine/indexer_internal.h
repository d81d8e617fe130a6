/* The indexer: one low-priority thread that follows the published frontier of every stream and
 * writes the per-key index in bundles. See indexer.c. */
#ifndef HB_SERVER_ENGINE_INDEXER_INTERNAL_H
#define HB_SERVER_ENGINE_INDEXER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame/block.h"
#include "base/mailbox.h"
#include "server/engine/stream_internal.h"
#include "storage/index.h"

struct hb_engine;
struct hb_deletion;

/* Entries of one stream, with copies of their keys. */
struct hb_index_part {
  struct hb_index_entry *entries;
  size_t count;
  size_t cap;
  uint8_t **chunks; /* of key bytes; entries point into them */
  size_t chunks_count;
  size_t chunks_cap;
  size_t chunk_used; /* of the last one */
  size_t key_bytes;
  int64_t to;        /* every event below is in it, or was written before */
  uint64_t epoch;    /* engine->store_epoch: of the store that has what is below its entries */
  uint64_t began_ms; /* monotonic */
  uint64_t grown_ms;
};

struct hb_index_part *hb_index_part_create(int64_t from, uint64_t now_ms);
void hb_index_part_destroy(struct hb_index_part *part);
/* Add the events of a block; HB_CORRUPT where a frame is none. */
HB_MUST_CHECK enum hb_code hb_index_part_add(struct hb_index_part *part,
                                             const struct hb_block *block, struct hb_err *err);

/* The indexer tells the sequencer: index rows to write (or none: an ingested file has them), and
 * how far the index is then. */
struct hb_index_note {
  struct hb_node node;
  struct hb_index_note *next; /* the sequencer's */
  uint64_t stream;
  int64_t indexed_to;
  uint64_t epoch;             /* of the part it comes from; another one now: it is worth nothing */
  struct hb_index_part *rows; /* owned; NULL: ingested already */
};
void hb_index_note_destroy(struct hb_index_note *note);

struct hb_indexer {
  pthread_t thread;
  bool started;
  pthread_mutex_t mutex;
  pthread_cond_t kicked;
  /* Protected by mutex. */
  struct hb_stream *queue; /* streams whose frontier moved */
  struct hb_stream **queue_end;
  struct hb_node *forgets; /* hb_deletion */
  bool sleeping;           /* nothing to do: a kick must wake it */
  bool paused;             /* the disk is short of space */
  bool stopping;
  /* The indexer's thread only. */
  struct hb_stream *parts; /* streams that have a part */
  size_t entries;          /* over all parts */
  size_t key_bytes;
  uint64_t retry_ms; /* after a failure: nothing is written before */
};

void hb_indexer_create(struct hb_engine *engine);
void hb_indexer_destroy(struct hb_engine *engine);
void hb_indexer_start(struct hb_engine *engine);
void hb_indexer_stop(struct hb_engine *engine);
/* The published frontier moved. Any thread. */
void hb_indexer_kick(struct hb_engine *engine, struct hb_stream *stream);
/* Any thread. While paused nothing is gathered or written; what is gathered is kept. */
void hb_indexer_pause(struct hb_engine *engine, bool paused);
/* Hold nothing of the stream any more, then send the deletion back to the sequencer. */
void hb_indexer_forget(struct hb_engine *engine, struct hb_deletion *deletion);

#endif
