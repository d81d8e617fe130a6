/* What the store keeps of attached processors: configuration, place, states, timers, results.
 *
 * The rows of one bundle go into one write, so that all of them are there or none: the place always
 * says what the others contain. Writing: any thread fills a write of its own, the sequencer applies
 * it (write.h). Reading: any thread. */
#ifndef HB_STORAGE_PROCESSOR_H
#define HB_STORAGE_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "storage/processor_rows.h"
#include "storage/read.h"
#include "storage/store.h"
#include "storage/write.h"

/* ---- writing */

void hb_write_put_processor(struct hb_write *write, struct hb_processor_id id,
                            const struct hb_processor_config *config);
void hb_write_put_place(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_processor_place *place);
void hb_write_put_attempt(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_processor_attempt *attempt);
void hb_write_delete_attempt(struct hb_write *write, struct hb_processor_id id);
/* A state that is not present is deleted. Cheapest in ascending order of (key, name). */
void hb_write_put_state(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_state_row *row);
void hb_write_put_key_status(struct hb_write *write, struct hb_processor_id id,
                             const struct hb_key_status_row *row);
void hb_write_put_timer(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_timer_row *row);
void hb_write_delete_timer(struct hb_write *write, struct hb_processor_id id,
                           const struct hb_timer_row *row);
/* A key that waits, or does so no more. */
void hb_write_put_blocked(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_blocked_row *row);
void hb_write_delete_blocked(struct hb_write *write, struct hb_processor_id id,
                             struct hb_slice key);
/* With hb_statuses_id: of the statuses that are told. */
void hb_write_put_results(struct hb_write *write, struct hb_processor_id id, int64_t from,
                          struct hb_slice block);
/* Kept in `unprocessed`; the same one again raises a counter. */
void hb_write_put_failure(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_failure_row *row, uint64_t seen_wall_ms);
/* All that the store has of it, but failures: those are the stream's. */
void hb_write_drop_processor(struct hb_write *write, struct hb_processor_id id);

/* ---- attempts that no crash ended, in the folder of an open store: marks of them stay where they
 * could not be deleted when the server was stopped. */

bool hb_stopped_is_noted(const char *path, struct hb_processor_id id);
void hb_stopped_note(const char *path, struct hb_processor_id id);
/* Of all. */
HB_MUST_CHECK enum hb_code hb_stopped_forget(const char *path, struct hb_err *err);

/* ---- reading */

struct hb_stored_processor {
  struct hb_processor_id id;
  struct hb_processor_config config;
  struct hb_processor_place place;
  bool has_attempt;
  struct hb_processor_attempt attempt;
};
/* Slices live for the visit. */
typedef bool hb_processor_visit(void *context, const struct hb_stored_processor *stored);
/* By ascending number, which is the order of attaching. */
HB_MUST_CHECK enum hb_code hb_processor_each(struct hb_store *store, uint64_t stream,
                                             hb_processor_visit *visit, void *context,
                                             struct hb_err *err);
/* *out_position INT64_MIN: it has not begun. HB_NOT_FOUND: it is gone. */
HB_MUST_CHECK enum hb_code hb_processor_position(struct hb_store *store, struct hb_processor_id id,
                                                 int64_t *out_position, struct hb_err *err);
/* Zeros where the key has no row. */
HB_MUST_CHECK enum hb_code hb_key_status_read(struct hb_store *store, struct hb_processor_id id,
                                              struct hb_slice key, struct hb_key_status *out,
                                              struct hb_err *err);
/* The value is appended to `out`. */
HB_MUST_CHECK enum hb_code hb_state_read(struct hb_store *store, struct hb_processor_id id,
                                         struct hb_slice key, struct hb_slice name, bool *out_found,
                                         struct hb_buf *out, struct hb_err *err);
/* The lowest key with a state, above `after` where has_after; appended to `out`. */
HB_MUST_CHECK enum hb_code hb_state_next_key(struct hb_store *store, struct hb_processor_id id,
                                             bool has_after, struct hb_slice after, bool *out_found,
                                             struct hb_buf *out, struct hb_err *err);
typedef bool hb_timer_visit(void *context, const struct hb_timer_row *row);
HB_MUST_CHECK enum hb_code hb_timer_each(struct hb_store *store, struct hb_processor_id id,
                                         hb_timer_visit *visit, void *context, struct hb_err *err);
/* Keys that wait, in byte order. */
typedef bool hb_blocked_visit(void *context, const struct hb_blocked_row *row);
HB_MUST_CHECK enum hb_code hb_blocked_each(struct hb_store *store, struct hb_processor_id id,
                                           hb_blocked_visit *visit, void *context,
                                           struct hb_err *err);
/* *out_found false: the key does not wait. out->key is the one given. */
HB_MUST_CHECK enum hb_code hb_blocked_read(struct hb_store *store, struct hb_processor_id id,
                                           struct hb_slice key, bool *out_found,
                                           struct hb_blocked_row *out, struct hb_err *err);
/* Blocks of results, as of the log (hb_log_reader_next, hb_log_reader_close). */
HB_MUST_CHECK enum hb_code hb_results_reader_open(struct hb_store *store, struct hb_processor_id id,
                                                  int64_t position, struct hb_log_reader **out,
                                                  struct hb_err *err);
/* *out = the first result whose event time is not before `time`, of those below `end`, or `end`. A
 * hole is HB_CORRUPT: it may have had it. */
HB_MUST_CHECK enum hb_code hb_results_find_time(struct hb_store *store, struct hb_processor_id id,
                                                struct hb_time time, int64_t end, int64_t *out,
                                                struct hb_err *err);

struct hb_stored_failure {
  uint64_t processor;
  int64_t position;
  uint64_t count;
  uint64_t first_seen_wall_ms;
  uint64_t last_seen_wall_ms;
  struct hb_slice explanation; /* both live for the visit */
  struct hb_slice frame;
};
/* Whether an event with that frame was kept as failed there. */
HB_MUST_CHECK enum hb_code hb_failure_is_kept(struct hb_store *store, struct hb_processor_id id,
                                              int64_t position, struct hb_slice frame, bool *out,
                                              struct hb_err *err);
typedef bool hb_failure_visit(void *context, const struct hb_stored_failure *row);
/* What user code gave up, of all processors of the stream, by position. */
HB_MUST_CHECK enum hb_code hb_failure_each(struct hb_store *store, uint64_t stream,
                                           hb_failure_visit *visit, void *context,
                                           struct hb_err *err);

#endif
