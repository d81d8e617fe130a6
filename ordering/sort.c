/* Decides how to sort: what is sorted stays; by digits where two or three passes do; else by
 * merging runs. */
#include "ordering/sort.h"

#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, RADIX_MIN = 512, RADIX_PASSES_MAX = 3 };

/* Length of the ascending run at the start; a strictly descending one is turned round. */
static size_t take_run(struct hb_item *items, size_t count) {
  size_t length = 1;
  if (count > 1 && items[1].sequence < items[0].sequence) {
    while (length < count && items[length].sequence < items[length - 1].sequence) length++;
    for (size_t i = 0; i < length / 2; i++) {
      struct hb_item swap = items[i];
      items[i] = items[length - 1 - i];
      items[length - 1 - i] = swap;
    }
  }
  while (length < count && items[length].sequence >= items[length - 1].sequence) length++;
  return length;
}

/* ---- by digits */

static unsigned passes_for(uint64_t range) {
  unsigned passes = 0;
  for (; range; range >>= DIGIT_BITS) passes++;
  return passes;
}

static void radix_pass(const struct hb_item *from, struct hb_item *to, size_t count, int64_t low,
                       unsigned shift) {
  size_t places[DIGITS] = {0};
  for (size_t i = 0; i < count; i++) {
    places[(((uint64_t)from[i].sequence - (uint64_t)low) >> shift) % DIGITS]++;
  }
  size_t sum = 0;
  for (size_t digit = 0; digit < DIGITS; digit++) {
    size_t here = places[digit];
    places[digit] = sum;
    sum += here;
  }
  for (size_t i = 0; i < count; i++) {
    to[places[(((uint64_t)from[i].sequence - (uint64_t)low) >> shift) % DIGITS]++] = from[i];
  }
}

static bool sort_by_digits(struct hb_item *items, struct hb_item *spare, size_t count) {
  int64_t low = items[0].sequence;
  int64_t high = low;
  for (size_t i = 1; i < count; i++) {
    if (items[i].sequence < low) low = items[i].sequence;
    if (items[i].sequence > high) high = items[i].sequence;
  }
  unsigned passes = passes_for((uint64_t)high - (uint64_t)low);
  if (passes > RADIX_PASSES_MAX) return false;
  struct hb_item *from = items;
  struct hb_item *to = spare;
  for (unsigned pass = 0; pass < passes; pass++) {
    radix_pass(from, to, count, low, pass * DIGIT_BITS);
    struct hb_item *swap = from;
    from = to;
    to = swap;
  }
  if (from != items) memcpy(items, from, count * sizeof *items);
  return true;
}

/* ---- by merging */

static void merge(const struct hb_item *left, size_t left_count, const struct hb_item *right,
                  size_t right_count, struct hb_item *to) {
  const struct hb_item *left_end = left + left_count;
  const struct hb_item *right_end = right + right_count;
  while (left < left_end && right < right_end) {
    *to++ = right->sequence < left->sequence ? *right++ : *left++;
  }
  memcpy(to, left, (size_t)(left_end - left) * sizeof *left);
  memcpy(to + (left_end - left), right, (size_t)(right_end - right) * sizeof *right);
}

/* One pass from `from` to `to`: each two neighbouring runs become one. Returns the runs left. */
static size_t merge_runs(const struct hb_item *from, struct hb_item *to, size_t count) {
  size_t runs = 0;
  for (size_t at = 0; at < count; runs++) {
    size_t middle = at + 1;
    while (middle < count && from[middle].sequence >= from[middle - 1].sequence) middle++;
    size_t end = middle < count ? middle + 1 : middle;
    while (end < count && from[end].sequence >= from[end - 1].sequence) end++;
    merge(from + at, middle - at, from + middle, end - middle, to + at);
    at = end;
  }
  return runs;
}

static void sort_by_merging(struct hb_item *items, struct hb_item *spare, size_t count) {
  struct hb_item *from = items;
  struct hb_item *to = spare;
  for (size_t runs = 2; runs > 1;) {
    runs = merge_runs(from, to, count);
    struct hb_item *swap = from;
    from = to;
    to = swap;
  }
  if (from != items) memcpy(items, from, count * sizeof *items);
}

void hb_sort_items(struct hb_item *items, struct hb_item *spare, size_t count) {
  size_t runs = 0;
  for (size_t at = 0; at < count; runs++) at += take_run(items + at, count - at);
  if (runs <= 1) return;
  if (runs > 4 && count >= RADIX_MIN && sort_by_digits(items, spare, count)) return;
  sort_by_merging(items, spare, count);
}
