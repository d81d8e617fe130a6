/* Decides what an Event's bytes say: proto3 semantics over holdback.v1.Event, in one pass.
 *
 * The switch is over whole tags (number and wire type): a known number with another wire type
 * falls to the default and is skipped like an unknown field. */
#include "base/frame/scan_event.h"
#include "base/frame/wire_inline.h"

enum { TIME_SECONDS = HB_WIRE_TAG(1, HB_WIRE_VARINT), TIME_NANOS = HB_WIRE_TAG(2, HB_WIRE_VARINT) };

enum {
  EVENT_SEQUENCE = HB_WIRE_TAG(1, HB_WIRE_VARINT),
  EVENT_KEY = HB_WIRE_TAG(2, HB_WIRE_LEN),
  EVENT_TIME = HB_WIRE_TAG(3, HB_WIRE_LEN),
  EVENT_HEADERS = HB_WIRE_TAG(4, HB_WIRE_LEN),
  EVENT_PAYLOAD = HB_WIRE_TAG(5, HB_WIRE_LEN),
  EVENT_PREVIOUS = HB_WIRE_TAG(6, HB_WIRE_VARINT),
  EVENT_INITIAL = HB_WIRE_TAG(7, HB_WIRE_VARINT),
  EVENT_LAST = HB_WIRE_TAG(8, HB_WIRE_VARINT)
};

/* A google.protobuf.Timestamp into `time`, which may hold an earlier one: they merge. */
static bool scan_time(struct hb_slice bytes, struct hb_time *time) {
  const uint8_t *at = bytes.data;
  const uint8_t *end = at + bytes.size;
  while (at < end) {
    uint32_t tag;
    uint64_t value;
    at = hb_wire_read_tag(at, end, &tag);
    if (!at) return false;
    switch (tag) {
      case TIME_SECONDS:
        at = hb_wire_read_varint(at, end, &value);
        if (at) time->seconds = (int64_t)value;
        break;
      case TIME_NANOS:
        at = hb_wire_read_varint(at, end, &value);
        if (at) time->nanos = (int32_t)(uint32_t)value; /* an int32 keeps the low 32 bits */
        break;
      default:
        at = hb_wire_skip(at, end, tag);
    }
    if (!at) return false;
  }
  time->present = true;
  return true;
}

static void set_flag(struct hb_event *event, enum hb_event_flag flag, bool on) {
  event->flags = on ? event->flags | flag : event->flags & ~(uint32_t)flag;
}

const uint8_t *hb_scan_event(const uint8_t *at, const uint8_t *end, struct hb_event *out,
                             struct hb_headers_seen *headers, uint64_t name_bytes_max) {
  while (at < end) {
    const uint8_t *start = at;
    uint32_t tag;
    uint64_t value;
    struct hb_slice bytes;
    at = hb_wire_read_tag(at, end, &tag);
    if (!at) return start;
    switch (tag) {
      case EVENT_SEQUENCE:
        at = hb_wire_read_varint(at, end, &value);
        if (at) out->sequence = (int64_t)value;
        break;
      case EVENT_KEY:
        at = hb_wire_read_bytes(at, end, &bytes);
        if (!at) return start;
        out->key_offset = (uint32_t)(bytes.data - out->frame);
        out->key_size = (uint32_t)bytes.size;
        break;
      case EVENT_PAYLOAD:
        at = hb_wire_read_bytes(at, end, &bytes);
        if (!at) return start;
        out->payload_offset = (uint32_t)(bytes.data - out->frame);
        out->payload_size = (uint32_t)bytes.size;
        break;
      case EVENT_TIME:
        at = hb_wire_read_bytes(at, end, &bytes);
        if (at && !scan_time(bytes, &out->time)) return start;
        break;
      case EVENT_HEADERS:
        at = hb_wire_read_bytes(at, end, &bytes);
        if (at && headers && !hb_scan_header(bytes, name_bytes_max, headers)) return start;
        break;
      case EVENT_PREVIOUS:
        at = hb_wire_read_varint(at, end, &value);
        if (at) out->previous = (int64_t)value;
        set_flag(out, HB_EVENT_HAS_PREVIOUS, true);
        break;
      case EVENT_INITIAL:
        at = hb_wire_read_varint(at, end, &value);
        if (at) set_flag(out, HB_EVENT_INITIAL, value != 0);
        break;
      case EVENT_LAST:
        at = hb_wire_read_varint(at, end, &value);
        if (at) set_flag(out, HB_EVENT_LAST, value != 0);
        break;
      default:
        at = hb_wire_skip(at, end, tag);
    }
    if (!at) return start;
  }
  return NULL;
}
