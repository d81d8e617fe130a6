/* Decides which refused event goes next (a binary heap) and when. */
#include "client/window.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

/* What an entry costs besides its frame: the heap's slot and malloc's header. */
enum { ENTRY_COST = sizeof(struct hbc_refused) + 16 };

static bool is_before(const struct hbc_refused *a, const struct hbc_refused *b) {
  return a->sequence != b->sequence ? a->sequence < b->sequence : a->serial < b->serial;
}

static void swap(struct hbc_refused *a, struct hbc_refused *b) {
  struct hbc_refused kept = *a;
  *a = *b;
  *b = kept;
}

static void sift_up(struct hbc_refused *heap, size_t at) {
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (!is_before(&heap[at], &heap[parent])) return;
    swap(&heap[at], &heap[parent]);
    at = parent;
  }
}

static void sift_down(struct hbc_refused *heap, size_t count, size_t at) {
  for (;;) {
    size_t lowest = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
      if (is_before(&heap[child], &heap[lowest])) lowest = child;
    if (lowest == at) return;
    swap(&heap[at], &heap[lowest]);
    at = lowest;
  }
}

void hbc_window_done(struct hbc_window *window) {
  for (size_t i = 0; i < window->count; i++) free(window->heap[i].frame);
  free(window->heap);
  *window = (struct hbc_window){0};
}

void hbc_window_add(struct hbc_window *window, const struct hbc_refused *refused, uint64_t now_ms) {
  if (window->count == 0 && now_ms > 0) {
    if (now_ms > window->moved_ms) window->moved_ms = now_ms;
    window->hope = false; /* what moved before this event was refused is no reason */
  }
  hb_reserve((void **)&window->heap, &window->cap, window->count + 1, sizeof *window->heap);
  struct hbc_refused *entry = &window->heap[window->count];
  *entry = *refused;
  entry->serial = window->serial++;
  entry->frame = hb_memdup(refused->frame, refused->size);
  window->bytes += refused->size + ENTRY_COST;
  sift_up(window->heap, window->count++);
}

void hbc_window_saw_complete_to(struct hbc_window *window, int64_t complete_to, uint64_t now_ms) {
  bool known = window->has_complete_to;
  if (known && complete_to <= window->complete_to) return;
  window->has_complete_to = true;
  window->complete_to = complete_to;
  window->moved_ms = now_ms;
  window->hope = window->hope || known;
}

void hbc_window_saw_end(struct hbc_window *window, int64_t end) {
  if (window->has_end && end > window->end) window->hope = true;
  window->has_end = true;
  window->end = end;
}

void hbc_window_taken(struct hbc_window *window, uint64_t now_ms) {
  window->moved_ms = now_ms;
  window->hope = true;
}

bool hbc_window_may_retry(const struct hbc_window *window) {
  if (window->count == 0 || !window->hope) return false;
  return !window->has_end || window->heap[0].sequence < window->end;
}

const struct hbc_refused *hbc_window_lowest(const struct hbc_window *window) {
  return window->count ? &window->heap[0] : NULL;
}

struct hbc_refused hbc_window_take(struct hbc_window *window) {
  HB_ASSERT(window->count > 0);
  struct hbc_refused lowest = window->heap[0];
  window->heap[0] = window->heap[--window->count];
  sift_down(window->heap, window->count, 0);
  window->bytes -= lowest.size + ENTRY_COST;
  return lowest;
}
