/* Decides when a call's operations are started and when the call is freed.
 *
 *  - opened: RECV_CLOSE_ON_SERVER in a batch of its own; it always comes back, last of all where
 *    the status was sent, early where the peer cancelled.
 *  - one message is read and one is sent at a time; the status waits for the message before it.
 *  - a batch that comes while the lane has its fill of unanswered ones is parked: it stays in
 * gRPC's hands, where the quota counts it, until some are answered (I8).
 *  - initial metadata goes with the first message or the status, never with a write buffer hint
 *    (C core 1.51 may then never flush: the tag would not come back).
 *  - freed when every operation and every hold has come back. */
#include "server/rpc/call.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/live.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/status.h"

#define CALL_OF(tag, member) HB_CONTAINER_OF(tag, struct hb_call, member)

static void start(struct hb_call *call, const grpc_op *ops, size_t count, struct hb_tag *tag) {
  hb_call_hold(call);
  hb_pump_start_batch(call->grpc, ops, count, tag);
}

/* ---- the end */

static void free_call(struct hb_call *call) {
  struct hb_rpc *rpc = call->rpc;
  if (call->previous) {
    call->previous->next = call->next;
  } else {
    call->lane->calls = call->next;
  }
  if (call->next) call->next->previous = call->previous;
  if (call->method->done) call->method->done(call);
  grpc_slice_unref(call->end_details);
  if (call->answer) grpc_byte_buffer_destroy(call->answer);
  grpc_call_unref(call->grpc);
  free(call);
  hb_live_gone(HB_LIVE_calls);
  hb_uncount(&rpc->counters, HB_COUNTER_calls_open, 1);
  hb_rpc_closed(rpc);
}

void hb_call_hold(struct hb_call *call) { call->holds++; }

void hb_call_release(struct hb_call *call) {
  HB_ASSERT(call->holds > 0);
  if (--call->holds == 0) free_call(call);
}

/* ---- parking */

static void park(struct hb_call *call) {
  struct hb_lane *lane = call->lane;
  call->parked = true;
  hb_count(&call->rpc->counters, HB_COUNTER_batches_parked_open, 1);
  call->next_parked = NULL;
  call->previous_parked = lane->last_parked;
  if (lane->last_parked) {
    lane->last_parked->next_parked = call;
  } else {
    lane->first_parked = call;
  }
  lane->last_parked = call;
}

static void unpark(struct hb_call *call) {
  struct hb_lane *lane = call->lane;
  struct hb_call *next = call->next_parked;
  struct hb_call *previous = call->previous_parked;
  *(previous ? &previous->next_parked : &lane->first_parked) = next;
  *(next ? &next->previous_parked : &lane->last_parked) = previous;
  call->parked = false;
  hb_uncount(&call->rpc->counters, HB_COUNTER_batches_parked_open, 1);
}

static bool must_wait(const struct hb_call *call) {
  const struct hb_lane *lane = call->lane;
  return call->method->budgeted && (lane->first_parked || hb_lane_is_full(lane));
}

static void drop_parked(struct hb_call *call) {
  unpark(call);
  call->reading = false;
  grpc_byte_buffer_destroy(call->incoming);
  call->incoming = NULL;
  hb_call_release(call);
}

static void become_over(struct hb_call *call) {
  call->over = true;
  if (call->parked) drop_parked(call); /* others hold the call: its status is still to come */
  if (call->method->stopped) call->method->stopped(call);
}

static void status_sent(struct hb_tag *tag, bool ok) {
  (void)ok; /* the peer may be gone; RECV_CLOSE_ON_SERVER comes in any case */
  hb_call_release(CALL_OF(tag, status_tag));
}

static void start_status(struct hb_call *call) {
  grpc_op ops[3] = {0};
  size_t count = 0;
  if (!call->metadata_sent) ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
  call->metadata_sent = true;
  if (call->answer) {
    ops[count].op = GRPC_OP_SEND_MESSAGE;
    ops[count++].data.send_message.send_message = call->answer;
  }
  grpc_metadata details = {0};
  grpc_slice message = grpc_empty_slice();
  ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  ops[count].data.send_status_from_server.status = GRPC_STATUS_OK;
  if (call->end.code) {
    call->end_details = hb_status_details(&call->end);
    details.key = grpc_slice_from_static_string("grpc-status-details-bin");
    details.value = call->end_details;
    message = grpc_slice_from_copied_string(call->end.message);
    ops[count].data.send_status_from_server.status = hb_status_code(&call->end);
    ops[count].data.send_status_from_server.status_details = &message;
    ops[count].data.send_status_from_server.trailing_metadata = &details;
    ops[count].data.send_status_from_server.trailing_metadata_count = 1;
    hb_count(&call->rpc->counters, HB_COUNTER_calls_failed_total, 1);
  }
  start(call, ops, count + 1, &call->status_tag);
  grpc_slice_unref(message);
}

void hb_call_end(struct hb_call *call, const struct hb_err *err) {
  if (call->over) return;
  if (err) call->end = *err;
  become_over(call);
  if (!call->sending) start_status(call);
}

void hb_call_answer(struct hb_call *call, grpc_byte_buffer *answer) {
  if (call->over) {
    grpc_byte_buffer_destroy(answer);
    return;
  }
  call->answer = answer;
  hb_call_end(call, NULL);
}

