/* The order in which a commit carries states. */
#ifndef HB_PROCESSING_ORDER_INTERNAL_H
#define HB_PROCESSING_ORDER_INTERNAL_H

#include <stddef.h>

#include "processing/cache_internal.h"

/* By key, then name. No two are alike in both. */
void hb_states_sort(struct hb_state **states, size_t count);

#endif
