/* Rules of base/slice.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"

static int sign(int value) { return (value > 0) - (value < 0); }

/* Order is byte order (unsigned), and a prefix comes before what it begins. */
static void compare_is_byte_order(void **state) {
  (void)state;
  static const char *const ascending[] = {"", "\x01", "a", "aa", "ab", "b", "\x7f", "\x80", "\xff"};
  size_t count = sizeof ascending / sizeof ascending[0];
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < count; j++) {
      struct hb_slice a = hb_slice_text(ascending[i]);
      struct hb_slice b = hb_slice_text(ascending[j]);
      assert_int_equal(sign(hb_slice_compare(a, b)), (i > j) - (i < j));
      assert_int_equal(hb_slice_equal(a, b), i == j);
    }
  }
}

/* The empty slice may have no address; it equals any other empty one and begins everything. */
static void empty_needs_no_address(void **state) {
  (void)state;
  struct hb_slice none = {0};
  assert_true(hb_slice_equal(none, hb_slice_text("")));
  assert_int_equal(hb_slice_compare(none, none), 0);
  assert_true(hb_slice_starts_with(hb_slice_text("a"), none));
  assert_true(hb_slice_starts_with(none, none));
}

/* A prefix is the whole prefix, NUL bytes included. */
static void starts_with_takes_the_whole_prefix(void **state) {
  (void)state;
  assert_true(hb_slice_starts_with(hb_slice_text("flights"), hb_slice_text("fl")));
  assert_true(hb_slice_starts_with(hb_slice_text("fl"), hb_slice_text("fl")));
  assert_false(hb_slice_starts_with(hb_slice_text("f"), hb_slice_text("fl")));
  assert_false(hb_slice_starts_with(hb_slice_of("a\0b", 3), hb_slice_of("a\0c", 3)));
}

/* What is appended comes out in order, however often the buffer had to grow. */
static void buffer_keeps_what_is_appended(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  for (int i = 0; i < 1000; i++) hb_buf_append_u8(&buf, (uint8_t)i);
  hb_buf_append(&buf, "xyz", 3);
  hb_buf_append(&buf, NULL, 0);
  struct hb_slice view = hb_buf_view(&buf);
  assert_int_equal(view.size, 1003);
  for (int i = 0; i < 1000; i++) assert_int_equal(view.data[i], (uint8_t)i);
  assert_memory_equal(view.data + 1000, "xyz", 3);
  hb_buf_done(&buf);
  assert_null(buf.data);
}

/* Reserved room does not count until its user says so. */
static void reserve_does_not_count(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  hb_buf_append(&buf, "ab", 2);
  memcpy(hb_buf_reserve(&buf, 100), "cd", 2);
  assert_int_equal(buf.size, 2);
  assert_true(buf.cap >= 102);
  buf.size += 2;
  assert_memory_equal(buf.data, "abcd", 4);
  hb_buf_done(&buf);
}

/* Clearing keeps the memory for the next use. */
static void clear_keeps_the_memory(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  hb_buf_append(&buf, "abcdef", 6);
  const uint8_t *data = buf.data;
  hb_buf_clear(&buf);
  assert_int_equal(buf.size, 0);
  hb_buf_append(&buf, "x", 1);
  assert_ptr_equal(buf.data, data);
  hb_buf_done(&buf);
}

/* Taking hands the bytes over and leaves an empty buffer; of an empty one, something to free. */
static void take_hands_over(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  hb_buf_append(&buf, "abc", 3);
  size_t size = 0;
  uint8_t *data = hb_buf_take(&buf, &size);
  assert_int_equal(size, 3);
  assert_memory_equal(data, "abc", 3);
  free(data);
  data = hb_buf_take(&buf, &size);
  assert_int_equal(size, 0);
  assert_non_null(data);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compare_is_byte_order),
      cmocka_unit_test(empty_needs_no_address),
      cmocka_unit_test(starts_with_takes_the_whole_prefix),
      cmocka_unit_test(buffer_keeps_what_is_appended),
      cmocka_unit_test(reserve_does_not_count),
      cmocka_unit_test(clear_keeps_the_memory),
      cmocka_unit_test(take_hands_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
