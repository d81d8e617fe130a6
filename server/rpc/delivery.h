/* One answer to a subscriber in the making: a SubscribeResponse with a Batch, ResultBatch or
 * KeyStatusBatch.
 *
 * Events are not encoded again: the answer is a head of a few bytes, the frames as they lie in
 * the shared blocks (by reference, the blocks live until the transport is done), and a tail with
 * the positions. Only scattered small events, behind a filter, are copied together. */
#ifndef HB_SERVER_RPC_DELIVERY_H
#define HB_SERVER_RPC_DELIVERY_H

#include <grpc/byte_buffer.h>
#include <grpc/slice_buffer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/slice.h"
#include "server/rpc/filter.h"

struct hb_delivery {
  grpc_slice_buffer slices;
  struct hb_buf copied; /* small runs that wait to become a slice */
  size_t frames_bytes;
  uint64_t events;
  int64_t first_position;
  int64_t last_position;
  int64_t next_position;
  bool scattered;          /* positions are not consecutive: all of them are in `positions` */
  struct hb_buf positions; /* varints */
};

/* `position`: where the subscriber stands. */
void hb_delivery_init(struct hb_delivery *delivery, int64_t position);
void hb_delivery_done(struct hb_delivery *delivery);

/* What of the block lies at or above next_position and passes `filter`; next_position becomes the
 * block's end. HB_CORRUPT: the block is damaged. */
HB_MUST_CHECK enum hb_code hb_delivery_add(struct hb_delivery *delivery, struct hb_bytes *block,
                                           const struct hb_filter *filter, struct hb_err *err);

/* What the frames are: the field of SubscribeResponse that they go into. */
enum hb_delivered { HB_DELIVERED_EVENTS = 1, HB_DELIVERED_RESULTS = 5, HB_DELIVERED_STATUSES = 6 };

/* The answer; needs events > 0. The delivery is empty afterwards but for its next_position. */
grpc_byte_buffer *hb_delivery_finish(struct hb_delivery *delivery, enum hb_delivered what);

#endif
