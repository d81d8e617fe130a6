/* A pump: one thread, one completion queue, one mailbox, its timers.
 *
 * Everything that happens to a call happens on its pump's thread, so calls need no lock. Others
 * reach that thread by posting. */
#ifndef HB_SERVER_RPC_PUMP_H
#define HB_SERVER_RPC_PUMP_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mailbox.h"
#include "server/rpc/timers.h"

/* What gRPC gives back when an operation has ended; embedded in what the operation belongs to. */
struct hb_tag {
  void (*fire)(struct hb_tag *tag, bool ok);
};

/* A message to the pump; embedded likewise. At most once in the mailbox at a time. */
struct hb_post {
  struct hb_node node; /* first: posts are found again by their node */
  void (*fire)(struct hb_post *post);
};

struct hb_pump;

/* Starts the thread. Between grpc_init and grpc_shutdown. */
struct hb_pump *hb_pump_create(void);
/* Blocks until the thread has ended. Nothing may be started or posted any more. */
void hb_pump_destroy(struct hb_pump *pump);

grpc_completion_queue *hb_pump_queue(struct hb_pump *pump);
/* Any thread. */
void hb_pump_post(struct hb_pump *pump, struct hb_post *post);
/* The pump's thread. */
void hb_pump_set_timer(struct hb_pump *pump, struct hb_timer *timer, uint64_t at_ns);
void hb_pump_clear_timer(struct hb_pump *pump, struct hb_timer *timer);

/* Start operations whose end is told to `tag`; asserts that gRPC took them. */
void hb_pump_start_batch(grpc_call *call, const grpc_op *ops, size_t count, struct hb_tag *tag);

#endif
