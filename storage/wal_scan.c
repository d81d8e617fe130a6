/* Decides between a torn tail and damage. Each record says which commit it is, which one came
 * before it, and which was the last durable one when it was written. The first place where that
 * chain breaks is the hole; what stands behind it can be read, but not recovered. If a commit that
 * is lost by that had been durable when something behind the hole was written, that says so.
 * (Nothing is behind the last commit: damage to it looks like a torn write.) */
#include "storage/wal_scan_internal.h"

#include "storage/wal_batch_internal.h"

static bool begins_run(const struct hb_log_data *data) { return data->commit == data->previous; }

/* A run may begin below the number before it: not every commit leaves its number in a row. */
static bool follows(const struct hb_wal_scan *scan, const struct hb_log_data *data) {
  if (begins_run(data)) return data->run > scan->run && data->commit <= scan->commit;
  return data->run == scan->run && data->previous == scan->commit;
}

static void open_hole(struct hb_wal_scan *scan, uint64_t offset, const char *why) {
  if (scan->hole.any) return;
  scan->hole = (struct hb_wal_hole){.any = true,
                                    .file = scan->file,
                                    .offset = offset,
                                    .why = why,
                                    .torn_file = scan->file,
                                    .lost_from = scan->any ? scan->commit + 1 : 0,
                                    .stale_from = scan->file + 1};
}

/* No byte is damaged, but what has to come before this record is not there. Only the end of a file
 * may have been torn off between two records; then this file is stale too. */
static void open_gap(struct hb_wal_scan *scan, uint64_t offset) {
  open_hole(scan, offset, "commits are missing before it");
  scan->hole.never_torn = !scan->any || scan->file_begun;
  scan->hole.torn_file = scan->file_before;
  scan->hole.stale_from = scan->file;
}

static void note_behind(struct hb_wal_scan *scan, const struct hb_log_data *data) {
  struct hb_wal_behind *behind = &scan->behind;
  if (!scan->any) { /* the log begins with the hole: the commit before this one was in it */
    if (!behind->any) scan->hole.lost_from = data->previous;
    if (!behind->any) scan->run = data->run;
  }
  /* A run begins when all before it was settled, with a write that is itself synced. */
  if (data->run != scan->run || begins_run(data)) behind->other_run = true;
  if (data->synced > behind->synced) behind->synced = data->synced;
  if (data->commit > behind->commit) behind->commit = data->commit;
  behind->any = true;
  behind->file = scan->file;
}

/* Bytes behind the last record of a file are no loss where the next file goes on with it: RocksDB
 * goes on too then. */
static bool heals(const struct hb_wal_scan *scan, const struct hb_log_data *data) {
  return scan->any && !scan->behind.any && scan->hole.file < scan->file && follows(scan, data);
}

static void add(struct hb_wal_scan *scan, const struct hb_log_data *data, uint64_t offset,
                bool first) {
  if (scan->hole.any && heals(scan, data)) scan->hole = (struct hb_wal_hole){0};
  bool expected = scan->any ? follows(scan, data) : first || begins_run(data);
  if (!expected && !scan->hole.any) open_gap(scan, offset);
  scan->file_begun = true;
  if (begins_run(data)) scan->begun_in = scan->file;
  if (scan->hole.any) {
    note_behind(scan, data);
    return;
  }
  scan->any = true;
  scan->run = data->run;
  scan->mark = data->mark;
  scan->commit = data->commit;
}

/* What was found by searching may be part of a payload; nobody outside knows a run's mark. Where
 * nothing was read before the hole, the mark is not known here either. */
static bool is_believed(const struct hb_wal_scan *scan, const struct hb_wal_reader *reader,
                        const struct hb_log_data *data) {
  return !reader->guessed || !scan->any || data->mark == scan->mark;
}

static enum hb_code read_records(struct hb_wal_scan *scan, struct hb_wal_reader *reader, bool first,
                                 struct hb_err *err) {
  for (;;) {
    bool any = false;
    struct hb_slice batch;
    enum hb_code code = hb_wal_reader_next(reader, &any, &batch, err);
    if (code) return code;
    if (reader->damage.any) open_hole(scan, reader->damage.offset, reader->damage.why);
    if (!any) return HB_OK;
    struct hb_log_data data;
    bool has_data = false;
    if (!hb_wal_batch_read(batch, &has_data, &data)) {
      open_hole(scan, reader->record_offset, "not a batch of Holdback");
    } else if (has_data && is_believed(scan, reader, &data)) {
      add(scan, &data, reader->record_offset, first);
    }
  }
}

enum hb_code hb_wal_scan_file(struct hb_wal_scan *scan, uint64_t number, int fd, bool first,
                              struct hb_err *err) {
  struct hb_wal_reader reader;
  scan->file_before = scan->file;
  scan->file = number;
  scan->file_begun = false;
  hb_wal_reader_init(&reader, fd);
  enum hb_code code = read_records(scan, &reader, first, err);
  hb_wal_reader_done(&reader);
  return code;
}

enum hb_wal_verdict hb_wal_scan_verdict(const struct hb_wal_scan *scan, uint64_t synced_below) {
  const struct hb_wal_hole *hole = &scan->hole;
  const struct hb_wal_behind *behind = &scan->behind;
  if (!hole->any) return HB_WAL_WHOLE;
  if (hole->never_torn || hole->torn_file < synced_below) return HB_WAL_DAMAGED;
  if (!behind->any) return HB_WAL_TORN;
  return behind->other_run || behind->synced >= hole->lost_from ? HB_WAL_DAMAGED : HB_WAL_TORN;
}
