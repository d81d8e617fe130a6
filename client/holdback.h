/* libholdback: the C client of Holdback, a durable resequencer.
 *
 * One header, C11 and C++. A client owns one connection and one thread of its own; its functions
 * may be called from any thread unless said otherwise. Everything that takes time says how it ends:
 * by a return value or by a callback on the client's thread (do not block in one).
 *
 * The client reconnects by itself. What was appended and not answered is sent again: that is safe,
 * since the server deduplicates exactly. A subscription goes on at its next_position. */
#ifndef HOLDBACK_H
#define HOLDBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLDBACK_VERSION "0.1.0"

#if defined(__GNUC__)
#define HOLDBACK_API __attribute__((visibility("default")))
#else
#define HOLDBACK_API
#endif

/* ---- results */

/* 0 is success; the others are gRPC status codes (1 .. 16): what the server or the connection
 * answered, or HOLDBACK_INVALID_ARGUMENT where the library refuses an argument itself. */
enum holdback_status {
  HOLDBACK_OK = 0,
  HOLDBACK_CANCELLED = 1,
  HOLDBACK_UNKNOWN = 2,
  HOLDBACK_INVALID_ARGUMENT = 3,
  HOLDBACK_DEADLINE_EXCEEDED = 4,
  HOLDBACK_NOT_FOUND = 5,
  HOLDBACK_ALREADY_EXISTS = 6,
  HOLDBACK_RESOURCE_EXHAUSTED = 8,
  HOLDBACK_FAILED_PRECONDITION = 9,
  HOLDBACK_OUT_OF_RANGE = 11,
  HOLDBACK_UNIMPLEMENTED = 12,
  HOLDBACK_INTERNAL = 13,
  HOLDBACK_UNAVAILABLE = 14,
  HOLDBACK_DATA_LOSS = 15
};
/* "NOT_FOUND", ...; "UNKNOWN" for numbers that gRPC does not know. Static. */
HOLDBACK_API const char *holdback_status_name(int status);

/* What went wrong, for a person and for a program. On the caller's stack; zeroed = no error. */
struct holdback_error {
  int status;         /* enum holdback_status */
  char reason[64];    /* ErrorInfo.reason, UPPER_SNAKE; "" where the server gave none */
  char message[1024]; /* names field, value and limit */
};

/* ---- events */

struct holdback_bytes {
  const void *data;
  size_t size;
};

struct holdback_header {
  struct holdback_bytes name; /* UTF-8 */
  struct holdback_bytes value;
};

struct holdback_event {
  int64_t sequence;
  struct holdback_bytes key;
  struct holdback_bytes payload;
  bool has_event_time;
  int64_t event_time_seconds; /* since 1970, UTC */
  int32_t event_time_nanos;   /* 0 .. 999,999,999 */
  const struct holdback_header *headers;
  size_t headers_count;
  bool initial; /* PER_KEY streams: the first event of its key, and the last */
  bool last;
};

/* What the server refuses in every stream: HOLDBACK_INVALID_ARGUMENT with its reason, and the
 * message names field, value and limit. holdback_append checks the same. */
HOLDBACK_API int holdback_event_check(const struct holdback_event *event,
                                      struct holdback_error *error);
/* Bytes of the encoded event: what a stream's event_bytes_max limits. */
HOLDBACK_API size_t holdback_event_size(const struct holdback_event *event);

enum holdback_outcome {
  HOLDBACK_STORED = 1,
  HOLDBACK_DUPLICATE = 2,
  HOLDBACK_CONFLICT = 3,
  HOLDBACK_LATE = 4,
  HOLDBACK_BEFORE_FIRST = 5,
  HOLDBACK_OUT_OF_RANGE_EVENT = 6,
  HOLDBACK_WINDOW_FULL = 7
};
/* "STORED", ...; "UNKNOWN" for other numbers. Static. */
HOLDBACK_API const char *holdback_outcome_name(int outcome);
/* "AHEAD", "HELD_BYTES", ...; "" for 0. Static. */
HOLDBACK_API const char *holdback_reason_name(int reason);

