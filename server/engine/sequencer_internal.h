/* The sequencer: one thread that owns the core and every RocksDB write. See sequencer.c.
 *
 * Everything reaches it through mailboxes: `inbox` carries batches and is what it sleeps on; each
 * other kind has one of its own, whose first message pokes the inbox. */
#ifndef HB_SERVER_ENGINE_SEQUENCER_INTERNAL_H
#define HB_SERVER_ENGINE_SEQUENCER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mailbox.h"
#include "base/types.h"
#include "ordering/ordering.h"
#include "server/engine/engine.h"
#include "server/engine/names_internal.h"
#include "server/engine/stream_internal.h"
#include "server/engine/writer_internal.h"
#include "storage/store.h"
#include "storage/write.h"

struct hb_index_note;       /* indexer_internal.h */
struct hb_processor_commit; /* processor_internal.h */

/* A bundle that a reader brings for the core. */
struct hb_fetch {
  struct hb_node node;
  struct hb_bundle_id id;
  struct hb_bytes *block; /* reference; NULL: not read, see error */
  struct hb_err error;
};

/* One deleted stream on its way out; see delete.c. */
enum hb_deletion_step { HB_DELETION_FORGET, HB_DELETION_FILES, HB_DELETION_RECLAIM };
struct hb_deletion {
  struct hb_node node;
  uint64_t stream;
  enum hb_deletion_step step; /* the one that is out */
  bool failed;                /* the step did; the next start takes it up again */
};

/* Streams in the order of their shared blocks, oldest first: whose block goes next when the shared
 * tails are over their cap. One reference per entry; an entry whose block is gone is skipped. */
struct hb_share {
  struct hb_stream **ring;
  size_t cap;
  size_t head;
  size_t count;
  size_t bytes;
};

/* A commit that the writer makes durable, while the next is decided. */
struct hb_in_flight {
  bool on;
  uint64_t number;
  size_t bytes;            /* of its batches */
  struct hb_node *answers; /* batches that are answered once it is durable */
  struct hb_node **answers_end;
};

enum { HB_WAITING_CALLS = 1024 };

struct hb_sequencer {
  pthread_t thread;
  bool started;

  /* Any thread. */
  struct hb_mailbox *inbox;     /* hb_append, and `poke` */
  struct hb_mailbox *jobs;      /* hb_job */
  struct hb_mailbox *rooms;     /* hb_room */
  struct hb_mailbox *needs;     /* hb_need, answered */
  struct hb_mailbox *fetched;   /* hb_fetch */
  struct hb_mailbox *notes;     /* hb_index_note */
  struct hb_mailbox *deletions; /* hb_deletion */
  struct hb_mailbox *bundles;   /* hb_processor_commit */
  struct hb_node poke;
  atomic_bool poked;
  atomic_bool stopping;
  _Atomic size_t accepted_bytes; /* batches handed in and not answered */
  atomic_bool waiting_full;      /* batches in the core are over waiting_bytes_max */
  _Atomic uint32_t waiting_calls[HB_WAITING_CALLS]; /* needs out, by a hash of the call */

  /* The sequencer's thread only (open.c before it runs, open.c after it has ended). */
  struct hb_ordering *core;
  struct hb_write *write;
  struct hb_registry registry;
  struct hb_share share;
  uint64_t next_stream;
  struct hb_stream *dirty;           /* streams with something to publish */
  size_t unpublished_bytes;          /* of their blocks */
  bool unsynced;                     /* something written is not fsynced (ASYNC) */
  uint64_t sync_due_ns;              /* valid while unsynced */
  struct hb_index_note *index_notes; /* for the next write */
  struct hb_index_note **index_notes_end;
  uint64_t index_due_ns; /* valid while there are any: latest time of their write */
  struct hb_node *rooms_waiting;
  uint64_t tick_due_ns;
  uint64_t save_due_ns;
  uint64_t look_due_ns; /* at processors that do not come back */
  struct hb_writer writer;
  struct hb_in_flight in_flight;
  size_t needs_out;
  size_t fetches_out;
  bool failed;        /* a write did: nothing is acknowledged until the core was built again (I6) */
  bool fatal;         /* and it never will be: on_fatal was called */
  uint64_t wal_bytes; /* of the store that was lost */
  uint64_t reopen_due_ms; /* it is not opened before */
};

void hb_sequencer_create(struct hb_engine *engine);
/* Any thread: the sequencer looks at everything again. */
void hb_sequencer_poke(struct hb_sequencer *sequencer);
void hb_sequencer_start(struct hb_engine *engine);
/* Finish what was accepted, publish, save served time, end the thread. */
void hb_sequencer_stop(struct hb_engine *engine);
void hb_sequencer_destroy(struct hb_engine *engine);

