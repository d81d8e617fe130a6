/* A call about keys that wait at an event that failed: work of a processor's thread, which tells
 * when it is done. What is asked, and how it is told, is its method's. */
#ifndef HB_SERVER_RPC_BLOCKED_CALL_H
#define HB_SERVER_RPC_BLOCKED_CALL_H

#include <protobuf-c/protobuf-c.h>

#include "server/engine/processors.h"
#include "server/rpc/lane.h"

struct hb_blocked_call {
  struct hb_call call; /* first */
  struct hb_retry retry;
  struct hb_post post;
  struct hb_buf key;
  struct hb_stream *stream; /* reference */
  /* On the pump, where it went well. */
  void (*answer)(struct hb_blocked_call *self);
};

/* HB_INVALID. */
HB_MUST_CHECK enum hb_code hb_blocked_call_set_key(struct hb_blocked_call *self,
                                                   const ProtobufCBinaryData *key,
                                                   struct hb_err *err);
/* stream, retry and answer are set. */
void hb_blocked_call_submit(struct hb_blocked_call *self);
void hb_blocked_call_done(struct hb_call *call);

#endif
