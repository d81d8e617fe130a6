/* Decides whether a scanned event keeps the limits, and says which one it does not keep. */
#include <inttypes.h>

#include "base/frame/scan_event.h"

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: google.protobuf.Timestamp's range. */
#define SECONDS_MIN INT64_C(-62135596800)
#define SECONDS_MAX INT64_C(253402300799)
#define NANOS_MAX INT32_C(999999999)

static enum hb_code check_time(struct hb_time time, size_t index, struct hb_err *err) {
  if (time.seconds < SECONDS_MIN || time.seconds > SECONDS_MAX) {
    return hb_err_set(err, HB_INVALID, "EVENT_TIME_INVALID",
                      "events[%zu].event_time.seconds is %" PRId64 ", must be from %" PRId64
                      " to %" PRId64,
                      index, time.seconds, SECONDS_MIN, SECONDS_MAX);
  }
  if (time.nanos < 0 || time.nanos > NANOS_MAX) {
    return hb_err_set(err, HB_INVALID, "EVENT_TIME_INVALID",
                      "events[%zu].event_time.nanos is %" PRId32 ", must be from 0 to %" PRId32,
                      index, time.nanos, NANOS_MAX);
  }
  return HB_OK;
}

static enum hb_code name_fault(const struct hb_headers_seen *headers,
                               const struct hb_limits *limits, size_t index, struct hb_err *err) {
  if (headers->fault == HB_NAME_TOO_LONG) {
    return hb_err_set(err, HB_INVALID, "HEADER_NAME_TOO_LONG",
                      "events[%zu].headers[%" PRIu32 "].name has %" PRIu64
                      " bytes, header_name_bytes_max is %" PRIu64,
                      index, headers->fault_index, headers->fault_value,
                      limits->header_name_bytes_max);
  }
  return hb_err_set(
      err, HB_INVALID, "HEADER_NAME_INVALID",
      "events[%zu].headers[%" PRIu32 "].name %s at byte %" PRIu64, index, headers->fault_index,
      headers->fault == HB_NAME_HAS_NUL ? "has a NUL" : "is not UTF-8", headers->fault_value);
}

static enum hb_code check_headers(const struct hb_headers_seen *headers,
                                  const struct hb_limits *limits, size_t index,
                                  struct hb_err *err) {
  if (headers->count > limits->headers_max) {
    return hb_err_set(err, HB_INVALID, "TOO_MANY_HEADERS",
                      "events[%zu].headers has %" PRIu32 " entries, headers_max is %" PRIu64, index,
                      headers->count, limits->headers_max);
  }
  if (headers->fault) return name_fault(headers, limits, index, err);
  if (headers->bytes > limits->headers_bytes_max) {
    return hb_err_set(err, HB_INVALID, "HEADERS_TOO_LARGE",
                      "events[%zu].headers has %" PRIu64
                      " bytes of names and values, headers_bytes_max is %" PRIu64,
                      index, headers->bytes, limits->headers_bytes_max);
  }
  return HB_OK;
}

enum hb_code hb_scan_check(const struct hb_event *event, const struct hb_headers_seen *headers,
                           const struct hb_limits *limits, size_t index, struct hb_err *err) {
  if (event->key_size > limits->key_bytes_max) {
    return hb_err_set(err, HB_INVALID, "KEY_TOO_LARGE",
                      "events[%zu].key has %" PRIu32 " bytes, key_bytes_max is %" PRIu64, index,
                      event->key_size, limits->key_bytes_max);
  }
  if (headers->count) {
    enum hb_code code = check_headers(headers, limits, index, err);
    if (code) return code;
  }
  return event->time.present ? check_time(event->time, index, err) : HB_OK;
}
