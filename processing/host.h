/* The host: runs one processor over a stream's events and gathers what it does into bundles.
 *
 * A bundle is what one commit of the store carries: changed states, timers set and gone, results,
 * failures, and the place that says how far all of it goes. Who drives the host feeds it events in
 * log order, commits the bundle when the host says that it is full (or when there is nothing more
 * to feed), reports the commit, and goes on. Given the same events, a host makes the same results
 * with the same positions, however they are cut into bundles and however often it begins again at a
 * committed place: that is what makes processing exactly once. Pure: no thread, no clock, no disk
 * but through the source. One thread at a time. */
#ifndef HB_PROCESSING_HOST_H
#define HB_PROCESSING_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/frame/scan.h"
#include "base/slice.h"
#include "base/types.h"
#include "processing/blocked.h"
#include "processing/holdback/processor.h"
#include "storage/processor_rows.h"

/* Where committed states are read. */
struct hb_state_source {
  void *context;
  /* The value is appended to `out`. */
  enum hb_code (*get)(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                      struct hb_buf *out, struct hb_err *err);
  /* The lowest key with a state, above `after` where has_after. */
  enum hb_code (*next_key)(void *context, bool has_after, struct hb_slice after, bool *out_found,
                           struct hb_buf *out, struct hb_err *err);
  /* Zeros where the key has none. NULL where no statuses are kept. */
  enum hb_code (*get_status)(void *context, struct hb_slice key, struct hb_key_status *out,
                             struct hb_err *err);
};

/* What a bundle may hold at most, and what ends it. 0 = the default in brackets. */
struct hb_host_budget {
  uint32_t results;      /* exact: an event with more is split [10,000]; see hb_host_set_behind */
  uint32_t events;       /* likewise; and states that changed [50,000] */
  size_t result_bytes;   /* [4 MiB] */
  size_t change_bytes;   /* states, about [8 MiB] */
  size_t cache_bytes;    /* states in memory [64 MiB] */
  uint32_t timers;       /* set at once; beyond it timer_set fails [1,000,000] */
  size_t block_bytes;    /* frames of one block of results [64 KiB] */
  size_t failure_bytes;  /* kept of failed events, ever; beyond it they are counted [64 MiB] */
  uint32_t blocked_keys; /* that wait at once; beyond it HB_HOST_FAILED [10,000] */
  size_t blocked_bytes;  /* of these keys, likewise [64 MiB] */
};

struct hb_host_options {
  const struct hbp_processor *processor;
  void *self; /* made by processor->create; the caller destroys it after the host */
  struct hb_state_source source;
  struct hb_host_budget budget;
  /* SUSPEND: an event that fails is not passed over: HB_HOST_FAILED. WAIT: its key waits. */
  enum hb_on_error on_error;
  enum hb_key_status_mode key_status;
};

struct hb_host;
struct hb_host *hb_host_create(const struct hb_host_options *options);
void hb_host_destroy(struct hb_host *host); /* NULL is allowed */

/* Bundles of up to twenty times as many results and four times as many events, while there is more
 * to feed than one holds: a state that changes often is then written less often. Bytes and changed
 * states stay bounded as they are. Where bundles are cut changes no result. */
void hb_host_set_behind(struct hb_host *host, bool behind);
/* How many results end a bundle of one that is not behind. */
uint32_t hb_host_results_budget(const struct hb_host *host);
/* Before the first event: a place and timers as they were committed. */
void hb_host_restore(struct hb_host *host, const struct hb_processor_place *place);
void hb_host_restore_timer(struct hb_host *host, const struct hb_timer_row *row);
/* How far it is, what is not committed included. Valid until the next call. */
const struct hb_processor_place *hb_host_place(const struct hb_host *host);

enum hb_host_result {
  HB_HOST_DONE,   /* go on */
  HB_HOST_FULL,   /* commit the bundle, then make the same call again */
  HB_HOST_FAILED, /* SUSPEND, or too many keys wait: see hb_host_failure; nothing of the event was
                     kept */
  HB_HOST_ERROR   /* the source failed: the host must not be used any more */
};

/* Run the timers that are due before the event, then the event; `position` is at or above the
 * place's, which moves past it. */
enum hb_host_result hb_host_event(struct hb_host *host, const struct hb_event *event,
                                  int64_t position, struct hb_err *err);
/* An event of the key comes four calls of this from now, so that its state is near by then. Changes
 * nothing, and may be left out. */
void hb_host_expect(struct hb_host *host, struct hb_slice key);
/* The stream is sealed at `position`, and every event below was given: the timers that are left,
 * then on_end for each key. */
