/* One Event's bytes taken apart; what scan.c does for each frame. Private to base/frame. */
#ifndef HB_BASE_FRAME_SCAN_EVENT_H
#define HB_BASE_FRAME_SCAN_EVENT_H

#include "base/frame/scan.h"

enum hb_name_fault { HB_NAME_OK, HB_NAME_NOT_UTF8, HB_NAME_HAS_NUL, HB_NAME_TOO_LONG };

/* What an event's headers amount to, and the first name that is wrong. Zeroed = none yet. */
struct hb_headers_seen {
  uint32_t count;
  enum hb_name_fault fault;
  uint32_t fault_index; /* of the header */
  uint64_t fault_value; /* TOO_LONG: the name's bytes; else where in the name */
  uint64_t bytes;       /* all names and values */
};

/* Fill `out` (zeroed, but for frame and frame_size) from the Event [at, end) that lies in its
 * frame. NULL: done; else the place of the first malformed field. `headers` NULL: don't look into
 * them; else its limit is `name_bytes_max`. */
const uint8_t *hb_scan_event(const uint8_t *at, const uint8_t *end, struct hb_event *out,
                             struct hb_headers_seen *headers, uint64_t name_bytes_max);

/* One more Header. False: malformed. */
bool hb_scan_header(struct hb_slice header, uint64_t name_bytes_max, struct hb_headers_seen *seen);

/* Every limit that can be seen on a scanned event; `index` is for the message. */
HB_MUST_CHECK enum hb_code hb_scan_check(const struct hb_event *event,
                                         const struct hb_headers_seen *headers,
                                         const struct hb_limits *limits, size_t index,
                                         struct hb_err *err);

#endif
