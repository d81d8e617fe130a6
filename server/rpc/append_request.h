/* AppendRequest and AppendStreamRequest taken apart by hand: generated code would allocate once
 * per event. Both have the same field numbers. Pure. */
#ifndef HB_SERVER_RPC_APPEND_REQUEST_H
#define HB_SERVER_RPC_APPEND_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/frame/scan.h"
#include "base/limits.h"
#include "base/slice.h"

/* Views into the request's bytes. */
struct hb_append_request {
  struct hb_slice stream;
  struct hb_slice producer;
  struct hb_slice incarnation;
  struct hb_slice bytes; /* the whole request */
  size_t batch_bytes;    /* of all `batch` fields */
};

/* Everything but the events. HB_INVALID: malformed, BATCH_TOO_LARGE, TEXT_INVALID,
 * PRODUCER_TOO_LONG; HB_UNIMPLEMENTED: `covers`, `voids`. */
HB_MUST_CHECK enum hb_code hb_append_request_parse(struct hb_slice bytes,
                                                   const struct hb_limits *limits,
                                                   struct hb_append_request *out,
                                                   struct hb_err *err);
/* The events of all `batch` fields, merged, into `events` (emptied before). HB_INVALID: what the
 * scanner refuses (`limits` with the stream's own event_bytes_max), BATCH_EMPTY;
 * MODE_MISMATCH: an event with `initial` or `last`, and the stream is not PER_KEY.
 * HB_UNIMPLEMENTED: an event with `previous`. */
HB_MUST_CHECK enum hb_code hb_append_request_scan(const struct hb_append_request *request,
                                                  const struct hb_limits *limits, bool per_key,
                                                  struct hb_events *events, struct hb_err *err);

#endif
