/* The keys that wait at an event that failed (on_error WAIT): all of them are in memory, by key.
 *
 * The host knows what a key that waits does with its events; who drives it looks for good events,
 * and is told here which keys are to be looked at. Pointers to one live until its key waits no
 * more. */
#ifndef HB_PROCESSING_BLOCKED_H
#define HB_PROCESSING_BLOCKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "storage/processor_rows.h"

/* Of these copies of one event, the first that came; those are remembered that failed. */
enum { HB_COPIES_MAX = 100 };

struct hb_blocked_key {
  struct hb_blocked_row row;     /* its key is owned */
  bool try_failed;               /* to do: the event that failed, again */
  bool try_copies;               /* to do: copies that were not tried yet */
  bool given_up;                 /* to do: go on without that event, once none is half done */
  bool asked;                    /* until it gets on: for who drives the host */
  bool stored;                   /* the store has a row of it */
  bool dirty;                    /* which is not this one */
  uint64_t tried[HB_COPIES_MAX]; /* content hashes of copies that failed */
  size_t tried_count;
};

struct hb_blocked {
  struct hb_blocked_key **items; /* owned, by key */
  size_t count;
  size_t cap;
  size_t key_bytes;
  struct hb_blocked_key **gone; /* owned: stored, and waiting no more */
  size_t gone_count;
  size_t gone_cap;
  size_t dirty_bytes; /* of what the next commit carries, about */
};

void hb_blocked_done(struct hb_blocked *blocked);
/* NULL: the key does not wait. */
struct hb_blocked_key *hb_blocked_find(const struct hb_blocked *blocked, struct hb_slice key);
/* The first at which there is something to do; NULL: there is none. */
struct hb_blocked_key *hb_blocked_next(const struct hb_blocked *blocked);
/* `failed`: the events that failed too, and copies that were tried before. */
void hb_blocked_look(struct hb_blocked_key *key, bool failed);

/* ---- the host's */
struct hb_blocked_key *hb_blocked_add(struct hb_blocked *blocked, const struct hb_blocked_row *row,
                                      bool stored);
void hb_blocked_remove(struct hb_blocked *blocked, struct hb_blocked_key *key);
/* Its row changed. */
void hb_blocked_touch(struct hb_blocked *blocked, struct hb_blocked_key *key);
void hb_blocked_committed(struct hb_blocked *blocked);

#endif
