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

struct hb_wal_manifest {
  uint64_t number; /* in its name; 0: not known */
  struct hb_wal_needed needed;
  bool torn;       /* its last edit can't be read, or there is a hole */
  bool hole;       /* edits that can be read are behind what looks like an unsynced page */
  uint64_t size;   /* of what is whole, then, */
  uint64_t behind; /* and of what is not */
};

/* Of an open MANIFEST. An edit with something unknown in it gives needed {0, 0}, "can't tell".
 * HB_CORRUPT: damage with edits behind it that is no hole of a power loss, or no end in what is
 * written before it is put to use. HB_IO: the file can't be read. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_read(int fd, struct hb_wal_manifest *out,
                                                struct hb_err *err);
/* The one that `folder`/CURRENT names; zeroed where that can't be found out. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_find(const char *folder, struct hb_wal_manifest *out,
                                                struct hb_err *err);
/* HB_CORRUPT: there is a hole, and a table that is needed without the edits behind it is gone. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_check_hole(const char *folder,
                                                      const struct hb_wal_manifest *manifest,
                                                      struct hb_err *err);
/* Cuts a torn one to what is whole, and syncs it: RocksDB opens one that ends within an edit, but
 * none with an edit whose bytes are partly zeros, as a power loss may leave it. */
HB_MUST_CHECK enum hb_code hb_wal_manifest_cut(const char *folder,
                                               const struct hb_wal_manifest *manifest,
                                               struct hb_err *err);

#endif
