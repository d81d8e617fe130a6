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
#include "ordering/key_list.h"

struct hb_batch;
struct hb_ordering;
struct hb_per_key;

enum hb_key_flag {
  HB_KEY_KNOWN = 1,   /* the record was read */
  HB_KEY_IDLE = 2,    /* in the core's list of idle keys */
  HB_KEY_READY = 4,   /* in the stream's queue of keys to release from */
  HB_KEY_CHANGED = 8, /* its record goes with this commit */
  HB_KEY_WAITS = 16   /* in the list of a bundle that is not in memory */
};

struct hb_key_state {
  struct hb_key_state *older; /* while idle */
  struct hb_key_state *newer;
  struct hb_key_state *ready_next; /* while ready, and while it waits */
  struct hb_per_key *owner;
  uint64_t hash;
  struct hb_key_record record; /* valid where known */
  struct hb_key_list held;
  uint64_t gaps;                 /* below what is held */
  uint32_t flags;                /* enum hb_key_flag */
  uint32_t woken;                /* slot + 1 of the bundle that came for it; 0 = none */
  uint32_t asides;               /* events below `first` that are not kept aside yet */
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
/* ---- all keys, place by place, in an order that stays when the table grows */

/* The key's place in it; keys of one order by their bytes. */
uint64_t hb_key_order(const struct hb_key_state *key);
/* Where the keys of orders from `order` on lie, up to the next place's. */
struct hb_key_cell {
  uint64_t order;
  struct hb_key_state **keys; /* owned; sorted */
  size_t count;
  size_t cap;
};
void hb_key_cell_read(const struct hb_per_key *per_key, struct hb_key_cell *cell);
/* False: that was the last one. */
bool hb_key_cell_next(const struct hb_per_key *per_key, struct hb_key_cell *cell);
void hb_key_cell_done(struct hb_key_cell *cell);

void hb_key_table_done(struct hb_ordering *core, struct hb_per_key *per_key);

#endif
