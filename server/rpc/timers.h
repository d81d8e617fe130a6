/* Timers of one pump: a binary heap of deadlines. Not thread-safe: the pump's own thread only. */
#ifndef HB_SERVER_RPC_TIMERS_H
#define HB_SERVER_RPC_TIMERS_H

#include <stddef.h>
#include <stdint.h>

/* Embedded in what it belongs to, zeroed = not set. Must be cleared before it is freed. */
struct hb_timer {
  void (*fire)(struct hb_timer *timer); /* not set any more when called */
  uint64_t at_ns;                       /* monotonic; the heap's while set */
  size_t place;                         /* index in the heap + 1; 0 = not set */
};

struct hb_timers {
  struct hb_timer **heap; /* owned array of borrowed timers */
  size_t count;
  size_t cap;
};

void hb_timers_done(struct hb_timers *timers); /* none may be set */
/* Set, or move where it is set already. */
void hb_timers_set(struct hb_timers *timers, struct hb_timer *timer, uint64_t at_ns);
void hb_timers_clear(struct hb_timers *timers, struct hb_timer *timer);
/* UINT64_MAX: none is set. */
uint64_t hb_timers_next_ns(const struct hb_timers *timers);
/* The earliest timer with at_ns <= now_ns, taken out; NULL: none is due. */
struct hb_timer *hb_timers_take_due(struct hb_timers *timers, uint64_t now_ns);

#endif
