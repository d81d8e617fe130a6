/* PER_KEY mode inside the core: what a stream has instead of interval set, index and bundles.
 *
 *   per_key.c         a stream of this mode; beginning and end of a commit; how it looks
 *   per_key_look.c    whose records, and which contents, must be read first (NEED), and answers
 *   per_key_admit.c   outcomes: where keys begin, first copies, limits
 *   per_key_walk.c    what is released, key by key
 *   per_key_hold.c    bundles: made, drained, rewritten
 *   per_key_recover.c from the store
 *   key_table.c, key_list.c   the keys in memory; what is held of each
 *
 * Positions in the log are given by the walk, from 0 up; complete_to is the frontier. All bundles
 * are in memory. In a bundle events are numbered from 0; a frame says its key and sequence. */
#ifndef HB_ORDERING_PER_KEY_INTERNAL_H
#define HB_ORDERING_PER_KEY_INTERNAL_H

#include "ordering/core_internal.h"

struct hb_key_bundle {
  uint64_t commit;
  uint32_t part;
  uint32_t count;
  uint32_t live; /* of them that wait */
  uint32_t next_free;
  bool used;
  bool candidate; /* in per_key->candidates */
  size_t live_bytes;
  struct hb_bytes *bytes; /* one reference; NULL while being made */
  struct hb_block block;
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

/* Held below where its key turned out to begin: kept aside by this commit. */
struct hb_key_moved {
  struct hb_event event;
  struct hb_bytes *bytes; /* one reference: its bundle's */
};

struct hb_per_key {
  struct hb_core_stream *stream;
  struct hb_key_table table;
  uint64_t held_events;
  uint64_t held_bytes; /* of bundles on disk */
  uint64_t live_bytes;
  uint64_t gaps;
  struct hb_key_bundle *bundles; /* owned; by slot */
  size_t bundles_count, bundles_cap;
  uint32_t free_slot;
  uint32_t *candidates; /* owned: slots of sparse and tiny bundles */
  size_t candidates_count, candidates_cap;
  uint32_t *drained; /* owned: slots to be dropped when the block is made */
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
struct hb_slice hb_key_bundle_frame(const struct hb_per_key *per_key,
                                    const struct hb_keyed_entry *entry);
struct hb_receipt hb_key_bundle_receipt(const struct hb_per_key *per_key,
                                        const struct hb_keyed_entry *entry);
/* One event of it does not wait any more; where none is left it goes with drop_drained. */
void hb_key_bundle_take(struct hb_per_key *per_key, const struct hb_keyed_entry *entry);
void hb_key_bundle_consider(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
/* The commit deletes them. */
void hb_key_bundle_drop_drained(struct hb_ordering *core, struct hb_per_key *per_key);
void hb_key_bundle_drop(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot);
void hb_key_bundle_done(struct hb_ordering *core, struct hb_per_key *per_key);
/* Events that wait are added one by one; sequence of the entry is given here. Returns its place. */
struct hb_keyed_entry hb_per_key_hold_add(struct hb_ordering *core, struct hb_per_key *per_key,
                                          int64_t sequence, struct hb_block_entry entry);
void hb_per_key_hold_end(struct hb_ordering *core, struct hb_per_key *per_key);
/* What held_bytes, and the bundles in memory, would grow by, at most, with one more event. */
uint64_t hb_per_key_hold_bytes(const struct hb_ordering *core, const struct hb_per_key *per_key,
                               uint32_t frame_size);
void hb_per_key_rewrite(struct hb_ordering *core, struct hb_per_key *per_key);

#endif
