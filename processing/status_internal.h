/* Statuses by key: what is kept of each key that was seen, and the log in which they are told. */
#ifndef HB_PROCESSING_STATUS_INTERNAL_H
#define HB_PROCESSING_STATUS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "processing/cache_internal.h"
#include "processing/host.h"

/* One frame of a log under construction. */
struct hb_result {
  size_t offset; /* in the bytes of all frames */
  uint32_t size;
  struct hb_time max_time; /* the largest of all up to this one */
};

struct hb_statuses {
  enum hb_key_status_mode mode;
  const struct hb_state_source *committed; /* borrowed */
  struct hb_state_source source;           /* of `keys`, on top of it */
  struct hb_state_source nothing;          /* of `changed` */
  struct hb_cache keys;                    /* key -> struct hb_key_status, as bytes */
  struct hb_cache changed;                 /* PERIODIC: a set of keys */
  uint64_t wall_ms;
  struct hb_buf frames; /* told, and not committed */
  struct hb_result *told;
  size_t told_count;
  size_t told_cap;
};

void hb_statuses_init(struct hb_statuses *statuses, enum hb_key_status_mode mode,
                      const struct hb_state_source *committed, size_t budget);
void hb_statuses_done(struct hb_statuses *statuses);
void hb_statuses_committed(struct hb_statuses *statuses);

#endif
