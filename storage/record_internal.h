/* Values of rows, each led by a version byte. Encoders append to a buffer; decoders answer
 * HB_VERSION for a version that this program does not know and HB_CORRUPT for everything else
 * that is no such value. docs/FORMAT.md has the byte tables. Pure; any thread. */
#ifndef HB_STORAGE_RECORD_INTERNAL_H
#define HB_STORAGE_RECORD_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "storage/index.h"
#include "storage/read.h"

void hb_record_put_config(struct hb_buf *out, const struct hb_stream_config *config);
HB_MUST_CHECK enum hb_code hb_record_get_config(struct hb_slice value, struct hb_stream_config *out,
                                                struct hb_err *err);

void hb_record_put_frontier(struct hb_buf *out, const struct hb_frontier *record);
HB_MUST_CHECK enum hb_code hb_record_get_frontier(struct hb_slice value, struct hb_frontier *out,
                                                  struct hb_err *err);

/* The gap's start is in the key: set in *out by the caller, before. */
void hb_record_put_gap(struct hb_buf *out, const struct hb_gap *gap);
HB_MUST_CHECK enum hb_code hb_record_get_gap(struct hb_slice value, struct hb_gap *out,
                                             struct hb_err *err);

/* Key and position are in the row's key. */
enum { HB_RECORD_INDEX_SIZE = 17 };
void hb_record_put_index(uint8_t out[HB_RECORD_INDEX_SIZE], const struct hb_index_entry *entry);
HB_MUST_CHECK enum hb_code hb_record_get_index(struct hb_slice value, struct hb_index_entry *out,
                                               struct hb_err *err);

/* Outcome, sequence and hash are in the key. The frame is borrowed from `value`. */
void hb_record_put_unprocessed(struct hb_buf *out, const struct hb_unprocessed *row);
HB_MUST_CHECK enum hb_code hb_record_get_unprocessed(struct hb_slice value,
                                                     struct hb_unprocessed *out,
                                                     struct hb_err *err);
/* Two values of one row, the older first, as one: the first frame and sender stay, counts add up,
 * the earliest and latest sight are kept. Associative. Where one of them is no such value the
 * other is the result, and `older` where both are none: a merge must not fail (RocksDB would take
 * it as a failed write of the whole store); who reads the row finds out. */
void hb_record_merge_unprocessed(struct hb_slice older, struct hb_slice newer, struct hb_buf *out);

/* One number (indexed_to, served time, next stream), bytes (peer, ids), or nothing (deleting). */
void hb_record_put_u64(struct hb_buf *out, uint64_t value);
HB_MUST_CHECK enum hb_code hb_record_get_u64(struct hb_slice value, uint64_t *out,
                                             struct hb_err *err);
void hb_record_put_bytes(struct hb_buf *out, struct hb_slice bytes);
/* Borrowed from `value`. */
HB_MUST_CHECK enum hb_code hb_record_get_bytes(struct hb_slice value, struct hb_slice *out,
                                               struct hb_err *err);

/* The run and the highest commit number known when it began. */
struct hb_run_record {
  uint64_t run;
  uint64_t commit;
};
void hb_record_put_run(struct hb_buf *out, struct hb_run_record record);
HB_MUST_CHECK enum hb_code hb_record_get_run(struct hb_slice value, struct hb_run_record *out,
                                             struct hb_err *err);

/* What each write tells in RocksDB's log, for a check of the log before RocksDB opens it. */
struct hb_log_data {
  uint64_t run;
  uint64_t mark; /* of the run, random: nobody can make up a record in what they send */
  uint64_t commit;
  uint64_t previous; /* the commit written before this one; = commit: a run begins here */
  uint64_t synced;   /* the last commit that was fsynced when this was written */
};
enum { HB_LOG_DATA_SIZE = 43 };
void hb_log_data_put(uint8_t out[HB_LOG_DATA_SIZE], struct hb_log_data data);
HB_MUST_CHECK enum hb_code hb_log_data_get(struct hb_slice value, struct hb_log_data *out,
                                           struct hb_err *err);

#endif
