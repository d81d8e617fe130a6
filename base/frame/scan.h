/* The frame scanner: finds the events in the bytes that a producer sent, and checks them.
 *
 * A frame is what holdback.v1.EventBatch is made of on the wire: 0x0A, length, Event. The scanner
 * tells where each frame's parts lie; from then on bytes are moved, never re-encoded: what the
 * producer encoded is what the subscriber receives, unknown fields included. proto3 semantics: any
 * field order, the last singular wins, submessages merge, unknown fields and fields of a wrong
 * wire type are carried and ignored. Pure; any thread; allocates nothing per event. */
#ifndef HB_BASE_FRAME_SCAN_H
#define HB_BASE_FRAME_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"
#include "base/types.h"

enum hb_event_flag { HB_EVENT_HAS_PREVIOUS = 1, HB_EVENT_INITIAL = 2, HB_EVENT_LAST = 4 };

/* One event by reference; one cache line. Lives as long as the frame's bytes. */
struct hb_event {
  int64_t sequence;     /* 0 where the field is absent (proto3) */
  const uint8_t *frame; /* borrowed: the 0x0A tag, its length, the Event */
  uint32_t frame_size;
  uint32_t key_offset; /* from frame */
  uint32_t key_size;
  uint32_t payload_offset; /* from frame */
  uint32_t payload_size;
  uint32_t flags;      /* enum hb_event_flag */
  int64_t previous;    /* valid with HB_EVENT_HAS_PREVIOUS */
  struct hb_time time; /* absent: time.present == false */
};

struct hb_slice hb_event_key(const struct hb_event *event);
struct hb_slice hb_event_payload(const struct hb_event *event);
struct hb_slice hb_event_frame(const struct hb_event *event);
/* Same sequence, key and payload: the same event. Headers and time are each feed's own. */
bool hb_event_same(const struct hb_event *a, const struct hb_event *b);
/* XXH3-64 over key size, key and payload: names a content in the family `unprocessed`. */
uint64_t hb_event_content_hash(const struct hb_event *event);

/* Growable array that is reused from batch to batch. Zeroed = empty. */
struct hb_events {
  struct hb_event *items; /* owned */
  size_t count;
  size_t cap;
};
void hb_events_done(struct hb_events *events);

/* Append every event of `batch` (the bytes of one EventBatch) to `events`; fields of EventBatch
 * other than `events` are skipped. Stops at the first fault, leaving events->count as it was.
 * Errors, each naming the event's index, the field, the value and the limit:
 *   HB_INVALID  MALFORMED_EVENT, EVENT_TOO_LARGE (event_bytes_max is the server's maximum here;
 *               a stream's own limit is checked by who knows the stream), KEY_TOO_LARGE,
 *               TOO_MANY_HEADERS, HEADER_NAME_TOO_LONG, HEADER_NAME_INVALID (not UTF-8, or NUL),
 *               HEADERS_TOO_LARGE, EVENT_TIME_INVALID (outside of 0001-01-01..9999-12-31, nanos),
 *               BATCH_TOO_MANY_EVENTS. */
HB_MUST_CHECK enum hb_code hb_scan_batch(struct hb_slice batch, const struct hb_limits *limits,
                                         struct hb_events *events, struct hb_err *err);

/* Scan the one frame at the start of `bytes` without checking limits (they were checked when it
 * came): HB_CORRUPT where it is none. For frames that were stored. */
HB_MUST_CHECK enum hb_code hb_scan_frame(struct hb_slice bytes, struct hb_event *out,
                                         struct hb_err *err);

#endif