/* ---- the client */

struct holdback_client;

struct holdback_options {
  const char *server;          /* "host:port" or "unix:path"; NULL = 127.0.0.1:4653 */
  uint32_t connect_timeout_ms; /* for the first connection and for unary calls; 0 = 10,000 */
  size_t in_flight_batches;    /* of one appender; 0 = 8 */
  size_t refused_bytes_max;    /* WINDOW_FULL events kept to be sent again; 0 = 64 MiB */
};

/* Never connects by itself: the first call does. NULL options = defaults. Until something came from
 * the server once, a refused connection fails a unary call at once; afterwards such a call waits
 * for the server to come back, up to connect_timeout_ms. */
HOLDBACK_API int holdback_client_create(const struct holdback_options *options,
                                        struct holdback_client **out, struct holdback_error *error);
/* Ends its appenders and subscriptions too. Not from a callback, nor while another thread is in a
 * function of this client. NULL is allowed. */
HOLDBACK_API void holdback_client_destroy(struct holdback_client *client);

struct holdback_server {
  char version[32];
  uint8_t store_id[16];
  uint64_t served_ms;
  double round_trip_ms;
};
HOLDBACK_API int holdback_ping(struct holdback_client *client, struct holdback_server *out,
                               struct holdback_error *error);

/* Bytes of the store's files, without the write-ahead log. */
struct holdback_compaction {
  uint64_t bytes_before;
  uint64_t bytes_after;
};
/* Rewrite the store's files so that nothing deleted or replaced takes room. Waits for its end,
 * which takes as long as reading and writing everything; the server goes on serving. */
HOLDBACK_API int holdback_compact(struct holdback_client *client, struct holdback_compaction *out,
                                  struct holdback_error *error);

/* ---- verification: the server reads everything that is stored, while it serves */

struct holdback_finding {
  uint64_t stream_id; /* 0 = of no stream */
  const char *stream; /* name; "" = none, or not known */
  const char *family; /* of rows ("log", "held", "lists", ...), or "FORMAT" */
  bool has_range;
  int64_t start; /* positions (log, lists) or sequences (held) that are concerned */
  int64_t end;
  const char *text; /* what is wrong, for a person */
};

/* What was looked at so far; ServerService.VerifyStore has the meaning of each. */
struct holdback_verify_progress {
  uint64_t streams, blocks, events, bundles, held_events, index_entries, rows, bytes;
  uint64_t findings;
  uint64_t done;  /* of `total` */
  uint64_t total; /* an estimate; equal to done at the end */
  uint64_t elapsed_ms;
};

/* On the caller's thread, in the order of the server's answers; either may be NULL. False: stop. */
typedef bool holdback_on_finding(void *context, const struct holdback_finding *finding);
typedef bool holdback_on_verify(void *context, const struct holdback_verify_progress *progress);
struct holdback_verify_options {
  const char *stream; /* NULL = the whole store */
  holdback_on_finding *on_finding;
  holdback_on_verify *on_progress;
  void *context;
};
/* Blocks until everything was looked at. HOLDBACK_OK: it was, and the store is sound if
 * out->findings is 0. HOLDBACK_CANCELLED: a callback stopped it. It is not taken up again where the
 * connection is lost. */
HOLDBACK_API int holdback_verify(struct holdback_client *client,
                                 const struct holdback_verify_options *options,
                                 struct holdback_verify_progress *out,
                                 struct holdback_error *error);

/* ---- streams */

enum holdback_mode { HOLDBACK_MODE_GLOBAL = 1, HOLDBACK_MODE_PER_KEY = 2 };

struct holdback_stream_config {
  const char *name; /* [a-z0-9][a-z0-9._-]{0,127} */
  int mode;         /* enum holdback_mode; 0 = GLOBAL */
  bool first_seen;  /* first_sequence = the lowest of the first batch; in PER_KEY mode each key
                       begins at its event with `initial` */
  int64_t first_sequence; /* where !first_seen */
  bool async_ack;         /* acknowledged before the sync: survives SIGKILL, not power loss */
  uint64_t ahead_max;     /* 0 = the server's default, here and below */
  uint64_t held_bytes_max;
  uint64_t held_events_max;
  uint64_t gaps_max;
  uint32_t event_bytes_max;
};

