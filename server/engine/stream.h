/* A stream as readers see it: what is published, the shared tail, who wants to be told.
 *
 * The sequencer publishes after each fsynced commit; everyone else looks. Shared by reference; a
 * deleted stream stays readable as an object and says so. */
#ifndef HB_SERVER_ENGINE_STREAM_H
#define HB_SERVER_ENGINE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mailbox.h"
#include "base/types.h"

struct hb_stream;

struct hb_stream *hb_stream_ref(struct hb_stream *stream);
void hb_stream_unref(struct hb_stream *stream); /* NULL is allowed */

/* All of these: any thread; each takes a short lock and copies. */
const uint8_t *hb_stream_incarnation(
    const struct hb_stream *stream); /* HB_INCARNATION_SIZE bytes */
void hb_stream_get_config(struct hb_stream *stream, struct hb_stream_config *out);
/* As published last; gap ages are for the caller to take from served time now. */
void hb_stream_get_status(struct hb_stream *stream, struct hb_stream_status *out);
enum hb_mode hb_stream_mode(const struct hb_stream *stream); /* never changes; no lock */
bool hb_stream_is_deleted(struct hb_stream *stream);
uint64_t hb_stream_event_bytes_max(struct hb_stream *stream);
/* Whether the release of what is held stands still because the event at the frontier can't be read;
 * *out says so with stream and position (HB_CORRUPT). */
bool hb_stream_get_damage(struct hb_stream *stream, struct hb_err *out);

/* ---- being told: `changed` is called (any thread, must only hand on) after each publication and
 * at deletion, at most once until hb_watch_arm is called again: publications in between fall
 * together. Armed at start. */

struct hb_watch {
  struct hb_watch *next; /* the stream's */
  struct hb_watch *previous;
  struct hb_stream *stream; /* borrowed while started */
  bool armed;               /* the stream's */
  uint64_t seen;            /* the stream's */
  void (*changed)(struct hb_watch *watch);
  void *context;
};
void hb_watch_start(struct hb_watch *watch, struct hb_stream *stream);
/* True: something was published since the last call (of `changed` or this); look again instead of
 * waiting: the watch is not armed then. Not while a `changed` that was made is not dealt with yet,
 * else it may be made again. */
bool hb_watch_arm(struct hb_watch *watch);
/* `changed` isn't running and won't be called any more when it returns. Not from `changed`. */
void hb_watch_stop(struct hb_watch *watch);

/* ---- the shared tail: recent log blocks */

enum hb_tail_result {
  HB_TAIL_BLOCKS,    /* out[0 .. count) are consecutive blocks; the first contains `position` */
  HB_TAIL_CAUGHT_UP, /* position >= published frontier */
  HB_TAIL_BEHIND     /* below the oldest shared block: read from disk (reads.h) */
};

/* At most `max` references to blocks of together about `bytes_max` (at least one). */
enum hb_tail_result hb_stream_read_tail(struct hb_stream *stream, int64_t position,
                                        struct hb_bytes **out, size_t max, size_t bytes_max,
                                        size_t *out_count);

#endif
