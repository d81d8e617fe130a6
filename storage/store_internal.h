/* What the rooms of the store share. */
#ifndef HB_STORAGE_STORE_INTERNAL_H
#define HB_STORAGE_STORE_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "storage/engine_internal.h"
#include "storage/store.h"

struct hb_store {
  struct hb_store_info info; /* immutable after open */
  char *path;                /* owned */
  bool read_only;
  uint64_t lost_edits; /* of RocksDB's MANIFEST, at most: it had a torn end, which is cut off */
  int lock;
  struct hb_rocks *engine; /* owned */

  uint64_t run_mark; /* random, in each record of the run */

  /* sequencer only */
  uint64_t written;      /* number of the last commit that was applied */
  uint64_t synced;       /* of the last one that is known to be durable */
  bool damage_noted;     /* DAMAGED is there */
  struct hb_err failure; /* code != HB_OK: the first write or sync that failed (I6) */

  atomic_bool ingesting;        /* hb_index_ingest runs */
  atomic_bool compaction_ended; /* hb_store_end_compaction was called */
};

/* Names of rows in `meta`. */
#define HB_META_STORE_ID "store_id"
#define HB_META_INCARNATION "incarnation"
#define HB_META_RUN "run"
#define HB_META_SERVED "served_ms"
#define HB_META_NEXT_STREAM "next_stream"

/* Put "<family> row <key as hex>: " before a message. Returns `code`. */
enum hb_code hb_store_wrap_row(enum hb_code code, enum hb_family family, struct hb_slice key,
                               struct hb_err *err);
/* HB_CORRUPT: a row whose key is none of its family's. Wrap it with the row. */
enum hb_code hb_store_bad_key(struct hb_err *err);
/* An iterator over the rows of one stream. */
struct hb_rocks_iter *hb_store_iter(struct hb_store *store, enum hb_family family, uint64_t stream);
/* Calls visit with each row from where the iterator stands, until it fails, sets *stop, or there
 * are no more. A failure names family and key. The iterator is destroyed. */
typedef enum hb_code hb_row_visit(void *context, struct hb_slice key, struct hb_slice value,
                                  bool *stop, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_store_each_row(struct hb_rocks_iter *owned_iter,
                                             enum hb_family family, hb_row_visit *visit,
                                             void *context, struct hb_err *err);

/* damaged.c: whether an earlier run met a damaged table. */
bool hb_damaged_is_noted(const char *path);
/* Sequencer: so that a later one knows, where this one has. `err` NULL: what it was is not known.
 */
void hb_damaged_note(struct hb_store *store, const struct hb_err *err);
bool hb_damaged_now(const struct hb_store *store);

/* recover.c: rows of streams that nobody owns any more are put into `batch` as deletions.
 * HB_CORRUPT: events, or rows of an id that was never given, are among them: that is no rest of a
 * deletion. */
HB_MUST_CHECK enum hb_code hb_recover_orphans(struct hb_store *store, struct hb_batch_writer *batch,
                                              struct hb_err *err);
/* Puts lower indexed_to rows into `batch`: by as much as the index files of
 * `lost_edits` may have held. */
HB_MUST_CHECK enum hb_code hb_recover_index(struct hb_store *store, struct hb_batch_writer *batch,
                                            struct hb_err *err);
/* The highest commit number in frontier records and names of bundles; 0: none. */
HB_MUST_CHECK enum hb_code hb_recover_last_commit(struct hb_store *store, uint64_t *out,
                                                  struct hb_err *err);

#endif