struct holdback_gap {
  int64_t start;
  int64_t end;
  uint64_t age_ms;
};

/* As of the last fsynced commit. has_first false: nothing below it up to `earliest` is valid. */
struct holdback_stream_status {
  bool has_first;
  int64_t first_sequence;
  int64_t frontier;
  int64_t complete_to;
  int64_t earliest;
  int64_t indexed_to;
  bool has_highest;
  int64_t highest;
  uint64_t held_events;
  uint64_t held_bytes;
  struct holdback_gap gaps[16];
  size_t gaps_count;
  uint64_t gaps_total;
  bool has_max_event_time;
  int64_t max_event_time_seconds;
  int32_t max_event_time_nanos;
  uint64_t stored_total, duplicate_total, conflict_total, late_total, before_first_total;
  uint64_t held_total;
  bool sealed; /* then seal_end is one past the last sequence that it will ever have */
  int64_t seal_end;
};

HOLDBACK_API int holdback_stream_create(struct holdback_client *client,
                                        const struct holdback_stream_config *config,
                                        struct holdback_error *error);
/* Limits of 0 stay as they are; ack: 0 unchanged, 1 durable, 2 async. */
HOLDBACK_API int holdback_stream_update(struct holdback_client *client,
                                        const struct holdback_stream_config *config, int ack,
                                        struct holdback_error *error);
HOLDBACK_API int holdback_stream_delete(struct holdback_client *client, const char *name,
                                        struct holdback_error *error);
/* Nothing at or above `end` will be stored any more; for good. */
HOLDBACK_API int holdback_stream_seal(struct holdback_client *client, const char *name, int64_t end,
                                      struct holdback_error *error);
/* Either output may be NULL; config->name points to `name`. */
HOLDBACK_API int holdback_stream_get(struct holdback_client *client, const char *name,
                                     struct holdback_stream_config *out_config,
                                     struct holdback_stream_status *out_status,
                                     struct holdback_error *error);
/* Calls each(context, config) for every stream in name order; stops where it returns false. */
typedef bool holdback_stream_each(void *context, const struct holdback_stream_config *config);
HOLDBACK_API int holdback_stream_list(struct holdback_client *client, const char *name_prefix,
                                      holdback_stream_each *each, void *context,
                                      struct holdback_error *error);

/* Calls each(context, gap) for everything that is missing, ascending; stops where it returns false.
 * `key` NULL in GLOBAL mode; in PER_KEY mode the gaps are that key's, without age.
 * *out_initial_missing (may be NULL): it is not known where the key begins, and what lies below its
 * lowest event is not told. */
typedef bool holdback_gap_each(void *context, const struct holdback_gap *gap);
HOLDBACK_API int holdback_list_gaps(struct holdback_client *client, const char *stream,
                                    const struct holdback_bytes *key, holdback_gap_each *each,
                                    void *context, bool *out_initial_missing,
                                    struct holdback_error *error);
/* What is missing of a key. */
struct holdback_key_gaps {
  struct holdback_bytes key;
  bool has_complete_to; /* else it is not known where the key begins */
  int64_t complete_to;  /* the lowest sequence that is missing */
  int64_t highest;
  uint64_t held_events;
  uint64_t gaps_total; /* a beginning that is not known counts as one */
  bool has_gap;
  struct holdback_gap gap; /* the lowest */
};
/* The same for the keys of a PER_KEY stream that have gaps, in no order that means anything. */
typedef bool holdback_key_gaps_each(void *context, const struct holdback_key_gaps *key);
HOLDBACK_API int holdback_list_keys_with_gaps(struct holdback_client *client, const char *stream,
                                              struct holdback_bytes key_prefix,
                                              holdback_key_gaps_each *each, void *context,
                                              struct holdback_error *error);

/* ---- processors: user code over a stream's events, in order */

