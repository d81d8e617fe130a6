/* What RocksDB's MANIFEST says of its WAL files: which are still needed, how far they were made. */
#ifndef HB_STORAGE_WAL_MANIFEST_INTERNAL_H
#define HB_STORAGE_WAL_MANIFEST_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct hb_wal_needed {
  uint64_t from; /* files below this number are not read any more */
  uint64_t to; /* there was a file with this number or a higher one, and those below were synced */
};

/* Of the edits in an open MANIFEST. Reading stops at damage: RocksDB will judge that. An edit with
 * something unknown in it gives {0, 0}, "can't tell". HB_IO: the file can't be read. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_read(int fd, struct hb_wal_needed *out,
                                                struct hb_err *err);
/* Of the MANIFEST that `folder`/CURRENT names; {0, 0} where that can't be found out. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_find(const char *folder, struct hb_wal_needed *out,
                                                struct hb_err *err);

#endif
