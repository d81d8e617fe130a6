/* Decides how an event is written: canonical proto3, fields in order, defaults left out.
 *
 * Sizes are computed first, so that each byte is written once, at its place. */
#include "client/encode.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/frame/wire.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "client/error.h"

/* Tags (number << 3 | wire type); every number of the Event is below 16: one byte each. */
enum {
  TAG_FRAME = 0x0a,
  TAG_SEQUENCE = 0x08,
  TAG_KEY = 0x12,
  TAG_TIME = 0x1a,
  TAG_HEADER = 0x22,
  TAG_PAYLOAD = 0x2a,
  TAG_INITIAL = 0x38,
  TAG_LAST = 0x40,
  TAG_SECONDS = 0x08,
  TAG_NANOS = 0x10,
  TAG_NAME = 0x0a,
  TAG_VALUE = 0x12
};

static size_t bytes_size(size_t size) { return 1 + hb_wire_varint_size(size) + size; }
static size_t present_bytes_size(size_t size) { return size ? bytes_size(size) : 0; }
static size_t number_size(uint64_t value) { return value ? 1 + hb_wire_varint_size(value) : 0; }

static size_t time_size(const struct holdback_event *event) {
  return number_size((uint64_t)event->event_time_seconds) +
         number_size((uint64_t)event->event_time_nanos);
}

static size_t header_size(const struct holdback_header *header) {
  return present_bytes_size(header->name.size) + present_bytes_size(header->value.size);
}

size_t hbc_event_size(const struct holdback_event *event) {
  size_t size = number_size((uint64_t)event->sequence) + present_bytes_size(event->key.size) +
                present_bytes_size(event->payload.size) + number_size(event->initial) +
                number_size(event->last);
  if (event->has_event_time) size += bytes_size(time_size(event));
  for (size_t i = 0; i < event->headers_count; i++)
    size += bytes_size(header_size(&event->headers[i]));
  return size;
}

size_t hbc_frame_size(size_t event_size) { return bytes_size(event_size); }

static const uint64_t event_bytes_max = 3 * HB_MIB; /* the most that a stream may allow */
/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, as google.protobuf.Timestamp has it. */
static const int64_t seconds_min = INT64_C(-62135596800);
static const int64_t seconds_max = INT64_C(253402300799);

static int check_headers(const struct holdback_event *event, struct holdback_error *error) {
  const struct hb_limits limits = hb_limits_default();
  if (event->headers_count > limits.headers_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "TOO_MANY_HEADERS",
                         "headers: %zu headers, the limit is %" PRIu64, event->headers_count,
                         limits.headers_max);
  size_t total = 0;
  for (size_t i = 0; i < event->headers_count; i++) {
    const struct holdback_bytes name = event->headers[i].name;
    total += name.size + event->headers[i].value.size;
    if (name.size > limits.header_name_bytes_max)
      return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "HEADER_NAME_TOO_LONG",
                           "headers[%zu].name: %zu bytes, the limit is %" PRIu64, i, name.size,
                           limits.header_name_bytes_max);
    if ((name.size && memchr(name.data, 0, name.size)) ||
        !hb_utf8_valid(hb_slice_of(name.data, name.size)))
      return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "HEADER_NAME_INVALID",
                           "headers[%zu].name: not UTF-8 without NUL", i);
  }
  if (total > limits.headers_bytes_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "HEADERS_TOO_LARGE",
                         "headers: %zu bytes of names and values, the limit is %" PRIu64, total,
                         limits.headers_bytes_max);
  return HOLDBACK_OK;
}

static int check_time(const struct holdback_event *event, struct holdback_error *error) {
  if (event->event_time_seconds < seconds_min || event->event_time_seconds > seconds_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "EVENT_TIME_INVALID",
                         "event_time.seconds: %" PRId64 " is outside of the years 0001 to 9999",
                         event->event_time_seconds);
  if (event->event_time_nanos < 0 || event->event_time_nanos > 999999999)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "EVENT_TIME_INVALID",
                         "event_time.nanos: %" PRId32 " is outside of 0 to 999999999",
                         event->event_time_nanos);
  return HOLDBACK_OK;
}

int hbc_event_check(const struct holdback_event *event, size_t event_size,
                    struct holdback_error *error) {
  if (event->key.size > 64 * HB_KIB)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "KEY_TOO_LARGE",
                         "key: %zu bytes, the limit is %" PRIu64, event->key.size,
                         (uint64_t)(64 * HB_KIB));
  if (event_size > event_bytes_max)
    return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "EVENT_TOO_LARGE",
                         "event: %zu bytes encoded, the limit is %" PRIu64, event_size,
                         event_bytes_max);
  if (event->headers_count) {
    int status = check_headers(event, error);
    if (status) return status;
  }
  return event->has_event_time ? check_time(event, error) : HOLDBACK_OK;
}

int holdback_event_check(const struct holdback_event *event, struct holdback_error *error) {
  return hbc_event_check(event, hbc_event_size(event), error);
}

size_t holdback_event_size(const struct holdback_event *event) { return hbc_event_size(event); }

static uint8_t *put_number(uint8_t *at, uint8_t tag, uint64_t value) {
  if (value == 0) return at;
  *at++ = tag;
  return at + hb_wire_put_varint(at, value);
}

static uint8_t *put_size(uint8_t *at, uint8_t tag, size_t size) {
  *at++ = tag;
  return at + hb_wire_put_varint(at, size);
}

static uint8_t *put_bytes(uint8_t *at, uint8_t tag, struct holdback_bytes bytes) {
  if (bytes.size == 0) return at;
  at = put_size(at, tag, bytes.size);
  memcpy(at, bytes.data, bytes.size);
  return at + bytes.size;
}

void hbc_event_encode(struct hb_buf *buf, const struct holdback_event *event, size_t event_size) {
  /* hb_wire_put_varint may be given less than HB_VARINT_MAX bytes of room where the value is
   * known to need less; the sizes above are exact. */
  uint8_t *start = hb_buf_reserve(buf, hbc_frame_size(event_size));
  uint8_t *at = put_size(start, TAG_FRAME, event_size);
  at = put_number(at, TAG_SEQUENCE, (uint64_t)event->sequence);
  at = put_bytes(at, TAG_KEY, event->key);
  if (event->has_event_time) {
    at = put_size(at, TAG_TIME, time_size(event));
    at = put_number(at, TAG_SECONDS, (uint64_t)event->event_time_seconds);
    at = put_number(at, TAG_NANOS, (uint64_t)event->event_time_nanos);
  }
  for (size_t i = 0; i < event->headers_count; i++) {
    const struct holdback_header *header = &event->headers[i];
    at = put_size(at, TAG_HEADER, header_size(header));
    at = put_bytes(at, TAG_NAME, header->name);
    at = put_bytes(at, TAG_VALUE, header->value);
  }
  at = put_bytes(at, TAG_PAYLOAD, event->payload);
  at = put_number(at, TAG_INITIAL, event->initial);
  at = put_number(at, TAG_LAST, event->last);
  HB_ASSERT((size_t)(at - start) == hbc_frame_size(event_size));
  buf->size += (size_t)(at - start);
}