struct holdback_parameter {
  const char *name;
  struct holdback_bytes value;
};

struct holdback_processor_config {
  const char *name;      /* [a-z0-9][a-z0-9._-]{0,63}, unique in its stream */
  const char *processor; /* "count", ...; a built-in, or a shared object of the server's */
  const struct holdback_parameter *parameters;
  size_t parameters_count;
  int on_error;                    /* enum holdback_on_error */
  int key_status;                  /* enum holdback_key_status_mode */
  uint32_t key_status_interval_ms; /* PERIODIC; 0 = 5,000 */
};
/* What becomes of an event at which the code fails; it is kept aside in any case but SUSPEND. */
enum holdback_on_error {
  HOLDBACK_ON_ERROR_DEFAULT = 0,  /* WAIT_KEY in PER_KEY mode, else CONTINUE */
  HOLDBACK_ON_ERROR_CONTINUE = 1, /* processing goes on */
  HOLDBACK_ON_ERROR_SUSPEND = 2,  /* the processor stops before it */
  HOLDBACK_ON_ERROR_WAIT_KEY = 3  /* PER_KEY: its key waits for a good event of its sequence */
};
/* What is kept of each key, and told in subscriptions with key_statuses. */
enum holdback_key_status_mode {
  HOLDBACK_KEY_STATUS_OFF = 0,
  HOLDBACK_KEY_STATUS_KEPT = 1,
  HOLDBACK_KEY_STATUS_EVERY_EVENT = 2,
  HOLDBACK_KEY_STATUS_PERIODIC = 3
};

enum holdback_processor_state {
  HOLDBACK_PROCESSOR_RUNNING = 1,
  HOLDBACK_PROCESSOR_SUSPENDED = 2,
  HOLDBACK_PROCESSOR_DETACHED = 3,
  HOLDBACK_PROCESSOR_ENDED = 4,
  HOLDBACK_PROCESSOR_FAILED = 5
};
/* "RUNNING", ...; "UNKNOWN" for other numbers. Static. */
HOLDBACK_API const char *holdback_processor_state_name(int state);

struct holdback_processor_status {
  int state; /* enum holdback_processor_state */
  bool has_position;
  int64_t position; /* everything below it is processed */
  uint64_t lag;
  int64_t results;
  uint64_t events, failed, timers_fired, timers, state_cache_bytes, call_ms;
  uint64_t blocked_keys; /* WAIT_KEY: keys that wait */
  bool has_watermark;
  int64_t watermark_seconds;
  int32_t watermark_nanos;
  int64_t stopped_at; /* SUSPENDED, FAILED */
  const char *reason; /* "" otherwise */
  bool has_last_failure;
  int64_t last_failure_position;
  const char *last_failure;
};

/* from_now false: from the lowest position that can be read. */
HOLDBACK_API int holdback_processor_attach(struct holdback_client *client, const char *stream,
                                           const struct holdback_processor_config *config,
                                           bool from_now, struct holdback_error *error);
HOLDBACK_API int holdback_processor_detach(struct holdback_client *client, const char *stream,
                                           const char *name, bool keep_state,
                                           struct holdback_error *error);
/* Calls each(context, config, status), whose pointers live for the callback, for one processor or
 * (name NULL) for all of the stream, by name; stops where it returns false. */
typedef bool holdback_processor_each(void *context, const struct holdback_processor_config *config,
                                     const struct holdback_processor_status *status);
HOLDBACK_API int holdback_processor_list(struct holdback_client *client, const char *stream,
                                         const char *name, holdback_processor_each *each,
                                         void *context, struct holdback_error *error);

/* What came of keys that waited at an event that failed. */
struct holdback_retried {
  uint64_t tried;
  uint64_t processed; /* of these, those that got on */
  uint64_t blocked;   /* keys of the processor that wait now */
  char reason[1001];  /* why one of the others failed again; "" */
};
/* Try them again, with the event that failed and with copies of it that were kept; `key` NULL: all
 * of the processor's. Waits until it is done. */
