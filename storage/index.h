/* The per-key index: (key, position) -> where the event lies in the log. Family `lists`.
 *
 * Written in sorted bundles off the hot path, by the indexer's thread: a large one as an SST file
 * that is ingested, a small one as rows through the sequencer's next commit. Doing one again gives
 * the same entries, so a crash between the files and `indexed_to` is harmless. */
#ifndef HB_STORAGE_INDEX_H
#define HB_STORAGE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "storage/store.h"

struct hb_index_entry {
  struct hb_slice key; /* borrowed */
  int64_t position;
  int64_t block;   /* `from` of the log block */
  uint32_t offset; /* of the frame, from the start of the block's frames */
  uint32_t length; /* of the frame */
};

/* A start that can't tell whether the last file was taken in goes back by as much. */
enum { HB_INDEX_FILE_MAX = 1000000 };

/* Sort by (key, position) and write as one ingested file of at most HB_INDEX_FILE_MAX entries;
 * durable on return. Positions of one key ascend by habit but need not. The array is reordered. Any
 * thread but one call at a time. */
HB_MUST_CHECK enum hb_code hb_index_ingest(struct hb_store *store, uint64_t stream,
                                           struct hb_index_entry *entries, size_t count,
                                           struct hb_err *err);
/* One key's entries with from <= position < end, ascending, until visit returns false. */
typedef bool hb_index_visit(void *context, const struct hb_index_entry *entry);
HB_MUST_CHECK enum hb_code hb_index_each(struct hb_store *store, uint64_t stream,
                                         struct hb_slice key, int64_t from, int64_t end,
                                         hb_index_visit *visit, void *context, struct hb_err *err);
/* Distinct keys that start with `prefix`, in byte order, strictly after `after` where has_after:
 * one seek per key, however many events it has. The slice lives for the call. */
typedef bool hb_index_key_visit(void *context, struct hb_slice key);
HB_MUST_CHECK enum hb_code hb_index_keys(struct hb_store *store, uint64_t stream,
                                         struct hb_slice prefix, bool has_after,
                                         struct hb_slice after, hb_index_key_visit *visit,
                                         void *context, struct hb_err *err);

#endif
