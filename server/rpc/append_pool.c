/* Decides how a received message becomes a batch of the engine's, and waits where it has no room.
 *
 * The last reference to received bytes must be dropped within a call of gRPC's: C core 1.51 wakes
 * what reclaims memory there, and grpc_slice_unref, unlike grpc_byte_buffer_destroy, sets nothing
 * up for it, which crashes while the quota is used up. So a byte buffer holds them.
 *
 * The received bytes stay where gRPC put them, by reference, until the answer: events are never
 * copied on this side. A batch that the engine has no room for waits alone; its call is not read
 * meanwhile, which is what slows the producer (I8). */
#include "server/rpc/append_pool.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/text.h"

/* Kept for reuse: enough for the batches in flight of some producers, without the largest. */
enum { FREE_MAX = 128, EVENTS_KEPT = 4096 };

void hb_append_target_done(struct hb_append_target *target) {
  hb_stream_unref(target->stream);
  hb_buf_done(&target->producer);
}

static void free_batch(struct hb_append_batch *batch) {
  hb_events_done(&batch->events);
  free(batch->decisions);
  free(batch);
}

void hb_append_pool_done(struct hb_append_pool *pool) {
  while (pool->free) {
    struct hb_append_batch *next = pool->free->next;
    free_batch(pool->free);
    pool->free = next;
  }
  hb_buf_done(&pool->scratch);
  *pool = (struct hb_append_pool){0};
}

static struct hb_append_batch *take(struct hb_append_pool *pool, const grpc_slice *message) {
  struct hb_append_batch *batch = pool->free;
  if (!batch) {
    batch = hb_calloc(1, sizeof *batch);
  } else {
    pool->free = batch->next;
    pool->free_count--;
  }
  batch->bytes = *message; /* a short message lies in the slice itself */
  batch->owner = grpc_raw_byte_buffer_create(&batch->bytes, 1);
  pool->bytes += GRPC_SLICE_LENGTH(batch->bytes);
  return batch;
}

static void give(struct hb_append_pool *pool, struct hb_append_batch *batch) {
  pool->bytes -= GRPC_SLICE_LENGTH(batch->bytes);
  grpc_byte_buffer_destroy(batch->owner);
  if (pool->free_count >= FREE_MAX || batch->events.cap > EVENTS_KEPT) {
    free_batch(batch);
    return;
  }
  batch->events.count = 0;
  batch->next = pool->free;
  pool->free = batch;
  pool->free_count++;
}

void hb_append_batch_give(struct hb_lane *lane, struct hb_append_batch *batch) {
  give(&lane->appends, batch);
  if (!lane->first_parked || lane->room_posted || hb_lane_is_full(lane)) return;
  lane->room_posted = true;
  hb_pump_post(lane->pump, &lane->room_post); /* not here: the giver is in the middle of things */
}

/* ---- from message to batch */

static enum hb_code find_stream(struct hb_call *call, struct hb_append_target *target,
                                struct hb_slice name, struct hb_err *err) {
  if (target->stream && name.size == 0) return HB_OK;
  if (target->stream) {
    if (hb_slice_equal(name, hb_slice_text(target->name))) return HB_OK;
    return hb_err_set(err, HB_INVALID, "STREAM_CHANGED",
                      "stream differs from '%s', which this call began with", target->name);
  }
  enum hb_code code = hb_text_stream_name("stream", name, target->name, err);
  if (code) return code;
  target->stream = hb_engine_find_stream(call->rpc->engine, target->name);
  if (target->stream) return HB_OK;
  return hb_err_set(err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' does not exist",
                    target->name);
}

static enum hb_code check_incarnation(const struct hb_append_target *target, struct hb_slice given,
                                      struct hb_err *err) {
  if (given.size == 0) return HB_OK;
  struct hb_slice own = hb_slice_of(hb_stream_incarnation(target->stream), HB_INCARNATION_SIZE);
  if (hb_slice_equal(given, own)) return HB_OK;
  return hb_err_set(err, HB_PRECONDITION, "INCARNATION_CHANGED",
                    "stream '%s' is not the incarnation asked for: it was made again",
                    target->name);
}

/* A call has one producer: the first request's, by name or by address. */
static enum hb_code check_producer(const struct hb_append_target *target, struct hb_slice given,
                                   struct hb_err *err) {
  if (!target->peer_known || given.size == 0) return HB_OK;
  if (hb_slice_equal(given, hb_buf_view(&target->producer))) return HB_OK;
  return hb_err_set(err, HB_INVALID, "PRODUCER_CHANGED",
                    "producer differs from '%.*s', which this call began with",
                    (int)target->producer.size, (const char *)target->producer.data);
}

