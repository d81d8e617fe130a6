/* Decides which frames go by reference and when positions must be spelled out. */
#include "server/rpc/delivery.h"

#include <grpc/slice.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/frame/block.h"
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "base/handoff.h"

/* A slice by reference costs an allocation and a count; below this a copy is cheaper. */
enum { REFERENCE_FROM_BYTES = 1024 };

/* Fields of SubscribeResponse, and of Batch and ResultBatch, which are alike. */
enum {
  RESPONSE_BATCH = 1,
  RESPONSE_RESULTS = 5,
  BATCH_FIRST = 2,
  BATCH_POSITIONS = 3,
  BATCH_NEXT = 4
};

void hb_delivery_init(struct hb_delivery *delivery, int64_t position) {
  *delivery = (struct hb_delivery){.next_position = position};
  grpc_slice_buffer_init(&delivery->slices);
}

void hb_delivery_done(struct hb_delivery *delivery) {
  grpc_slice_buffer_destroy(&delivery->slices);
  hb_buf_done(&delivery->copied);
  hb_buf_done(&delivery->positions);
}

static void unref_bytes(void *bytes) {
  hb_handoff_take(bytes);
  hb_bytes_unref(bytes);
}

static void flush_copied(struct hb_delivery *delivery) {
  if (!delivery->copied.size) return;
  size_t size;
  uint8_t *data = hb_buf_take(&delivery->copied, &size);
  grpc_slice_buffer_add(&delivery->slices, grpc_slice_new_with_user_data(data, size, free, data));
}

static void add_frames(struct hb_delivery *delivery, struct hb_bytes *block,
                       struct hb_slice frames) {
  delivery->frames_bytes += frames.size;
  if (frames.size < REFERENCE_FROM_BYTES) {
    hb_buf_append(&delivery->copied, frames.data, frames.size);
    return;
  }
  flush_copied(delivery);
  grpc_slice_buffer_add(&delivery->slices,
                        grpc_slice_new_with_user_data((void *)(uintptr_t)frames.data, frames.size,
                                                      unref_bytes, hb_bytes_ref(block)));
}

static void put_position(struct hb_delivery *delivery, int64_t position) {
  uint8_t *at = hb_buf_reserve(&delivery->positions, HB_VARINT_MAX);
  delivery->positions.size += hb_wire_put_varint(at, (uint64_t)position);
}

/* All positions so far were consecutive; from here on each is written. */
static void become_scattered(struct hb_delivery *delivery) {
  delivery->scattered = true;
  for (int64_t at = delivery->first_position;; at++) {
    put_position(delivery, at);
    if (at == delivery->last_position) break;
  }
}

static void add_position(struct hb_delivery *delivery, int64_t position) {
  if (delivery->events++ == 0) {
    delivery->first_position = position;
  } else if (!delivery->scattered && position != delivery->last_position + 1) {
    become_scattered(delivery);
  }
  delivery->last_position = position;
  if (delivery->scattered) put_position(delivery, position);
}

/* Events [first, end) of the block. */
static void add_run(struct hb_delivery *delivery, struct hb_bytes *bytes,
                    const struct hb_block *block, uint32_t first, uint32_t end) {
  if (first == end) return;
  add_frames(delivery, bytes, hb_block_frames(block, first, end - first));
  if (!block->sequences && !delivery->scattered) { /* consecutive: no need to look at each */
    add_position(delivery, hb_block_sequence(block, first));
    if (!delivery->scattered) {
      delivery->events += end - first - 1;
      delivery->last_position += (int64_t)(end - first) - 1;
      return;
    }
    first++;
  }
  for (uint32_t i = first; i < end; i++) add_position(delivery, hb_block_sequence(block, i));
}

static enum hb_code add_passing(struct hb_delivery *delivery, struct hb_bytes *bytes,
                                const struct hb_block *block, uint32_t first,
                                const struct hb_filter *filter, struct hb_err *err) {
  uint32_t run = first;
  for (uint32_t i = first; filter->active && i < block->count; i++) {
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, i), &event, err);
    if (code) return code;
    if (hb_filter_matches(filter, hb_event_key(&event))) continue;
    add_run(delivery, bytes, block, run, i);
    run = i + 1;
  }
  add_run(delivery, bytes, block, run, block->count);
  return HB_OK;
}

enum hb_code hb_delivery_add(struct hb_delivery *delivery, struct hb_bytes *bytes,
                             const struct hb_filter *filter, struct hb_err *err) {
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(bytes), &block, err);
  if (code) return code;
  uint32_t first = hb_block_find(&block, delivery->next_position);
  code = add_passing(delivery, bytes, &block, first, filter, err);
  if (!code && block.to > delivery->next_position) delivery->next_position = block.to;
  return code;
}

static size_t put_number(uint8_t *at, uint32_t field, uint64_t value) {
  if (value == 0) return 0; /* proto3 leaves zero out */
  at[0] = (uint8_t)(field << 3 | HB_WIRE_VARINT);
  return 1 + hb_wire_put_varint(at + 1, value);
}

static void put_tail(const struct hb_delivery *delivery, struct hb_buf *out) {
  uint8_t bytes[1 + HB_VARINT_MAX];
  hb_buf_append(out, bytes, put_number(bytes, BATCH_FIRST, (uint64_t)delivery->first_position));
  if (delivery->scattered) {
    hb_wire_append_bytes(out, BATCH_POSITIONS, hb_buf_view(&delivery->positions));
  }
  hb_buf_append(out, bytes, put_number(bytes, BATCH_NEXT, (uint64_t)delivery->next_position));
}

grpc_byte_buffer *hb_delivery_finish(struct hb_delivery *delivery, enum hb_delivered what) {
  HB_ASSERT(delivery->events > 0);
  flush_copied(delivery);
  put_tail(delivery, &delivery->copied);
  size_t size = delivery->frames_bytes + delivery->copied.size;
  uint8_t head[1 + HB_VARINT_MAX];
  head[0] = (uint8_t)((unsigned)what << 3 | HB_WIRE_LEN);
  size_t head_size = 1 + hb_wire_put_varint(head + 1, size);
  flush_copied(delivery);
  grpc_slice_buffer whole;
  grpc_slice_buffer_init(&whole);
  grpc_slice_buffer_add(&whole, grpc_slice_from_copied_buffer((const char *)head, head_size));
  grpc_slice_buffer_move_into(&delivery->slices, &whole);
  grpc_byte_buffer *answer = grpc_raw_byte_buffer_create(whole.slices, whole.count);
  grpc_slice_buffer_destroy(&whole);
  int64_t next_position = delivery->next_position;
  hb_delivery_done(delivery);
  hb_delivery_init(delivery, next_position);
  return answer;
}
