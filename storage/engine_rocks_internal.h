/* What the engine_*.c files share. Never included elsewhere. */
#ifndef HB_STORAGE_ENGINE_ROCKS_INTERNAL_H
#define HB_STORAGE_ENGINE_ROCKS_INTERNAL_H

#include <rocksdb/c.h>
#include <stdatomic.h>

#include "storage/engine_internal.h"

enum { HB_ROCKS_FAMILIES = HB_FAMILY_COUNT + 1 }; /* RocksDB's own `default` is the last */

/* Of blob files, those so old among all are rewritten by compactions: a text, as RocksDB takes it.
 */
#define HB_ROCKS_BLOB_CUTOFF "0.25"

/* All options of an open database; they have to outlive it. */
struct hb_rocks_setup {
  rocksdb_options_t *db;
  rocksdb_options_t *families[HB_ROCKS_FAMILIES];
  rocksdb_cache_t *cache;
  bool no_compaction;
};
HB_MUST_CHECK enum hb_code hb_rocks_setup_init(struct hb_rocks_setup *setup,
                                               const struct hb_rocks_options *from,
                                               struct hb_err *err);
void hb_rocks_setup_done(struct hb_rocks_setup *setup);
/* Rows of `unprocessed` (record_internal.h has the rule). Owned by the options it is given to. */
rocksdb_mergeoperator_t *hb_rocks_merge_create(void);

struct hb_rocks {
  rocksdb_t *db;
  rocksdb_column_family_handle_t *families[HB_ROCKS_FAMILIES];
  struct hb_rocks_setup setup;
  rocksdb_writeoptions_t *write;
  rocksdb_writeoptions_t *write_sync;
  rocksdb_readoptions_t *read;
  bool read_only;
  atomic_bool damaged;
  atomic_bool unsynced;               /* something was written since the last sync */
  _Atomic uint64_t background_errors; /* RocksDB's count, as far as they were dealt with */
};

/* Take note of what a read came to. Returns `code`. */
enum hb_code hb_rocks_note(struct hb_rocks *engine, enum hb_code code);

/* Map, free `text`, return the code; HB_OK where it is NULL. */
enum hb_code hb_rocks_take_error(char *text, const char *what, struct hb_err *err);

#endif
