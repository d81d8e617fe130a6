/* Rows of the family `keys` in bytes. docs/FORMAT.md has the table. Pure; any thread. */
#ifndef HB_STORAGE_KEY_RECORD_INTERNAL_H
#define HB_STORAGE_KEY_RECORD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"

/* The row's key: appended to `out`. The user's key is escaped as in `lists`. */
void hb_key_row(struct hb_buf *out, uint64_t stream, struct hb_slice key);
/* The user's key is put into `key`, which is cleared first. */
bool hb_key_parse_row(struct hb_slice row, uint64_t *out_stream, struct hb_buf *key);

enum { HB_RECORD_KEY_SIZE = 42 };
void hb_record_put_key(struct hb_buf *out, const struct hb_key_record *record);
/* Also HB_CORRUPT where the numbers can't be: next below first, fewer positions than events, a
 * last event that was not released. */
HB_MUST_CHECK enum hb_code hb_record_get_key(struct hb_slice value, struct hb_key_record *out,
                                             struct hb_err *err);

#endif
