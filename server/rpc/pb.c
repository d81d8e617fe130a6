/* Decides which messages are well-formed enough to unpack.
 *
 * Before protobuf-c sees the bytes, every string in them is checked against the message's
 * descriptor: the walk goes into submessages as deep as the type goes, and no message of ours is
 * recursive, so its depth is bounded. */
#include "server/rpc/pb.h"

#include <grpc/slice.h>

#include "base/frame/wire.h"
#include "server/rpc/text.h"

static enum hb_code malformed(const ProtobufCMessageDescriptor *type, struct hb_err *err) {
  return hb_err_set(err, HB_INVALID, "MALFORMED_REQUEST", "the bytes are not a %s", type->name);
}

static enum hb_code check_strings(const ProtobufCMessageDescriptor *type, struct hb_slice bytes,
                                  struct hb_err *err);

static enum hb_code check_field(const ProtobufCFieldDescriptor *field, struct hb_slice bytes,
                                struct hb_err *err) {
  if (field->type == PROTOBUF_C_TYPE_MESSAGE) return check_strings(field->descriptor, bytes, err);
  size_t at = 0;
  if (field->type != PROTOBUF_C_TYPE_STRING || hb_text_is_clean(bytes, &at)) return HB_OK;
  return hb_err_set(err, HB_INVALID, "TEXT_INVALID",
                    "%s is not UTF-8 without NUL: byte 0x%02x at %zu", field->name, bytes.data[at],
                    at);
}

static enum hb_code check_strings(const ProtobufCMessageDescriptor *type, struct hb_slice bytes,
                                  struct hb_err *err) {
  struct hb_wire_reader reader = {.at = bytes.data, .end = hb_slice_end(bytes)};
  struct hb_wire_field field;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(type, field.number);
    if (!known || field.type != HB_WIRE_LEN) continue;
    enum hb_code code = check_field(known, field.bytes, err);
    if (code) return code;
  }
  return result == HB_WIRE_END ? HB_OK : malformed(type, err);
}

enum hb_code hb_pb_unpack(const ProtobufCMessageDescriptor *type, struct hb_slice bytes,
                          ProtobufCMessage **out, struct hb_err *err) {
  if (bytes.size > 0) {
    enum hb_code code = check_strings(type, bytes, err);
    if (code) return code;
  }
  ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.data);
  if (!message) return malformed(type, err);
  *out = message;
  return HB_OK;
}

grpc_byte_buffer *hb_pb_pack(const ProtobufCMessage *message) {
  grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
  protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return buffer;
}

grpc_byte_buffer *hb_pb_wrap(struct hb_slice bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.size);
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return buffer;
}
