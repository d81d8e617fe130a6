/* Decides in which order families are compacted: as they stand in the table, one after another, so
 * that at most one of them needs room for two copies of itself. */
#include "storage/compact.h"

#include "storage/store_internal.h"

enum hb_code hb_store_compact(struct hb_store *store, struct hb_err *err) {
  if (hb_damaged_now(store)) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "a table of the store is damaged, and a compaction that met it would end all "
                      "writing; 'holdback verify' tells what it is");
  }
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    enum hb_family family = (enum hb_family)i;
    enum hb_code code = hb_rocks_flush(store->engine, family, err);
    if (code) return code;
    if (!atomic_load(&store->compaction_ended)) hb_rocks_compact_all(store->engine, family);
    /* RocksDB's interface has no error for a compaction that was cut short. */
    if (atomic_load(&store->compaction_ended)) {
      return hb_err_set(err, HB_UNAVAILABLE, "SERVER_STOPS",
                        "the server stops: the compaction ended at family %s",
                        hb_family_name(family));
    }
  }
  return HB_OK;
}

void hb_store_end_compaction(struct hb_store *store) {
  if (!atomic_exchange(&store->compaction_ended, true)) hb_rocks_end_compaction(store->engine);
}

uint64_t hb_store_file_bytes(struct hb_store *store) {
  uint64_t bytes = 0;
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    enum hb_family family = (enum hb_family)i;
    bytes += hb_rocks_number(store->engine, family, "rocksdb.total-sst-files-size");
    bytes += hb_rocks_number(store->engine, family, "rocksdb.total-blob-file-size");
  }
  return bytes;
}
