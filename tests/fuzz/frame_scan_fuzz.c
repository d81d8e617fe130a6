/* The scanner on a batch from outside: what it lets through lies inside of the batch, is found
 * again frame by frame, and says the same of itself then. */
#include "base/assert.h"
#include "base/frame/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct hb_event *event, struct hb_slice batch) {
  HB_ASSERT(event->frame >= batch.data);
  HB_ASSERT(event->frame_size <= batch.size - (size_t)(event->frame - batch.data));
  HB_ASSERT((uint64_t)event->key_offset + event->key_size <= event->frame_size);
  HB_ASSERT((uint64_t)event->payload_offset + event->payload_size <= event->frame_size);
  struct hb_event again;
  enum hb_code code = hb_scan_frame(hb_event_frame(event), &again, NULL);
  HB_ASSERT(code == HB_OK);
  HB_ASSERT(again.sequence == event->sequence && again.flags == event->flags);
  HB_ASSERT(again.frame_size == event->frame_size);
  HB_ASSERT(hb_time_compare(again.time, event->time) == 0);
  HB_ASSERT(hb_event_same(&again, event));
  HB_ASSERT(hb_event_content_hash(&again) == hb_event_content_hash(event));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct hb_limits limits = hb_limits_default();
  struct hb_events events = {0};
  struct hb_event one;
  struct hb_slice batch = hb_slice_of(data, size);
  if (hb_scan_batch(batch, &limits, &events, NULL) == HB_OK) {
    for (size_t i = 0; i < events.count; i++) check_event(&events.items[i], batch);
  } else {
    HB_ASSERT(events.count == 0);
  }
  hb_events_done(&events);
  if (hb_scan_frame(batch, &one, NULL) == HB_OK) HB_ASSERT(one.frame_size <= size);
  return 0;
}
