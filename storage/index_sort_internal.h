/* The order of a bundle of index entries. */
#ifndef HB_STORAGE_INDEX_SORT_INTERNAL_H
#define HB_STORAGE_INDEX_SORT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/index.h"

/* Indexes of `entries` by (key, position), equal ones in the order they have: `count` of them, to
 * be freed. count <= UINT32_MAX. Memory: 8 bytes per entry, 40 to 72 per distinct key. */
uint32_t *hb_index_sort(const struct hb_index_entry *entries, size_t count);

#endif
