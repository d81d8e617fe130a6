/* The order of a bundle of index entries. */
#ifndef HB_STORAGE_INDEX_SORT_INTERNAL_H
#define HB_STORAGE_INDEX_SORT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/index.h"

/* Indexes of `entries` by (key, position), equal ones in the order they have: `count` of them, to
 * be freed. HB_INDEX_SAME_KEY is added to each whose key is that of the one before: who has the
 * order need not touch the keys again. count <= HB_INDEX_SORT_MAX. Memory: 8 bytes per entry, 40 to
 * 72 per distinct key. */
#define HB_INDEX_SAME_KEY (UINT32_C(1) << 31)
#define HB_INDEX_SORT_MAX ((size_t)HB_INDEX_SAME_KEY)
uint32_t *hb_index_sort(const struct hb_index_entry *entries, size_t count);

#endif