struct hb_now hb_sequencer_now(const struct hb_engine *engine);
/* A write failed: everyone that waits is told, on_fatal is called once. */
void hb_sequencer_fail(struct hb_engine *engine, const struct hb_err *err);
/* The same for lack of space: the store will be opened again instead. */
void hb_sequencer_lose(struct hb_engine *engine, const struct hb_err *err);
/* Index rows for the next write, whose store is another one by now, are dropped. */
void hb_sequencer_drop_notes(struct hb_engine *engine);
/* Go on with a new core after a failure. */
void hb_sequencer_resume(struct hb_engine *engine);
/* Hand back what the core has decided; while a commit is in flight, once that is durable. */
bool hb_sequencer_answer(struct hb_engine *engine);

/* ---- sequencer_take.c: what came by the mailboxes, all kinds but batches; and some kinds alone */
void hb_sequencer_take_all(struct hb_engine *engine);
void hb_sequencer_take_jobs(struct hb_engine *engine);
void hb_sequencer_take_rooms(struct hb_engine *engine);
void hb_sequencer_take_notes(struct hb_engine *engine);

/* ---- append.c: how batches come in and where they wait */
void hb_append_take(struct hb_engine *engine, struct hb_node *first);
void hb_engine_answer(struct hb_engine *engine, struct hb_append *append);
void hb_append_call_waits(struct hb_engine *engine, uint64_t call, bool waits);
/* Call who waits for room, where there is some. `answered`: a batch left the core since. */
void hb_append_call_rooms(struct hb_engine *engine, bool answered);

/* ---- in_flight.c: a commit that is written while the next is decided */
/* Hand the filled write to the writer. Nothing is in flight; the core was told. */
void hb_in_flight_begin(struct hb_engine *engine, uint64_t number);
/* Keep a batch that the core has decided until then. */
void hb_in_flight_keep(struct hb_engine *engine, struct hb_batch *batch);
/* Wait for it, publish, answer. Before anything else is written, shown or asked. False: it failed,
 * which was dealt with. True where nothing is in flight. */
bool hb_in_flight_settle(struct hb_engine *engine);

/* ---- sequencer_write.c: all of these are false after a failed write, which was dealt with */
/* How a write ended, which is dealt with where it failed. */
bool hb_sequencer_wrote(struct hb_engine *engine, uint64_t number, enum hb_code code,
                        const struct hb_err *err);
/* Everything written is fsynced: publish it. */
void hb_sequencer_note_synced(struct hb_engine *engine);
/* Write a decision, report it to the core, publish what is durable. */
bool hb_sequencer_write_commit(struct hb_engine *engine, const struct hb_commit *commit);
/* Begin a write of the engine's own rows; fill it, then apply it, fsynced. */
struct hb_write *hb_sequencer_begin_rows(struct hb_engine *engine);
bool hb_sequencer_apply_rows(struct hb_engine *engine, struct hb_err *err);
/* Write a processor's bundle, which was filled on its thread, and answer it. */
void hb_sequencer_write_bundle(struct hb_engine *engine, struct hb_processor_commit *commit);
/* fsync what ASYNC commits wrote; publish it. */
bool hb_sequencer_sync(struct hb_engine *engine);
/* Save served time without waiting for the disk. */
bool hb_sequencer_save_served(struct hb_engine *engine);

/* ---- publish.c */
void hb_publish_touch(struct hb_engine *engine, uint64_t stream, uint64_t commit);
void hb_publish_touch_stream(struct hb_engine *engine, struct hb_stream *stream, uint64_t commit);
/* Keep the blocks that the commit releases. Before hb_ordering_committed. */
void hb_publish_keep(struct hb_engine *engine, const struct hb_commit *commit);
/* What is shown of every stream that was touched is what the core knows now, also if it knows more
 * by the time of hb_publish_all. */
void hb_publish_stage(struct hb_engine *engine);
/* Show all that was kept. Everything written is fsynced. */
void hb_publish_all(struct hb_engine *engine);
/* Give back what a deleted stream shares. */
void hb_publish_drop(struct hb_engine *engine, struct hb_stream *stream);
/* The core is thrown away: share nothing, what was not shown yet is forgotten. What a rebuild finds
 * may end above what was shared, and shared blocks have no holes. */
void hb_publish_reset(struct hb_engine *engine);
void hb_publish_done(struct hb_engine *engine);

/* ---- admin.c, delete.c */
void hb_job_run(struct hb_engine *engine, struct hb_job *job);
/* gaps.c */
HB_MUST_CHECK enum hb_code hb_list_gaps(struct hb_engine *engine, struct hb_job *job,
                                        struct hb_err *err);
/* Make the stream `default` in a new store. */
HB_MUST_CHECK enum hb_code hb_create_default_stream(struct hb_engine *engine, struct hb_err *err);
/* It is deleted: nobody finds it any more. Its data is still there. */
void hb_stream_leave(struct hb_engine *engine, struct hb_stream *stream);
void hb_deletion_begin(struct hb_engine *engine, uint64_t stream, enum hb_deletion_step step);
/* The step that was out is done: take the next. */
void hb_deletion_continue(struct hb_engine *engine, struct hb_deletion *deletion);

#endif
