/* A hole in RocksDB's MANIFEST that a power loss may leave: pages are written back in any order. */
#ifndef HB_STORAGE_WAL_HOLE_INTERNAL_H
#define HB_STORAGE_WAL_HOLE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* *out: from `offset`, where an edit should begin, to the end of its page there is nothing but
 * zeros. HB_IO: the file can't be read. */
HB_MUST_CHECK enum hb_code hb_wal_hole_look(int fd, uint64_t offset, bool *out, struct hb_err *err);
/* *out: each table that the edits before the hole have in use is in `folder`. */
HB_MUST_CHECK enum hb_code hb_wal_hole_tables(int fd, const char *folder, bool *out,
                                              struct hb_err *err);

#endif
