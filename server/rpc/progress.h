/* Progress: how far a stream is, as a subscriber is told. Pure. */
#ifndef HB_SERVER_RPC_PROGRESS_H
#define HB_SERVER_RPC_PROGRESS_H

#include <grpc/byte_buffer.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

struct hb_progress {
  const struct hb_stream_status *status;
  bool has_position; /* the subscription's start is known */
  int64_t position;
  uint64_t served_ms; /* now */
  const uint8_t *incarnation;
};

/* SubscribeResponse with a Progress; the caller's. */
grpc_byte_buffer *hb_progress_encode(const struct hb_progress *progress);

#endif
