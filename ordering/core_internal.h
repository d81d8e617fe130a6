/* The core from inside: its state, and what each room offers the others.
 *
 *   streams.c   which streams there are            queue.c     batches and calls in arrival order
 *   round.c     what one commit takes, sorted      presence.c  what is covered, compared or asked
 *   needs.c     NEED out and back                  admission.c outcomes: first copies, limits
 *   release.c   the walk, log blocks               hold.c      bundles of what must wait
 *   rewrite.c   sparse and tiny bundles            residency.c spill and FETCH
 *   regroup.c   wide bundles, before they spill
 *   bundles.c   the table of bundles               kept.c      refusals kept aside, their quota
 *   gaps.c      rows of gaps                       outbox.c    the commit's arrays
 *   decide.c    the order of it all                recover.c   a stream from the store
 *
 * Streams in PER_KEY mode have their own rooms (per_key_internal.h), entered from these. */
#ifndef HB_ORDERING_CORE_INTERNAL_H
#define HB_ORDERING_CORE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ordering/key_table_internal.h"
#include "ordering/moments.h"
#include "ordering/ordering.h"
#include "ordering/sort.h"
#include "ordering/stream_internal.h"

enum hb_batch_state {
  HB_BATCH_READY = 1, /* in core->ready */
  HB_BATCH_WAITING,   /* its NEED is out or queued */
  HB_BATCH_BEHIND,    /* behind a waiting one of its call; its NEED may be out too */
  HB_BATCH_DECIDED    /* in the commit */
};

struct hb_batch_list {
  struct hb_batch *first;
  struct hb_batch *last;
};

/* A call with a batch that waits; its later batches queue up behind. */
struct hb_call_wait {
  uint64_t call;
  struct hb_batch *waiting;
  struct hb_batch_list behind;
  struct hb_call_wait *next; /* in its bucket */
};

enum { HB_WAIT_BUCKETS = 1024 };

/* A sequence that nothing covered: the event that came first, and the items with its copies. */
struct hb_first {
  int64_t sequence;
  const struct hb_event *event;
  struct hb_decision *decision;
  const struct hb_batch *batch;
  size_t items_from; /* the first copy's item; the others follow */
  size_t items_to;
};

/* What one stream has in the round. */
struct hb_share {
  struct hb_core_stream *stream;
  size_t items_from;
  size_t items_to;
  size_t firsts_from;
  size_t firsts_to;
  size_t released; /* of the firsts, the lowest ones: written to the log */
  size_t bytes;    /* of its batches, as blocks */
};

/* What one commit takes. */
struct hb_round {
  bool prepared;             /* and nothing came in since */
  struct hb_batch **batches; /* in arrival order; NULL = sent back to wait */
  size_t count;
  size_t cap;
  size_t taken; /* of them, not NULL */
  struct hb_share *shares;
  size_t shares_count;
  size_t shares_cap;
  struct hb_item *items; /* by share, then ascending, then arrival */
  struct hb_item *spare;
  size_t items_count;
  size_t items_cap;
  size_t spare_cap;
  struct hb_first *firsts;
  size_t firsts_count;
  size_t firsts_cap;
};

struct hb_wanted {
  uint32_t batch;
  struct hb_need_item item;
};

struct hb_fetch {
  uint64_t stream;
  uint32_t slot;
  struct hb_bundle_id id;
  size_t bytes;
  bool keyed;       /* of a PER_KEY stream */
  bool for_rewrite; /* told of such alone */
};

struct hb_key_frames;
struct hb_key_waiting;

/* Bundles of PER_KEY streams in memory and on their way, all streams. */
struct hb_key_memory {
  struct hb_key_frames *oldest; /* in memory, by when they came there */
  struct hb_key_frames *newest;
  size_t bytes;
  size_t pinned_bytes;          /* of them, those that releases go on with */
  size_t rewrite_bytes;         /* of them, fetched for a rewrite */
  size_t spilled;               /* bundles not in memory */
  struct hb_key_waiting *first; /* bundles that releases wait for, in turn */
  struct hb_key_waiting *last;
  size_t fetches_bytes; /* out */
};

