/* Decides which keys wait, and of which of them the store has to be told. A sorted array: there are
 * few, and an event of a key that does not wait costs a binary search. */
#include "processing/blocked.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void destroy(struct hb_blocked_key *key) {
  free((void *)(uintptr_t)key->row.key.data);
  free(key);
}

static void drop_gone(struct hb_blocked *blocked) {
  for (size_t i = 0; i < blocked->gone_count; i++) destroy(blocked->gone[i]);
  blocked->gone_count = 0;
}

void hb_blocked_done(struct hb_blocked *blocked) {
  drop_gone(blocked);
  for (size_t i = 0; i < blocked->count; i++) destroy(blocked->items[i]);
  free(blocked->items);
  free(blocked->gone);
}

/* Where the key is, or would be. */
static size_t find(const struct hb_blocked *blocked, struct hb_slice key, bool *out_found) {
  size_t low = 0;
  size_t high = blocked->count;
  *out_found = false;
  while (low < high && !*out_found) {
    size_t middle = low + (high - low) / 2;
    int order = hb_slice_compare(blocked->items[middle]->row.key, key);
    *out_found = order == 0;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return high;
}

struct hb_blocked_key *hb_blocked_find(const struct hb_blocked *blocked, struct hb_slice key) {
  bool found;
  if (blocked->count == 0) return NULL;
  size_t at = find(blocked, key, &found);
  return found ? blocked->items[at] : NULL;
}

struct hb_blocked_key *hb_blocked_next(const struct hb_blocked *blocked) {
  for (size_t i = 0; i < blocked->count; i++) {
    struct hb_blocked_key *key = blocked->items[i];
    bool looks = key->given_up || key->try_failed || key->try_copies;
    if (looks || key->row.phase != HB_BLOCKED_WAITS) return key;
  }
  return NULL;
}

void hb_blocked_look(struct hb_blocked_key *key, bool failed) {
  key->try_copies = true;
  if (!failed) return;
  key->try_failed = true;
  key->tried_count = 0;
}

void hb_blocked_touch(struct hb_blocked *blocked, struct hb_blocked_key *key) {
  if (key->dirty) return;
  key->dirty = true;
  blocked->dirty_bytes += sizeof key->row + key->row.key.size;
}

struct hb_blocked_key *hb_blocked_add(struct hb_blocked *blocked, const struct hb_blocked_row *row,
                                      bool stored) {
  bool found;
  size_t at = find(blocked, row->key, &found);
  struct hb_blocked_key *key = hb_calloc(1, sizeof *key);
  key->row = *row;
  key->row.key = hb_slice_of(hb_memdup(row->key.data, row->key.size), row->key.size);
  key->stored = stored;
  hb_reserve((void **)&blocked->items, &blocked->cap, blocked->count + 1,
             sizeof(struct hb_blocked_key *));
  memmove(blocked->items + at + 1, blocked->items + at,
          (blocked->count - at) * sizeof(struct hb_blocked_key *));
  blocked->items[at] = key;
  blocked->count++;
  blocked->key_bytes += row->key.size;
  if (!stored) hb_blocked_touch(blocked, key);
  return key;
}

void hb_blocked_remove(struct hb_blocked *blocked, struct hb_blocked_key *key) {
  bool found;
  size_t at = find(blocked, key->row.key, &found);
  blocked->count--;
  memmove(blocked->items + at, blocked->items + at + 1,
          (blocked->count - at) * sizeof(struct hb_blocked_key *));
  blocked->key_bytes -= key->row.key.size;
  if (!key->stored) {
    destroy(key);
    return;
  }
  hb_reserve((void **)&blocked->gone, &blocked->gone_cap, blocked->gone_count + 1,
             sizeof(struct hb_blocked_key *));
  blocked->gone[blocked->gone_count++] = key;
  blocked->dirty_bytes += key->row.key.size;
}

void hb_blocked_committed(struct hb_blocked *blocked) {
  drop_gone(blocked);
  for (size_t i = 0; i < blocked->count && blocked->dirty_bytes; i++) {
    struct hb_blocked_key *key = blocked->items[i];
    key->stored = key->stored || key->dirty;
    key->dirty = false;
  }
  blocked->dirty_bytes = 0;
}