HOLDBACK_API int holdback_retry_blocked(struct holdback_client *client, const char *stream,
                                        const char *processor, const struct holdback_bytes *key,
                                        struct holdback_retried *out, struct holdback_error *error);

/* What came of a key that was to go on without the event that it waited at. */
struct holdback_skipped {
  int64_t skipped;     /* its sequence */
  bool has_blocked_at; /* a later one failed: the key waits again */
  int64_t blocked_at;
  uint64_t blocked; /* keys of the processor that wait now */
};
/* Let a key go on without the event that it waits at; `sequence` NULL: whichever that is, else only
 * that one. Waits until the key has caught up, or waits again. */
HOLDBACK_API int holdback_skip_blocked(struct holdback_client *client, const char *stream,
                                       const char *processor, struct holdback_bytes key,
                                       const int64_t *sequence, struct holdback_skipped *out,
                                       struct holdback_error *error);

/* How a key stands with a processor that keeps statuses. */
struct holdback_key_status {
  int64_t position; /* in a subscription: among the statuses told, from 0 */
  struct holdback_bytes key;
  bool has_last_processed;
  int64_t last_processed;
  uint64_t processed, failed, results, duplicates, rejected;
  bool last_received;
  bool has_waiting; /* false in a subscription: then waiting and received are not told */
  uint64_t waiting;
  int64_t earliest_waiting; /* valid where waiting > 0, as latest_waiting */
  int64_t latest_waiting;
  uint64_t received;
  uint64_t told_at_ms; /* since 1970; in a subscription */
  bool has_blocked_at; /* the key waits at an event that failed */
  int64_t blocked_at;  /* its sequence */
};
/* of one key: out->key is the one given. */
HOLDBACK_API int holdback_key_status(struct holdback_client *client, const char *stream,
                                     const char *processor, struct holdback_bytes key,
                                     struct holdback_key_status *out, struct holdback_error *error);
/* Calls each(context, status), which lives for the callback, for each key with the prefix; stops
 * where it returns false. */
typedef bool holdback_key_status_each(void *context, const struct holdback_key_status *status);
HOLDBACK_API int holdback_list_key_statuses(struct holdback_client *client, const char *stream,
                                            const char *processor, struct holdback_bytes key_prefix,
                                            holdback_key_status_each *each, void *context,
                                            struct holdback_error *error);

/* ---- appending: batches in flight, answers in order */

struct holdback_appender;

/* A run of events of one batch with one outcome, on the client's thread, in order.
 * `index` is what the caller gave with the first of them (holdback_append); a WINDOW_FULL event
 * is reported only when the appender gives it up (window_timeout_ms). */
struct holdback_result {
  uint64_t index;
  uint32_t count;
  int64_t first_sequence;
  int outcome; /* enum holdback_outcome */
  int reason;
  const char
      *text; /* about first_sequence; "" where the server sent none; lives for the callback */
};
typedef void holdback_on_result(void *context, const struct holdback_result *result);

struct holdback_appender_options {
  const char *stream;
  const char *producer;          /* NULL = none */
  size_t batch_events;           /* 0 = 1,000 */
  size_t batch_bytes;            /* 0 = 1 MiB of frames; a batch is sent when either is reached */
  uint32_t window_timeout_ms;    /* WINDOW_FULL without movement of complete_to; 0 = 30,000 */
  uint32_t reconnect_timeout_ms; /* gives up after so long without a server; 0 = 30,000 */
  holdback_on_result *on_result; /* may be NULL */
  void *context;
};

HOLDBACK_API int holdback_appender_create(struct holdback_client *client,
                                          const struct holdback_appender_options *options,
                                          struct holdback_appender **out,
                                          struct holdback_error *error);
/* Encode the event into the current batch (its bytes are copied) and send the batch when full.
 * Blocks while in_flight_batches are unanswered. `index` comes back in results; ascending by habit.
 * An event that holdback_event_check refuses is refused here too, and nothing else changes. After
 * any other error the appender is broken: every later call returns the same. One thread. */
HOLDBACK_API int holdback_append(struct holdback_appender *appender, uint64_t index,
                                 const struct holdback_event *event, struct holdback_error *error);