void hb_call_cut(struct hb_call *call) {
  if (!call->sending || call->closed) return;
  (void)grpc_call_cancel_with_status(call->grpc, GRPC_STATUS_UNAVAILABLE, "server stops", NULL);
}

static void closed(struct hb_tag *tag, bool ok) {
  (void)ok;
  struct hb_call *call = CALL_OF(tag, close_tag);
  call->closed = true;
  if (!call->over) become_over(call);
  hb_call_release(call);
}

/* ---- messages in */

static void hand_over(struct hb_call *call, grpc_byte_buffer *buffer) {
  size_t size = grpc_byte_buffer_length(buffer);
  size_t max = call->method->request_bytes_max;
  if (max && size > max) {
    struct hb_err err;
    hb_err_set(&err, HB_INVALID, "REQUEST_TOO_LARGE", "the request has %zu bytes, at most %zu",
               size, max);
    hb_call_end(call, &err);
    return;
  }
  grpc_byte_buffer_reader reader;
  if (!grpc_byte_buffer_reader_init(&reader, buffer)) return;
  grpc_slice *first = NULL;
  if (grpc_byte_buffer_reader_peek(&reader, &first) && GRPC_SLICE_LENGTH(*first) == size) {
    call->method->received(call, first);
  } else { /* none (an empty message), or several */
    grpc_byte_buffer_reader_destroy(&reader);
    if (!grpc_byte_buffer_reader_init(&reader, buffer)) return;
    grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
    call->method->received(call, &all);
    grpc_slice_unref(all);
  }
  grpc_byte_buffer_reader_destroy(&reader);
}

/* The message has come, or there is none. */
static void finish_read(struct hb_call *call, bool ok) {
  grpc_byte_buffer *buffer = call->incoming;
  call->incoming = NULL;
  call->reading = false;
  if (!call->over && buffer && ok) {
    call->heard = true;
    hand_over(call, buffer);
  } else if (!call->over) {
    call->method->received(call, NULL);
  }
  if (buffer) grpc_byte_buffer_destroy(buffer);
  hb_call_release(call);
}

static void read_ended(struct hb_tag *tag, bool ok) {
  struct hb_call *call = CALL_OF(tag, read_tag);
  if (ok && call->incoming && !call->over && must_wait(call)) {
    park(call); /* keeps the operation's hold */
  } else {
    finish_read(call, ok);
  }
}

void hb_call_unpark(struct hb_lane *lane) {
  while (lane->first_parked && !hb_lane_is_full(lane)) {
    struct hb_call *call = lane->first_parked;
    unpark(call);
    finish_read(call, true);
  }
}

void hb_call_read(struct hb_call *call) {
  HB_ASSERT(!call->reading);
  if (call->over) return;
  call->reading = true;
  call->read_since_ms = hb_clock_mono_ms();
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &call->incoming;
  start(call, &op, 1, &call->read_tag);
}

/* ---- messages out */

static void send_ended(struct hb_tag *tag, bool ok) {
  (void)ok; /* where it failed, the call is closed soon */
  struct hb_call *call = CALL_OF(tag, send_tag);
  call->sending = false;
  grpc_byte_buffer_destroy(call->outgoing);
  call->outgoing = NULL;
  if (!call->over) {
    if (call->method->sent) call->method->sent(call);
  } else if (!call->closed) {
    start_status(call);
  }
  hb_call_release(call);
}

size_t hb_call_send(struct hb_call *call, grpc_byte_buffer *message, bool more_follows) {
  HB_ASSERT(!call->sending);
  HB_ASSERT(!call->over);
  size_t size = grpc_byte_buffer_length(message);
  grpc_op ops[2] = {0};
  size_t count = 0;
  uint32_t flags = more_follows ? GRPC_WRITE_BUFFER_HINT : 0;
  if (!call->metadata_sent) {
    ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
    flags = 0;
  }
  call->metadata_sent = true;
  call->sending = true;
  call->outgoing = message;
  ops[count].op = GRPC_OP_SEND_MESSAGE;
  ops[count].flags = flags;
  ops[count].data.send_message.send_message = message;
  start(call, ops, count + 1, &call->send_tag);
  return size;
}

/* ---- the beginning */

void hb_call_open(struct hb_lane *lane, grpc_call *grpc, const struct hb_method *method) {
  struct hb_call *call = hb_calloc(1, method->size);
  hb_live_born(HB_LIVE_calls);
  call->method = method;
  call->lane = lane;
  call->rpc = lane->rpc;
  call->id = atomic_fetch_add(&lane->rpc->next_call, 1) + 1;
  char *uri = grpc_call_get_peer(grpc);
  call->peer = hb_peer_of(uri);
  gpr_free(uri);
  call->grpc = grpc;
  call->end_details = grpc_empty_slice();
  call->close_tag.fire = closed;
  call->read_tag.fire = read_ended;
  call->send_tag.fire = send_ended;
  call->status_tag.fire = status_sent;
  call->next = lane->calls;
  if (call->next) call->next->previous = call;
  lane->calls = call;
  atomic_fetch_add(&lane->rpc->open, 1);
  grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
  op.data.recv_close_on_server.cancelled = &call->cancelled;
  start(call, &op, 1, &call->close_tag);
  method->opened(call);
}
