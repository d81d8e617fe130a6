/* Sorting the events of a commit by sequence; equal sequences stay in the order of arrival. */
#ifndef HB_ORDERING_SORT_H
#define HB_ORDERING_SORT_H

#include <stddef.h>
#include <stdint.h>

/* One event of the round: its number, and where it is. */
struct hb_item {
  int64_t sequence;
  uint32_t batch;
  uint32_t index;
};

/* Stable, ascending, in place; `spare` has room for `count`. Sorted and reversed input and input
 * made of a few ascending runs cost one pass or few; the rest goes by digits of the range that
 * occurs, or by merging where the range is wide and the items are few. */
void hb_sort_items(struct hb_item *items, struct hb_item *spare, size_t count);

#endif
