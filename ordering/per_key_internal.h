/* PER_KEY mode inside the core: what a stream has instead of interval set, index and bundles.
 *
 *   per_key.c         a stream of this mode; beginning and end of a commit; how it looks
 *   per_key_look.c    whose records, and which contents, must be read first (NEED), and answers
 *   per_key_admit.c   outcomes: where keys begin, first copies, limits
 *   per_key_walk.c    what is released, key by key
 *   per_key_hold.c    bundles: made, drained
 *   per_key_rewrite.c sparse and tiny ones, and those with something to keep aside
 *   per_key_memory.c  which bundles are in memory, which are fetched
 *   per_key_recover.c from the store
 *   key_table.c, key_list.c   the keys in memory; what is held of each
 *
 * Positions in the log are given by the walk, from 0 up; complete_to is the frontier. In a bundle
 * events are numbered from 0; a frame says its key and sequence. */
#ifndef HB_ORDERING_PER_KEY_INTERNAL_H
#define HB_ORDERING_PER_KEY_INTERNAL_H

#include "ordering/core_internal.h"

/* A bundle in memory. */
struct hb_key_frames {
  struct hb_key_frames *older;
  struct hb_key_frames *newer;
  struct hb_per_key *owner;
  uint32_t slot;
  uint32_t pins;          /* ready keys that it was fetched for, and that did not use it yet */
  bool for_rewrite;       /* fetched for that */
  struct hb_bytes *bytes; /* one reference */
  struct hb_block block;
};

/* A bundle that is not in memory, and the keys that can't go on without it, in turn. */
struct hb_key_waiting {
  struct hb_key_waiting *next;
  struct hb_per_key *owner;
  uint32_t slot;
  struct hb_key_state *first;
  struct hb_key_state *last;
};

enum hb_key_bundle_flag {
  HB_KEY_BUNDLE_USED = 1,
  HB_KEY_BUNDLE_CANDIDATE = 2, /* in per_key->candidates */
  HB_KEY_BUNDLE_FETCHING = 4,  /* a FETCH is out */
  HB_KEY_BUNDLE_UNREADABLE = 8 /* the last FETCH failed: not again before the next commit */
};

struct hb_key_bundle {
  uint64_t commit;
  uint32_t part;
  uint32_t count;
  uint32_t live;   /* of them that wait, with asides */
  uint32_t asides; /* of them, below where their key began: they are to be kept aside */
  uint32_t next_free;
  uint32_t flags; /* enum hb_key_bundle_flag */
  size_t disk_bytes;
  size_t frames_bytes;
  struct hb_key_frames *frames;   /* owned; NULL: not in memory, or being made */
  struct hb_key_waiting *waiting; /* owned; NULL: nobody waits for it */
};

/* A key in the round. */
struct hb_key_group {
  struct hb_key_state *key;
  size_t items_from;
  size_t items_to;
  size_t firsts_from;
  size_t firsts_to;
  size_t released; /* of the firsts, the lowest ones */
};

/* Was held below where its key turned out to begin: kept aside by this commit. */
struct hb_key_moved {
  struct hb_event event;
  struct hb_bytes *bytes; /* one reference: its bundle's */
};

struct hb_per_key {
  struct hb_core_stream *stream;
  struct hb_key_table table;
  uint64_t held_events; /* with asides */
  uint64_t asides;      /* of all keys; no limit counts them */
  uint64_t held_bytes;  /* of bundles on disk */
  uint64_t live_bytes;  /* of frames that wait, about */
  uint64_t gaps;
  struct hb_key_bundle *bundles; /* owned; by slot */
  size_t bundles_count, bundles_cap;
  uint32_t free_slot;
  uint32_t *candidates; /* owned: slots of bundles worth a rewrite */
  size_t candidates_count, candidates_cap;
  bool rewrite_ready; /* the next decide rewrites some */
  uint32_t *drained;  /* owned: slots to be dropped when the block is made */
  size_t drained_count, drained_cap;
  struct hb_key_state *ready_first; /* keys that may have something to release, in turn */
  struct hb_key_state *ready_last;
  struct hb_key_group *groups; /* owned; of the round */
  size_t groups_count, groups_cap;
  uint32_t *groups_of_items; /* owned; of the items of the round, while they are sorted */
  size_t groups_of_items_cap;
  struct hb_key_state **changed; /* owned; whose records go with this commit */
  size_t changed_count, changed_cap;
  struct hb_key_moved **moved; /* owned, and what they point to */
  size_t moved_count, moved_cap;
  struct hb_keyed_entry *adding; /* owned; what the commit holds of one key */
  size_t adding_count, adding_cap;
  struct hb_key_state **unknown; /* owned; while being recovered: keys to be read */
  size_t unknown_count, unknown_cap;
  uint32_t making; /* slot of the bundle being made */
  size_t making_bytes;
};

