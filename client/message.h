/* One message of a subscription, read in place: the events stay where gRPC received them. */
#ifndef HB_CLIENT_MESSAGE_H
#define HB_CLIENT_MESSAGE_H

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "base/slice.h"
#include "client/decode.h"

enum { HBC_INCARNATION_MAX = 64 };

/* Behind a pointer, since the message itself is const to who reads it. */
struct hbc_message_scratch {
  struct hbc_headers headers;
  bool malformed; /* an event could not be read */
};

struct holdback_message {
  struct holdback_message *next; /* its queue's */
  size_t size;                   /* bytes received */
  grpc_byte_buffer *received;    /* owned; NULL once decoded */
  grpc_slice bytes;              /* owned; empty until decoded */

  enum holdback_message_kind kind; /* valid once decoded, as all below */
  bool has_next_position;
  int64_t next_position;

  struct hb_slice batch; /* EVENTS: the bytes of the Batch; else empty */
  int64_t first_position;
  int64_t *positions; /* owned; NULL = consecutive */
  size_t positions_count;
  size_t positions_cap;
  struct hbc_message_scratch *scratch; /* owned; what holdback_message_event writes to */

  struct holdback_progress progress; /* PROGRESS */
  uint8_t incarnation[HBC_INCARNATION_MAX];
  size_t incarnation_size;
  struct holdback_void nothing; /* VOID */
};

struct holdback_message *hbc_message_create(grpc_byte_buffer *owned);
/* NULL is allowed. */
void hbc_message_destroy(struct holdback_message *message);
/* Once; later calls say true. False: malformed. */
bool hbc_message_decode(struct holdback_message *message);

#endif
