/* Decides which subscriptions are well-formed. */
#include "server/rpc/subscribe_request.h"

#include <inttypes.h>

#include "server/rpc/processor_pb.h"
#include "server/rpc/text.h"

enum { INTERVAL_DEFAULT_MS = 1000 };

/* Shorter intervals are taken as this: a client that asks for 1 ms must not keep a pump busy. */
enum { INTERVAL_MIN_MS = 10 };

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of google.protobuf.Timestamp. */
#define SECONDS_MIN INT64_C(-62135596800)
#define SECONDS_MAX INT64_C(253402300799)

static enum hb_code take_time(const Google__Protobuf__Timestamp *from, struct hb_time *out,
                              struct hb_err *err) {
  if (from->seconds < SECONDS_MIN || from->seconds > SECONDS_MAX) {
    return hb_err_set(err, HB_INVALID, "EVENT_TIME_INVALID",
                      "event_time.seconds is %" PRId64 ", must be from %" PRId64 " to %" PRId64,
                      from->seconds, SECONDS_MIN, SECONDS_MAX);
  }
  if (from->nanos < 0 || from->nanos > 999999999) {
    return hb_err_set(err, HB_INVALID, "EVENT_TIME_INVALID",
                      "event_time.nanos is %" PRId32 ", must be from 0 to 999999999", from->nanos);
  }
  *out = (struct hb_time){.seconds = from->seconds, .nanos = from->nanos, .present = true};
  return HB_OK;
}

static enum hb_code take_point(int at, enum hb_start *out, struct hb_err *err) {
  if (at == HOLDBACK__V1__START_POINT__START_POINT_EARLIEST) {
    *out = HB_START_EARLIEST;
  } else if (at == HOLDBACK__V1__START_POINT__START_POINT_NOW) {
    *out = HB_START_NOW;
  } else {
    return hb_err_set(err, HB_INVALID, "START_INVALID",
                      "at is %d, must be %d (EARLIEST) or %d (NOW)", at,
                      HOLDBACK__V1__START_POINT__START_POINT_EARLIEST,
                      HOLDBACK__V1__START_POINT__START_POINT_NOW);
  }
  return HB_OK;
}

static enum hb_code take_start(const Holdback__V1__SubscribeRequest *from,
                               struct hb_subscribe_request *out, struct hb_err *err) {
  switch ((int)from->start_case) {
    case HOLDBACK__V1__SUBSCRIBE_REQUEST__START_AT:
      return take_point((int)from->at, &out->start, err);
    case HOLDBACK__V1__SUBSCRIBE_REQUEST__START_POSITION:
      out->start = HB_START_POSITION;
      out->position = from->position;
      return HB_OK;
    case HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME:
      out->start = HB_START_TIME;
      return take_time(from->event_time, &out->time, err);
    default:
      return hb_err_set(err, HB_INVALID, "START_MISSING",
                        "start is not set: give at, position or event_time");
  }
}

enum hb_code hb_subscribe_request_from_pb(const Holdback__V1__SubscribeRequest *from,
                                          const struct hb_limits *limits,
                                          struct hb_subscribe_request *out, struct hb_err *err) {
  struct hb_subscribe_request request = {.stream = ""};
  enum hb_code code =
      hb_text_stream_name("stream", hb_slice_text(from->stream), request.stream, err);
  if (!code && from->processor[0]) {
    code = hb_processor_name_from_pb("processor", from->processor, request.processor, err);
  }
  request.key_statuses = from->key_statuses;
  if (!code && from->key_statuses && !from->processor[0]) {
    code =
        hb_err_set(err, HB_INVALID, "PROCESSOR_MISSING", "key_statuses is set, processor is not");
  }
  if (!code && from->key_statuses &&
      from->start_case == HOLDBACK__V1__SUBSCRIBE_REQUEST__START_EVENT_TIME) {
    code = hb_err_set(err, HB_INVALID, "START_INVALID",
                      "event_time is set with key_statuses: a status has no event time");
  }
  if (!code) code = take_start(from, &request, err);
  if (code) return code;
  uint64_t interval_ms = from->progress_interval_ms;
  if (interval_ms == 0) interval_ms = INTERVAL_DEFAULT_MS;
  request.progress_interval_ms = interval_ms < INTERVAL_MIN_MS ? INTERVAL_MIN_MS : interval_ms;
  code = hb_filter_init(from->filter, limits, &request.filter, err);
  if (!code) *out = request;
  return code;
}

void hb_subscribe_request_done(struct hb_subscribe_request *request) {
  hb_filter_done(&request->filter);
}
