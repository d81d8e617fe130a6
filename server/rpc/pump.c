/* Decides what a pump does next: what gRPC tells, what was posted, which timer is due.
 *
 *  - grpc_completion_queue_next waits; the next timer is its deadline (C core has no alarms).
 *  - A post rings the bell: an empty batch on a call of a lame channel makes its tag come out of
 *    the queue at once. Only the post that finds the mailbox empty rings.
 *  - destroy shuts the queue down; the thread ends when the queue is drained. */
#include "server/rpc/pump.h"

#include <grpc/slice.h>
#include <grpc/status.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/handoff.h"
#include "server/rpc/container.h"

struct hb_pump {
  pthread_t thread;
  grpc_completion_queue *queue;
  struct hb_mailbox *mailbox;
  grpc_channel *lame;
  grpc_call *bell;
  struct hb_tag bell_tag;
  struct hb_timers timers; /* the pump's thread only */
};

static void ring(void *context) {
  struct hb_pump *pump = context;
  hb_pump_start_batch(pump->bell, NULL, 0, &pump->bell_tag);
}

static void bell_fired(struct hb_tag *tag, bool ok) {
  (void)ok;
  struct hb_pump *pump = HB_CONTAINER_OF(tag, struct hb_pump, bell_tag);
  struct hb_node *node = hb_mailbox_take(pump->mailbox, SIZE_MAX, 0);
  while (node) {
    struct hb_post *post = (struct hb_post *)node;
    node = node->next; /* the post may be gone, or posted again, after fire */
    post->fire(post);
  }
}

static gpr_timespec next_deadline(const struct hb_pump *pump) {
  uint64_t at_ns = hb_timers_next_ns(&pump->timers);
  if (at_ns == UINT64_MAX) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  uint64_t now_ns = hb_clock_mono_ns();
  uint64_t wait_ns = at_ns > now_ns ? at_ns - now_ns : 0;
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos((int64_t)wait_ns, GPR_TIMESPAN));
}

static void fire_timers(struct hb_pump *pump) {
  if (hb_timers_next_ns(&pump->timers) == UINT64_MAX) return;
  uint64_t now_ns = hb_clock_mono_ns();
  struct hb_timer *due;
  while ((due = hb_timers_take_due(&pump->timers, now_ns))) due->fire(due);
}

static void *run(void *context) {
  struct hb_pump *pump = context;
  for (;;) {
    grpc_event event = grpc_completion_queue_next(pump->queue, next_deadline(pump), NULL);
    if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
    if (event.type == GRPC_OP_COMPLETE) {
      struct hb_tag *tag = event.tag;
      hb_handoff_take(tag);
      tag->fire(tag, event.success != 0);
    }
    fire_timers(pump);
  }
}

struct hb_pump *hb_pump_create(void) {
  struct hb_pump *pump = hb_calloc(1, sizeof *pump);
  pump->queue = grpc_completion_queue_create_for_next(NULL);
  pump->mailbox = hb_mailbox_create(0, ring, pump);
  pump->lame = grpc_lame_client_channel_create("bell", GRPC_STATUS_UNAVAILABLE, "");
  grpc_slice path = grpc_slice_from_static_string("/bell");
  pump->bell = grpc_channel_create_call(pump->lame, NULL, 0, pump->queue, path, NULL,
                                        gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_slice_unref(path);
  pump->bell_tag.fire = bell_fired;
  int failed = pthread_create(&pump->thread, NULL, run, pump);
  HB_ASSERT(!failed);
  return pump;
}

void hb_pump_destroy(struct hb_pump *pump) {
  grpc_call_unref(pump->bell);
  grpc_channel_destroy(pump->lame);
  grpc_completion_queue_shutdown(pump->queue);
  pthread_join(pump->thread, NULL);
  grpc_completion_queue_destroy(pump->queue);
  hb_mailbox_destroy(pump->mailbox);
  hb_timers_done(&pump->timers);
  free(pump);
}

grpc_completion_queue *hb_pump_queue(struct hb_pump *pump) { return pump->queue; }

void hb_pump_post(struct hb_pump *pump, struct hb_post *post) {
  hb_mailbox_post(pump->mailbox, &post->node);
}

void hb_pump_set_timer(struct hb_pump *pump, struct hb_timer *timer, uint64_t at_ns) {
  hb_timers_set(&pump->timers, timer, at_ns);
}

void hb_pump_clear_timer(struct hb_pump *pump, struct hb_timer *timer) {
  hb_timers_clear(&pump->timers, timer);
}

void hb_pump_start_batch(grpc_call *call, const grpc_op *ops, size_t count, struct hb_tag *tag) {
  hb_handoff_give(tag);
  grpc_call_error error = grpc_call_start_batch(call, ops, count, tag, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
}