struct hb_ordering {
  struct hb_ordering_options options;
  bool in_flight;
  bool dead;
  bool disk_reserve;
  uint64_t arrivals;
  size_t index_bytes;    /* pages, bundle tables, kept refusals of all streams */
  size_t resident_bytes; /* bundles in memory, all streams */
  size_t spilled;        /* bundles not in memory, all streams */
  struct hb_key_memory key_memory;
  struct hb_key_idle idle_keys;
  size_t entry_overhead; /* of one event in a block, at most */
  size_t block_overhead;
  struct hb_now now;
  uint64_t moment; /* of now */
  struct hb_moments moments;

  struct hb_core_stream **streams; /* owned; ascending by id */
  size_t streams_count;
  size_t streams_cap;
  struct hb_core_stream **releasing; /* frontier < complete_to, in turn */
  size_t releasing_count;
  size_t releasing_cap;
  uint32_t company; /* commits for which others than a long release are expected; release.c */
  struct hb_core_stream **sparse; /* with candidates for a rewrite */
  size_t sparse_count;
  size_t sparse_cap;
  bool rewrite_ready;
  struct hb_core_stream *regroup_stream; /* NULL: none */
  bool empty_bundles;                    /* some stream has recovered bundles to delete */
  size_t unreadable;                     /* FETCHes that failed since the last commit */
  uint64_t gaps_due_ms;                  /* served time of the next look for rows of gaps */

  struct hb_batch_list ready; /* ascending by arrival, kept in node.weight */
  struct hb_batch_list answered;
  struct hb_call_wait *waits[HB_WAIT_BUCKETS];
  size_t waiting_bytes;
  size_t batch_bytes;

  struct hb_round round;
  struct hb_wanted *wanted;
  size_t wanted_count;
  size_t wanted_cap;
  struct hb_need *needs_first; /* to be taken */
  struct hb_need *needs_last;
  size_t needs_out;

  bool fetch_stale; /* plan anew before the next is taken */
  struct hb_fetch *fetch_plan;
  size_t fetch_plan_count;
  size_t fetch_plan_next;
  size_t fetch_plan_cap;
  struct hb_fetch *fetches; /* out */
  size_t fetches_count;
  size_t fetches_cap;
  size_t fetches_bytes;

  struct hb_block_entry *entries; /* of the block or bundle being made */
  size_t entries_count;
  size_t entries_cap;
  uint32_t *dropping; /* slots drained by the walk that goes on */
  size_t dropping_count;
  size_t dropping_cap;
  struct hb_item *due; /* scratch of gaps.c and rewrite.c */
  size_t due_cap;
  struct hb_item *due_spare;
  size_t due_spare_cap;

  struct hb_core_stream **touched;
  size_t touched_count;
  size_t touched_cap;
  struct hb_commit commit; /* its arrays are these */
  struct hb_put_block *blocks;
  size_t blocks_cap;
  struct hb_put_bundle *bundles;
  size_t bundles_cap;
  struct hb_bundle_id *drained;
  size_t drained_cap;
  struct hb_put_frontier *frontiers;
  size_t frontiers_cap;
  struct hb_put_unprocessed *unprocessed;
  size_t unprocessed_cap;
  struct hb_put_gap *gaps;
  size_t gaps_cap;
  struct hb_delete_gap *gone_gaps;
  size_t gone_gaps_cap;
  struct hb_put_key *keys;
  size_t keys_cap;
};

/* streams.c. NULL: none with this id. */
struct hb_core_stream *hb_core_find_stream(const struct hb_ordering *core, uint64_t id);
void hb_core_free_stream(struct hb_ordering *core, struct hb_core_stream *stream);
void hb_core_freeze(struct hb_core_stream *stream, int64_t first_sequence);

/* queue.c. `behind` lists and `ready` are kept ascending by arrival. */
void hb_queue_insert(struct hb_batch_list *list, struct hb_batch *batch);
struct hb_batch *hb_queue_pop(struct hb_batch_list *list);
/* Whether one of its call waits that came before it. */
bool hb_queue_is_behind(const struct hb_ordering *core, const struct hb_batch *batch);
/* There, if so. */
bool hb_queue_put_behind(struct hb_ordering *core, struct hb_batch *batch);
/* The batch, taken out of its list, waits before all others of its call that do; later ones will
 * queue up behind. */
