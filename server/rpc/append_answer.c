/* Decides what stands around a result: its tag and length, and the ordinal. */
#include "server/rpc/append_answer.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <string.h>

#include "base/frame/wire.h"
#include "server/rpc/answer.h"
#include "server/rpc/lane.h"

static grpc_byte_buffer *join(const uint8_t *head, size_t head_size, const struct hb_buf *tail) {
  grpc_slice slice = grpc_slice_malloc(head_size + tail->size);
  memcpy(GRPC_SLICE_START_PTR(slice), head, head_size);
  memcpy(GRPC_SLICE_START_PTR(slice) + head_size, tail->data, tail->size);
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return buffer;
}

static size_t put_tag_and_size(uint8_t *at, uint32_t field, size_t size) {
  at[0] = (uint8_t)(field << 3 | HB_WIRE_LEN);
  return 1 + hb_wire_put_varint(at + 1, size);
}

/* The lane's scratch buffer with the result. */
static struct hb_buf *encode(const struct hb_call *call, const struct hb_append *append) {
  struct hb_buf *scratch = &call->lane->appends.scratch;
  struct hb_stream_config config;
  hb_stream_get_config(append->target, &config);
  struct hb_answer_stream stream = {.incarnation = hb_stream_incarnation(append->target),
                                    .limits = config.limits,
                                    .held_index_max = call->rpc->limits->held_index_max,
                                    .per_key = config.mode == HB_MODE_PER_KEY};
  hb_buf_clear(scratch);
  hb_answer_encode(append, &stream, scratch);
  return scratch;
}

grpc_byte_buffer *hb_append_response(const struct hb_call *call, const struct hb_append *append) {
  const struct hb_buf *result = encode(call, append);
  uint8_t head[1 + HB_VARINT_MAX];
  return join(head, put_tag_and_size(head, 1, result->size), result);
}

grpc_byte_buffer *hb_append_response_stream(const struct hb_call *call,
                                            const struct hb_append *append, uint64_t ordinal) {
  const struct hb_buf *result = encode(call, append);
  uint8_t head[2 * (1 + HB_VARINT_MAX)];
  size_t size = 0;
  if (ordinal) {
    head[size++] = 1 << 3 | HB_WIRE_VARINT;
    size += hb_wire_put_varint(head + size, ordinal);
  }
  size += put_tag_and_size(head + size, 2, result->size);
  return join(head, size, result);
}
