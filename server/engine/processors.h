/* Processors: user code attached to streams, run by a thread each behind the published frontier.
 *
 * Attaching and detaching are jobs (engine.h). A processor's results are a log of their own, and
 * are read as a stream is (stream.h, reads.h): positions from 0, no holes. Ingest never waits for a
 * processor: it lags, and says how far. */
#ifndef HB_SERVER_ENGINE_PROCESSORS_H
#define HB_SERVER_ENGINE_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"
#include "server/engine/stream.h"
#include "storage/processor_rows.h"

struct hb_engine;
struct hbp_parameter;

/* ---- parameters as bytes: what is stored, and compared when one is attached again */

/* In the order of names, each name once: equal parameters are equal bytes. */
void hb_parameters_append(struct hb_buf *out, const char *name, struct hb_slice value);
/* An array that the caller frees; names and values are borrowed from `bytes`. HB_CORRUPT. */
HB_MUST_CHECK enum hb_code hb_parameters_decode(struct hb_slice bytes, struct hbp_parameter **out,
                                                size_t *out_count, struct hb_err *err);

/* ---- attaching and detaching */

struct hb_attached_code; /* processor_internal.h */

/* With HB_JOB_ATTACH_PROCESSOR and HB_JOB_DETACH_PROCESSOR; the stream is job->config.name. */
struct hb_processor_request {
  char name[HB_PROCESSOR_NAME_MAX + 1];
  /* ATTACH. The same as what is attached is HB_OK; other processor, parameters or on_error under a
   * name that is taken: HB_EXISTS. One that was detached with its state goes on where it was.
   * HB_NOT_FOUND: stream, or no such processor. HB_INVALID: name, parameters. HB_LIMIT. */
  char processor[HB_PROCESSOR_NAME_MAX + 1];
  struct hb_slice parameters; /* lives until done */
  bool start_now;             /* else from the lowest position that can be read */
  /* Of an event that fails. DEFAULT: what the stream's mode says. WAIT in GLOBAL mode: HB_INVALID.
   */
  enum hb_on_error on_error;
  enum hb_key_status_mode key_status;
  uint32_t key_status_ms; /* PERIODIC; 0 = 5,000 */
  /* DETACH. */
  bool keep_state; /* and results; else all that it has is dropped */

  struct hb_attached_code *code; /* the engine's */
};

/* ---- looking */

enum hb_processor_state {
  HB_PROCESSOR_RUNNING,
  HB_PROCESSOR_SUSPENDED, /* for a reason that stays: `why` */
  HB_PROCESSOR_DETACHED,
  HB_PROCESSOR_ENDED, /* the stream was sealed, and all of it is processed */
  HB_PROCESSOR_FAILED /* what is stored could not be read, or the code is not there: `why` */
};

struct hb_processor_info {
  char name[HB_PROCESSOR_NAME_MAX + 1];
  char processor[HB_PROCESSOR_NAME_MAX + 1];
  bool loaded;
  enum hb_on_error on_error; /* never DEFAULT */
  enum hb_key_status_mode key_status;
  uint32_t key_status_ms;
  uint64_t id; /* for reads */
  enum hb_processor_state state;
  int64_t stopped_at; /* SUSPENDED, FAILED */
  char why[HB_SUSPENDED_WHY_MAX + 1];
  bool begun;       /* then position is valid */
  int64_t position; /* everything below it is processed, and committed */
  uint64_t lag;     /* positions released and not processed */
  int64_t results;  /* position that the next result gets: so many there are */
  struct hb_time watermark;
  uint64_t events;
  uint64_t timers_fired;
  uint64_t failed;
  uint64_t timers;
  uint64_t blocked_keys; /* that wait at an event that failed */
  uint64_t cache_bytes;
  uint64_t call_ms; /* the call that runs now has taken so long; 0: none, or less than that */
  bool has_failure; /* the last one since the start */
  int64_t failure_at;
  char failure[HB_SUSPENDED_WHY_MAX + 1];
  struct hb_buf parameters; /* owned: hb_processor_info_done */
};
void hb_processor_info_done(struct hb_processor_info *info);

/* False: no such processor. */
bool hb_engine_get_processor(struct hb_engine *engine, struct hb_stream *stream, const char *name,
                             struct hb_processor_info *out);
/* Up to `max` in name order, with names > `after`. Returns how many. */
size_t hb_engine_list_processors(struct hb_engine *engine, struct hb_stream *stream,
                                 const char *after, struct hb_processor_info *out, size_t max,
                                 bool *out_more);
/* Its results; a reference, or NULL: no such processor. */
struct hb_stream *hb_engine_find_results(struct hb_engine *engine, struct hb_stream *stream,
                                         const char *name);
/* The statuses that it tells, likewise; NULL also where it tells none. */
struct hb_stream *hb_engine_find_statuses(struct hb_engine *engine, struct hb_stream *stream,
                                          const char *name);

/* ---- keys that wait at an event that failed (on_error WAIT) */

struct hb_retry {
  struct hb_retry *next; /* the engine's, as state */
  bool begun;
  char name[HB_PROCESSOR_NAME_MAX + 1]; /* of the processor */
  bool has_key;                         /* that key alone, else all that wait */
  struct hb_slice key;                  /* lives until done */
  bool gives_up;                        /* else they are tried again; then has_key */
  bool has_sequence;                    /* give up this one, or none */
  int64_t sequence;
  /* out */
  uint64_t tried;   /* keys that waited */
  uint64_t good;    /* of these, keys that got past the event that they waited at */
  uint64_t blocked; /* keys of the processor that wait now */
  char why[HB_SUSPENDED_WHY_MAX + 1]; /* why one of the others failed again; "" */
  int64_t given_up;                   /* the sequence */
  bool is_blocked;                    /* has_key: it waits now, at blocked_at */
  int64_t blocked_at;
  /* HB_NOT_FOUND: the processor. HB_PRECONDITION: it does not run; gives_up: the key does not wait,
   * or not there. HB_UNAVAILABLE: it ended, or its store is another one, meanwhile. */
  struct hb_err error;
  void (*done)(struct hb_retry *retry); /* the processor's thread, or the caller's own */
  void *context;
};
/* Try them again: with the event that failed, since the code may be another one by now, and with
 * all copies of it that were kept. Or `gives_up`: the key goes on without that event, which stays
 * kept with its reason; durable when it is done. */
void hb_engine_retry_blocked(struct hb_engine *engine, struct hb_stream *stream,
                             struct hb_retry *retry);

/* A call of user code has been running for more than 30 s. */
bool hb_engine_processing_is_stuck(struct hb_engine *engine);

#endif
