/* Records of keys of PER_KEY streams. Family `keys`; written with the commit that releases
 * something of the key (write.h), read on first touch, never scanned at start. */
#ifndef HB_STORAGE_KEYS_H
#define HB_STORAGE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "storage/store.h"

/* *out_found false: there is no row. Any thread. */
HB_MUST_CHECK enum hb_code hb_key_record_read(struct hb_store *store, uint64_t stream,
                                              struct hb_slice key, bool *out_found,
                                              struct hb_key_record *out, struct hb_err *err);

#endif
