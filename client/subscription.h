/* A subscription from the inside.
 *
 *   subscription.c       the reader's side: waits for messages, takes them
 *   subscription_call.c  the call: asks, receives ahead up to a bound, resumes
 *   message.c            one message
 *
 * Messages go from the client's thread to the reader's by a queue under a mutex. */
#ifndef HB_CLIENT_SUBSCRIPTION_H
#define HB_CLIENT_SUBSCRIPTION_H

#include "client/backoff.h"
#include "client/call.h"
#include "client/message.h"

/* What is received ahead of the reader: beyond the first number no more is asked for, below the
 * second it is again. With what gRPC and the server have in flight this covers a reader's pauses.
 */
#define HBC_PREFETCH_MAX ((size_t)4 << 20)
#define HBC_PREFETCH_LOW ((size_t)2 << 20)

struct holdback_subscription {
  struct hbc_member member; /* first */
  struct holdback_client *client;
  /* immutable */
  struct hb_buf request; /* what is asked for at each connection: stream, filter, interval */
  struct hb_buf start;   /* where the first connection starts */
  uint32_t reconnect_timeout_ms;

  /* the reader's thread only */
  struct holdback_message *current; /* owned */

  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* protected by mutex */
  struct holdback_message *first; /* owned, and those behind it */
  struct holdback_message *last;
  size_t queued_bytes;
  bool reading; /* the reader is decoding a message that it took */
  bool paused;  /* no more is asked for */
  bool has_resume;
  int64_t resume; /* next_position of what the reader took last */
  uint8_t incarnation[HBC_INCARNATION_MAX];
  size_t incarnation_size;
  bool ended;                   /* END was taken by the reader */
  struct holdback_error failed; /* status 0 = works; after the queue's messages */
  bool closed;
  bool go_on_posted; /* a task is posted once at a time */
  struct hbc_task go_on;

  /* client's thread only */
  struct hbc_call call;
  struct hbc_backoff backoff;
  struct hbc_timer again_at;
  struct hbc_timer give_up_at;
  struct holdback_error last_failure;
  struct hbc_task open;
  bool closing;
};

/* What one more message, in order, says of where to resume. The mutex is held. */
void hbc_subscription_note(struct holdback_subscription *subscription,
                           const struct holdback_message *message);

void hbc_subscription_call_init(struct holdback_subscription *subscription);
/* All on the client's thread. */
void hbc_subscription_close(struct holdback_subscription *subscription);

#endif
