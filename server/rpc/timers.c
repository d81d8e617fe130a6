/* Decides which timer is next: a heap, because ten thousand subscriptions have one each. */
#include "server/rpc/timers.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

void hb_timers_done(struct hb_timers *timers) {
  HB_ASSERT(timers->count == 0);
  free(timers->heap);
  *timers = (struct hb_timers){0};
}

static void put(struct hb_timers *timers, size_t at, struct hb_timer *timer) {
  timers->heap[at] = timer;
  timer->place = at + 1;
}

static void move_up(struct hb_timers *timers, size_t at, struct hb_timer *timer) {
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (timers->heap[parent]->at_ns <= timer->at_ns) break;
    put(timers, at, timers->heap[parent]);
    at = parent;
  }
  put(timers, at, timer);
}

static void move_down(struct hb_timers *timers, size_t at, struct hb_timer *timer) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= timers->count) break;
    if (child + 1 < timers->count && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns) {
      child++;
    }
    if (timers->heap[child]->at_ns >= timer->at_ns) break;
    put(timers, at, timers->heap[child]);
    at = child;
  }
  put(timers, at, timer);
}

void hb_timers_set(struct hb_timers *timers, struct hb_timer *timer, uint64_t at_ns) {
  hb_timers_clear(timers, timer);
  hb_reserve((void **)&timers->heap, &timers->cap, timers->count + 1, sizeof(struct hb_timer *));
  timer->at_ns = at_ns;
  move_up(timers, timers->count++, timer);
}

void hb_timers_clear(struct hb_timers *timers, struct hb_timer *timer) {
  if (!timer->place) return;
  size_t at = timer->place - 1;
  HB_ASSERT(at < timers->count && timers->heap[at] == timer);
  timer->place = 0;
  struct hb_timer *last = timers->heap[--timers->count];
  if (last == timer) return;
  move_down(timers, at, last);
  move_up(timers, last->place - 1, last);
}

uint64_t hb_timers_next_ns(const struct hb_timers *timers) {
  return timers->count ? timers->heap[0]->at_ns : UINT64_MAX;
}

struct hb_timer *hb_timers_take_due(struct hb_timers *timers, uint64_t now_ns) {
  if (!timers->count || timers->heap[0]->at_ns > now_ns) return NULL;
  struct hb_timer *due = timers->heap[0];
  hb_timers_clear(timers, due);
  return due;
}
