/* What a stream is inside the engine. stream.c makes it, publish.c fills it, watch.c tells.
 *
 * One lock per stream, held for copies only; no other lock is ever taken under it. */
#ifndef HB_SERVER_ENGINE_STREAM_INTERNAL_H
#define HB_SERVER_ENGINE_STREAM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/types.h"
#include "ordering/commit.h"
#include "server/engine/stream.h"
#include "storage/processor_rows.h"

/* A log block by reference, with the range it accounts for. */
struct hb_tail_block {
  int64_t from;
  int64_t to;
  struct hb_bytes *block; /* reference */
};

/* Consecutive blocks, oldest first. Zeroed = empty. Whoever embeds it says what protects it. */
struct hb_tail {
  struct hb_tail_block *ring;
  size_t cap; /* a power of two, or 0 */
  size_t head;
  size_t count;
};

struct hb_index_part; /* indexer_internal.h */

struct hb_stream {
  _Atomic uint32_t refs;
  /* Immutable. */
  uint64_t id;
  char name[HB_STREAM_NAME_MAX + 1];
  uint8_t incarnation[HB_INCARNATION_SIZE];
  enum hb_mode mode;

  pthread_mutex_t mutex;
  pthread_cond_t settled; /* a publication, the end of a `changed`, deletion, loss */
  /* Protected by mutex. */
  struct hb_stream_config config; /* no limit is 0 */
  struct hb_stream_status status;
  bool deleted;
  bool lost;    /* a write failed: nothing is published until a rebuild (I6) */
  bool damaged; /* see hb_stream_get_damage */
  struct hb_err damage;
  uint64_t version;       /* +1 per publication */
  uint64_t written;       /* +1 before each write that touches the stream */
  uint64_t published;     /* `written` as of the last publication */
  struct hb_watch *armed; /* three lists linked both ways (watch.c) */
  struct hb_watch *due;
  struct hb_watch *idle;
  struct hb_watch *calling; /* its `changed` runs now */
  struct hb_tail tail;

  /* Sequencer's thread only. */
  struct hb_stream_config stored;  /* as in the store: 0 = the server's default */
  struct hb_tail unpublished;      /* released, not fsynced yet */
  bool indexed_known;              /* indexed_to is valid */
  int64_t indexed_to;              /* written, perhaps not fsynced yet */
  uint64_t touched;                /* number of the last write that touches the stream */
  bool dirty;                      /* in the sequencer's list of streams to publish */
  struct hb_stream *next_dirty;    /* reference while dirty */
  struct hb_stream_status *staged; /* owned: what is shown next, if not what the core knows then */

  /* A processor's results are read as a stream is. Immutable once it is shared. */
  bool is_results;
  struct hb_processor_id results_of;
  struct hb_stream_status results_status; /* sequencer's thread only: what is shown next */

  /* Protected by the indexer's mutex. */
  bool index_queued;
  struct hb_stream *index_next; /* reference while queued */
  /* Indexer's thread only. */
  uint64_t index_epoch;        /* of the store that the rest of this is about */
  struct hb_index_part *part;  /* entries gathered and not written yet */
  bool index_followed;         /* index_scan is valid */
  bool index_damaged;          /* its log can't be read on from there: no more entries */
  int64_t index_scan;          /* blocks below are gathered or written */
  struct hb_stream *part_next; /* streams that have a part; reference while linked */
};

/* One reference, the caller's. `stored` may have limits 0, `resolved` has none. */
struct hb_stream *hb_stream_create(uint64_t id, const uint8_t store_incarnation[16],
                                   const struct hb_stream_config *stored,
                                   const struct hb_stream_config *resolved);

/* ---- publication; sequencer's thread */

/* A write that touches the stream is about to be made. */
void hb_stream_note_write(struct hb_stream *stream);
/* Show `status` and the blocks of stream->unpublished, then call the watches. Adds what the tail
 * gained to *out_bytes. */
void hb_stream_publish(struct hb_stream *stream, const struct hb_stream_status *status,
                       size_t *out_blocks, size_t *out_bytes);
void hb_stream_set_config(struct hb_stream *stream, const struct hb_stream_config *resolved);
/* Gone: watches are called. */
void hb_stream_mark_deleted(struct hb_stream *stream);
void hb_stream_mark_lost(struct hb_stream *stream);
/* What is at the frontier can't be read, or (NULL) can be again: watches are called. */
void hb_stream_set_damage(struct hb_stream *stream, const struct hb_err *err);
/* The write that was noted last failed: no reader will ever see it. */
void hb_stream_forget_write(struct hb_stream *stream);
/* Drop the oldest shared block; returns its bytes, 0 where there is none. */
size_t hb_stream_evict(struct hb_stream *stream);

/* ---- readers */

/* Wait until every write that touched the stream before this call is published. False: it never
 * will be (deleted, or a write failed). Short: at most one commit and async_sync_ms. */
bool hb_stream_settle(struct hb_stream *stream);

/* ---- watches; the lock is held, and let go while each `changed` runs. The version was raised. */
void hb_watches_call_locked(struct hb_stream *stream);

/* ---- tail.c: the ring */
void hb_tail_push(struct hb_tail *tail, int64_t from, int64_t to, struct hb_bytes *owned_block);
/* False: empty. The block's reference is the caller's. */
bool hb_tail_pop(struct hb_tail *tail, struct hb_tail_block *out);
/* index 0 = oldest, < count. */
const struct hb_tail_block *hb_tail_at(const struct hb_tail *tail, size_t index);
/* Index of the block that contains `position`; count where none does. */
size_t hb_tail_find(const struct hb_tail *tail, int64_t position);
void hb_tail_done(struct hb_tail *tail);

#endif
