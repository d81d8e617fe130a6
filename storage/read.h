/* Reading the log, the bundles and the small families. Any thread, beside the writer. */
#ifndef HB_STORAGE_READ_H
#define HB_STORAGE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "storage/store.h"

/* ---- log: blocks in order, through one iterator that everybody uses. It sees the store as it was
 * when it was opened; keep it for one bounded chunk, not for a subscription. */

struct hb_log_reader;

/* Starts at the block that contains `position` (or the first above it, where there is none). */
HB_MUST_CHECK enum hb_code hb_log_reader_open(struct hb_store *store, uint64_t stream,
                                              int64_t position, struct hb_log_reader **out,
                                              struct hb_err *err);
void hb_log_reader_close(struct hb_log_reader *reader);
/* The next block, checked (hb_block_decode passed), one reference for the caller; *out NULL at the
 * end of the log. HB_CORRUPT names stream and position. */
HB_MUST_CHECK enum hb_code hb_log_reader_next(struct hb_log_reader *reader, struct hb_bytes **out,
                                              struct hb_err *err);
/* The block that starts at `from`, as the index names it, checked; *out NULL: there is none. One
 * read of the disk, where a reader's search has a look at each of RocksDB's runs. */
HB_MUST_CHECK enum hb_code hb_log_get(struct hb_store *store, uint64_t stream, int64_t from,
                                      struct hb_bytes **out, struct hb_err *err);
/* Position of the first released event with event time >= `time`, by binary search over the
 * blocks' running maxima; `end` (the published frontier) where there is none below it. */
HB_MUST_CHECK enum hb_code hb_log_find_time(struct hb_store *store, uint64_t stream,
                                            struct hb_time time, int64_t earliest, int64_t end,
                                            int64_t *out, struct hb_err *err);
/* [from, to) of the last log block; *out_any false where the log is empty. */
HB_MUST_CHECK enum hb_code hb_log_last(struct hb_store *store, uint64_t stream, bool *out_any,
                                       struct hb_range *out, struct hb_err *err);

/* ---- held bundles */

/* *out NULL: the bundle is not there (drained or rewritten meanwhile). */
HB_MUST_CHECK enum hb_code hb_bundle_read(struct hb_store *store, struct hb_bundle_id id,
                                          struct hb_bytes **out, struct hb_err *err);
/* Bundles of a stream in key order, strictly after `after` (NULL: from the first), as of one view:
 * calls visit(context, id, block) until it returns false. The slice lives for the call. */
typedef bool hb_bundle_visit(void *context, struct hb_bundle_id id, struct hb_slice block);
HB_MUST_CHECK enum hb_code hb_bundle_each(struct hb_store *store, uint64_t stream,
                                          const struct hb_bundle_id *after, hb_bundle_visit *visit,
                                          void *context, struct hb_err *err);

/* ---- at start */

struct hb_stored_stream {
  uint64_t stream;
  bool deleting; /* then nothing below is valid */
  struct hb_stream_config config;
  struct hb_frontier record;
  bool has_indexed_to;
  int64_t indexed_to;
};
typedef bool hb_stream_visit(void *context, const struct hb_stored_stream *stream);
HB_MUST_CHECK enum hb_code hb_stream_each(struct hb_store *store, hb_stream_visit *visit,
                                          void *context, struct hb_err *err);
typedef bool hb_gap_visit(void *context, const struct hb_gap *gap);
HB_MUST_CHECK enum hb_code hb_gap_each(struct hb_store *store, uint64_t stream, hb_gap_visit *visit,
                                       void *context, struct hb_err *err);

struct hb_unprocessed {
  enum hb_outcome outcome;
  int64_t sequence;
  uint64_t content_hash;
  uint64_t count;
  uint64_t first_seen_wall_ms;
  uint64_t last_seen_wall_ms;
  uint32_t peer;
  struct hb_slice frame; /* lives for the visit */
};
typedef bool hb_unprocessed_visit(void *context, const struct hb_unprocessed *row);
HB_MUST_CHECK enum hb_code hb_unprocessed_each(struct hb_store *store, uint64_t stream,
                                               hb_unprocessed_visit *visit, void *context,
                                               struct hb_err *err);
/* Those with one outcome and sequence alone, by content hash. */
HB_MUST_CHECK enum hb_code hb_unprocessed_of(struct hb_store *store, uint64_t stream,
                                             enum hb_outcome outcome, int64_t sequence,
                                             hb_unprocessed_visit *visit, void *context,
                                             struct hb_err *err);
/* The one with that content hash, where it is there. */
HB_MUST_CHECK enum hb_code hb_unprocessed_one(struct hb_store *store, uint64_t stream,
                                              enum hb_outcome outcome, int64_t sequence,
                                              uint64_t hash, hb_unprocessed_visit *visit,
                                              void *context, struct hb_err *err);
typedef bool hb_peer_visit(void *context, uint32_t peer, struct hb_slice text);
HB_MUST_CHECK enum hb_code hb_peer_each(struct hb_store *store, hb_peer_visit *visit, void *context,
                                        struct hb_err *err);

#endif
