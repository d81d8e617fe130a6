/* Decides when an event's headers must be looked for: only where the frame holds more than the
 * fields that the scanner found. Most events carry none, and pay one comparison for it. */
#include "client/decode.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "client/encode.h"

enum { EVENT_HEADERS = 4, HEADER_NAME = 1, HEADER_VALUE = 2 };

void hbc_headers_done(struct hbc_headers *headers) {
  free(headers->items);
  *headers = (struct hbc_headers){0};
}

static struct holdback_bytes bytes_of(struct hb_slice slice) {
  return (struct holdback_bytes){.data = slice.data, .size = slice.size};
}

static bool decode_header(struct hb_slice bytes, struct holdback_header *out) {
  struct hb_wire_reader reader = {bytes.data, hb_slice_end(bytes)};
  struct hb_wire_field field;
  *out = (struct holdback_header){0};
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.type != HB_WIRE_LEN) continue;
    if (field.number == HEADER_NAME) out->name = bytes_of(field.bytes);
    if (field.number == HEADER_VALUE) out->value = bytes_of(field.bytes);
  }
  return result == HB_WIRE_END;
}

static bool decode_headers(struct hb_slice event, struct hbc_headers *headers,
                           struct holdback_event *out) {
  struct hb_wire_reader reader = {event.data, hb_slice_end(event)};
  struct hb_wire_field field;
  size_t count = 0;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.number != EVENT_HEADERS || field.type != HB_WIRE_LEN) continue;
    hb_reserve((void **)&headers->items, &headers->cap, count + 1, sizeof *headers->items);
    if (!decode_header(field.bytes, &headers->items[count])) return false;
    count++;
  }
  if (result != HB_WIRE_END) return false;
  out->headers = count ? headers->items : NULL;
  out->headers_count = count;
  return true;
}

bool hbc_event_decode(struct hb_slice frame, struct hbc_headers *headers,
                      struct holdback_event *out) {
  struct hb_event event = {0};
  if (hb_scan_frame(frame, &event, NULL) != HB_OK || event.frame_size != frame.size) return false;
  *out = (struct holdback_event){
      .sequence = event.sequence,
      .key = bytes_of(hb_event_key(&event)),
      .payload = bytes_of(hb_event_payload(&event)),
      .has_event_time = event.time.present,
      .event_time_seconds = event.time.seconds,
      .event_time_nanos = event.time.nanos,
      .initial = event.flags & HB_EVENT_INITIAL,
      .last = event.flags & HB_EVENT_LAST,
  };
  if (hbc_frame_size(hbc_event_size(out)) == frame.size) return true;
  struct hb_wire_reader reader = {frame.data, hb_slice_end(frame)};
  struct hb_wire_field field;
  if (hb_wire_next(&reader, &field) != HB_WIRE_FIELD || field.type != HB_WIRE_LEN) return false;
  return decode_headers(field.bytes, headers, out);
}
