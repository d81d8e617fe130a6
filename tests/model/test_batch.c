/* Decides how a test makes batches: encoded, scanned, as if they had come over the wire. */
#include "tests/model/test_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"
#include "base/frame/wire.h"

enum {
  SEQUENCE = 1,
  KEY = 2,
  TIME = 3,
  PAYLOAD = 5,
  INITIAL = 7,
  LAST = 8,
  SECONDS = 1,
  EVENTS = 1
};

static void append_event(struct hb_buf *batch, const struct hb_test_event *from) {
  uint8_t key[2] = {'k', (uint8_t)('0' + from->content % 7)};
  size_t size = from->size < 4 ? 4 : from->size;
  uint8_t *payload = hb_calloc(1, size);
  hb_put_u32_le(payload, from->content);
  struct hb_buf event = {0};
  struct hb_buf time = {0};
  hb_wire_append_varint(&event, SEQUENCE, (uint64_t)from->sequence);
  struct hb_slice own = hb_slice_of(key, sizeof key);
  hb_wire_append_bytes(&event, KEY, from->key ? hb_slice_text(from->key) : own);
  if (from->seconds) {
    hb_wire_append_varint(&time, SECONDS, (uint64_t)from->seconds);
    hb_wire_append_bytes(&event, TIME, hb_buf_view(&time));
  }
  hb_wire_append_bytes(&event, PAYLOAD, hb_slice_of(payload, size));
  if (from->flags & HB_EVENT_INITIAL) hb_wire_append_varint(&event, INITIAL, 1);
  if (from->flags & HB_EVENT_LAST) hb_wire_append_varint(&event, LAST, 1);
  hb_wire_append_bytes(batch, EVENTS, hb_buf_view(&event));
  hb_buf_done(&event);
  hb_buf_done(&time);
  free(payload);
}

struct hb_test_batch *hb_test_batch_create(uint64_t stream, uint64_t call,
                                           const struct hb_test_event *events, size_t count) {
  struct hb_test_batch *batch = hb_calloc(1, sizeof *batch);
  for (size_t i = 0; i < count; i++) append_event(&batch->bytes, &events[i]);
  struct hb_limits limits = hb_limits_default();
  struct hb_err err;
  enum hb_code code = hb_scan_batch(hb_buf_view(&batch->bytes), &limits, &batch->events, &err);
  HB_ASSERT(code == HB_OK && batch->events.count == count);
  batch->batch.stream = stream;
  batch->batch.call = call;
  batch->batch.events = batch->events.items;
  batch->batch.decisions = hb_calloc(count, sizeof *batch->batch.decisions);
  batch->batch.count = (uint32_t)count;
  batch->batch.bytes = batch->bytes.size;
  batch->batch.receipt = (struct hb_receipt){.received_ms = 1000 + call, .peer = (uint32_t)call};
  return batch;
}

void hb_test_batch_destroy(struct hb_test_batch *batch) {
  free(batch->batch.decisions);
  hb_events_done(&batch->events);
  hb_buf_done(&batch->bytes);
  free(batch);
}

uint32_t hb_test_content(const struct hb_event *event) {
  struct hb_slice payload = hb_event_payload(event);
  HB_ASSERT(payload.size >= 4);
  return hb_get_u32_le(payload.data);
}

uint32_t hb_test_frame_content(struct hb_slice frame) {
  struct hb_event event;
  enum hb_code code = hb_scan_frame(frame, &event, NULL);
  HB_ASSERT(code == HB_OK);
  return hb_test_content(&event);
}
