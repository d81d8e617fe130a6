/* What the rooms that fill a write share. */
#ifndef HB_STORAGE_WRITE_INTERNAL_H
#define HB_STORAGE_WRITE_INTERNAL_H

#include "base/slice.h"
#include "storage/engine_internal.h"
#include "storage/store.h"

struct hb_write {
  struct hb_store *store;        /* borrowed */
  struct hb_batch_writer *batch; /* owned */
  struct hb_buf key;             /* scratch */
  struct hb_buf value;           /* scratch */
};

#endif
