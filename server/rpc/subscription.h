/* A subscription: the state of one Subscribe call. Internal to its files.
 *
 *   STARTING ──(start is known)──> DELIVERING <──(published)──> CAUGHT_UP
 *                                      │ ^
 *                        (below the tail) └─(blocks were read)── READING
 *
 * STARTING: !started. READING: reading. CAUGHT_UP: told_caught_up and armed. All on its pump. */
#ifndef HB_SERVER_RPC_SUBSCRIPTION_H
#define HB_SERVER_RPC_SUBSCRIPTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"
#include "server/engine/reads.h"
#include "server/engine/stream.h"
#include "server/rpc/call.h"
#include "server/rpc/pump.h"
#include "server/rpc/subscribe_request.h"

struct hb_subscription {
  struct hb_call call; /* first */
  struct hb_subscribe_request request;
  struct hb_stream *stream; /* or a processor's results, which are read alike */
  struct hb_stream *source; /* what the processor reads; NULL: there is none */
  bool counted;             /* in subscriptions_open */

  bool started; /* position is valid */
  int64_t position;
  bool has_due; /* event time with processor: first it has to come to `due` */
  int64_t due;

  bool progress_due;
  bool told_caught_up; /* since the position moved last */
  bool told_end;       /* the call ends OK when that has left */
  struct hb_timer timer;
  size_t in_flight; /* bytes of the answer on its way */

  struct hb_watch watch;
  bool watching;
  bool armed; /* the stream will tell */
  struct hb_post changed_post;
  _Atomic bool changed_posted;
  bool release_when_changed;

  bool reading;
  struct hb_read read;
  struct hb_post read_post;
  bool yielded;
  struct hb_post yield_post;
};

/* subscription.c: do the next thing, after anything has changed. */
void hb_subscription_go(struct hb_subscription *self);
/* Where it begins, once the stream has a first event; before that nothing happens. Where it had
 * none when the call came (not `just_accepted`), everything is later than that moment. */
void hb_subscription_try_start(struct hb_subscription *self, bool just_accepted);
void hb_subscription_start_at(struct hb_subscription *self, int64_t position);

/* subscription_wake.c */
void hb_subscription_watch(struct hb_subscription *self);
void hb_subscription_unwatch(struct hb_subscription *self);
/* True: look again. False: nothing is new, the stream will tell. */
bool hb_subscription_arm(struct hb_subscription *self);
/* Go on after others had their turn. */
void hb_subscription_yield(struct hb_subscription *self);

/* subscription_send.c */
void hb_subscription_send_progress(struct hb_subscription *self);
/* Nothing more will come. */
void hb_subscription_send_end(struct hb_subscription *self, int64_t end);
/* Make one answer of the blocks and send it; where nothing passes, only the position moves. The
 * references are given back. */
void hb_subscription_take_blocks(struct hb_subscription *self, struct hb_bytes **blocks,
                                 size_t count);
/* How much one answer may be. */
size_t hb_subscription_answer_bytes(struct hb_subscription *self);
/* The answer has left. */
void hb_subscription_answer_left(struct hb_subscription *self);
/* LOG: blocks from the position on; TIME: where the time begins, in the source where there is one;
 * CAUSE: where the results of what is there begin. */
void hb_subscription_read(struct hb_subscription *self, enum hb_read_kind kind);

#endif
