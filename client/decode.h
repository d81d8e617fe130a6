/* One frame taken apart into a struct holdback_event whose bytes lie in the frame. */
#ifndef HB_CLIENT_DECODE_H
#define HB_CLIENT_DECODE_H

#include "base/slice.h"
#include "client/holdback.h"

/* Headers of one event; reused from event to event. Zeroed = empty. */
struct hbc_headers {
  struct holdback_header *items; /* owned */
  size_t cap;
};
void hbc_headers_done(struct hbc_headers *headers);

/* `frame` is exactly one frame. False: malformed. out->headers lives until the next call with the
 * same `headers`. */
bool hbc_event_decode(struct hb_slice frame, struct hbc_headers *headers,
                      struct holdback_event *out);

#endif
