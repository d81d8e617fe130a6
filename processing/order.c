/* Decides in which order a commit carries what changed: by key, then name, as the store has it.
 *
 * Keys of one stream mostly begin alike and differ in a few bytes. So the bytes behind what is
 * common to all are taken as one number, and these are sorted by counting; only what is alike in
 * all eight is compared. */
#include "processing/order_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"

enum { LEAD = 8, DIGITS = 256, FEW = 256 };

struct item {
  uint64_t lead; /* eight bytes of the key, as a number */
  struct hb_state *state;
};

static size_t common(struct hb_slice a, struct hb_slice b, size_t most) {
  size_t size = 0;
  while (size < most && size < b.size && a.data[size] == b.data[size]) size++;
  return size;
}

static size_t common_to_all(struct hb_state *const *states, size_t count) {
  struct hb_slice first = hb_state_key(states[0]);
  size_t size = first.size;
  for (size_t i = 1; i < count && size > 0; i++) {
    size = common(first, hb_state_key(states[i]), size);
  }
  return size;
}

static uint64_t lead_of(struct hb_slice key, size_t skip) {
  uint8_t bytes[LEAD] = {0};
  size_t left = key.size - skip;
  if (left) memcpy(bytes, key.data + skip, left < LEAD ? left : LEAD);
  return hb_get_u64_be(bytes);
}

static int compare(const void *a, const void *b) {
  const struct item *left = a;
  const struct item *right = b;
  if (left->lead != right->lead) return left->lead < right->lead ? -1 : 1;
  int order = hb_slice_compare(hb_state_key(left->state), hb_state_key(right->state));
  if (order != 0) return order;
  return hb_slice_compare(hb_state_name(left->state), hb_state_name(right->state));
}

/* By one byte of the lead, those that are alike in it in the order in which they are. False: all
 * are. */
static bool sort_by_digit(const struct item *from, size_t count, unsigned shift, struct item *to) {
  size_t starts[DIGITS + 1] = {0};
  for (size_t i = 0; i < count; i++) starts[(from[i].lead >> shift & (DIGITS - 1)) + 1]++;
  if (starts[(from[0].lead >> shift & (DIGITS - 1)) + 1] == count) return false;
  for (size_t i = 0; i < DIGITS; i++) starts[i + 1] += starts[i];
  for (size_t i = 0; i < count; i++) to[starts[from[i].lead >> shift & (DIGITS - 1)]++] = from[i];
  return true;
}

/* Returns which of the two has them in order. */
static struct item *sort_by_lead(struct item *items, struct item *other, size_t count) {
  for (unsigned shift = 0; shift < 8 * LEAD; shift += 8) {
    if (!sort_by_digit(items, count, shift, other)) continue;
    struct item *sorted = other;
    other = items;
    items = sorted;
  }
  return items;
}

static void sort_alike(struct item *items, size_t count) {
  for (size_t first = 0; first < count;) {
    size_t end = first + 1;
    while (end < count && items[end].lead == items[first].lead) end++;
    if (end - first > 1) qsort(items + first, end - first, sizeof *items, compare);
    first = end;
  }
}

void hb_states_sort(struct hb_state **states, size_t count) {
  if (count < 2) return;
  struct item *both = hb_calloc(count, 2 * sizeof *both);
  struct item *items = both;
  size_t skip = common_to_all(states, count);
  for (size_t i = 0; i < count; i++) {
    items[i] = (struct item){.lead = lead_of(hb_state_key(states[i]), skip), .state = states[i]};
  }
  if (count < FEW) {
    qsort(items, count, sizeof *items, compare);
  } else {
    items = sort_by_lead(items, both + count, count);
    sort_alike(items, count);
  }
  for (size_t i = 0; i < count; i++) states[i] = items[i].state;
  free(both);
}
