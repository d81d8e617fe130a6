/* Decides which recent log blocks are shared from memory: a ring of references per stream, oldest
 * first, searched by position. The cap over all streams is kept by who publishes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/engine/stream_internal.h"

static void grow(struct hb_tail *tail) {
  size_t cap = tail->cap ? tail->cap * 2 : 8;
  struct hb_tail_block *ring = hb_calloc(cap, sizeof *ring);
  for (size_t i = 0; i < tail->count; i++) ring[i] = *hb_tail_at(tail, i);
  free(tail->ring);
  tail->ring = ring;
  tail->cap = cap;
  tail->head = 0;
}

void hb_tail_push(struct hb_tail *tail, int64_t from, int64_t to, struct hb_bytes *owned_block) {
  if (tail->count == tail->cap) grow(tail);
  tail->ring[(tail->head + tail->count) & (tail->cap - 1)] =
      (struct hb_tail_block){.from = from, .to = to, .block = owned_block};
  tail->count++;
}

bool hb_tail_pop(struct hb_tail *tail, struct hb_tail_block *out) {
  if (tail->count == 0) return false;
  *out = tail->ring[tail->head];
  tail->head = (tail->head + 1) & (tail->cap - 1);
  tail->count--;
  return true;
}

const struct hb_tail_block *hb_tail_at(const struct hb_tail *tail, size_t index) {
  HB_ASSERT(index < tail->count);
  return &tail->ring[(tail->head + index) & (tail->cap - 1)];
}

size_t hb_tail_find(const struct hb_tail *tail, int64_t position) {
  size_t low = 0;
  size_t high = tail->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (hb_tail_at(tail, middle)->to > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low < tail->count && hb_tail_at(tail, low)->from > position) return tail->count;
  return low;
}

void hb_tail_done(struct hb_tail *tail) {
  struct hb_tail_block block;
  while (hb_tail_pop(tail, &block)) hb_bytes_unref(block.block);
  free(tail->ring);
  *tail = (struct hb_tail){0};
}
