/* Batches for subscribers, decoded by protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame/block.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/delivery.h"
#include "server/rpc/test_client.h"

enum { COUNT = 100 };

/* A block of events with the given sequences; key "a" for even ones, "b" for odd. */
static struct hb_bytes *make_block(const int64_t *sequences, size_t count, int64_t to,
                                   size_t payload_size) {
  struct hb_block_entry entries[COUNT] = {{0}};
  struct hb_buf frames[COUNT] = {{0}};
  char *payload = calloc(1, payload_size + 1);
  memset(payload, 'x', payload_size);
  for (size_t i = 0; i < count; i++) {
    test_put_event(&frames[i], sequences[i], sequences[i] % 2 ? "b" : "a", payload);
    entries[i] = (struct hb_block_entry){
        .sequence = sequences[i], .frame = frames[i].data, .frame_size = (uint32_t)frames[i].size};
  }
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, count ? sequences[0] : to, to,
                                           (struct hb_time){0}, entries, count);
  for (size_t i = 0; i < count; i++) hb_buf_done(&frames[i]);
  free(payload);
  return block;
}

static struct hb_bytes *make_range(int64_t first, size_t count, size_t payload_size) {
  int64_t sequences[COUNT];
  for (size_t i = 0; i < count; i++) sequences[i] = first + (int64_t)i;
  return make_block(sequences, count, first + (int64_t)count, payload_size);
}

static void add(struct hb_delivery *delivery, struct hb_bytes *block,
                const struct hb_filter *filter) {
  struct hb_filter all = {0};
  assert_int_equal(hb_delivery_add(delivery, block, filter ? filter : &all, NULL), HB_OK);
  hb_bytes_unref(block);
}

static Holdback__V1__SubscribeResponse *finish(struct hb_delivery *delivery) {
  grpc_byte_buffer *buffer = hb_delivery_finish(delivery, HB_DELIVERED_EVENTS);
  hb_delivery_done(delivery);
  grpc_byte_buffer_reader reader;
  assert_true(grpc_byte_buffer_reader_init(&reader, buffer));
  grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
  Holdback__V1__SubscribeResponse *response = holdback__v1__subscribe_response__unpack(
      NULL, GRPC_SLICE_LENGTH(all), GRPC_SLICE_START_PTR(all));
  assert_non_null(response);
  assert_int_equal(response->message_case, HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_BATCH);
  grpc_slice_unref(all);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(buffer);
  return response;
}

/* Blocks are joined; consecutive positions are not spelled out. Small blocks and large ones. */
static void joins_blocks(void **state) {
  (void)state;
  for (size_t payload = 1; payload <= 1000; payload += 999) {
    struct hb_delivery delivery;
    hb_delivery_init(&delivery, 13);
    add(&delivery, make_range(10, 20, payload), NULL);
    add(&delivery, make_range(30, 5, payload), NULL);
    Holdback__V1__SubscribeResponse *response = finish(&delivery);
    const Holdback__V1__Batch *batch = response->batch;
    assert_int_equal(batch->n_events, 22);
    assert_int_equal(batch->first_position, 13);
    assert_int_equal(batch->n_positions, 0);
    assert_int_equal(batch->next_position, 35);
    for (size_t i = 0; i < batch->n_events; i++) {
      assert_int_equal(batch->events[i]->sequence, 13 + (int64_t)i);
      assert_int_equal(batch->events[i]->payload.len, payload);
    }
    holdback__v1__subscribe_response__free_unpacked(response, NULL);
  }
}

