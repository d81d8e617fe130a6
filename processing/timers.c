/* Decides which timer fires next. A binary heap by (time, key, creation), whose entries know where
 * they are, beside a hash by (key, name). */
#include "processing/timers_internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"

enum { SLOTS_MIN = 64 };

void hb_event_timers_init(struct hb_event_timers *timers) {
  *timers = (struct hb_event_timers){.slots_count = SLOTS_MIN};
  timers->slots = hb_calloc(SLOTS_MIN, sizeof *timers->slots);
}

static void drop_gone(struct hb_event_timers *timers) {
  while (timers->gone) {
    struct hb_event_timer *timer = timers->gone;
    timers->gone = timer->next;
    free(timer);
  }
}

void hb_event_timers_done(struct hb_event_timers *timers) {
  drop_gone(timers);
  for (size_t i = 0; i < timers->count; i++) free(timers->heap[i]);
  free(timers->heap);
  free(timers->slots);
}

static struct hb_slice key_of(const struct hb_event_timer *timer) {
  return hb_slice_of(timer->id, timer->key_size);
}

static struct hb_slice name_of(const struct hb_event_timer *timer) {
  return hb_slice_of(timer->id + timer->key_size, timer->name_size);
}

struct hb_timer_row hb_event_timer_row(const struct hb_event_timer *timer) {
  return (struct hb_timer_row){.time = timer->time,
                               .key = key_of(timer),
                               .creation = timer->creation,
                               .name = name_of(timer)};
}

/* ---- the heap */

static bool before(const struct hb_event_timer *a, const struct hb_event_timer *b) {
  int order = hb_time_compare(a->time, b->time);
  if (order == 0) order = hb_slice_compare(key_of(a), key_of(b));
  return order != 0 ? order < 0 : a->creation < b->creation;
}

static void place(struct hb_event_timers *timers, size_t at, struct hb_event_timer *timer) {
  timers->heap[at] = timer;
  timer->at = at;
}

static void sift_up(struct hb_event_timers *timers, size_t at) {
  struct hb_event_timer *timer = timers->heap[at];
  while (at > 0 && before(timer, timers->heap[(at - 1) / 2])) {
    place(timers, at, timers->heap[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(timers, at, timer);
}

static void sift_down(struct hb_event_timers *timers, size_t at) {
  struct hb_event_timer *timer = timers->heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= timers->count) break;
    if (child + 1 < timers->count && before(timers->heap[child + 1], timers->heap[child])) child++;
    if (!before(timers->heap[child], timer)) break;
    place(timers, at, timers->heap[child]);
    at = child;
  }
  place(timers, at, timer);
}

/* ---- by (key, name) */

static uint32_t hash_of(struct hb_slice key, struct hb_slice name) {
  XXH64_hash_t hash = XXH3_64bits(key.data, key.size);
  return (uint32_t)XXH3_64bits_withSeed(name.data, name.size, hash);
}

static void grow(struct hb_event_timers *timers) {
  timers->slots_count *= 2;
  free(timers->slots);
  timers->slots = hb_calloc(timers->slots_count, sizeof *timers->slots);
  for (size_t i = 0; i < timers->count; i++) {
    struct hb_event_timer *timer = timers->heap[i];
    struct hb_event_timer **slot = &timers->slots[timer->hash & (timers->slots_count - 1)];
    timer->hash_next = *slot;
    *slot = timer;
  }
}

static struct hb_event_timer *find(const struct hb_event_timers *timers, uint32_t hash,
                                   struct hb_slice key, struct hb_slice name) {
  struct hb_event_timer *timer = timers->slots[hash & (timers->slots_count - 1)];
  while (timer && !(timer->hash == hash && hb_slice_equal(key_of(timer), key) &&
                    hb_slice_equal(name_of(timer), name))) {
    timer = timer->hash_next;
  }
  return timer;
}

/* ---- setting and removing */

static void link_fresh(struct hb_event_timers *timers, struct hb_event_timer *timer) {
  timer->previous = NULL;
  timer->next = timers->fresh;
  if (timers->fresh) timers->fresh->previous = timer;
  timers->fresh = timer;
}

static void unlink_fresh(struct hb_event_timers *timers, struct hb_event_timer *timer) {
  if (timer->previous) {
    timer->previous->next = timer->next;
  } else {
    timers->fresh = timer->next;
  }
  if (timer->next) timer->next->previous = timer->previous;
}

static void take_out(struct hb_event_timers *timers, struct hb_event_timer *timer) {
  struct hb_event_timer **at = &timers->slots[timer->hash & (timers->slots_count - 1)];
  while (*at != timer) at = &(*at)->hash_next;
  *at = timer->hash_next;
  size_t hole = timer->at;
  struct hb_event_timer *last = timers->heap[--timers->count];
  if (last != timer) {
    place(timers, hole, last);
    sift_up(timers, hole);
    sift_down(timers, last->at);
  }
  timers->changes++;
  if (timer->stored) {
    timer->next = timers->gone;
    timers->gone = timer;
  } else {
    unlink_fresh(timers, timer);
    free(timer);
  }
}

void hb_event_timers_set(struct hb_event_timers *timers, const struct hb_timer_row *row,
                         bool stored) {
  uint32_t hash = hash_of(row->key, row->name);
  struct hb_event_timer *old = find(timers, hash, row->key, row->name);
  if (old) take_out(timers, old);
  if (timers->count >= timers->slots_count) grow(timers);
  struct hb_event_timer *timer = hb_alloc(sizeof *timer + row->key.size + row->name.size);
  *timer = (struct hb_event_timer){.time = row->time,
                                   .creation = row->creation,
                                   .hash = hash,
                                   .key_size = (uint32_t)row->key.size,
                                   .name_size = (uint32_t)row->name.size,
                                   .stored = stored};
  if (row->key.size) memcpy(timer->id, row->key.data, row->key.size);
  if (row->name.size) memcpy(timer->id + row->key.size, row->name.data, row->name.size);
  struct hb_event_timer **slot = &timers->slots[hash & (timers->slots_count - 1)];
  timer->hash_next = *slot;
  *slot = timer;
  hb_reserve((void **)&timers->heap, &timers->cap, timers->count + 1,
             sizeof(struct hb_event_timer *));
  place(timers, timers->count, timer);
  sift_up(timers, timers->count++);
  if (stored) return;
  timers->changes++;
  link_fresh(timers, timer);
}

void hb_event_timers_clear(struct hb_event_timers *timers, struct hb_slice key,
                           struct hb_slice name) {
  struct hb_event_timer *timer = find(timers, hash_of(key, name), key, name);
  if (timer) take_out(timers, timer);
}

const struct hb_event_timer *hb_event_timers_first(const struct hb_event_timers *timers) {
  return timers->count ? timers->heap[0] : NULL;
}

void hb_event_timers_remove(struct hb_event_timers *timers, const struct hb_event_timer *timer) {
  take_out(timers, timers->heap[timer->at]);
}

void hb_event_timers_committed(struct hb_event_timers *timers) {
  drop_gone(timers);
  for (struct hb_event_timer *timer = timers->fresh; timer; timer = timer->next)
    timer->stored = true;
  timers->fresh = NULL;
  timers->changes = 0;
}
