/* Rows of blocks, as log_read.c and log_find.c read them: a stream's log, or one of its processors'
 * results. */
#ifndef HB_STORAGE_LOG_INTERNAL_H
#define HB_STORAGE_LOG_INTERNAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/frame/block.h"
#include "base/slice.h"
#include "storage/engine_internal.h"
#include "storage/key_internal.h"
#include "storage/processor_rows.h"
#include "storage/store.h"

struct hb_log_place {
  enum hb_family family;
  struct hb_processor_id id; /* processor: only for results */
};

struct hb_log_place hb_log_place_of(uint64_t stream);
struct hb_key hb_log_place_key(const struct hb_log_place *place, int64_t position);
struct hb_rocks_iter *hb_log_results_iter(struct hb_store *store, struct hb_processor_id id);
/* `bytes` are the value at the iterator, or a copy of it: checked as a whole. */
HB_MUST_CHECK enum hb_code hb_log_decode(const struct hb_rocks_iter *iter,
                                         const struct hb_log_place *place, struct hb_slice bytes,
                                         struct hb_block *out, struct hb_err *err);
enum hb_code hb_log_iter_error(const struct hb_rocks_iter *iter, const struct hb_log_place *place,
                               int64_t position, struct hb_err *err);
/* Says in the message where it was. Returns `code`. */
enum hb_code hb_log_wrap(enum hb_code code, const struct hb_log_place *place, int64_t position,
                         struct hb_err *err);

#endif
