/* What is held of one key: an array, ascending. What a commit adds is merged in one pass that
 * touches only what lies above the lowest of it; releases take from the front. */
#include "ordering/key_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { FIRST_CAP = 2 };

struct hb_keyed_entry *hb_key_list_front(const struct hb_key_list *list) {
  return list->from < list->to ? &list->entries[list->from] : NULL;
}

/* Place of the first entry at or above `sequence`. */
static size_t lower_bound(const struct hb_key_list *list, int64_t sequence) {
  size_t low = list->from;
  size_t high = list->to;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->entries[middle].sequence < sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

struct hb_keyed_entry *hb_key_list_find(const struct hb_key_list *list, int64_t sequence) {
  size_t at = lower_bound(list, sequence);
  return at < list->to && list->entries[at].sequence == sequence ? &list->entries[at] : NULL;
}

const struct hb_keyed_entry *hb_key_list_above(const struct hb_key_list *list, int64_t sequence) {
  size_t at = lower_bound(list, sequence);
  return at < list->to ? &list->entries[at] : NULL;
}

/* Sequences ascend by at least one, so entry i belongs to the run exactly where it is i above the
 * first, and then so do all before it. */
int64_t hb_key_list_run_end(const struct hb_key_list *list, int64_t sequence) {
  size_t first = lower_bound(list, sequence);
  size_t low = first;
  size_t high = list->to;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint64_t above = (uint64_t)list->entries[middle].sequence - (uint64_t)sequence;
    if (above == middle - first) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return sequence + (int64_t)(low - first);
}

static void set_cap(struct hb_key_list *list, size_t cap, size_t *bytes) {
  size_t count = hb_key_list_count(list);
  if (list->from) memmove(list->entries, list->entries + list->from, count * sizeof *list->entries);
  list->from = 0;
  list->to = count;
  *bytes -= list->cap * sizeof *list->entries;
  *bytes += cap * sizeof *list->entries;
  list->entries = hb_realloc(list->entries, cap * sizeof *list->entries);
  list->cap = cap;
}

/* Room for `count` more behind the last one. */
static void make_room(struct hb_key_list *list, size_t count, size_t *bytes) {
  if (count <= list->cap - list->to) return;
  size_t needed = hb_key_list_count(list) + count;
  size_t cap = list->cap;
  if (needed > cap / 4 * 3) cap = needed + needed / 2 + FIRST_CAP;
  set_cap(list, cap, bytes);
}

void hb_key_list_append(struct hb_key_list *list, struct hb_keyed_entry entry, size_t *bytes) {
  make_room(list, 1, bytes);
  list->entries[list->to++] = entry;
}

static int compare(const void *a, const void *b) {
  int64_t x = ((const struct hb_keyed_entry *)a)->sequence;
  int64_t y = ((const struct hb_keyed_entry *)b)->sequence;
  return (x > y) - (x < y);
}

void hb_key_list_sort(struct hb_key_list *list) {
  size_t count = hb_key_list_count(list);
  if (count > 1) qsort(list->entries + list->from, count, sizeof *list->entries, compare);
}

void hb_key_list_merge(struct hb_key_list *list, const struct hb_keyed_entry *more, size_t count,
                       size_t *bytes) {
  if (!count) return;
  make_room(list, count, bytes);
  size_t old = list->to;
  size_t to = list->to + count;
  list->to = to;
  while (count) {
    if (old > list->from && list->entries[old - 1].sequence > more[count - 1].sequence) {
      list->entries[--to] = list->entries[--old];
    } else {
      list->entries[--to] = more[--count];
    }
  }
  HB_ASSERT(to == old); /* I10: what was merged in was not there */
}

void hb_key_list_pop(struct hb_key_list *list, size_t count, size_t *bytes) {
  HB_ASSERT(count <= hb_key_list_count(list));
  list->from += count;
  if (list->from == list->to) hb_key_list_done(list, bytes);
}

uint64_t hb_key_list_gaps(const struct hb_key_list *list, bool has_next, int64_t next) {
  if (list->from == list->to) return 0;
  uint64_t gaps = has_next && list->entries[list->from].sequence == next ? 0 : 1;
  for (size_t i = list->from + 1; i < list->to; i++) {
    gaps += list->entries[i].sequence != list->entries[i - 1].sequence + 1;
  }
  return gaps;
}

void hb_key_list_done(struct hb_key_list *list, size_t *bytes) {
  *bytes -= list->cap * sizeof *list->entries;
  free(list->entries);
  *list = (struct hb_key_list){0};
}
