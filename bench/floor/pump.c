/* Decides how a pump is woken: an empty batch on a call that goes nowhere makes its tag come out of
 * the queue (gRPC's C core has no other way). */
#include <grpc/slice.h>
#include <grpc/status.h>
#include <grpc/support/time.h>

#include "base/assert.h"
#include "bench/floor/floor.h"

void hb_floor_batch(grpc_call *call, const grpc_op *ops, size_t count, struct hb_floor_tag *tag) {
  grpc_call_error error = grpc_call_start_batch(call, ops, count, tag, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
}

void hb_floor_pump_ring(struct hb_floor_pump *pump) {
  if (!atomic_exchange(&pump->rung, true)) hb_floor_batch(pump->bell, NULL, 0, &pump->bell_tag);
}

static void bell_rang(struct hb_floor_tag *tag, bool ok) {
  (void)ok;
  struct hb_floor_pump *pump =
      (struct hb_floor_pump *)(void *)((char *)tag - offsetof(struct hb_floor_pump, bell_tag));
  atomic_store(&pump->rung, false); /* before looking: what comes from now on rings again */
  struct hb_node *node = hb_mailbox_take(pump->written, SIZE_MAX, 0);
  while (node) {
    struct hb_floor_job *job = (struct hb_floor_job *)node;
    node = node->next;
    hb_floor_job_answer(job);
  }
  hb_floor_go_on(pump);
}

static void *run(void *context) {
  struct hb_floor_pump *pump = context;
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next(pump->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (event.type != GRPC_OP_COMPLETE) continue;
    struct hb_floor_tag *tag = event.tag;
    tag->fire(tag, event.success != 0);
  }
  return NULL;
}

void hb_floor_pump_create(struct hb_floor *floor, struct hb_floor_pump *pump) {
  *pump = (struct hb_floor_pump){.floor = floor, .bell_tag.fire = bell_rang};
  pump->queue = grpc_completion_queue_create_for_next(NULL);
  pump->written = hb_mailbox_create(SIZE_MAX, NULL, NULL);
  pump->lame = grpc_lame_client_channel_create("bell", GRPC_STATUS_UNAVAILABLE, "");
  pump->bell = grpc_channel_create_call(pump->lame, NULL, GRPC_PROPAGATE_DEFAULTS, pump->queue,
                                        grpc_slice_from_static_string("/bell"), NULL,
                                        gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_server_register_completion_queue(floor->server, pump->queue, NULL);
}

void hb_floor_pump_start(struct hb_floor_pump *pump) {
  hb_floor_accept(pump);
  int failed = pthread_create(&pump->thread, NULL, run, pump);
  HB_ASSERT(!failed);
}
