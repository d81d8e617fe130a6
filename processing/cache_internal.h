/* State by (key, name): what was read or put lately, within a budget.
 *
 * An entry that was changed since the last commit stays, whatever the budget says, for the store
 * does not have it yet. What one call changes can be undone as a whole. One thread. */
#ifndef HB_PROCESSING_CACHE_INTERNAL_H
#define HB_PROCESSING_CACHE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/slice.h"
#include "processing/host.h"

/* As small as it can be, for there may be a million: a value that fits into what the allocator
 * gives anyway lies within. */
struct hb_state {
  struct hb_state *hash_next;
  uint32_t hash;
  uint32_t value_size;
  uint32_t key_size;
  uint16_t name_size;
  uint8_t room;     /* bytes for a value; a larger one is elsewhere, and its address here */
  bool present : 1; /* false: known to be absent */
  bool dirty : 1;   /* among what the next commit carries */
  bool used : 1;    /* since the hand that looks for what can go came by */
  uint8_t bytes[];  /* room, key, name */
};

static inline struct hb_slice hb_state_key(const struct hb_state *state) {
  return (struct hb_slice){state->bytes + state->room, state->key_size};
}
static inline struct hb_slice hb_state_name(const struct hb_state *state) {
  return (struct hb_slice){state->bytes + state->room + state->key_size, state->name_size};
}
/* Until the state is put again, or the call ends. */
static inline struct hb_slice hb_state_value(const struct hb_state *state) {
  const uint8_t *at = state->bytes;
  if (state->value_size > state->room) memcpy(&at, state->bytes, sizeof at);
  return (struct hb_slice){at, state->value_size};
}

struct hb_undo {
  struct hb_state *state;
  bool forget; /* it was not known before, and was not read */
  bool was_dirty;
  bool present;
  uint32_t value_size;
  uint8_t *value; /* owned, where it did not fit into the state; else ... */
  size_t offset;  /* ... in cache->before */
};

/* Whether a state that is not here has to be looked for in the store. */
enum hb_cache_knows { HB_CACHE_NOT_ASKED, HB_CACHE_ALL, HB_CACHE_SOME };

enum { HB_CACHE_EXPECTED = 4 };

struct hb_cache {
  const struct hb_state_source *source; /* borrowed */
  size_t budget;
  size_t bytes; /* of all entries, about */
  struct hb_state **slots;
  size_t slots_count; /* a power of two */
  size_t count;
  size_t hand;             /* slot at which the search for what can go goes on */
  struct hb_state *last;   /* found last, or NULL: a put mostly follows a get */
  struct hb_state **dirty; /* in the order in which they became it */
  size_t dirty_count;
  size_t dirty_cap;
  size_t dirty_bytes;
  struct hb_undo *undos; /* of the call at hand */
  size_t undos_count;
  size_t undos_cap;
  struct hb_buf before; /* values of these */
  enum hb_cache_knows knows;
  uint32_t expected[HB_CACHE_EXPECTED]; /* hashes, in turn */
  unsigned expected_count;
  uint64_t hits;
  uint64_t misses;
  struct hb_buf scratch;
};

void hb_cache_init(struct hb_cache *cache, const struct hb_state_source *source, size_t budget);
void hb_cache_done(struct hb_cache *cache);
/* The state of the key without a name is wanted four calls from now: the processor's own cache may
 * bring it near meanwhile. Changes nothing. */
void hb_cache_expect(struct hb_cache *cache, struct hb_slice key);
/* The state, read from the store where it is not known. */
HB_MUST_CHECK enum hb_code hb_cache_get(struct hb_cache *cache, struct hb_slice key,
                                        struct hb_slice name, struct hb_state **out,
                                        struct hb_err *err);
/* `present` false: the value is ignored. The state need not be read first. */
void hb_cache_put(struct hb_cache *cache, struct hb_slice key, struct hb_slice name, bool present,
                  struct hb_slice value);
/* The call is over: what it put stays, or none of it. May drop entries: no pointer to one is kept.
 */
void hb_cache_keep(struct hb_cache *cache);
void hb_cache_undo(struct hb_cache *cache);
/* What the commit carried is in the store. */
void hb_cache_committed(struct hb_cache *cache);

#endif
