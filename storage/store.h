/* The store: one folder, one process, everything durable that Holdback knows.
 *
 * RocksDB with column families (docs/FORMAT.md has the byte tables) plus the plain files FORMAT
 * and LOCK. One thread writes, the sequencer (write.h; index files apart, index.h); any thread
 * reads (read.h). Nothing of RocksDB shows here: its error texts are mapped at the border. */
#ifndef HB_STORAGE_STORE_H
#define HB_STORAGE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/types.h"

struct hb_store;

struct hb_store_options {
  const char *path;          /* created (mode 0700) where it does not exist */
  uint64_t wal_bytes_max;    /* 0 = 256 MiB: bounds what a restart has to replay */
  uint64_t write_buffer_max; /* 0 = 128 MiB, all families */
  uint64_t block_cache_max;  /* 0 = 32 MiB */
  bool read_only;            /* for looking at one that exists: no run begins, no write may follow;
                                of the folder only a torn end of RocksDB's log is cut off, as at
                                each start */
};

enum { HB_STORE_ID_SIZE = 16 };

/* Immutable after open. */
struct hb_store_info {
  uint8_t store_id[HB_STORE_ID_SIZE];    /* made with the store, never changes */
  uint8_t incarnation[HB_STORE_ID_SIZE]; /* new at creation and at each restore */
  uint64_t run;                          /* +1 at each open, durable before the first commit */
  bool created;       /* by this open, or by one that was cut short before a stream was made */
  bool damaged;       /* a table can't be read: there is a file DAMAGED, and nothing is compacted */
  uint64_t served_ms; /* as last saved */
  uint64_t next_stream; /* id of the next stream to be made */
  uint64_t last_commit; /* highest number found anywhere */
};

/* Lock, read FORMAT, open RocksDB (point-in-time recovery), raise the run. Everything that was
 * recovered is durable when it returns.
 * Errors: HB_LOCKED (another process has it), HB_PERMISSION (not writable), HB_VERSION (a newer
 * format, or a folder with other things in it), HB_CORRUPT, HB_IO, HB_NO_SPACE; each message names
 * the path and the way out. */
HB_MUST_CHECK enum hb_code hb_store_open(const struct hb_store_options *options,
                                         struct hb_store **out, struct hb_err *err);
/* No other call may be running. NULL is allowed. */
void hb_store_close(struct hb_store *store);
const struct hb_store_info *hb_store_info(const struct hb_store *store);

/* ---- after a write that failed for lack of space: the store only reads until it is closed */

/* Bytes of the log that opening the store again would have to write as files. Any thread. */
uint64_t hb_store_wal_bytes(const struct hb_store *store);
/* End what RocksDB does in the background, and what other threads do with it there (flushes and
 * compactions of delete.h return soon). Nothing may be written afterwards. */
void hb_store_end_background(struct hb_store *store);

#endif