static void find_peer(struct hb_call *call, struct hb_append_target *target,
                      struct hb_slice producer) {
  if (target->peer_known) return;
  hb_buf_append(&target->producer, producer.data, producer.size);
  struct hb_slice text = producer.size ? producer : hb_slice_text(call->peer.address);
  target->peer = hb_engine_intern_peer(call->rpc->engine, text);
  target->peer_known = true;
}

static void set_up(struct hb_call *call, const struct hb_append_target *target,
                   const struct hb_append_request *request, struct hb_append_batch *batch) {
  size_t count = batch->events.count;
  hb_reserve((void **)&batch->decisions, &batch->decisions_cap, count, sizeof *batch->decisions);
  memset(batch->decisions, 0, count * sizeof *batch->decisions);
  batch->append = (struct hb_append){.target = target->stream};
  struct hb_batch *inner = &batch->append.batch;
  inner->call = call->id;
  inner->events = batch->events.items;
  inner->decisions = batch->decisions;
  inner->count = (uint32_t)count;
  inner->bytes = request->batch_bytes;
  inner->receipt.peer = target->peer;
  batch->call = call;
  batch->is_answered = false;
  batch->next = NULL;
}

static enum hb_code check_and_scan(struct hb_call *call, struct hb_append_target *target,
                                   struct hb_slice bytes, struct hb_append_request *request,
                                   struct hb_events *events, struct hb_err *err) {
  struct hb_limits limits = *call->rpc->limits;
  enum hb_code code = hb_append_request_parse(bytes, &limits, request, err);
  if (!code) code = find_stream(call, target, request->stream, err);
  if (!code) code = check_incarnation(target, request->incarnation, err);
  if (!code) code = check_producer(target, request->producer, err);
  if (code) return code;
  limits.event_bytes_max = hb_stream_event_bytes_max(target->stream);
  bool per_key = hb_stream_mode(target->stream) == HB_MODE_PER_KEY;
  return hb_append_request_scan(request, &limits, per_key, events, err);
}

enum hb_code hb_append_batch_make(struct hb_call *call, struct hb_append_target *target,
                                  const grpc_slice *message, struct hb_append_batch **out,
                                  struct hb_err *err) {
  struct hb_append_pool *pool = &call->lane->appends;
  struct hb_append_batch *batch = take(pool, message);
  struct hb_slice bytes =
      hb_slice_of(GRPC_SLICE_START_PTR(batch->bytes), GRPC_SLICE_LENGTH(batch->bytes));
  struct hb_append_request request;
  enum hb_code code = check_and_scan(call, target, bytes, &request, &batch->events, err);
  if (code) {
    give(pool, batch);
    return code;
  }
  find_peer(call, target, request.producer);
  set_up(call, target, &request, batch);
  hb_count(&call->rpc->counters, HB_COUNTER_batches_total, 1);
  hb_count(&call->rpc->counters, HB_COUNTER_events_total, batch->events.count);
  *out = batch;
  return HB_OK;
}

/* ---- to the engine and back */

static void deliver(struct hb_post *post) {
  struct hb_append_batch *batch = HB_CONTAINER_OF(post, struct hb_append_batch, post);
  struct hb_call *call = batch->call;
  hb_uncount(&call->rpc->counters, HB_COUNTER_batches_open, 1);
  batch->is_answered = true;
  batch->answered(batch);
  hb_call_release(call);
}

/* The sequencer's thread. */
static void answered(struct hb_append *append) {
  struct hb_append_batch *batch = (struct hb_append_batch *)append;
  batch->post.fire = deliver;
  hb_pump_post(batch->call->lane->pump, &batch->post);
}

/* The sequencer's thread. */
static void room_came(struct hb_room *room) {
  struct hb_append_batch *batch = room->context;
  hb_pump_post(batch->call->lane->pump, &batch->post);
}

static void try_submit(struct hb_append_batch *batch);

static void retry(struct hb_post *post) {
  struct hb_append_batch *batch = HB_CONTAINER_OF(post, struct hb_append_batch, post);
  if (!batch->call->over) {
    try_submit(batch);
    return;
  }
  hb_err_set(&batch->append.batch.error, HB_CANCELLED, NULL, "the call ended before it was taken");
  batch->submitted(batch);
  deliver(post);
}

static void try_submit(struct hb_append_batch *batch) {
  struct hb_engine *engine = batch->call->rpc->engine;
  /* Set before: the answer may be posted before try_append returns. */
  batch->append.answered = answered;
  if (hb_engine_try_append(engine, &batch->append)) {
    batch->submitted(
        batch); /* an answer comes by this thread's mailbox: the batch is still there */
    return;
  }
  batch->post.fire = retry;
  batch->room.room = room_came;
  batch->room.context = batch;
  hb_engine_on_room(engine, &batch->room);
}

void hb_append_batch_submit(struct hb_append_batch *batch) {
  hb_call_hold(batch->call);
  hb_count(&batch->call->rpc->counters, HB_COUNTER_batches_open, 1);
  try_submit(batch);
}
