/* What is missing, in pages: the gaps of a stream or of one key, and the keys that have some.
 *
 * Taken from what the core has in memory anyway (ranges of numbers, 16 bytes an event in PER_KEY
 * mode), so nothing is read and every page costs little, however much waits. Between commits. */
#ifndef HB_ORDERING_GAP_LIST_H
#define HB_ORDERING_GAP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"

struct hb_ordering;

/* A page of gaps that begin at or above `from`, ascending. In PER_KEY mode it is not known when one
 * was first seen: 0. */
struct hb_gap_page {
  int64_t from;
  struct hb_gap *gaps; /* the caller's: room for max */
  size_t max;
  /* out */
  size_t count;
  bool more;            /* from the last one's end on */
  bool initial_missing; /* PER_KEY: it is not known where the key begins: that gap is not listed */
};
/* `key`: in PER_KEY mode; one of which nothing is held has no gaps. False: no such stream. */
bool hb_ordering_list_gaps(const struct hb_ordering *core, uint64_t stream, struct hb_slice key,
                           struct hb_gap_page *page);

struct hb_key_gaps {
  struct hb_slice key;
  bool begun;          /* then complete_to is valid */
  int64_t complete_to; /* the lowest sequence that is missing */
  int64_t highest;     /* of what is held */
  uint64_t held;
  uint64_t gaps;     /* a beginning that is not known counts as one */
  struct hb_gap gap; /* the lowest; as in a page: where `gaps` says that there is one */
  bool has_gap;
};

/* A page of a PER_KEY stream's keys that have gaps: each once, in an order that means nothing, but
 * is the same over growing tables and restarts. */
struct hb_gap_keys_page {
  struct hb_slice prefix;
  uint64_t order; /* 0 = from the first */
  bool has_after; /* behind this key of that order */
  struct hb_slice after;
  struct hb_key_gaps *keys; /* the caller's: room for max; what they name lies in bytes */
  size_t max;
  size_t bytes_max; /* of keys, beyond the first */
  size_t looks_max; /* places of the table; what makes a page short, or empty */
  /* out */
  struct hb_buf *bytes;
  size_t count;
  bool more; /* behind the last key, or, where more_has_key is false, from more_order on */
  uint64_t more_order;
  bool more_has_key;
};
/* False: no such stream, or it is not in PER_KEY mode. */
bool hb_ordering_list_gap_keys(const struct hb_ordering *core, uint64_t stream,
                               struct hb_gap_keys_page *page);

#endif
