/* The timers that are set, in the order in which they fire: by time, key, and the order of setting.
 *
 * All in memory; what the store lacks and what it has too many of is known for the next commit.
 * One thread. */
#ifndef HB_PROCESSING_TIMERS_INTERNAL_H
#define HB_PROCESSING_TIMERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"
#include "storage/processor_rows.h"

struct hb_event_timer {
  struct hb_event_timer *hash_next;
  struct hb_event_timer *next; /* in `fresh` (both ways) or in `gone` */
  struct hb_event_timer *previous;
  size_t at; /* in the heap */
  struct hb_time time;
  uint64_t creation;
  uint32_t hash;
  uint32_t key_size;
  uint32_t name_size;
  bool stored;  /* the store has it */
  uint8_t id[]; /* key, then name */
};

struct hb_event_timers {
  struct hb_event_timer **heap; /* the first one fires next */
  size_t count;
  size_t cap;
  struct hb_event_timer **slots;
  size_t slots_count;
  struct hb_event_timer *fresh; /* set, and not in the store */
  struct hb_event_timer *gone;  /* in the store, and not set any more; owned */
  size_t changes;               /* since the last commit */
};

void hb_event_timers_init(struct hb_event_timers *timers);
void hb_event_timers_done(struct hb_event_timers *timers);
/* In place of the key's timer of that name. `stored`: it was read from the store. */
void hb_event_timers_set(struct hb_event_timers *timers, const struct hb_timer_row *row,
                         bool stored);
void hb_event_timers_clear(struct hb_event_timers *timers, struct hb_slice key,
                           struct hb_slice name);
/* The one that fires next; NULL: none is set. */
const struct hb_event_timer *hb_event_timers_first(const struct hb_event_timers *timers);
void hb_event_timers_remove(struct hb_event_timers *timers, const struct hb_event_timer *timer);
struct hb_timer_row hb_event_timer_row(const struct hb_event_timer *timer);
void hb_event_timers_committed(struct hb_event_timers *timers);

#endif
