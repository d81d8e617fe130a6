/* The scanner against protobuf-c on canonical input: what generated code makes of the bytes is
 * written again by generated code, and the scanner must read the same numbers and bytes out of
 * that, or refuse it for a limit of the contract that the message does not keep. */
#include <string.h>

#include "base/assert.h"
#include "base/frame/scan.h"
#include "holdback/v1/event.pb-c.h"
#include "tests/fuzz/canonical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(struct hb_slice ours, ProtobufCBinaryData theirs) {
  return hb_slice_equal(ours, hb_slice_of(theirs.data, theirs.len));
}

static void compare_event(const struct hb_event *ours, const Holdback__V1__Event *theirs) {
  bool has_previous =
      theirs->previous_presence_case == HOLDBACK__V1__EVENT__PREVIOUS_PRESENCE_PREVIOUS;
  HB_ASSERT(ours->sequence == theirs->sequence);
  HB_ASSERT(is_same(hb_event_key(ours), theirs->key));
  HB_ASSERT(is_same(hb_event_payload(ours), theirs->payload));
  HB_ASSERT(ours->time.present == (theirs->event_time != NULL));
  if (theirs->event_time) {
    HB_ASSERT(ours->time.seconds == theirs->event_time->seconds);
    HB_ASSERT(ours->time.nanos == theirs->event_time->nanos);
  }
  HB_ASSERT(((ours->flags & HB_EVENT_HAS_PREVIOUS) != 0) == has_previous);
  HB_ASSERT(((ours->flags & HB_EVENT_INITIAL) != 0) == (theirs->initial != 0));
  HB_ASSERT(((ours->flags & HB_EVENT_LAST) != 0) == (theirs->last != 0));
  if (has_previous) HB_ASSERT(ours->previous == theirs->previous);
}

/* Only these may be said of a message that is well-formed and small. */
static void check_refusal(const struct hb_err *err) {
  static const char *const reasons[] = {"EVENT_TIME_INVALID", "HEADER_NAME_INVALID",
                                        "HEADER_NAME_TOO_LONG", "TOO_MANY_HEADERS",
                                        "HEADERS_TOO_LARGE"};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    if (strcmp(err->reason, reasons[i]) == 0) return;
  }
  HB_ASSERT(false);
}

static bool has_odd_time(const Holdback__V1__EventBatch *batch) {
  for (size_t i = 0; i < batch->n_events; i++) {
    const Google__Protobuf__Timestamp *time = batch->events[i]->event_time;
    if (!time) continue;
    if (time->nanos < 0 || time->nanos > 999999999) return true;
    if (time->seconds < -62135596800 || time->seconds > 253402300799) return true;
  }
  return false;
}

static size_t headers_of(const Holdback__V1__EventBatch *batch) {
  size_t count = 0;
  for (size_t i = 0; i < batch->n_events; i++) count += batch->events[i]->n_headers;
  return count;
}

static void compare(const Holdback__V1__EventBatch *batch, struct hb_slice canonical) {
  struct hb_limits limits = hb_limits_default();
  struct hb_events events = {0};
  struct hb_err err = {0};
  if (hb_scan_batch(canonical, &limits, &events, &err) != HB_OK) {
    check_refusal(&err);
    HB_ASSERT(has_odd_time(batch) || headers_of(batch));
  } else {
    HB_ASSERT(!has_odd_time(batch));
    HB_ASSERT(events.count == batch->n_events);
    for (size_t i = 0; i < events.count; i++) compare_event(&events.items[i], batch->events[i]);
  }
  hb_events_done(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Holdback__V1__EventBatch *batch = holdback__v1__event_batch__unpack(NULL, size, data);
  if (!batch) return 0;
  struct hb_buf canonical = {0};
  if (canonical_pack(&batch->base, &canonical)) compare(batch, hb_buf_view(&canonical));
  hb_buf_done(&canonical);
  holdback__v1__event_batch__free_unpacked(batch, NULL);
  return 0;
}
