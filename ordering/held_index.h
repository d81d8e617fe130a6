/* The held index: in which bundle each held event lies.
 *
 * Events that follow each other in sequence and in their bundle are one entry, a run. Order is by
 * sequence; runs never overlap. Release takes from the front, everything else is looked up. */
#ifndef HB_ORDERING_HELD_INDEX_H
#define HB_ORDERING_HELD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ordering/pages.h"

struct hb_held_run {
  int64_t start;
  uint32_t length; /* > 0 */
  uint32_t slot;   /* of the bundle, in its stream's table */
  uint32_t index;  /* of the first event in the bundle */
};

struct hb_held_index {
  struct hb_pages runs;
  struct hb_place place; /* where the last search ended */
  uint64_t events;
};

void hb_held_init(struct hb_held_index *index, size_t *account);
void hb_held_done(struct hb_held_index *index);

/* False: a sequence of the run is held already; nothing changed. */
bool hb_held_insert(struct hb_held_index *index, struct hb_held_run run);
/* The run that holds `sequence`. */
bool hb_held_find(struct hb_held_index *index, int64_t sequence, struct hb_held_run *out);
bool hb_held_front(const struct hb_held_index *index, struct hb_held_run *out);
/* The run that comes `ahead` runs after the first; false where that is not known at once. */
bool hb_held_ahead(const struct hb_held_index *index, uint32_t ahead, struct hb_held_run *out);
/* Remove the lowest `count` events, which all lie in the first run. */
void hb_held_pop(struct hb_held_index *index, uint32_t count);
/* Remove the whole run that starts at `start`, which must be there. */
void hb_held_remove(struct hb_held_index *index, int64_t start);
/* See hb_pages_expect_page. */
static inline void hb_held_expect(const struct hb_held_index *index, int64_t sooner, int64_t later,
                                  size_t pages[2]) {
  hb_pages_expect_spans(&index->runs, sooner, &pages[0]);
  hb_pages_expect_page(&index->runs, later, &pages[1]);
}
/* A sequence such that about `events` held events lie below it, INT64_MAX where there are fewer.
 * Cheap: it looks at pages, not at runs. */
int64_t hb_held_reach(const struct hb_held_index *index, uint64_t events);

#endif