/* Send what is collected, without waiting; where there is no room in flight it stays collected.
 * Also the way to ask, without waiting, whether the appender is broken. */
HOLDBACK_API int holdback_appender_push(struct holdback_appender *appender,
                                        struct holdback_error *error);
/* Send what is collected and wait until everything is answered. HOLDBACK_RESOURCE_EXHAUSTED with
 * reason WINDOW_FULL and the missing range in the message: the window did not move in time. */
HOLDBACK_API int holdback_appender_flush(struct holdback_appender *appender,
                                         struct holdback_error *error);
struct holdback_append_progress {
  uint64_t sent, stored, duplicate, conflict, late, before_first, out_of_range, window_full;
  bool has_frontier;
  int64_t frontier, complete_to;
};
HOLDBACK_API void holdback_appender_progress(struct holdback_appender *appender,
                                             struct holdback_append_progress *out);
/* What is unanswered is given up. NULL is allowed. */
HOLDBACK_API void holdback_appender_destroy(struct holdback_appender *appender);

/* ---- subscribing */

enum holdback_start {
  HOLDBACK_START_EARLIEST = 1,
  HOLDBACK_START_NOW = 2,
  HOLDBACK_START_POSITION = 3,
  HOLDBACK_START_EVENT_TIME = 4
};

struct holdback_progress {
  bool has_frontier;
  int64_t frontier, complete_to, next_position, earliest;
  bool has_highest;
  int64_t highest;
  uint64_t held_events;
  bool blocked;
  struct holdback_gap blocked_by;
  bool caught_up;
};

struct holdback_subscribe_options {
  const char *stream;
  const char *processor; /* not NULL: its results instead of events */
  bool key_statuses;     /* with processor: the statuses of keys that it tells, instead */
  enum holdback_start start;
  int64_t position;     /* START_POSITION */
  int64_t time_seconds; /* START_EVENT_TIME */
  int32_t time_nanos;
  const struct holdback_bytes *keys;
  size_t keys_count;
  const struct holdback_bytes *key_prefixes;
  size_t key_prefixes_count;
  uint32_t progress_interval_ms; /* 0 = 1,000 */
  uint32_t reconnect_timeout_ms; /* 0 = 30,000 */
};

struct holdback_subscription;
struct holdback_message; /* one answer of the server */

HOLDBACK_API int holdback_subscribe(struct holdback_client *client,
                                    const struct holdback_subscribe_options *options,
                                    struct holdback_subscription **out,
                                    struct holdback_error *error);
enum holdback_message_kind {
  HOLDBACK_MESSAGE_EVENTS = 1,
  HOLDBACK_MESSAGE_PROGRESS = 2,
  HOLDBACK_MESSAGE_VOID = 3,
  HOLDBACK_MESSAGE_END = 4,
  HOLDBACK_MESSAGE_RESULTS = 5,
  HOLDBACK_MESSAGE_STATUSES = 6
};
/* Wait for the next message; timeout_ms 0 = do not wait, UINT32_MAX = for ever. *out NULL: time is
 * over. One thread. The message lives until the next call of this function or destroy. Messages
 * that came before an error are handed out before it; after an error, or after END, every later
 * call returns the same (after END: HOLDBACK_OUT_OF_RANGE, reason ENDED). */
HOLDBACK_API int holdback_next(struct holdback_subscription *subscription, uint32_t timeout_ms,
                               const struct holdback_message **out, struct holdback_error *error);
HOLDBACK_API enum holdback_message_kind holdback_message_kind(const struct holdback_message *m);
/* EVENTS: iterate with *cursor = 0 at first; false at the end. Bytes live as long as the message,
 * the array out->headers until the next call for the same message. */
HOLDBACK_API bool holdback_message_event(const struct holdback_message *message, size_t *cursor,
                                         struct holdback_event *out, int64_t *out_position);
