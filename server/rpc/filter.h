/* A subscription's filter: which keys it wants. Pure. */
#ifndef HB_SERVER_RPC_FILTER_H
#define HB_SERVER_RPC_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"
#include "holdback/v1/delivery.pb-c.h"

/* Zeroed = lets everything through. */
struct hb_filter {
  bool active;
  struct hb_slice *keys; /* owned array, ascending; the slices look at `bytes` */
  size_t keys_count;
  struct hb_slice *prefixes; /* likewise; none begins with another */
  size_t prefixes_count;
  uint8_t *bytes; /* owned */
};

/* `from` NULL: everything. HB_INVALID: FILTER_EMPTY, FILTER_TOO_LARGE. */
HB_MUST_CHECK enum hb_code hb_filter_init(const Holdback__V1__Filter *from,
                                          const struct hb_limits *limits, struct hb_filter *out,
                                          struct hb_err *err);
void hb_filter_done(struct hb_filter *filter);
bool hb_filter_matches(const struct hb_filter *filter, struct hb_slice key);

#endif
