/* One record of RocksDB's MANIFEST, a VersionEdit: what it changes. Pure; any thread. */
#ifndef HB_STORAGE_WAL_EDIT_INTERNAL_H
#define HB_STORAGE_WAL_EDIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Families are numbered by RocksDB as they are made; ours are made once, with the store. */
enum { HB_WAL_FAMILIES_MAX = 64 };

struct hb_wal_edit {
  uint64_t family;
  bool has_log;
  uint64_t log;
  bool has_min_log;
  uint64_t min_log;
  bool has_max_family;
  bool add;
  bool drop;
  uint64_t group_left; /* edits of its group that follow it; they count only together */
};

/* Those in use after the edits that were read. */
struct hb_wal_tables {
  uint64_t *numbers; /* owned; free() it */
  size_t count;
  size_t cap;
};

/* `tables`, where it is not NULL, follows the edit. False: there is something unknown in it. */
bool hb_wal_edit_read(struct hb_slice bytes, struct hb_wal_edit *edit,
                      struct hb_wal_tables *tables);

#endif
