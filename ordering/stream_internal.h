/* One stream inside the core, and its bundles.
 *
 * Events leave a bundle in ascending order only (release takes the lowest of the stream, a rewrite
 * takes all), so what still waits of a bundle is always its tail [next, count). */
#ifndef HB_ORDERING_STREAM_INTERNAL_H
#define HB_ORDERING_STREAM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/frame/block.h"
#include "base/types.h"
#include "ordering/held_index.h"
#include "ordering/interval_set.h"
#include "ordering/pages.h"

enum { HB_SLOT_NONE = UINT32_MAX };

enum hb_bundle_flag {
  HB_BUNDLE_USED = 1,
  HB_BUNDLE_TIMES = 2,      /* some event may have a time: release looks */
  HB_BUNDLE_FETCHING = 4,   /* a FETCH is out */
  HB_BUNDLE_UNREADABLE = 8, /* the last FETCH failed: not again before the next commit */
  HB_BUNDLE_REWRITE = 16,   /* fetched for a rewrite: a quarter of the memory is for such */
  HB_BUNDLE_SORTED = 32     /* made by a regrouping: narrow */
};

struct hb_held_bundle {
  uint64_t commit;
  uint32_t part;
  uint32_t flags;
  uint32_t count;
  uint32_t next;      /* the first that waits; count = drained */
  uint32_t base;      /* of the event that is first in `block`: memory may hold the tail only */
  uint32_t candidate; /* its place in stream->candidates + 1; 0 = not there */
  uint32_t next_free; /* in the list of unused slots */
  uint32_t run;       /* see hb_block_receipt_near */
  size_t disk_bytes;
  size_t live_bytes;      /* frames of what waits */
  int64_t low;            /* the lowest sequence that waits */
  struct hb_bytes *bytes; /* one reference; NULL = spilled */
  struct hb_block block;  /* of bytes */
};

/* The refusals kept in `unprocessed`: a set of hashes. Zeroed = empty. */
struct hb_kept {
  uint64_t *slots; /* owned; 0 = unused */
  size_t count;
  size_t cap; /* a power of two, or 0 */
};

struct hb_per_key; /* per_key_internal.h */

struct hb_core_stream {
  uint64_t id;
  struct hb_per_key *per_key; /* owned; NULL: GLOBAL. Else nothing is in covered, held, bundles */
  struct hb_stream_config config;
  struct hb_frontier record; /* complete_to is covered.base while a commit is made */
  int64_t release_limit;     /* a bound from outside; nothing on one machine (INT64_MAX) */
  struct hb_interval_set covered;
  struct hb_held_index held;

  struct hb_held_bundle *bundles; /* owned; by slot */
  size_t bundles_count;
  size_t bundles_cap;
  uint32_t free_slot;
  size_t spilled;       /* bundles not in memory */
  uint64_t held_bytes;  /* of bundles on disk */
  uint64_t live_bytes;  /* frames of what waits */
  uint32_t *candidates; /* owned: slots of bundles worth a rewrite */
  size_t candidates_count;
  size_t candidates_cap;
  struct hb_bundle_id *empty; /* owned: recovered bundles with nothing left, to be deleted */
  size_t empty_count;
  size_t empty_cap;

  struct hb_pages gap_rows; /* the rows in `gaps` */
  uint64_t gaps_due_ms;     /* served time of the next look at them */
  struct hb_kept kept;

  size_t share;   /* in the round, + 1 */
  bool releasing; /* in core->releasing */
  bool sparse;    /* in core->sparse */
  bool touched;   /* its record goes with this commit */
};

/* Less than one in `share` of it still waits. */
static inline bool hb_bundle_waits_below(const struct hb_held_bundle *bundle, uint64_t share) {
  return (uint64_t)(bundle->count - bundle->next) * share < bundle->count;
}

static inline bool hb_bundle_is_resident(const struct hb_held_bundle *bundle) {
  return bundle->bytes != NULL;
}

#endif
