/* What the unary methods share. */
#ifndef HB_SERVER_RPC_UNARY_H
#define HB_SERVER_RPC_UNARY_H

#include <protobuf-c/protobuf-c.h>

#include "server/engine/engine.h"
#include "server/engine/reads.h"
#include "server/rpc/call.h"
#include "server/rpc/pump.h"

/* Requests that carry no events: names, a filter, a key of at most 64 KiB. */
#define HB_REQUEST_BYTES_MAX ((size_t)1 << 20)

/* For hb_method.opened, hb_method.drain. */
void hb_unary_opened(struct hb_call *call);
void hb_unary_drain(struct hb_call *call);

/* The request; NULL: the call was ended with the reason. Free it with
 * protobuf_c_message_free_unpacked. */
void *hb_unary_unpack(struct hb_call *call, const ProtobufCMessageDescriptor *type,
                      const grpc_slice *message);

/* The stream called `name`, a reference. NULL: the call was ended (bad name, not found). */
struct hb_stream *hb_unary_find_stream(struct hb_call *call, const char *name);

/* ---- a job of the engine's within a call: made, submitted, told to `finished` on the pump */
struct hb_job_call {
  struct hb_call call; /* first */
  struct hb_job job;
  struct hb_post post;
  void (*finished)(struct hb_job_call *self); /* job.error.code == HB_OK; the call is not over */
};
void hb_job_call_submit(struct hb_job_call *self);

/* ---- likewise a read */
struct hb_read_call {
  struct hb_call call; /* first */
  struct hb_read read;
  struct hb_post post;
  struct hb_buf token; /* read.token looks at it */
  struct hb_buf key;   /* read.key looks at it */
  void (*finished)(struct hb_read_call *self);
};
void hb_read_call_submit(struct hb_read_call *self);
/* For hb_method.done. */
void hb_read_call_done(struct hb_call *call);

/* The key, or prefix of keys, of a request, which is called `field`; within key_bytes_max. False:
 * the call was ended. */
bool hb_read_call_set_key(struct hb_read_call *self, const char *field,
                          const ProtobufCBinaryData *key);
/* page_size of a request (0 = 100) within page_size_max, and its page_token, into self->read.
 * False: the call was ended. */
bool hb_read_call_set_page(struct hb_read_call *self, uint32_t page_size, const char *page_token);
/* read.next_token as a request can bring it back; the caller frees it. */
char *hb_read_call_next_token(const struct hb_read_call *self);
/* 0 = 100; false: over page_size_max, the call was ended. */
bool hb_unary_page_size(struct hb_call *call, uint32_t asked, uint32_t *out);

#endif
