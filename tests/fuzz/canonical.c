/* Decides which messages can be compared: those that the language of protobuf has. */
#include "tests/fuzz/canonical.h"

#include "base/assert.h"

enum { NUMBER_MAX = (1 << 29) - 1, VARINT_MAX = 10 };

static bool has_odd_field(const ProtobufCMessage *message);

static bool is_odd(const ProtobufCMessageUnknownField *field) {
  if (!field->tag || field->tag > NUMBER_MAX) return true;
  return field->wire_type == PROTOBUF_C_WIRE_TYPE_VARINT && field->len == VARINT_MAX &&
         field->data[VARINT_MAX - 1] > 1;
}

/* Members are found by the descriptor: one message, or an array of them and its size. */
static bool field_has(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  const char *base = (const char *)message;
  const char *member = base + field->offset;
  if (field->type != PROTOBUF_C_TYPE_MESSAGE) return false;
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    size_t count = *(const size_t *)(const void *)(base + field->quantifier_offset);
    ProtobufCMessage *const *items = *(ProtobufCMessage *const *const *)(const void *)member;
    for (size_t i = 0; i < count; i++) {
      if (has_odd_field(items[i])) return true;
    }
    return false;
  }
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
    uint32_t set = *(const uint32_t *)(const void *)(base + field->quantifier_offset);
    if (set != field->id) return false;
  }
  const ProtobufCMessage *inner = *(const ProtobufCMessage *const *)(const void *)member;
  return inner && has_odd_field(inner);
}

static bool has_odd_field(const ProtobufCMessage *message) {
  for (unsigned i = 0; i < message->n_unknown_fields; i++) {
    if (is_odd(&message->unknown_fields[i])) return true;
  }
  for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
    if (field_has(message, &message->descriptor->fields[i])) return true;
  }
  return false;
}

bool canonical_pack(const ProtobufCMessage *message, struct hb_buf *out) {
  if (has_odd_field(message)) return false;
  size_t size = protobuf_c_message_get_packed_size(message);
  uint8_t *at = hb_buf_reserve(out, size ? size : 1);
  HB_ASSERT(protobuf_c_message_pack(message, at) == size);
  out->size += size;
  return true;
}
