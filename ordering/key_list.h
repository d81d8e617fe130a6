/* What is held of one key of a PER_KEY stream: sequences, ascending, and where each event lies. 16
 * bytes an entry, a few more for a key with one. */
#ifndef HB_ORDERING_KEY_LIST_H
#define HB_ORDERING_KEY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A held event of a key: its sequence, and where its frame is. */
struct hb_keyed_entry {
  int64_t sequence;
  uint32_t slot;  /* of the bundle */
  uint32_t index; /* in it */
};

/* Ascending, each sequence once. Zeroed = empty. */
struct hb_key_list {
  struct hb_keyed_entry *entries; /* owned; those that wait are [from, to) */
  size_t from;
  size_t to;
  size_t cap;
};

static inline size_t hb_key_list_count(const struct hb_key_list *list) {
  return list->to - list->from;
}
/* NULL: none. */
struct hb_keyed_entry *hb_key_list_front(const struct hb_key_list *list);
struct hb_keyed_entry *hb_key_list_find(const struct hb_key_list *list, int64_t sequence);
/* The first at or above `sequence`; NULL: none. */
const struct hb_keyed_entry *hb_key_list_above(const struct hb_key_list *list, int64_t sequence);
/* The end of the run without gap that begins at `sequence`; `sequence` where it is not there. */
int64_t hb_key_list_run_end(const struct hb_key_list *list, int64_t sequence);
/* In any order, before hb_key_list_sort; `bytes` is kept as the memory that lists take. */
void hb_key_list_append(struct hb_key_list *list, struct hb_keyed_entry entry, size_t *bytes);
void hb_key_list_sort(struct hb_key_list *list);
/* `more` ascends, and none of it is there. */
void hb_key_list_merge(struct hb_key_list *list, const struct hb_keyed_entry *more, size_t count,
                       size_t *bytes);
void hb_key_list_pop(struct hb_key_list *list, size_t count, size_t *bytes);
/* Gaps between the first and the last entry, and below the first where it is above `next`. */
uint64_t hb_key_list_gaps(const struct hb_key_list *list, bool has_next, int64_t next);
void hb_key_list_done(struct hb_key_list *list, size_t *bytes);

#endif
