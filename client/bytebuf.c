/* Decides when received bytes are copied: never while gRPC has them in one slice. */
#include "client/bytebuf.h"

#include <grpc/byte_buffer_reader.h>

grpc_byte_buffer *hbc_bytebuf_pack(const ProtobufCMessage *message) {
  grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
  protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return buffer;
}

grpc_slice hbc_bytebuf_flatten(grpc_byte_buffer *buffer) {
  if (buffer->type == GRPC_BB_RAW && buffer->data.raw.compression == GRPC_COMPRESS_NONE &&
      buffer->data.raw.slice_buffer.count == 1)
    return grpc_slice_ref(buffer->data.raw.slice_buffer.slices[0]);
  grpc_byte_buffer_reader reader;
  if (!grpc_byte_buffer_reader_init(&reader, buffer)) return grpc_empty_slice();
  grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
  grpc_byte_buffer_reader_destroy(&reader);
  return all;
}

struct hb_slice hbc_slice_view(const grpc_slice *slice) {
  return hb_slice_of(GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

ProtobufCMessage *hbc_bytebuf_unpack(const ProtobufCMessageDescriptor *type,
                                     grpc_byte_buffer *buffer) {
  grpc_slice all = hbc_bytebuf_flatten(buffer);
  ProtobufCMessage *message =
      protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(all), GRPC_SLICE_START_PTR(all));
  grpc_slice_unref(all);
  return message;
}
