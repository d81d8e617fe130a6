/* Batches on their way through the engine, and the memory for them, used again and again. */
#ifndef HB_SERVER_RPC_APPEND_POOL_H
#define HB_SERVER_RPC_APPEND_POOL_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame/scan.h"
#include "base/slice.h"
#include "server/engine/engine.h"
#include "server/rpc/append_request.h"
#include "server/rpc/call.h"
#include "server/rpc/pump.h"

/* Where a call's batches go, and who sent them; lives in the call. */
struct hb_append_target {
  struct hb_stream *stream; /* reference; NULL until a request named one */
  char name[HB_STREAM_NAME_MAX + 1];
  uint32_t peer;
  bool peer_known;
  struct hb_buf producer; /* as the first request gave it; may be empty */
};

/* One batch. The pump's thread, except where the engine has it. */
struct hb_append_batch {
  struct hb_append append; /* first: found again when the engine answers */
  struct hb_append_batch *next;
  struct hb_call *call; /* held while the batch is out */
  /* With the call held: the engine took the batch (or it was dropped: the call is over); it is
   * answered (likewise). `answered` decides what becomes of the batch. */
  void (*submitted)(struct hb_append_batch *batch);
  void (*answered)(struct hb_append_batch *batch);
  bool is_answered;
  struct hb_post post;
  struct hb_room room;
  struct hb_events events;
  struct hb_decision *decisions; /* owned */
  size_t decisions_cap;
  grpc_slice bytes;        /* what the frames lie in; no reference */
  grpc_byte_buffer *owner; /* the reference to it; NULL: none */
};

struct hb_append_pool {
  struct hb_append_batch *free;
  size_t free_count;
  size_t bytes;          /* requests of the batches that are out */
  struct hb_buf scratch; /* for encoding answers */
};

void hb_append_pool_done(struct hb_append_pool *pool);
/* The lane's thread. */
void hb_append_batch_give(struct hb_lane *lane, struct hb_append_batch *batch);

void hb_append_target_done(struct hb_append_target *target);

/* Check `message` and make a batch of it. The first request of a call names the stream; later
 * ones repeat it or leave it empty, and the producer too. HB_INVALID, HB_NOT_FOUND, HB_PRECONDITION
 * (incarnation), HB_UNIMPLEMENTED. The batch is the caller's: submit it, or give it back. */
HB_MUST_CHECK enum hb_code hb_append_batch_make(struct hb_call *call,
                                                struct hb_append_target *target,
                                                const grpc_slice *message,
                                                struct hb_append_batch **out, struct hb_err *err);
/* Hand the batch to the engine, now or as soon as there is room. submitted and answered are set. */
void hb_append_batch_submit(struct hb_append_batch *batch);

#endif
