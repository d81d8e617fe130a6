/* What one record of RocksDB's WAL, a WriteBatch, says of itself. Pure; any thread. */
#ifndef HB_STORAGE_WAL_BATCH_INTERNAL_H
#define HB_STORAGE_WAL_BATCH_INTERNAL_H

#include <stdbool.h>

#include "base/slice.h"
#include "storage/record_internal.h"

/* False: these bytes are no batch of ours. *out_any false: one without our log data, as RocksDB
 * itself writes an empty one after recovery. */
bool hb_wal_batch_read(struct hb_slice batch, bool *out_any, struct hb_log_data *out);

/* The variable-length integers and strings of RocksDB's formats: taken from the front of *bytes.
 * False where they are cut or too long. */
bool hb_wal_take_varint(struct hb_slice *bytes, uint64_t *out);
bool hb_wal_take_string(struct hb_slice *bytes, struct hb_slice *out);

#endif
