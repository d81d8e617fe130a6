/* Decides where the frames of a batch lie, and what a frame is: EventBatch's field 1. */
#include "base/frame/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* For XXH3_state_t on the stack. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/frame/scan_event.h"
#include "base/frame/wire_inline.h"

enum { BATCH_EVENTS = HB_WIRE_TAG(1, HB_WIRE_LEN) };

/* Offsets and sizes in an hb_event have 32 bits; a frame is an Event, a tag and a length. */
#define EVENT_SIZE_MAX (UINT32_MAX - 2 * HB_WIRE_SHORT_VARINT_MAX)

struct hb_slice hb_event_key(const struct hb_event *event) {
  return hb_slice_of(event->frame + event->key_offset, event->key_size);
}

struct hb_slice hb_event_payload(const struct hb_event *event) {
  return hb_slice_of(event->frame + event->payload_offset, event->payload_size);
}

struct hb_slice hb_event_frame(const struct hb_event *event) {
  return hb_slice_of(event->frame, event->frame_size);
}

bool hb_event_same(const struct hb_event *a, const struct hb_event *b) {
  return a->sequence == b->sequence && hb_slice_equal(hb_event_key(a), hb_event_key(b)) &&
         hb_slice_equal(hb_event_payload(a), hb_event_payload(b));
}

uint64_t hb_event_content_hash(const struct hb_event *event) {
  /* The key's size keeps ("ab", "c") and ("a", "bc") apart. */
  uint8_t key_size[sizeof(uint32_t)];
  hb_put_u32_le(key_size, event->key_size);
  XXH3_state_t state;
  (void)XXH3_64bits_reset(&state);
  (void)XXH3_64bits_update(&state, key_size, sizeof key_size);
  (void)XXH3_64bits_update(&state, event->frame + event->key_offset, event->key_size);
  (void)XXH3_64bits_update(&state, event->frame + event->payload_offset, event->payload_size);
  return XXH3_64bits_digest(&state);
}

void hb_events_done(struct hb_events *events) {
  free(events->items);
  *events = (struct hb_events){0};
}

struct scan {
  const struct hb_limits *limits;
  struct hb_events *events;
  size_t before; /* events->count when the batch began: indices count from it */
  struct hb_slice batch;
};

static enum hb_code batch_malformed(const struct scan *scan, const uint8_t *place,
                                    struct hb_err *err) {
  return hb_err_set(err, HB_INVALID, "MALFORMED_EVENT",
                    "events[%zu] is malformed: byte %zu of a batch of %zu bytes",
                    scan->events->count - scan->before, (size_t)(place - scan->batch.data),
                    scan->batch.size);
}

/* One frame [frame, end) with its Event: append it or say what is wrong. */
static enum hb_code scan_one(struct scan *scan, const uint8_t *frame, struct hb_slice body,
                             struct hb_err *err) {
  const struct hb_limits *limits = scan->limits;
  size_t index = scan->events->count - scan->before;
  if (index >= limits->batch_events_max) {
    return hb_err_set(err, HB_INVALID, "BATCH_TOO_MANY_EVENTS",
                      "events[%zu] is one too many, batch_events_max is %" PRIu64, index,
                      limits->batch_events_max);
  }
  if (body.size > limits->event_bytes_max || body.size > EVENT_SIZE_MAX) {
    return hb_err_set(err, HB_INVALID, "EVENT_TOO_LARGE",
                      "events[%zu] has %zu bytes, event_bytes_max is %" PRIu64, index, body.size,
                      limits->event_bytes_max);
  }
  hb_reserve((void **)&scan->events->items, &scan->events->cap, scan->events->count + 1,
             sizeof *scan->events->items);
  struct hb_event *event = &scan->events->items[scan->events->count];
  const uint8_t *end = hb_slice_end(body);
  *event = (struct hb_event){.frame = frame, .frame_size = (uint32_t)(end - frame)};
  struct hb_headers_seen headers = {0};
  const uint8_t *bad =
      hb_scan_event(body.data, end, event, &headers, limits->header_name_bytes_max);
  if (bad) return batch_malformed(scan, bad, err);
  enum hb_code code = hb_scan_check(event, &headers, limits, index, err);
  if (code == HB_OK) scan->events->count++;
  return code;
}

static enum hb_code scan_frames(struct scan *scan, struct hb_err *err) {
  if (!scan->batch.size) return HB_OK; /* data may be NULL */
  const uint8_t *end = scan->batch.data + scan->batch.size;
  for (const uint8_t *at = scan->batch.data; at < end;) {
    const uint8_t *frame = at;
    uint32_t tag;
    struct hb_slice body = {0};
    at = hb_wire_read_tag(at, end, &tag);
    if (at) {
      at = tag == BATCH_EVENTS ? hb_wire_read_bytes(at, end, &body) : hb_wire_skip(at, end, tag);
    }
    if (!at) return batch_malformed(scan, frame, err);
    if (tag != BATCH_EVENTS) continue;
    enum hb_code code = scan_one(scan, frame, body, err);
    if (code) return code;
  }
  return HB_OK;
}

enum hb_code hb_scan_batch(struct hb_slice batch, const struct hb_limits *limits,
                           struct hb_events *events, struct hb_err *err) {
  struct scan scan = {.limits = limits, .events = events, .before = events->count, .batch = batch};
  enum hb_code code = scan_frames(&scan, err);
  if (code) events->count = scan.before;
  return code;
}

enum hb_code hb_scan_frame(struct hb_slice bytes, struct hb_event *out, struct hb_err *err) {
  const uint8_t *end = hb_slice_end(bytes);
  uint32_t tag = 0;
  struct hb_slice body = {0};
  const uint8_t *at = hb_wire_read_tag(bytes.data, end, &tag);
  if (at && tag == BATCH_EVENTS) at = hb_wire_read_bytes(at, end, &body);
  if (!at || tag != BATCH_EVENTS || body.size > EVENT_SIZE_MAX) {
    return hb_err_set(err, HB_CORRUPT, "FRAME_DAMAGED", "no frame at the start of %zu stored bytes",
                      bytes.size);
  }
  struct hb_event event = {.frame = bytes.data, .frame_size = (uint32_t)(at - bytes.data)};
  const uint8_t *bad = hb_scan_event(body.data, at, &event, NULL, 0);
  if (bad) {
    return hb_err_set(err, HB_CORRUPT, "FRAME_DAMAGED",
                      "stored frame of %zu bytes is malformed at byte %zu",
                      (size_t)event.frame_size, (size_t)(bad - bytes.data));
  }
  *out = event;
  return HB_OK;
}
