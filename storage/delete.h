/* Dropping what a deleted stream left behind. Its mark `deleting` is durable before; the mark goes
 * (hb_write_delete_mark) when this has returned. Starting over after a crash is harmless. */
#ifndef HB_STORAGE_DELETE_H
#define HB_STORAGE_DELETE_H

#include <stdint.h>

#include "base/err.h"
#include "storage/store.h"
#include "storage/write.h"

/* Step 1, any thread but the sequencer: whole files of the stream go in every family. */
HB_MUST_CHECK enum hb_code hb_store_drop_files(struct hb_store *store, uint64_t stream,
                                               struct hb_err *err);
/* Step 2, sequencer: one range deletion per family for the rest, into a write of its own. */
void hb_write_drop_stream(struct hb_write *write, uint64_t stream);
/* Step 3, any thread: flush, and let compaction give the space back. */
HB_MUST_CHECK enum hb_code hb_store_reclaim(struct hb_store *store, uint64_t stream,
                                            struct hb_err *err);

#endif
