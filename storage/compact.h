/* Rewriting the store's files so that nothing of what was deleted or replaced takes room. RocksDB
 * does the same by itself, little by little; this is for who wants it now. */
#ifndef HB_STORAGE_COMPACT_H
#define HB_STORAGE_COMPACT_H

#include <stdint.h>

#include "base/err.h"
#include "storage/store.h"

/* Flush and compact every family. Any thread but the sequencer's; takes as long as the store is
 * large. HB_UNAVAILABLE where hb_store_end_compaction came before the end. */
HB_MUST_CHECK enum hb_code hb_store_compact(struct hb_store *store, struct hb_err *err);
/* Compactions that were asked for end soon, now and from now on; waits until they have. Any thread
 * but that of hb_store_compact. */
void hb_store_end_compaction(struct hb_store *store);
/* Bytes of all files but RocksDB's log. */
uint64_t hb_store_file_bytes(struct hb_store *store);

#endif
