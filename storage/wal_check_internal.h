/* The check of RocksDB's WAL before RocksDB opens a store. */
#ifndef HB_STORAGE_WAL_CHECK_INTERNAL_H
#define HB_STORAGE_WAL_CHECK_INTERNAL_H

#include <stdint.h>

#include "base/err.h"

/* `folder` is RocksDB's. HB_OK: point-in-time recovery loses nothing that was known to be durable;
 * where a torn tail lies before the last file, the files behind it are emptied, for RocksDB could
 * take them to follow; and a torn end of MANIFEST is cut off, for RocksDB would refuse it.
 * *out_lost: how many edits may be lost with that. Index files are taken in by an edit alone, so
 * indexed_to may be ahead by as many. HB_CORRUPT names file, offset and commits. HB_IO: a file
 * can't be read. */
HB_MUST_CHECK enum hb_code hb_wal_check(const char *folder, uint64_t *out_lost, struct hb_err *err);

#endif
