/* The connection, its completion queue and the one thread that drives it.
 *
 * Everything that touches a gRPC call runs on the client's thread, so no call needs a lock. Other
 * threads hand work to it as tasks; what it has to do later stands in its timers. */
#ifndef HB_CLIENT_CLIENT_H
#define HB_CLIENT_CLIENT_H

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mailbox.h"
#include "client/holdback.h"

/* What comes back from the completion queue. Embedded in its owner. */
struct hbc_tag {
  void (*done)(struct hbc_tag *tag, bool ok);
};

/* Work for the client's thread. Embedded in its owner; posted at most once at a time. */
struct hbc_task {
  struct hb_node node; /* first */
  void (*run)(struct hbc_task *task);
};

/* Embedded in its owner; client's thread only. */
struct hbc_timer {
  uint64_t at_ms; /* monotonic; 0 = off */
  void (*fire)(struct hbc_timer *timer);
  struct hbc_timer *next;
};

/* An appender or a subscription, which ends with its client. */
struct hbc_member {
  struct hbc_member *next; /* protected by client->mutex */
  void (*destroy)(struct hbc_member *member);
};

struct holdback_client {
  char *server; /* owned; immutable, as all down to `thread` */
  uint32_t timeout_ms;
  size_t in_flight_batches;
  size_t refused_bytes_max;
  grpc_channel *channel;
  grpc_completion_queue *queue;
  grpc_channel *wake_channel; /* goes nowhere */
  grpc_call *wake_call;       /* an empty batch on it posts a tag: gRPC's C API has no other way */
  struct hb_mailbox *tasks;
  pthread_t thread;

  atomic_bool was_connected; /* something came from the server once */

  struct hbc_timer *timers; /* client's thread only */
  uint32_t dice;            /* client's thread only: state of a small random generator */

  pthread_mutex_t mutex;
  struct hbc_member *members; /* protected by mutex */
};

/* Any thread. */
void hbc_client_post(struct holdback_client *client, struct hbc_task *task);
void hbc_client_join(struct holdback_client *client, struct hbc_member *member);
void hbc_client_leave(struct holdback_client *client, struct hbc_member *member);

/* Client's thread only from here on. Setting a timer that is set moves it. */
void hbc_timer_set(struct holdback_client *client, struct hbc_timer *timer, uint64_t at_ms);
void hbc_timer_clear(struct holdback_client *client, struct hbc_timer *timer);
uint32_t hbc_client_dice(struct holdback_client *client);
/* Whether the connection stands at this moment. */
bool hbc_client_is_connected(struct holdback_client *client);

#endif
