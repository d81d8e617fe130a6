/* Calls with one answer: started on the client's thread, or waited for on any other. */
#ifndef HB_CLIENT_UNARY_H
#define HB_CLIENT_UNARY_H

#include <protobuf-c/protobuf-c.h>

#include "client/client.h"

/* Caller-owned until `done` was called, which happens once, on the client's thread. */
struct hbc_unary {
  struct hbc_task task;
  struct hbc_tag tag;
  struct holdback_client *client;
  const char *method;        /* "/package.Service/Name", static */
  grpc_byte_buffer *request; /* owned until sent */
  bool patient;              /* no deadline */
  /* `answer` NULL: see error. The answer is gone when `done` returns. */
  void (*done)(struct hbc_unary *unary, grpc_byte_buffer *answer,
               const struct holdback_error *error);

  grpc_call *call;
  grpc_byte_buffer *answer;
  grpc_metadata_array initial;
  grpc_metadata_array trailing;
  grpc_status_code code;
  grpc_slice text;
};

/* client, method, request and done are set. Client's thread only. */
void hbc_unary_start(struct hbc_unary *unary);
void hbc_unary_cancel(struct hbc_unary *unary);

/* Send `request` and wait for the answer, which is unpacked as `type`: free it with
 * protobuf_c_message_free_unpacked. Any thread but the client's. */
int hbc_unary_call(struct holdback_client *client, const char *method,
                   const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                   ProtobufCMessage **out, struct holdback_error *error);
/* The same without a limit of time, for what takes as long as it takes. */
int hbc_unary_call_patiently(struct holdback_client *client, const char *method,
                             const ProtobufCMessage *request,
                             const ProtobufCMessageDescriptor *type, ProtobufCMessage **out,
                             struct holdback_error *error);
/* The same with the answer's bytes; the caller unrefs the slice. */
int hbc_unary_call_bytes(struct holdback_client *client, const char *method,
                         const ProtobufCMessage *request, grpc_slice *out,
                         struct holdback_error *error);

#endif