void hb_queue_wait(struct hb_ordering *core, struct hb_batch *batch);
/* Its answers are there: it and those behind it, up to the next that waits, are ready, or fail
 * where they can't go on. One that is behind itself stays there. `err` not HB_OK fails the batch
 * alone. */
void hb_queue_resume(struct hb_ordering *core, struct hb_batch *batch, const struct hb_err *err);
void hb_queue_answer(struct hb_ordering *core, struct hb_batch *batch);
void hb_queue_fail(struct hb_ordering *core, struct hb_batch *batch, enum hb_code code);

/* round.c. Choose, sort, look up; batches that need something are sent to wait. */
void hb_round_prepare(struct hb_ordering *core);
void hb_round_done(struct hb_round *round);

/* presence.c. Give each covered event a verdict, or put into core->wanted what must be asked. */
void hb_presence_look_up(struct hb_ordering *core, const struct hb_share *share);

/* needs.c. From core->wanted, which is sorted by batch, the items [from, to) of one batch. */
void hb_needs_ask(struct hb_ordering *core, struct hb_batch *batch, size_t from, size_t to);
/* Needs that nobody took yet, of this stream or all: the stream is gone or the core dead, so their
 * batches fail. */
void hb_needs_drop(struct hb_ordering *core, const uint64_t *stream);

/* admission.c. Outcomes that need no look at limits; add_first: the items [from, to) of the round
 * are copies of one new event. */
void hb_admit_decide(struct hb_decision *decision, enum hb_outcome outcome, enum hb_reason reason);
void hb_admit_refuse(struct hb_ordering *core, struct hb_core_stream *stream,
                     const struct hb_item *item, enum hb_outcome outcome, enum hb_reason reason);
void hb_admit_verdict(struct hb_ordering *core, struct hb_core_stream *stream,
                      const struct hb_item *item);
void hb_admit_add_first(struct hb_ordering *core, size_t from, size_t to);
void hb_admit_first_copies(struct hb_ordering *core, struct hb_share *share);
void hb_admit_held(struct hb_ordering *core, struct hb_share *share);
void hb_admit_copies(struct hb_ordering *core, const struct hb_share *share);

/* release.c. A walk writes the blocks of one stream. */
struct hb_walk {
  struct hb_ordering *core;
  struct hb_core_stream *stream;
  struct hb_share *share; /* NULL: nothing new of this stream */
  int64_t at;             /* the next position */
  int64_t block_from;
  size_t frames_bytes; /* in the block being made */
  size_t spent;        /* blocks made */
  size_t budget;
  bool first; /* of the commit: it may write one event of any size */
  bool cut;   /* stopped by the budget */
};
/* At walk->at, which goes up. False: the slice is used up. */
bool hb_walk_take(struct hb_walk *walk, struct hb_block_entry entry, struct hb_time time);
/* What was taken becomes a block; frames are not needed any more. */
void hb_walk_close_block(struct hb_walk *walk);
void hb_release_enqueue(struct hb_ordering *core, struct hb_core_stream *stream);
void hb_release_walk(struct hb_ordering *core);
/* Streams that have nothing left to release leave the queue. */
void hb_release_settle(struct hb_ordering *core);
bool hb_release_has_work(const struct hb_ordering *core);

/* hold.c. Events that wait, added ascending, become bundles of this commit. */
struct hb_hold {
  struct hb_ordering *core;
  struct hb_core_stream *stream;
  bool cover;    /* new events: they are put into the interval set too */
  uint32_t slot; /* of the bundle being made */
  size_t frames_bytes;
  bool times;
  bool sorted;            /* what is made is narrow (regroup.c) */
  struct hb_held_run run; /* not in the index yet; length 0 = none */
};
struct hb_hold hb_hold_begin(struct hb_ordering *core, struct hb_core_stream *stream, bool cover);
void hb_hold_add(struct hb_hold *hold, const struct hb_block_entry *entry, bool has_time);
/* The run so far goes into index and interval set. */
void hb_hold_flush_run(struct hb_hold *hold);
/* What held_bytes would be, at most, with one more event of this size. */
uint64_t hb_hold_bytes_with(const struct hb_hold *hold, uint32_t frame_size);
void hb_hold_end(struct hb_hold *hold);

