/* The keys of a PER_KEY stream that memory knows: a record each, and what is held of them.
 *
 * A key is in memory while it is needed: something of it is held, a batch that asked for its record
 * is not decided yet, or the commit being made touches it. Otherwise it is idle, and the longest
 * unused idle ones go where all of them take more than key_cache_max. Bytes of needed keys count
 * with the index (held_index_max). */
#ifndef HB_ORDERING_KEY_TABLE_INTERNAL_H
#define HB_ORDERING_KEY_TABLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"

struct hb_batch;
struct hb_ordering;
struct hb_per_key;

/* A held event of a key: its sequence, and where its frame is. */
struct hb_key_entry {
  int64_t sequence;
  uint32_t slot;  /* of the bundle */
  uint32_t index; /* in it */
};

/* Ascending, each sequence once. Zeroed = empty. */
struct hb_key_list {
  struct hb_key_entry *entries; /* owned; those that wait are [from, to) */
  size_t from;
  size_t to;
  size_t cap;
};

enum hb_key_flag {
  HB_KEY_KNOWN = 1,  /* the record was read */
  HB_KEY_IDLE = 2,   /* in the core's list of idle keys */
  HB_KEY_READY = 4,  /* in the stream's queue of keys to release from */
  HB_KEY_CHANGED = 8 /* its record goes with this commit */
};

struct hb_key_state {
  struct hb_key_state *older; /* while idle */
  struct hb_key_state *newer;
  struct hb_key_state *ready_next; /* while ready */
  struct hb_per_key *owner;
  uint64_t hash;
  struct hb_key_record record; /* valid where known */
  struct hb_key_list held;
  uint64_t gaps;                 /* below what is held */
  uint32_t flags;                /* enum hb_key_flag */
  uint32_t pins;                 /* batches that asked for the record and are not decided */
  size_t group;                  /* in the round, + 1 */
  const struct hb_batch *asking; /* who asked last: asks once for all its events */
  uint32_t size;
  uint8_t bytes[];
};

/* Idle keys of all streams, the longest unused first. */
struct hb_key_idle {
  struct hb_key_state *oldest;
  struct hb_key_state *newest;
  size_t bytes;
};

struct hb_key_table {
  struct hb_key_state **slots; /* owned, and the keys too */
  size_t count;
  size_t cap; /* a power of two, or 0 */
};

uint64_t hb_key_hash(struct hb_slice key);
struct hb_slice hb_key_bytes(const struct hb_key_state *key);
/* NULL: not in memory. */
struct hb_key_state *hb_key_find(const struct hb_per_key *per_key, struct hb_slice key);
/* One that is not there yet; nothing is known of it. */
struct hb_key_state *hb_key_add(struct hb_ordering *core, struct hb_per_key *per_key,
                                struct hb_slice key);
/* It is needed: not among the idle ones. */
void hb_key_use(struct hb_ordering *core, struct hb_key_state *key);
/* Something that needed it is done: it becomes idle, or is forgotten where nothing is known. */
void hb_key_settle(struct hb_ordering *core, struct hb_key_state *key);
/* Forget idle ones down to key_cache_max. */
void hb_key_evict(struct hb_ordering *core);
void hb_key_table_done(struct hb_ordering *core, struct hb_per_key *per_key);

/* key_list.c */

static inline size_t hb_key_list_count(const struct hb_key_list *list) {
  return list->to - list->from;
}
/* NULL: none. */
struct hb_key_entry *hb_key_list_front(const struct hb_key_list *list);
struct hb_key_entry *hb_key_list_find(const struct hb_key_list *list, int64_t sequence);
/* The end of the run without gap that begins at `sequence`; `sequence` where it is not there. */
int64_t hb_key_list_run_end(const struct hb_key_list *list, int64_t sequence);
/* In any order, before hb_key_list_sort; `bytes` is kept as the memory that lists take. */
void hb_key_list_append(struct hb_key_list *list, struct hb_key_entry entry, size_t *bytes);
void hb_key_list_sort(struct hb_key_list *list);
/* `more` ascends, and none of it is there. */
void hb_key_list_merge(struct hb_key_list *list, const struct hb_key_entry *more, size_t count,
                       size_t *bytes);
void hb_key_list_pop(struct hb_key_list *list, size_t count, size_t *bytes);
/* Gaps between the first and the last entry, and below the first where it is above `next`. */
uint64_t hb_key_list_gaps(const struct hb_key_list *list, bool has_next, int64_t next);
void hb_key_list_done(struct hb_key_list *list, size_t *bytes);

#endif