/* RESULTS: likewise. */
enum holdback_result_kind {
  HOLDBACK_RESULT_EVENT = 1,
  HOLDBACK_RESULT_TIMER = 2,
  HOLDBACK_RESULT_END = 3
};
struct holdback_processor_result {
  int64_t position; /* among the results, from 0 */
  struct holdback_bytes key;
  struct holdback_bytes payload;
  bool has_event_time;
  int64_t event_time_seconds;
  int32_t event_time_nanos;
  int64_t cause_position; /* in the stream */
  int kind;               /* enum holdback_result_kind: what happened there */
};
HOLDBACK_API bool holdback_message_result(const struct holdback_message *message, size_t *cursor,
                                          struct holdback_processor_result *out);
/* STATUSES: likewise. */
HOLDBACK_API bool holdback_message_status(const struct holdback_message *message, size_t *cursor,
                                          struct holdback_key_status *out);
HOLDBACK_API int64_t holdback_message_next_position(const struct holdback_message *message);
HOLDBACK_API bool holdback_message_progress(const struct holdback_message *message,
                                            struct holdback_progress *out);
/* VOID: the producer, or an operator, said that [start, end) will never come. */
struct holdback_void {
  int64_t start;
  int64_t end;
  char reason[128]; /* cut where longer, as `actor` */
  char actor[128];
};
HOLDBACK_API bool holdback_message_void(const struct holdback_message *message,
                                        struct holdback_void *out);
HOLDBACK_API void holdback_subscription_destroy(struct holdback_subscription *subscription);

/* ---- one key's list, and the keys */

struct holdback_key_entry {
  struct holdback_event event; /* lives for the callback */
  bool has_position;
  int64_t position;
  bool released; /* else held */
};
typedef bool holdback_key_entry_each(void *context, const struct holdback_key_entry *entry);
HOLDBACK_API int holdback_read_key(struct holdback_client *client, const char *stream,
                                   struct holdback_bytes key, bool has_from, int64_t from_position,
                                   bool released_only, holdback_key_entry_each *each, void *context,
                                   struct holdback_error *error);
typedef bool holdback_key_each(void *context, struct holdback_bytes key);
HOLDBACK_API int holdback_list_keys(struct holdback_client *client, const char *stream,
                                    struct holdback_bytes key_prefix, holdback_key_each *each,
                                    void *context, struct holdback_error *error);

/* ---- what is kept aside: events that were refused, and events that user code failed at */

/* Numbers as in holdback.v1.UnprocessedReason. */
enum holdback_unprocessed_reason {
  HOLDBACK_UNPROCESSED_ANY = 0,
  HOLDBACK_UNPROCESSED_CONFLICT = 3,
  HOLDBACK_UNPROCESSED_LATE = 4,
  HOLDBACK_UNPROCESSED_BEFORE_FIRST = 5,
  HOLDBACK_UNPROCESSED_EXCEPTION = 64
};
/* Lives for the callback. */
struct holdback_unprocessed {
  bool has_event; /* not where a processor gave up a timer, or an end */
  struct holdback_event event;
  int reason;
  bool has_position; /* EXCEPTION: where in the stream's log */
  int64_t position;
  const char *processor;   /* EXCEPTION; "" where it is gone */
  const char *explanation; /* EXCEPTION */
  const char *producer;    /* who sent it first; "" where that is not known */
  uint64_t count;          /* how often it was refused, or failed */
  int64_t first_seen_ms;   /* since 1970, UTC, by the server's clock */
  int64_t last_seen_ms;
};
struct holdback_unprocessed_filter {
  const char *processor; /* NULL: of all, and refusals */
  enum holdback_unprocessed_reason reason;
  const struct holdback_bytes *key; /* NULL: of all keys */
};
typedef bool holdback_unprocessed_each(void *context, const struct holdback_unprocessed *event);
/* By reason, then sequence or position. `filter` NULL: all. */
HOLDBACK_API int holdback_list_unprocessed(struct holdback_client *client, const char *stream,
                                           const struct holdback_unprocessed_filter *filter,
                                           holdback_unprocessed_each *each, void *context,
                                           struct holdback_error *error);

#ifdef __cplusplus
}
#endif

#endif
