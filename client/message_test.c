/* Messages as bytes: numbers before or behind the frames, positions packed or not, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "base/frame/wire.h"
#include "client/message.h"

static struct holdback_message *message_of(struct hb_slice bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.size);
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return hbc_message_create(buffer);
}

/* A SubscribeResponse with `batch` as its Batch. */
static struct holdback_message *batch_message(const struct hb_buf *batch) {
  struct hb_buf outer = {0};
  hb_wire_append_bytes(&outer, 1, hb_buf_view(batch));
  struct holdback_message *message = message_of(hb_buf_view(&outer));
  hb_buf_done(&outer);
  return message;
}

static void add_event(struct hb_buf *batch, uint64_t sequence) {
  struct hb_buf event = {0};
  hb_wire_append_varint(&event, 1, sequence);
  hb_wire_append_bytes(batch, 1, hb_buf_view(&event));
  hb_buf_done(&event);
}

static void assert_event(const struct holdback_message *message, size_t *cursor, int64_t sequence,
                         int64_t position) {
  struct holdback_event event;
  int64_t at;
  assert_true(holdback_message_event(message, cursor, &event, &at));
  assert_int_equal(event.sequence, sequence);
  assert_int_equal(at, position);
}

/* Without positions they count up from first_position, wherever that stands in the message. */
static void consecutive_positions(void **state) {
  (void)state;
  struct hb_buf batch = {0};
  add_event(&batch, 7);
  hb_wire_append_varint(&batch, 4, 9);
  hb_wire_append_varint(&batch, 77, 1); /* a field of a later version */
  add_event(&batch, 8);
  hb_wire_append_varint(&batch, 2, 7);
  struct holdback_message *message = batch_message(&batch);
  assert_true(hbc_message_decode(message));
  assert_int_equal(holdback_message_kind(message), HOLDBACK_MESSAGE_EVENTS);
  assert_int_equal(holdback_message_next_position(message), 9);
  size_t cursor = 0;
  assert_event(message, &cursor, 7, 7);
  assert_event(message, &cursor, 8, 8);
  assert_false(holdback_message_event(message, &cursor, &(struct holdback_event){0}, NULL));
  hbc_message_destroy(message);
  hb_buf_done(&batch);
}

/* Positions are read packed and not packed, negative ones too. */
static void stated_positions(void **state) {
  (void)state;
  static const uint8_t packed[] = {0x05, 0x80, 0x02}; /* 5, 256 */
  struct hb_buf batch = {0};
  for (uint64_t i = 1; i <= 3; i++) add_event(&batch, i);
  hb_wire_append_bytes(&batch, 3, hb_slice_of(packed, sizeof packed));
  hb_wire_append_varint(&batch, 3, (uint64_t)-4);
  struct holdback_message *message = batch_message(&batch);
  assert_true(hbc_message_decode(message));
  size_t cursor = 0;
  assert_event(message, &cursor, 1, 5);
  assert_event(message, &cursor, 2, 256);
  assert_event(message, &cursor, 3, -4);
  hbc_message_destroy(message);
  hb_buf_done(&batch);
}

/* As many positions as events, or the message is refused and has no events. */
static void wrong_number_of_positions(void **state) {
  (void)state;
  struct hb_buf batch = {0};
  add_event(&batch, 1);
  add_event(&batch, 2);
  hb_wire_append_varint(&batch, 3, 5);
  struct holdback_message *message = batch_message(&batch);
  assert_false(hbc_message_decode(message));
  assert_false(hbc_message_decode(message));
  size_t cursor = 0;
  assert_false(holdback_message_event(message, &cursor, &(struct holdback_event){0}, NULL));
  hbc_message_destroy(message);
  hb_buf_done(&batch);
}

/* Nothing, garbage, and a frame that runs over the batch's end are refused. */
static void damage(void **state) {
  (void)state;
  static const struct hb_slice rows[] = {
      {(const uint8_t *)"", 0},
      {(const uint8_t *)"\xff", 1},
      {(const uint8_t *)"\x0a\x05\x0a", 3},
      {(const uint8_t *)"\x0a\x02\x0a\x05", 4},
      {(const uint8_t *)"\x0a\x03\x1a\x01\x80", 5}, /* a position cut short */
      {(const uint8_t *)"\x12\x02\x0a\x05", 4},     /* a Progress cut short */
      {(const uint8_t *)"\x50\x01", 2},             /* none of the messages */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct holdback_message *message = message_of(rows[i]);
    assert_false(hbc_message_decode(message));
    hbc_message_destroy(message);
  }
}

/* Void and End are told for what they are. */
static void other_kinds(void **state) {
  (void)state;
  struct holdback_message *nothing =
      message_of(hb_slice_of("\x1a\x0b\x08\x03\x10\x05\x1a\x03gap\x28\x05", 13));
  assert_true(hbc_message_decode(nothing));
  struct holdback_void range;
  assert_true(holdback_message_void(nothing, &range));
  assert_int_equal(range.start, 3);
  assert_int_equal(range.end, 5);
  assert_string_equal(range.reason, "gap");
  assert_int_equal(holdback_message_next_position(nothing), 5);
  hbc_message_destroy(nothing);
  struct holdback_message *end = message_of(hb_slice_of("\x22\x00", 2));
  assert_true(hbc_message_decode(end));
  assert_int_equal(holdback_message_kind(end), HOLDBACK_MESSAGE_END);
  assert_false(holdback_message_void(end, &range));
  hbc_message_destroy(end);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(consecutive_positions),
      cmocka_unit_test(stated_positions),
      cmocka_unit_test(wrong_number_of_positions),
      cmocka_unit_test(damage),
      cmocka_unit_test(other_kinds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
