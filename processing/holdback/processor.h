/* The interface of a processor: user code that Holdback runs over a stream's events, in order.
 *
 * A processor sees each event once, strictly in log order, keeps state by key, sets timers on
 * event time and emits results. It must be DETERMINISTIC: what it does may depend on its
 * parameters, on what it is given and on its state, and on nothing else: no clock, no randomness,
 * no files, no sockets, no memory of its own from one call to the next. Then its results are the
 * same whatever crashes in between, since Holdback may run an event again before it commits it, and
 * keeps the effects of exactly one of these runs.
 *
 * All calls for one attached processor come from one thread at a time. Everything that is given
 * lives until the call returns; everything that is handed in is copied. The header stands alone and
 * is C and C++. A shared object is built against it and exports
 *
 *   HBP_EXPORT const struct hbp_processor holdback_processor = { HBP_ABI, ... };
 *
 * Names and numbers stay: what a later version adds stands at the end of a struct, and its `size`
 * tells whether it is there. */
#ifndef HB_PROCESSING_HOLDBACK_PROCESSOR_H
#define HB_PROCESSING_HOLDBACK_PROCESSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a processor built before would not work any more. */
#define HBP_ABI 1u
/* What a shared object exports; a struct hbp_processor. */
#define HBP_SYMBOL "holdback_processor"

#if defined(__GNUC__)
#define HBP_EXPORT __attribute__((visibility("default")))
#else
#define HBP_EXPORT
#endif

enum { HBP_OK = 0, HBP_FAILED = 1 };

/* What a processor may not exceed; beyond it the call fails, and so does the event. */
enum {
  HBP_STATE_NAME_MAX = 4096,     /* bytes of a state's or timer's name */
  HBP_STATE_VALUE_MAX = 4194304, /* bytes of a state's value */
  HBP_RESULT_MAX = 3145728       /* bytes of a result's key and payload together */
};

/* Bytes, not NUL-terminated. {NULL, 0} is empty. */
struct hbp_bytes {
  const void *data;
  size_t size;
};

/* An instant in UTC; only valid with `present`. Ordered by (seconds, nanos). */
struct hbp_time {
  int64_t seconds; /* since 1970 */
  int32_t nanos;   /* 0 .. 999,999,999 */
  int32_t present; /* 0 or 1 */
};

/* One released event. */
struct hbp_event {
  size_t size; /* of this struct */
  struct hbp_bytes key;
  struct hbp_bytes payload;
  struct hbp_bytes encoded; /* the whole holdback.v1.Event as its producer encoded it */
  int64_t position;         /* its place in the stream's log */
  int64_t sequence;         /* the producer's number */
  struct hbp_time time;     /* event time, where the producer gave one */
  /* The largest event time of all events before this one, of any key. Events may be earlier than
   * it: order is by position. */
  struct hbp_time watermark;
  int32_t initial; /* the producer's flags */
  int32_t last;
};

/* A timer whose time has come: just before the first event whose time is not before it, whatever
 * that event's key. Timers fire by time, then key, then in the order they were set. */
struct hbp_timer {
  size_t size;
  struct hbp_bytes key;
  struct hbp_bytes name;
  struct hbp_time time;      /* as it was set */
  int64_t position;          /* of the event that it fires before */
  struct hbp_time watermark; /* as that event's */
};

/* The stream was sealed, and everything of it was processed. Called once for each key that has
 * state, in byte order, after all timers have fired. */
struct hbp_end {
  size_t size;
  struct hbp_bytes key;
  int64_t position; /* one past the stream's last */
  struct hbp_time watermark;
};

/* What a processor may ask for while one of its functions runs. State and timers are those of the
 * key of the event, timer or end at hand. Each returns HBP_OK, or HBP_FAILED: then the
 * event is given up whatever else the processor does, so a plain `return HBP_FAILED;` is
 * right.
 */
struct hbp_host {
  size_t size;
  void *context; /* the host's */
  /* The value of a state. *out_found 0: there is none. The value lives until the next put or clear
   * of that state, or the end of the call. */
  int (*state_get)(const struct hbp_host *host, struct hbp_bytes name, struct hbp_bytes *out_value,
                   int *out_found);
  int (*state_put)(const struct hbp_host *host, struct hbp_bytes name, struct hbp_bytes value);
  int (*state_clear)(const struct hbp_host *host, struct hbp_bytes name);
  /* A result under the key at hand; none, one or many per call. */
  int (*emit)(const struct hbp_host *host, struct hbp_bytes payload);
  /* The same under another key. */
  int (*emit_with_key)(const struct hbp_host *host, struct hbp_bytes key, struct hbp_bytes payload);
  /* A timer of that name, in place of the one that the key has under it. Ignored once the stream
   * has ended (on_end, and timers that fire there). */
  int (*timer_set)(const struct hbp_host *host, struct hbp_bytes name, struct hbp_time time);
  int (*timer_clear)(const struct hbp_host *host, struct hbp_bytes name);
  /* Say why the event fails; `text` is kept with it, the first 1,000 bytes. Always HBP_FAILED:
   * return host->give_up(host, "..."). */
  int (*give_up)(const struct hbp_host *host, const char *text);
};

/* One parameter of an attachment. */
struct hbp_parameter {
  const char *name; /* NUL-terminated */
  struct hbp_bytes value;
};

/* A processor. Functions may be NULL where it says so. */
struct hbp_processor {
  uint32_t abi_version; /* HBP_ABI as it was compiled with */
  uint32_t size;        /* sizeof (struct hbp_processor) as it was compiled with */
  const char *name;     /* [a-z0-9][a-z0-9._-]{0,63}: what it is attached by */
  const char *help;     /* one line: what it does, which parameters it takes */

  /* Make one for these parameters, which stay the same for as long as it is attached. On
   * HBP_FAILED nothing was made, and `error` says which parameter is wrong and why (room for
   * error_size bytes, NUL included). */
  int (*create)(const struct hbp_parameter *parameters, size_t count, void **out_self, char *error,
                size_t error_size);
  void (*destroy)(void *self); /* NULL: there is nothing to destroy */

  /* HBP_FAILED: the event is kept aside with the reason that host->give_up stated. Whatever it
   * put, set and emitted is undone, and the key goes on with the next event; or, in a stream where
   * each key has its own sequence, it waits: what came behind the event is given only when another
   * one with its key and sequence was taken, which gets its position. So, as an exception to log
   * order, events of one key may follow on events of others that are behind them; a key's own order
   * always holds. Their watermark is that of the moment. */
  int (*on_event)(void *self, const struct hbp_host *host, const struct hbp_event *event);
  int (*on_timer)(void *self, const struct hbp_host *host,
                  const struct hbp_timer *timer); /* NULL: it sets none */
  int (*on_end)(void *self, const struct hbp_host *host,
                const struct hbp_end *end); /* NULL: nothing to do */
};

#ifdef __cplusplus
}
#endif

#endif
