/* One event into its frame (0x0A, length, holdback.v1.Event), straight into a batch's buffer. */
#ifndef HB_CLIENT_ENCODE_H
#define HB_CLIENT_ENCODE_H

#include "base/slice.h"
#include "client/holdback.h"

/* Bytes of the encoded Event, without the frame's tag and length. */
size_t hbc_event_size(const struct holdback_event *event);
/* Bytes of the frame of an Event of `event_size` bytes. */
size_t hbc_frame_size(size_t event_size);
/* What the contract limits for every stream: sizes of key, headers and event, header names, time.
 * HOLDBACK_INVALID_ARGUMENT with the server's reason. The sequence is the server's to judge. */
int hbc_event_check(const struct holdback_event *event, size_t event_size,
                    struct holdback_error *error);
/* Append the frame to `buf`. `event_size` as hbc_event_size says. */
void hbc_event_encode(struct hb_buf *buf, const struct holdback_event *event, size_t event_size);

#endif
