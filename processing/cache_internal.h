/* State by (key, name): what was read or put lately, within a budget.
 *
 * An entry that was changed since the last commit stays, whatever the budget says, for the store
 * does not have it yet. What one call changes can be undone as a whole. One thread. */
#ifndef HB_PROCESSING_CACHE_INTERNAL_H
#define HB_PROCESSING_CACHE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "processing/host.h"

struct hb_state {
  struct hb_state *hash_next;
  struct hb_state *newer; /* towards the one used last */
  struct hb_state *older;
  struct hb_state *dirty_next;
  uint32_t hash;
  uint32_t key_size;
  uint32_t name_size;
  bool present; /* false: known to be absent */
  bool dirty;   /* in the list of what the next commit carries */
  size_t value_size;
  uint8_t *value; /* owned; NULL: empty */
  uint8_t id[];   /* key, then name */
};

struct hb_undo {
  struct hb_state *state;
  bool forget; /* it was not known before, and was not read */
  bool was_dirty;
  bool present;
  size_t value_size;
  uint8_t *value; /* owned */
};

struct hb_cache {
  const struct hb_state_source *source; /* borrowed */
  size_t budget;
  size_t bytes; /* of all entries, about */
  struct hb_state **slots;
  size_t slots_count; /* a power of two */
  size_t count;
  struct hb_state *newest;
  struct hb_state *oldest;
  struct hb_state *dirty;
  size_t dirty_count;
  size_t dirty_bytes;
  struct hb_undo *undos; /* of the call at hand */
  size_t undos_count;
  size_t undos_cap;
  uint64_t hits;
  uint64_t misses;
  struct hb_buf scratch;
};

void hb_cache_init(struct hb_cache *cache, const struct hb_state_source *source, size_t budget);
void hb_cache_done(struct hb_cache *cache);
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
