/* Writing: one atomic RocksDB write per commit. Thread: sequencer only.
 *
 * A write is filled with puts (bytes are copied into RocksDB's batch at once) and then applied as
 * a whole or not at all. Each carries, as log data that only our own WAL check reads: format, run,
 * commit number, number of the last synced commit. */
#ifndef HB_STORAGE_WRITE_H
#define HB_STORAGE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "storage/store.h"

struct hb_write;

struct hb_write *hb_write_create(struct hb_store *store);
void hb_write_destroy(struct hb_write *write);
/* Back to empty, memory kept. */
void hb_write_clear(struct hb_write *write);
bool hb_write_is_empty(const struct hb_write *write);

/* log, held */
void hb_write_put_block(struct hb_write *write, uint64_t stream, int64_t from,
                        struct hb_slice block);
void hb_write_put_bundle(struct hb_write *write, struct hb_bundle_id id, struct hb_slice block);
/* Once, of a bundle that was put once: an id is never used again. */
void hb_write_delete_bundle(struct hb_write *write, struct hb_bundle_id id);

/* streams: one row, one owner. A configuration with a name that exists is the caller's mistake. */
void hb_write_put_config(struct hb_write *write, uint64_t stream,
                         const struct hb_stream_config *config);
void hb_write_put_frontier(struct hb_write *write, uint64_t stream,
                           const struct hb_frontier *record);
void hb_write_put_indexed_to(struct hb_write *write, uint64_t stream, int64_t indexed_to);
/* Removes configuration and frontier record, puts the mark `deleting`: the stream is gone for
 * everyone, its data is dropped later (delete.h). */
void hb_write_mark_deleting(struct hb_write *write, uint64_t stream);
/* Last step of a deletion: removes the mark. */
void hb_write_delete_mark(struct hb_write *write, uint64_t stream);

/* gaps, unprocessed, peers, meta */
void hb_write_put_gap(struct hb_write *write, uint64_t stream, const struct hb_gap *gap);
void hb_write_delete_gap(struct hb_write *write, uint64_t stream, int64_t start);
/* Keeps the frame the first time; the same (outcome, sequence, hash) again raises the row's
 * counter and last_seen (a merge, no read). */
void hb_write_put_unprocessed(struct hb_write *write, uint64_t stream, enum hb_outcome outcome,
                              int64_t sequence, uint64_t content_hash, struct hb_slice frame,
                              uint64_t seen_wall_ms, uint32_t peer);
void hb_write_put_peer(struct hb_write *write, uint32_t peer, struct hb_slice text);
void hb_write_put_served_ms(struct hb_write *write, uint64_t served_ms);
void hb_write_put_next_stream(struct hb_write *write, uint64_t next_stream);

/* keys: the record of one key of a PER_KEY stream */
void hb_write_put_key(struct hb_write *write, uint64_t stream, struct hb_slice key,
                      const struct hb_key_record *record);

/* lists: rows of a bundle too small for a file of its own (index.h) */
struct hb_index_entry; /* storage/index.h */
void hb_write_put_index_entry(struct hb_write *write, uint64_t stream,
                              const struct hb_index_entry *entry);

/* Apply it. With `sync` it is durable on return (and so is everything before it). `commit` must be
 * above every number before. Errors: HB_NO_SPACE, HB_IO; RocksDB latches a failed write, so after
 * one every later call fails too and the store has to be closed (I6). */
HB_MUST_CHECK enum hb_code hb_store_write(struct hb_store *store, struct hb_write *write,
                                          uint64_t commit, bool sync, struct hb_err *err);
/* Make every write so far durable. A failed sync is HB_IO, and the process must end (exit 74). */
HB_MUST_CHECK enum hb_code hb_store_sync(struct hb_store *store, struct hb_err *err);

#endif