/* bundles.c */
uint32_t hb_bundle_create(struct hb_ordering *core, struct hb_core_stream *stream, uint64_t commit,
                          uint32_t part);
/* Drained: it leaves the table. */
void hb_bundle_drop(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot);
void hb_bundle_drop_all(struct hb_ordering *core, struct hb_core_stream *stream);
struct hb_bundle_id hb_bundle_id_of(const struct hb_core_stream *stream, uint32_t slot);
/* `block` is the decoded `bytes`, whose first event is number `base` of the bundle. Takes its own
 * reference. */
void hb_bundle_set_bytes(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot,
                         struct hb_bytes *bytes, const struct hb_block *block, uint32_t base);
void hb_bundle_spill(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot);
/* Of a bundle in memory. */
struct hb_slice hb_bundle_frame(const struct hb_held_bundle *bundle, uint32_t index);
int64_t hb_bundle_sequence(const struct hb_held_bundle *bundle, uint32_t index);
struct hb_receipt hb_bundle_receipt(struct hb_held_bundle *bundle, uint32_t index);
/* See hb_block_expect; for an event that waits and is in memory. */
void hb_bundle_expect(const struct hb_held_bundle *bundle, uint32_t index);
void hb_bundle_expect_frame(const struct hb_held_bundle *bundle, uint32_t index);
/* The lowest `count` of what waits were taken out; keeps low and live_bytes. */
void hb_bundle_advance(struct hb_core_stream *stream, uint32_t slot, uint32_t count);
bool hb_bundle_is_sparse(const struct hb_core_stream *stream, const struct hb_held_bundle *bundle);
bool hb_bundle_is_tiny(const struct hb_ordering *core, const struct hb_held_bundle *bundle);
/* Put it among the candidates for a rewrite, or take it away. */
void hb_bundle_consider(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot);

/* rewrite.c */
void hb_rewrite(struct hb_ordering *core);
/* Whether the next decide would rewrite something, after a change. */
void hb_rewrite_look(struct hb_ordering *core);
/* Bundles that a rewrite waits for, appended to the fetch plan. */
void hb_rewrite_plan_fetches(struct hb_ordering *core, struct hb_core_stream *stream);

/* What waits of the bundles in core->dropping goes into new ones. Returns the bytes put. */
size_t hb_rewrite_chosen(struct hb_ordering *core, struct hb_core_stream *stream, bool sorted);

/* regroup.c. In memory, and reaches so far that reading it back would be for a few events. */
bool hb_regroup_is_wide(const struct hb_held_bundle *bundle);
/* Where wide bundles take much of the memory, the next decide sorts some. */
void hb_regroup_look(struct hb_ordering *core);
void hb_regroup(struct hb_ordering *core);

/* residency.c */
void hb_residency_trim(struct hb_ordering *core);
/* FETCHes that failed may be tried again. */
void hb_residency_retry(struct hb_ordering *core);
void hb_residency_plan(struct hb_ordering *core, struct hb_core_stream *stream, uint32_t slot);

/* kept.c. Whether the refused event is kept (a row of this commit); false: the quota is used up.
 * `event` stays where it is until the commit is written. */
bool hb_keep(struct hb_ordering *core, struct hb_core_stream *stream, enum hb_outcome outcome,
             const struct hb_event *event, struct hb_receipt receipt);
/* The same, whatever the quota says: it was acknowledged before. */
void hb_keep_stored(struct hb_ordering *core, struct hb_core_stream *stream,
                    enum hb_outcome outcome, const struct hb_event *event,
                    struct hb_receipt receipt);
void hb_kept_add(struct hb_ordering *core, struct hb_core_stream *stream, enum hb_outcome outcome,
                 int64_t sequence, uint64_t content_hash);
void hb_kept_done(struct hb_ordering *core, struct hb_core_stream *stream);

