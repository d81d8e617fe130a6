/* Decides how a bundle is sorted: entries are first put to their keys by hash, then only the
 * distinct keys are compared, then the entries are counted into their places. Events of a stream
 * have few keys compared with events, and come with ascending positions, so that a comparison per
 * entry and level of a sort would be most of the indexer's work. */
#include "storage/index_sort_internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"

struct group {
  struct hb_slice key; /* borrowed */
  uint64_t tag;        /* its hash while grouping, then its first bytes as a number */
  uint32_t count;
  uint32_t id;
};

struct groups {
  struct group *items; /* owned */
  size_t count;
  size_t cap;
  uint32_t *table; /* owned; open addressing, 0 = free, else id + 1 */
  size_t slots;    /* a power of two, at least twice the groups */
};

static void place(struct groups *groups, const struct group *group) {
  size_t slot = group->tag & (groups->slots - 1);
  while (groups->table[slot]) slot = (slot + 1) & (groups->slots - 1);
  groups->table[slot] = group->id + 1;
}

static void grow(struct groups *groups) {
  free(groups->table);
  groups->slots = groups->slots ? groups->slots * 2 : 1024;
  groups->table = hb_calloc(groups->slots, sizeof *groups->table);
  for (size_t i = 0; i < groups->count; i++) place(groups, &groups->items[i]);
}

static struct group *find_or_add(struct groups *groups, struct hb_slice key) {
  uint64_t hash = XXH3_64bits(key.data, key.size);
  size_t slot = hash & (groups->slots - 1);
  for (uint32_t at; (at = groups->table[slot]); slot = (slot + 1) & (groups->slots - 1)) {
    struct group *group = &groups->items[at - 1];
    if (group->tag == hash && hb_slice_equal(group->key, key)) return group;
  }
  hb_reserve((void **)&groups->items, &groups->cap, groups->count + 1, sizeof *groups->items);
  struct group *group = &groups->items[groups->count];
  *group = (struct group){.key = key, .tag = hash, .id = (uint32_t)groups->count++};
  place(groups, group);
  if (groups->count * 2 > groups->slots) grow(groups);
  return &groups->items[groups->count - 1];
}

static uint64_t first_bytes(struct hb_slice key) {
  uint8_t bytes[8] = {0};
  if (key.size) memcpy(bytes, key.data, key.size < sizeof bytes ? key.size : sizeof bytes);
  return hb_get_u64_be(bytes);
}

/* Byte order; escaping in a row's key does not change it. */
static int compare_groups(const void *a, const void *b) {
  const struct group *left = a;
  const struct group *right = b;
  if (left->tag != right->tag) return left->tag < right->tag ? -1 : 1;
  return hb_slice_compare(left->key, right->key);
}

/* By id: where the entries of each group begin in the order of keys. */
static uint32_t *starts_of(struct groups *groups) {
  for (size_t i = 0; i < groups->count; i++) {
    groups->items[i].tag = first_bytes(groups->items[i].key);
  }
  qsort(groups->items, groups->count, sizeof *groups->items, compare_groups);
  uint32_t *starts = hb_alloc(groups->count * sizeof *starts);
  uint32_t start = 0;
  for (size_t i = 0; i < groups->count; i++) {
    starts[groups->items[i].id] = start;
    start += groups->items[i].count;
  }
  return starts;
}

struct placed {
  int64_t position;
  uint32_t index;
};

static int compare_placed(const void *a, const void *b) {
  const struct placed *left = a;
  const struct placed *right = b;
  if (left->position != right->position) return left->position < right->position ? -1 : 1;
  return (left->index > right->index) - (left->index < right->index);
}

static void sort_positions(const struct hb_index_entry *entries, uint32_t *order, uint32_t count) {
  uint32_t i = 1;
  while (i < count && entries[order[i - 1]].position <= entries[order[i]].position) i++;
  if (i >= count) return;
  struct placed *placed = hb_alloc(count * sizeof *placed);
  for (i = 0; i < count; i++) placed[i] = (struct placed){entries[order[i]].position, order[i]};
  qsort(placed, count, sizeof *placed, compare_placed);
  for (i = 0; i < count; i++) order[i] = placed[i].index;
  free(placed);
}

uint32_t *hb_index_sort(const struct hb_index_entry *entries, size_t count) {
  HB_ASSERT(count <= HB_INDEX_SORT_MAX);
  struct groups groups = {0};
  grow(&groups);
  uint32_t *group_of = hb_alloc(count * sizeof *group_of);
  for (size_t i = 0; i < count; i++) {
    struct group *group = find_or_add(&groups, entries[i].key);
    group->count++;
    group_of[i] = group->id;
  }
  uint32_t *next = starts_of(&groups);
  uint32_t *order = hb_alloc(count * sizeof *order);
  for (size_t i = 0; i < count; i++) order[next[group_of[i]]++] = (uint32_t)i;
  uint32_t start = 0;
  for (size_t i = 0; i < groups.count; i++) {
    uint32_t end = start + groups.items[i].count;
    sort_positions(entries, order + start, groups.items[i].count);
    for (uint32_t at = start + 1; at < end; at++) order[at] |= HB_INDEX_SAME_KEY;
    start = end;
  }
  free(next);
  free(group_of);
  free(groups.table);
  free(groups.items);
  return order;
}
