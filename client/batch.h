/* A batch of encoded events: what the producer fills, gRPC sends and the server answers.
 *
 * It is filled by one thread, immutable afterwards, and shared by reference: gRPC holds one while
 * the bytes are on their way, the outbox one until the answer came. */
#ifndef HB_CLIENT_BATCH_H
#define HB_CLIENT_BATCH_H

#include <grpc/slice.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/slice.h"
#include "client/client.h"

/* Consecutive indices that the caller gave. Usually one run per batch. */
struct hbc_index_run {
  uint64_t first;
  uint32_t count;
};

struct hbc_batch {
  struct hbc_task task; /* how it gets to the client's thread */
  void *owner;          /* borrowed: its appender */
  struct hbc_batch *next;
  _Atomic uint32_t refs;
  struct hb_buf frames;
  struct hbc_index_run *runs; /* owned */
  size_t runs_count;
  size_t runs_cap;
  uint32_t count; /* events */
  bool again;     /* holds events that were refused before */
};

/* One reference. Room for `size` bytes of frames. */
struct hbc_batch *hbc_batch_create(size_t size);
void hbc_batch_unref(struct hbc_batch *batch); /* any thread */
/* The frame of one more event was appended to batch->frames. */
void hbc_batch_added(struct hbc_batch *batch, uint64_t index);
/* The frames' bytes; takes a reference that goes with the slice. */
grpc_slice hbc_batch_slice(struct hbc_batch *batch);

/* Goes over the events of a batch from first to last. Zeroed but for batch = before the first. */
struct hbc_batch_cursor {
  const struct hbc_batch *batch;
  size_t offset;   /* of the next frame */
  size_t run;      /* of the next event's index */
  uint32_t in_run; /* events of that run before it */
};
/* How many of the next `max` events have consecutive indices from *out_index on, at least 1. */
uint32_t hbc_batch_next_run(struct hbc_batch_cursor *cursor, uint32_t max, uint64_t *out_index);
/* The next frame. There must be one: the batch's own bytes are well-formed. */
struct hb_slice hbc_batch_next_frame(struct hbc_batch_cursor *cursor);

#endif