/* gaps.c */
void hb_gaps_write_rows(struct hb_ordering *core);
/* Each gap gets the oldest moment of a stored row that overlaps it, else the present one. */
void hb_gaps_inherit(struct hb_ordering *core, struct hb_core_stream *stream);

/* outbox.c */
void hb_outbox_clear(struct hb_ordering *core);
void hb_outbox_done(struct hb_ordering *core);
void hb_outbox_touch(struct hb_ordering *core, struct hb_core_stream *stream);
/* Encodes core->entries; they are empty afterwards. Returns the block, the outbox's reference. */
struct hb_bytes *hb_outbox_block(struct hb_ordering *core, struct hb_core_stream *stream,
                                 int64_t from, int64_t to);
struct hb_bytes *hb_outbox_bundle(struct hb_ordering *core, struct hb_bundle_id id);
void hb_outbox_drained(struct hb_ordering *core, struct hb_bundle_id id);
void hb_outbox_unprocessed(struct hb_ordering *core, struct hb_put_unprocessed row);
void hb_outbox_gap(struct hb_ordering *core, struct hb_put_gap row);
void hb_outbox_gone_gap(struct hb_ordering *core, struct hb_delete_gap row);
void hb_outbox_key(struct hb_ordering *core, struct hb_put_key row);
void hb_outbox_frontiers(struct hb_ordering *core);

/* ---- PER_KEY streams, entered from the rooms above where stream->per_key is set */

void hb_per_key_destroy(struct hb_ordering *core, struct hb_per_key *per_key);
/* presence.c, needs.c, queue.c: want what must be read; ask for it; take the answer; a batch that
 * asked is handed back. */
void hb_per_key_look_up(struct hb_ordering *core, const struct hb_share *share);
struct hb_need *hb_per_key_ask(struct hb_ordering *core, struct hb_batch *batch, size_t from,
                               size_t to);
void hb_per_key_answer(struct hb_ordering *core, const struct hb_need *need);
void hb_per_key_unpin(struct hb_ordering *core, struct hb_batch *batch);
/* admission.c: outcomes that need no limits, then what must wait. */
void hb_per_key_admit(struct hb_ordering *core, struct hb_share *share);
void hb_per_key_hold(struct hb_ordering *core);
/* release.c */
void hb_per_key_walk(struct hb_walk *walk);
bool hb_per_key_is_releasing(const struct hb_per_key *per_key);
/* residency.c: what memory holds stays within key_held_memory_max; FETCHes that are needed,
 * appended to the plan; one that came back (`block` NULL: it failed); failed ones may be tried
 * again; whether a key waits for this bundle. */
void hb_key_memory_trim(struct hb_ordering *core);
void hb_key_memory_plan(struct hb_ordering *core);
/* False: gone or there meanwhile. */
bool hb_key_memory_take_fetch(const struct hb_core_stream *stream, uint32_t slot);
void hb_key_memory_fetched(struct hb_ordering *core, struct hb_core_stream *stream,
                           const struct hb_fetch *fetch, struct hb_bytes *block);
void hb_key_memory_retry(struct hb_per_key *per_key);
bool hb_key_memory_waits_for(const struct hb_ordering *core, struct hb_bundle_id id);
/* decide.c: sparse bundles are rewritten and rows of keys put; the round is over; the commit is. */
void hb_per_key_close(struct hb_ordering *core);
void hb_per_key_round_done(struct hb_ordering *core);
void hb_per_key_committed(struct hb_ordering *core);
/* recover.c */
enum hb_code hb_per_key_recover_bundle(struct hb_ordering *core, struct hb_core_stream *stream,
                                       struct hb_bundle_id id, struct hb_bytes *bytes,
                                       const struct hb_block *block, struct hb_err *err);
enum hb_code hb_per_key_recover_end(struct hb_ordering *core, struct hb_core_stream *stream,
                                    struct hb_err *err);
void hb_recover_note_empty(struct hb_ordering *core, struct hb_core_stream *stream,
                           struct hb_bundle_id id);
/* status.c */
void hb_per_key_status(const struct hb_core_stream *stream, struct hb_stream_status *out);

#endif