enum hb_host_result hb_host_end(struct hb_host *host, int64_t position, struct hb_err *err);
/* An event of the key was refused at ingest. DONE, FULL or ERROR. Not while KEY_STATUS_OFF. */
enum hb_host_result hb_host_refused(struct hb_host *host, struct hb_slice key, bool duplicate,
                                    struct hb_err *err);
/* PERIODIC: tell the status of each key that changed since the last time. Likewise. */
enum hb_host_result hb_host_tell_statuses(struct hb_host *host, struct hb_err *err);
/* PERIODIC: how many there are to be told. */
size_t hb_host_statuses_due(const struct hb_host *host);
/* The wall time that statuses carry from now on: the host has no clock. */
void hb_host_set_wall_ms(struct hb_host *host, uint64_t wall_ms);

/* ---- keys that wait (HB_ON_ERROR_WAIT): other keys go on, and the place goes past their events,
 * which are run later, in order, behind a good event of the sequence that failed. */

/* Before the first event: one that waits, as it was committed. */
void hb_host_restore_blocked(struct hb_host *host, const struct hb_blocked_row *row);
struct hb_blocked *hb_host_blocked(struct hb_host *host);
/* Which event is tried. */
enum hb_try {
  HB_TRY_FAILED, /* the one that failed: nothing comes of it where it fails again */
  HB_TRY_COPY,   /* a copy of it: it is kept with the reason where it fails */
  HB_TRY_KEPT    /* one that was kept so before: it counts against no quota again */
};
/* Run an event of the sequence that failed, in its place and with its position as the cause. DONE:
 * *out_good says whether it was taken; else it is forgotten, but for what is kept of it. FULL: as
 * in hb_host_event; the phase is CHOSEN where some of its results are in the bundle, and the same
 * event has to follow. */
enum hb_host_result hb_host_try(struct hb_host *host, struct hb_blocked_key *key,
                                const struct hb_event *event, enum hb_try kind, bool *out_good,
                                struct hb_err *err);
/* CATCHES_UP: the key's next event that the place went past. After the last of them the key waits
 * no more, and `key` is gone; after one that fails it waits at that one. */
enum hb_host_result hb_host_catch_up(struct hb_host *host, struct hb_blocked_key *key,
                                     const struct hb_event *event, int64_t position,
                                     struct hb_err *err);

/* It waits, and is to wait no more: the key goes on without the event that failed, which stays kept
 * with its reason; what was passed over follows. DONE, FULL or ERROR; after DONE `key` may be gone.
 */
enum hb_host_result hb_host_give_up(struct hb_host *host, struct hb_blocked_key *key,
                                    struct hb_err *err);

/* There was nothing for the processor between the place and `position`. */
void hb_host_skip_to(struct hb_host *host, int64_t position);

/* What the last failure was: explanation, and the position at which. */
struct hb_slice hb_host_failure(const struct hb_host *host, int64_t *out_position);

struct hb_result_block {
  int64_t from;
  int64_t to;
  struct hb_bytes *block; /* reference */
};

struct hb_bundle {
  struct hb_state_row *states; /* by key, then name */
  size_t states_count;
  struct hb_timer_row *timers; /* to be put */
  size_t timers_count;
  struct hb_timer_row *gone; /* to be removed */
  size_t gone_count;
  struct hb_result_block *results; /* consecutive */
  size_t results_count;
  struct hb_failure_row *failures;
  size_t failures_count;
  struct hb_blocked_row *blocked; /* to be put */
  size_t blocked_count;
  struct hb_slice *unblocked; /* to be removed, before the others are put */
  size_t unblocked_count;
  struct hb_key_status_row *statuses; /* as they stand now; by key */
  size_t statuses_count;
  struct hb_result_block *told; /* consecutive; likewise, of the statuses that are told */
  size_t told_count;
  struct hb_processor_place place;
  bool got_on;  /* a call of user code that did not fail is in it, or a part of one */
  bool gave_up; /* a key goes on without an event: to be durable before that is told */
};

/* True: something happened since the last commit. */
bool hb_host_has_bundle(const struct hb_host *host);
/* The bundle; everything in it is the host's, and lives until hb_host_committed. Nothing else may
 * be called in between. */
const struct hb_bundle *hb_host_take(struct hb_host *host);
void hb_host_committed(struct hb_host *host);

struct hb_host_stats {
  size_t cache_bytes;
  size_t cache_states;
  uint64_t cache_hits;
  uint64_t cache_misses;
  size_t timers;
  size_t blocked_keys;
};
struct hb_host_stats hb_host_stats(const struct hb_host *host);

#endif