/* Where positions are not consecutive all of them are told, those before the break too. */
static void spells_scattered_positions_out(void **state) {
  (void)state;
  static const int64_t sparse[] = {-5, -4, 0, 7};
  static const int64_t expected[] = {-7, -6, -5, -4, 0, 7, 8, 9};
  struct hb_delivery delivery;
  hb_delivery_init(&delivery, INT64_MIN);
  add(&delivery, make_range(-7, 2, 1), NULL);
  add(&delivery, make_block(sparse, 4, 8, 1), NULL);
  add(&delivery, make_range(8, 2, 1), NULL);
  Holdback__V1__SubscribeResponse *response = finish(&delivery);
  const Holdback__V1__Batch *batch = response->batch;
  assert_int_equal(batch->n_events, 8);
  assert_int_equal(batch->n_positions, 8);
  assert_int_equal(batch->first_position, -7);
  assert_memory_equal(batch->positions, expected, sizeof expected);
  assert_int_equal(batch->next_position, 10);
  holdback__v1__subscribe_response__free_unpacked(response, NULL);
}

/* A filter keeps order and positions; next_position passes what did not match. */
static void filters(void **state) {
  (void)state;
  ProtobufCBinaryData key = {.len = 1, .data = (uint8_t *)(uintptr_t) "a"};
  Holdback__V1__Filter from = HOLDBACK__V1__FILTER__INIT;
  from.n_keys = 1;
  from.keys = &key;
  struct hb_limits limits = hb_limits_default();
  struct hb_filter filter;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, NULL), HB_OK);
  for (size_t payload = 1; payload <= 2000; payload += 1999) {
    struct hb_delivery delivery;
    hb_delivery_init(&delivery, 0);
    add(&delivery, make_range(0, 10, payload), &filter);
    add(&delivery, make_range(10, 5, payload), &filter);
    Holdback__V1__SubscribeResponse *response = finish(&delivery);
    const Holdback__V1__Batch *batch = response->batch;
    assert_int_equal(batch->n_events, 8);
    assert_int_equal(batch->n_positions, 8);
    for (size_t i = 0; i < 8; i++) {
      assert_int_equal(batch->positions[i], 2 * (int64_t)i);
      assert_int_equal(batch->events[i]->sequence, 2 * (int64_t)i);
    }
    assert_int_equal(batch->next_position, 15);
    holdback__v1__subscribe_response__free_unpacked(response, NULL);
  }
  hb_filter_done(&filter);
}

/* A block without events, or below the position, only moves the position. */
static void empty_blocks_move_on(void **state) {
  (void)state;
  struct hb_delivery delivery;
  hb_delivery_init(&delivery, 5);
  add(&delivery, make_range(0, 5, 1), NULL);
  assert_int_equal(delivery.events, 0);
  assert_int_equal(delivery.next_position, 5);
  add(&delivery, make_block(NULL, 0, 9, 1), NULL);
  assert_int_equal(delivery.events, 0);
  assert_int_equal(delivery.next_position, 9);
  hb_delivery_done(&delivery);
}

/* A damaged block is HB_CORRUPT, and nothing of it is taken. */
static void damage_is_seen(void **state) {
  (void)state;
  struct hb_bytes *block = make_range(1, 5, 10);
  struct hb_bytes *damaged = hb_bytes_copy(hb_bytes_view(block));
  ((uint8_t *)(uintptr_t)damaged->data)[damaged->size / 2] ^= 1;
  struct hb_delivery delivery;
  struct hb_filter all = {0};
  struct hb_err err;
  hb_delivery_init(&delivery, 1);
  assert_int_equal(hb_delivery_add(&delivery, damaged, &all, &err), HB_CORRUPT);
  assert_int_equal(delivery.events, 0);
  hb_delivery_done(&delivery);
  hb_bytes_unref(block);
  hb_bytes_unref(damaged);
}

static int start(void **state) {
  (void)state;
  grpc_init();
  return 0;
}

static int stop(void **state) {
  (void)state;
  grpc_shutdown_blocking();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_blocks), cmocka_unit_test(spells_scattered_positions_out),
      cmocka_unit_test(filters), cmocka_unit_test(empty_blocks_move_on),
      cmocka_unit_test(damage_is_seen)};
  return cmocka_run_group_tests(tests, start, stop) ? 1 : 0;
}
