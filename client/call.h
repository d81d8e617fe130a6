/* One streaming call at a time, used again and again: what appenders and subscriptions stand on.
 *
 *   idle --start--> open --(every tag came back)--> idle, and `ended` is called once
 *
 * Client's thread only. Messages sent and received are one at a time in each direction: `sent` is
 * the permission to send the next, hbc_call_read asks for the next. */
#ifndef HB_CLIENT_CALL_H
#define HB_CLIENT_CALL_H

#include "client/client.h"

struct hbc_call;
struct hbc_call_handler {
  void (*sent)(struct hbc_call *call);
  void (*message)(struct hbc_call *call, grpc_byte_buffer *owned);
  /* error->status HOLDBACK_OK: the server ended the call in order. The call is idle again. */
  void (*ended)(struct hbc_call *call, const struct holdback_error *error);
};

/* Zeroed = idle. */
struct hbc_call {
  struct holdback_client *client;
  const struct hbc_call_handler *handler;
  grpc_call *call; /* owned; NULL while idle */
  struct hbc_tag opened;
  struct hbc_tag sent;
  struct hbc_tag closed;
  struct hbc_tag received;
  struct hbc_tag status;
  unsigned pending; /* tags on their way */
  bool sending;
  bool reading;
  bool at_end; /* of the messages */
  grpc_byte_buffer *incoming;
  grpc_metadata_array initial;
  grpc_metadata_array trailing;
  grpc_status_code code;
  grpc_slice text;
};

static inline bool hbc_call_is_open(const struct hbc_call *call) { return call->call != NULL; }

/* Waits for a connection for as long as the caller lets it. `method` as "/package.Service/Name". */
void hbc_call_start(struct hbc_call *call, struct holdback_client *client, const char *method,
                    const struct hbc_call_handler *handler);
/* Not while call->sending. */
void hbc_call_send(struct hbc_call *call, grpc_byte_buffer *owned);
/* No more messages will be sent. Not while call->sending; once. */
void hbc_call_send_end(struct hbc_call *call);
/* Nothing happens while a read is under way or after the last message. */
void hbc_call_read(struct hbc_call *call);
/* `ended` comes later. */
void hbc_call_cancel(struct hbc_call *call);

#endif
