/* Decides which task comes next (a binary heap; `place` makes the order total, so that a seed
 * gives the same feed on every machine). */
#include "examples/orderbook/schedule.h"

#include <stdlib.h>

#include "base/alloc.h"

static bool is_before(const struct ob_task *left, const struct ob_task *right) {
  return left->tick != right->tick ? left->tick < right->tick : left->place < right->place;
}

static void swap(struct ob_task *left, struct ob_task *right) {
  struct ob_task kept = *left;
  *left = *right;
  *right = kept;
}

void ob_schedule_put(struct ob_schedule *schedule, const struct ob_task *task) {
  hb_reserve((void **)&schedule->heap, &schedule->cap, schedule->count + 1, sizeof *schedule->heap);
  size_t at = schedule->count++;
  schedule->heap[at] = *task;
  schedule->heap[at].place = schedule->places++;
  for (; at > 0 && is_before(&schedule->heap[at], &schedule->heap[(at - 1) / 2]);
       at = (at - 1) / 2) {
    swap(&schedule->heap[at], &schedule->heap[(at - 1) / 2]);
  }
}

static void sink(struct ob_schedule *schedule) {
  struct ob_task *heap = schedule->heap;
  for (size_t at = 0;;) {
    size_t first = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < schedule->count; child++) {
      if (is_before(&heap[child], &heap[first])) first = child;
    }
    if (first == at) return;
    swap(&heap[at], &heap[first]);
    at = first;
  }
}

bool ob_schedule_take(struct ob_schedule *schedule, struct ob_task *out) {
  if (schedule->count == 0) return false;
  *out = schedule->heap[0];
  schedule->heap[0] = schedule->heap[--schedule->count];
  sink(schedule);
  return true;
}

void ob_schedule_done(struct ob_schedule *schedule) {
  free(schedule->heap);
  *schedule = (struct ob_schedule){0};
}
