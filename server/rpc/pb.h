/* protobuf-c's messages out of and into gRPC's bytes. */
#ifndef HB_SERVER_RPC_PB_H
#define HB_SERVER_RPC_PB_H

#include <grpc/byte_buffer.h>
#include <protobuf-c/protobuf-c.h>

#include "base/err.h"
#include "base/slice.h"

/* HB_INVALID where the bytes are malformed, or a string is not UTF-8 or has a NUL (protobuf-c
 * checks neither, and cuts a string at its NUL). Free with protobuf_c_message_free_unpacked. */
HB_MUST_CHECK enum hb_code hb_pb_unpack(const ProtobufCMessageDescriptor *type,
                                        struct hb_slice bytes, ProtobufCMessage **out,
                                        struct hb_err *err);
/* The caller's: grpc_byte_buffer_destroy. */
grpc_byte_buffer *hb_pb_pack(const ProtobufCMessage *message);
grpc_byte_buffer *hb_pb_wrap(struct hb_slice bytes); /* copied */

#endif
