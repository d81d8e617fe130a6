/* What the host's rooms share: host.c (what runs when), waiting.c (keys that wait), call.c (what
 * user code may do), bundle.c (what a commit gets). */
#ifndef HB_PROCESSING_HOST_INTERNAL_H
#define HB_PROCESSING_HOST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processing/cache_internal.h"
#include "processing/host.h"
#include "processing/status_internal.h"
#include "processing/timers_internal.h"

enum { HB_EXPLANATION_MAX = 1000 };

/* Numbers as in holdback.v1.ResultKind. */
enum hb_cause { HB_CAUSE_EVENT = 1, HB_CAUSE_TIMER = 2, HB_CAUSE_END = 3 };

/* What the call at hand sets, applied when it has succeeded. */
struct hb_timer_op {
  bool set;
  struct hb_time time;
  size_t name_offset; /* in host->names */
  size_t name_size;
};

struct hb_failure {
  int64_t position;
  size_t offset; /* in host->failed_bytes: frame, then explanation */
  size_t frame_size;
  size_t explanation_size;
};

/* The call of user code that runs. */
struct hb_user_call {
  enum hb_cause cause;
  int64_t position;
  struct hb_slice key;
  struct hb_time time; /* results get it */
  uint64_t emitted;    /* results, those skipped or cut off included */
  size_t first_result; /* what the bundle had before */
  size_t first_byte;
  struct hb_time first_time;
  bool cut; /* the bundle has no room for all of its results */
  bool failed;
  uint64_t *skip; /* results of it that are committed already */
  bool is_try;    /* in place of an event that failed: it may fail, and nothing comes of it */
  bool is_copy;   /* of that event; then the failure is kept */
  bool is_kept;   /* it was before */
};

struct hb_host {
  const struct hbp_processor *processor;
  void *self;
  struct hb_state_source source;
  struct hb_host_budget budget;
  uint32_t results_max; /* of the bundle under construction */
  uint32_t events_max;  /* likewise */
  enum hb_on_error on_error;
  struct hbp_host calls; /* what user code gets */

  struct hb_processor_place place;
  struct hb_buf end_key;
  bool touched; /* since the last commit */
  bool got_on;  /* likewise: see hb_bundle */
  bool gave_up; /* likewise */
  struct hb_cache cache;
  struct hb_statuses statuses;
  struct hb_event_timers timers;
  struct hb_blocked blocked;

  struct hb_user_call call;
  struct hb_timer_op *ops;
  size_t ops_count;
  size_t ops_cap;
  struct hb_buf names;
  struct hb_buf explanation; /* of the last failure */
  int64_t failure_position;
  struct hb_err broken; /* code != HB_OK: the source failed */

  /* The bundle under construction. */
  uint32_t events;
  struct hb_buf frames;
  struct hb_result *results;
  size_t results_count;
  size_t results_cap;
  struct hb_failure *failures;
  size_t failures_count;
  size_t failures_cap;
  struct hb_buf failed_bytes;

  struct hb_bundle bundle;
  size_t states_cap;
  size_t timers_cap;
  size_t gone_cap;
  size_t blocks_cap;
  size_t rows_cap;
  size_t statuses_cap;
  size_t blocked_cap;
  size_t unblocked_cap;
  size_t told_cap;
};

/* call.c */
void hb_user_call_init(struct hb_host *host);
void hb_user_call_begin(struct hb_host *host, enum hb_cause cause, int64_t position,
                        struct hb_slice key, struct hb_time time);
/* After the call has returned `code`. True: what it did stands; false: none of it does, or with
 * call.cut only the results that had room. */
bool hb_user_call_end(struct hb_host *host, int code);

/* status.c: something was done for a key; `event` NULL: a timer fired, or the end came. */
struct hb_status_change {
  struct hb_slice key;
  const struct hb_event *event;
  bool failed;
  bool made_good; /* it is done in place of one that had failed */
  bool passed;    /* nothing is done but that it came */
  bool given_up;  /* nothing is done but that the key waits no more; without `event` */
  uint64_t results;
};
HB_MUST_CHECK enum hb_code hb_status_note(struct hb_host *host,
                                          const struct hb_status_change *change,
                                          struct hb_err *err);

/* host.c */
/* What a call is about, beside its event. */
struct hb_event_call {
  int64_t position;
  uint64_t *skip;
  bool is_try;
  bool is_copy;
  bool is_kept;
};
/* DONE: host->call.failed says whether it failed. */
enum hb_host_result hb_host_run_event(struct hb_host *host, const struct hb_event *event,
                                      const struct hb_event_call *call, struct hb_err *err);
bool hb_host_is_full(const struct hb_host *host);

/* waiting.c */
/* The event that was run at `position` failed: its key waits from now on. */
void hb_host_block(struct hb_host *host, const struct hb_event *event, int64_t position);
enum hb_host_result hb_host_pass_over(struct hb_host *host, struct hb_blocked_key *key,
                                      const struct hb_event *event, struct hb_err *err);
/* Room for one more. */
bool hb_host_may_block(const struct hb_host *host, struct hb_slice key);

/* bundle.c */
void hb_bundle_done(struct hb_host *host);

#endif
