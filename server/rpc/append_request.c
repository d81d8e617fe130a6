/* Decides which append requests are well-formed and within what is built. */
#include "server/rpc/append_request.h"

#include <inttypes.h>

#include "base/frame/wire.h"
#include "server/rpc/text.h"

enum { STREAM = 1, BATCH = 2, PRODUCER = 3, INCARNATION = 4, COVERS = 5, VOIDS = 6 };

static enum hb_code not_built(const char *field, struct hb_err *err) {
  return hb_err_set(err, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT", "%s is not implemented yet", field);
}

static enum hb_code take_field(const struct hb_wire_field *field, struct hb_append_request *request,
                               struct hb_err *err) {
  if (field->type != HB_WIRE_LEN) return HB_OK; /* of a wrong type: unknown, ignored */
  switch (field->number) {
    case STREAM:
      request->stream = field->bytes;
      break;
    case BATCH:
      request->batch_bytes += field->bytes.size;
      break;
    case PRODUCER:
      request->producer = field->bytes;
      break;
    case INCARNATION:
      request->incarnation = field->bytes;
      break;
    case COVERS:
      return not_built("covers", err);
    case VOIDS:
      return not_built("voids", err);
    default:
      break;
  }
  return HB_OK;
}

static enum hb_code check(const struct hb_append_request *request, const struct hb_limits *limits,
                          struct hb_err *err) {
  if (request->batch_bytes > limits->batch_bytes_max) {
    return hb_err_set(err, HB_INVALID, "BATCH_TOO_LARGE",
                      "batch has %zu bytes, batch_bytes_max is %" PRIu64, request->batch_bytes,
                      limits->batch_bytes_max);
  }
  if (request->producer.size > limits->producer_bytes_max) {
    return hb_err_set(err, HB_INVALID, "PRODUCER_TOO_LONG",
                      "producer has %zu bytes, producer_bytes_max is %" PRIu64,
                      request->producer.size, limits->producer_bytes_max);
  }
  size_t at;
  if (!hb_text_is_clean(request->producer, &at)) {
    return hb_err_set(err, HB_INVALID, "TEXT_INVALID",
                      "producer is not UTF-8 without NUL: byte 0x%02x at %zu",
                      request->producer.data[at], at);
  }
  return HB_OK;
}

enum hb_code hb_append_request_parse(struct hb_slice bytes, const struct hb_limits *limits,
                                     struct hb_append_request *out, struct hb_err *err) {
  struct hb_append_request request = {.bytes = bytes};
  struct hb_wire_reader reader = {.at = bytes.data, .end = hb_slice_end(bytes)};
  struct hb_wire_field field;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    enum hb_code code = take_field(&field, &request, err);
    if (code) return code;
  }
  if (result == HB_WIRE_MALFORMED) {
    return hb_err_set(err, HB_INVALID, "MALFORMED_REQUEST",
                      "the request is malformed at byte %zu of %zu",
                      (size_t)(reader.at - bytes.data), bytes.size);
  }
  enum hb_code code = check(&request, limits, err);
  if (!code) *out = request;
  return code;
}

static enum hb_code check_events(const struct hb_events *events, const struct hb_limits *limits,
                                 bool per_key, struct hb_err *err) {
  const uint32_t built = per_key ? HB_EVENT_INITIAL | HB_EVENT_LAST : 0;
  if (events->count == 0) {
    return hb_err_set(err, HB_INVALID, "BATCH_EMPTY", "batch has no events");
  }
  if (events->count > limits->batch_events_max) { /* only several `batch` fields come to this */
    return hb_err_set(err, HB_INVALID, "BATCH_TOO_MANY_EVENTS",
                      "batch has %zu events, batch_events_max is %" PRIu64, events->count,
                      limits->batch_events_max);
  }
  for (size_t i = 0; i < events->count; i++) {
    uint32_t flags = events->items[i].flags & ~built;
    if (!flags) continue;
    const char *name = flags & HB_EVENT_HAS_PREVIOUS ? "previous"
                       : flags & HB_EVENT_INITIAL    ? "initial"
                                                     : "last";
    if (!(flags & HB_EVENT_HAS_PREVIOUS)) {
      return hb_err_set(err, HB_INVALID, "MODE_MISMATCH",
                        "events[%zu].%s is for streams in mode PER_KEY, and this one is GLOBAL", i,
                        name);
    }
    return hb_err_set(err, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT",
                      "events[%zu].%s is not implemented yet", i, name);
  }
  return HB_OK;
}

enum hb_code hb_append_request_scan(const struct hb_append_request *request,
                                    const struct hb_limits *limits, bool per_key,
                                    struct hb_events *events, struct hb_err *err) {
  events->count = 0;
  struct hb_wire_reader reader = {.at = request->bytes.data, .end = hb_slice_end(request->bytes)};
  struct hb_wire_field field;
  while (hb_wire_next(&reader, &field) == HB_WIRE_FIELD) {
    if (field.number != BATCH || field.type != HB_WIRE_LEN) continue;
    enum hb_code code = hb_scan_batch(field.bytes, limits, events, err);
    if (code) return code;
  }
  return check_events(events, limits, per_key, err);
}
