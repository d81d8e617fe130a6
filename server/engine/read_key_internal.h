/* Where the paging of one key's list stands; the whole of it travels in the page token. See
 * read_key.c for the phases and why nothing is missed or repeated. */
#ifndef HB_SERVER_ENGINE_READ_KEY_INTERNAL_H
#define HB_SERVER_ENGINE_READ_KEY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/engine/read_internal.h"

enum hb_key_phase { HB_KEY_RELEASED = 1, HB_KEY_PASS = 2, HB_KEY_DRAIN = 3 };

/* A held event of the key, and the bundle that it was seen in. */
struct hb_key_place {
  int64_t position; /* PER_KEY: its sequence */
  uint64_t commit;
  uint32_t part;
};

struct hb_key_state {
  enum hb_key_phase phase;
  int64_t next;   /* entries below were given */
  int64_t bound;  /* DRAIN: entries below come from index and log */
  bool has_after; /* PASS: the bundle looked at last */
  struct hb_bundle_id after;
  int64_t held_next; /* PER_KEY: held events with lower sequences were given, or released */
  bool truncated;    /* the pass saw more events than `places` may hold */
  struct hb_key_place *places; /* owned; the lowest ones seen, ascending */
  size_t places_count;
  size_t places_cap;
};

void hb_key_state_done(struct hb_key_state *state);
/* Add a place, keeping the `max` lowest; the same position again has moved. */
void hb_key_state_add(struct hb_key_state *state, struct hb_key_place place, size_t max);
/* The first `count` places were given. */
void hb_key_state_shift(struct hb_key_state *state, size_t count);

void hb_key_token_encode(const struct hb_key_state *state, const struct hb_read *read,
                         struct hb_buf *out);
/* HB_INVALID where it is not one of this read's. */
HB_MUST_CHECK enum hb_code hb_key_token_decode(const struct hb_read *read, size_t places_max,
                                               struct hb_key_state *out, struct hb_err *err);

/* One page in the making. */
struct hb_key_page {
  struct hb_engine *engine;
  struct hb_read *read;
  struct hb_key_state *state;
  size_t entries_cap;
  size_t frame_bytes; /* of the entries */
  int64_t budget;     /* bytes that this step may still look at */
};

/* False: the page is full, and the entry is not in it. */
bool hb_key_page_add(struct hb_key_page *page, int64_t position, struct hb_slice frame,
                     bool released);
bool hb_key_page_is_full(const struct hb_key_page *page);

/* read_key_released.c: entries in [state->next, end) from index and log. *out_done: next == end;
 * else the page is full or the budget used up. */
HB_MUST_CHECK enum hb_code hb_key_read_released(struct hb_key_page *page, int64_t end,
                                                bool *out_done, struct hb_err *err);
/* read_key_sequence.c: PER_KEY mode. Before a pass: held_next rises to where the key goes on. */
HB_MUST_CHECK enum hb_code hb_key_read_next(struct hb_key_page *page, struct hb_err *err);
/* As hb_key_read_places, for places that are sequences; *out_moved: something of the key was
 * released above `bound`, or a place is gone. */
HB_MUST_CHECK enum hb_code hb_key_give_held(struct hb_key_page *page, bool *out_done,
                                            bool *out_moved, struct hb_err *err);

/* read_key_held.c: one step of the pass over the bundles. */
HB_MUST_CHECK enum hb_code hb_key_read_pass(struct hb_key_page *page, bool *out_done,
                                            struct hb_err *err);
/* Give the places. *out_done: all are given. *out_moved: the first that is left is not where it
 * was, and not released either. Else the page is full or the budget used up. */
HB_MUST_CHECK enum hb_code hb_key_read_places(struct hb_key_page *page, bool *out_done,
                                              bool *out_moved, struct hb_err *err);

#endif
