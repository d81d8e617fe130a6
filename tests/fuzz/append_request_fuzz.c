/* An append request taken apart by hand, for a stream of either mode. Raw: what is accepted lies
 * inside of the request and keeps the limits. Canonical (made again by generated code): both read
 * the same. */
#include <string.h>

#include "base/assert.h"
#include "holdback/v1/ingest.pb-c.h"
#include "server/rpc/append_request.h"
#include "tests/fuzz/canonical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct hb_slice part, struct hb_slice whole) {
  if (!part.size) return;
  HB_ASSERT(part.data >= whole.data && part.size <= whole.size);
  HB_ASSERT(part.data + part.size <= whole.data + whole.size);
}

/* The answer; `events` is filled where it is HB_OK. */
static enum hb_code parse(struct hb_slice bytes, bool per_key, struct hb_append_request *request,
                          struct hb_events *events, struct hb_err *err) {
  struct hb_limits limits = hb_limits_default();
  enum hb_code code = hb_append_request_parse(bytes, &limits, request, err);
  if (code == HB_OK) code = hb_append_request_scan(request, &limits, per_key, events, err);
  if (code != HB_OK) HB_ASSERT(err->message[0] && err->reason[0]);
  return code;
}

static void check_raw(struct hb_slice bytes, bool per_key) {
  struct hb_append_request request = {0};
  struct hb_events events = {0};
  struct hb_err err = {0};
  if (parse(bytes, per_key, &request, &events, &err) == HB_OK) {
    check_inside(request.stream, bytes);
    check_inside(request.producer, bytes);
    check_inside(request.incarnation, bytes);
    HB_ASSERT(request.producer.size <= 256);
    HB_ASSERT(events.count > 0 && events.count <= 65536);
    for (size_t i = 0; i < events.count; i++) {
      check_inside(hb_event_frame(&events.items[i]), bytes);
      check_inside(hb_event_key(&events.items[i]), bytes);
      check_inside(hb_event_payload(&events.items[i]), bytes);
      HB_ASSERT(per_key || !events.items[i].flags);
    }
  }
  hb_events_done(&events);
}

static bool is_built(const Holdback__V1__AppendRequest *message, bool per_key) {
  if (message->covers || message->n_voids) return false;
  for (size_t i = 0; message->batch && i < message->batch->n_events; i++) {
    const Holdback__V1__Event *event = message->batch->events[i];
    if (event->previous_presence_case) return false;
    if (!per_key && (event->initial || event->last)) return false;
  }
  return true;
}

static void compare(const Holdback__V1__AppendRequest *message, struct hb_slice canonical,
                    bool per_key) {
  struct hb_append_request request = {0};
  struct hb_events events = {0};
  struct hb_err err = {0};
  enum hb_code code = parse(canonical, per_key, &request, &events, &err);
  if (code)
    HB_ASSERT(strcmp(err.reason, "MALFORMED_REQUEST") && strcmp(err.reason, "MALFORMED_EVENT"));
  if (code == HB_OK) {
    HB_ASSERT(is_built(message, per_key) && message->batch);
    HB_ASSERT(hb_slice_equal(request.stream, hb_slice_text(message->stream)));
    HB_ASSERT(hb_slice_equal(request.producer, hb_slice_text(message->producer)));
    HB_ASSERT(hb_slice_equal(request.incarnation,
                             hb_slice_of(message->incarnation.data, message->incarnation.len)));
    HB_ASSERT(events.count == message->batch->n_events);
    for (size_t i = 0; i < events.count; i++) {
      HB_ASSERT(events.items[i].sequence == message->batch->events[i]->sequence);
    }
  }
  if (code == HB_UNIMPLEMENTED) HB_ASSERT(!is_built(message, per_key));
  hb_events_done(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int per_key = 0; per_key < 2; per_key++) check_raw(hb_slice_of(data, size), per_key);
  Holdback__V1__AppendRequest *message = holdback__v1__append_request__unpack(NULL, size, data);
  if (!message) return 0;
  struct hb_buf canonical = {0};
  if (canonical_pack(&message->base, &canonical)) {
    for (int per_key = 0; per_key < 2; per_key++) {
      compare(message, hb_buf_view(&canonical), per_key);
    }
  }
  hb_buf_done(&canonical);
  holdback__v1__append_request__free_unpacked(message, NULL);
  return 0;
}
