/* gRPC's byte buffers: messages of the contract in and out of them. */
#ifndef HB_CLIENT_BYTEBUF_H
#define HB_CLIENT_BYTEBUF_H

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

/* The caller's to destroy. */
grpc_byte_buffer *hbc_bytebuf_pack(const ProtobufCMessage *message);
/* All of it in one piece: copied only where gRPC received it in several. The caller unrefs. */
grpc_slice hbc_bytebuf_flatten(grpc_byte_buffer *buffer);
struct hb_slice hbc_slice_view(const grpc_slice *slice);
/* NULL: malformed. Free with protobuf_c_message_free_unpacked. */
ProtobufCMessage *hbc_bytebuf_unpack(const ProtobufCMessageDescriptor *type,
                                     grpc_byte_buffer *buffer);

#endif