/* per_key.c */
struct hb_per_key *hb_per_key_create(struct hb_core_stream *stream);
/* What no row says of a key. */
struct hb_key_record hb_per_key_new_record(const struct hb_core_stream *stream);
void hb_per_key_change(struct hb_ordering *core, struct hb_key_state *key);

/* per_key_admit.c */
int64_t hb_per_key_complete_to(const struct hb_key_state *key);

/* per_key_walk.c */
void hb_per_key_make_ready(struct hb_ordering *core, struct hb_key_state *key);

/* per_key_hold.c */
uint32_t hb_key_bundle_create(struct hb_ordering *core, struct hb_per_key *per_key, uint64_t commit,
                              uint32_t part);
void hb_key_bundle_set(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot,
                       struct hb_bytes *bytes, const struct hb_block *block);
struct hb_bundle_id hb_key_bundle_id(const struct hb_per_key *per_key, uint32_t slot);
size_t hb_key_bundle_live_bytes(const struct hb_key_bundle *bundle);
bool hb_key_bundle_is_sparse(const struct hb_key_bundle *bundle);
bool hb_key_bundle_is_tiny(const struct hb_ordering *core, const struct hb_key_bundle *bundle);
static inline bool hb_key_bundle_is_resident(const struct hb_per_key *per_key, uint32_t slot) {
  return per_key->bundles[slot].frames != NULL;
}
/* Of a bundle in memory. */
struct hb_slice hb_key_bundle_frame(const struct hb_per_key *per_key,
                                    const struct hb_keyed_entry *entry);
struct hb_receipt hb_key_bundle_receipt(const struct hb_per_key *per_key,
                                        const struct hb_keyed_entry *entry);
/* One event of it does not wait any more. */
void hb_key_bundle_forget(struct hb_per_key *per_key, uint32_t slot);
/* The same; where none is left it goes with drop_drained. */
void hb_key_bundle_take(struct hb_per_key *per_key, uint32_t slot);
void hb_key_bundle_consider(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
/* The commit deletes them. */
void hb_key_bundle_drop_drained(struct hb_ordering *core, struct hb_per_key *per_key);
void hb_key_bundle_drop(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
void hb_key_bundle_delete(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
void hb_key_bundle_done(struct hb_ordering *core, struct hb_per_key *per_key);
/* Events that wait are added one by one; sequence of the entry is given here. Returns its place. */
struct hb_keyed_entry hb_per_key_hold_add(struct hb_ordering *core, struct hb_per_key *per_key,
                                          int64_t sequence, struct hb_block_entry entry);
void hb_per_key_hold_end(struct hb_ordering *core, struct hb_per_key *per_key);
/* What held_bytes would grow by, at most, with one more event. */
uint64_t hb_per_key_hold_bytes(const struct hb_ordering *core, const struct hb_per_key *per_key,
                               uint32_t frame_size);

/* per_key_rewrite.c */
void hb_per_key_rewrite(struct hb_ordering *core, struct hb_per_key *per_key);
/* Whether the next decide would rewrite something, after a change. */
void hb_key_rewrite_look(struct hb_ordering *core, struct hb_per_key *per_key);
/* Bundles that a rewrite waits for, appended to the fetch plan. */
void hb_key_rewrite_plan(struct hb_ordering *core, struct hb_per_key *per_key);

/* per_key_memory.c */
void hb_key_memory_load(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot,
                        struct hb_bytes *bytes, const struct hb_block *block);
void hb_key_memory_spill(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
/* The key goes on when the bundle is there. */
void hb_key_memory_wait(struct hb_ordering *core, struct hb_key_state *key, uint32_t slot);
/* It used the bundle that it waited for. */
void hb_key_memory_unpin(struct hb_ordering *core, struct hb_key_state *key);
bool hb_key_memory_can_fetch(const struct hb_key_bundle *bundle);
void hb_key_memory_fetch(struct hb_ordering *core, const struct hb_per_key *per_key, uint32_t slot,
                         bool for_rewrite);
/* Nobody waits for it any more: its stream goes. */
void hb_key_memory_forget(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);

#endif
