/* The record of a key: comes back, is validated, is found in the store after it was opened again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "storage/key_record_internal.h"
#include "storage/keys.h"
#include "storage/test_store_internal.h"

static struct hb_key_record full_record(void) {
  return (struct hb_key_record){.begun = true,
                                .complete = true,
                                .first = INT64_MIN,
                                .next = INT64_MIN + 5,
                                .first_position = 7,
                                .last_position = INT64_MAX - 1,
                                .last = INT64_MIN + 4};
}

/* The bytes are those of docs/FORMAT.md. */
static void bytes_are_as_documented(void **state) {
  (void)state;
  static const uint8_t EXPECTED[HB_RECORD_KEY_SIZE] = {1, 3, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0,   0,
                                                       0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0xC, 0,
                                                       0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0,   0};
  struct hb_key_record record = {.begun = true,
                                 .complete = true,
                                 .first = 2,
                                 .next = 4,
                                 .first_position = 9,
                                 .last_position = 12,
                                 .last = 3};
  struct hb_buf value = {0};
  hb_record_put_key(&value, &record);
  assert_int_equal(value.size, sizeof EXPECTED);
  assert_memory_equal(value.data, EXPECTED, sizeof EXPECTED);
  hb_buf_done(&value);
}

/* It comes back with everything that it had; cut at any byte, or longer, it is damage; another
 * version is one that is not known. */
static void records_come_back(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_key_record record = full_record();
  struct hb_key_record back = {0};
  struct hb_err err;
  hb_record_put_key(&value, &record);
  must(hb_record_get_key(hb_buf_view(&value), &back, &err), &err);
  assert_true(back.begun && back.complete && back.first == INT64_MIN);
  assert_true(back.next == INT64_MIN + 5 && back.last == INT64_MIN + 4);
  assert_true(back.first_position == 7 && back.last_position == INT64_MAX - 1);
  for (size_t size = 0; size < value.size; size++) {
    assert_int_equal(hb_record_get_key(hb_slice_of(value.data, size), &back, &err), HB_CORRUPT);
  }
  hb_buf_append_u8(&value, 0);
  assert_int_equal(hb_record_get_key(hb_buf_view(&value), &back, &err), HB_CORRUPT);
  value.size--;
  value.data[0] = 2;
  assert_int_equal(hb_record_get_key(hb_buf_view(&value), &back, &err), HB_VERSION);
  hb_buf_done(&value);
}

/* Numbers that can't be are refused. */
static void numbers_are_checked(void **state) {
  (void)state;
  struct hb_key_record wrong[6];
  for (size_t i = 0; i < 6; i++) wrong[i] = full_record();
  wrong[0].next = wrong[0].first, wrong[0].first = wrong[0].next + 1;
  wrong[1].first_position = -1;
  wrong[2].last_position = 10; /* room for four */
  wrong[3].last = wrong[3].next;
  wrong[4].begun = false;
  wrong[5].last_position = 6;
  for (size_t i = 0; i < 6; i++) {
    struct hb_buf value = {0};
    struct hb_key_record back;
    hb_record_put_key(&value, &wrong[i]);
    assert_int_equal(hb_record_get_key(hb_buf_view(&value), &back, NULL), HB_CORRUPT);
    hb_buf_done(&value);
  }
}

/* Any bytes are a key; what is cut or goes on is none. */
static void rows_are_named_by_any_bytes(void **state) {
  (void)state;
  static const char *const KEYS[] = {"", "a", "a\0b", "\0", "\xff"};
  static const size_t SIZES[] = {0, 1, 3, 1, 1};
  for (size_t i = 0; i < 5; i++) {
    struct hb_buf row = {0};
    struct hb_buf key = {0};
    uint64_t stream;
    hb_key_row(&row, 9, hb_slice_of(KEYS[i], SIZES[i]));
    assert_true(hb_key_parse_row(hb_buf_view(&row), &stream, &key));
    assert_int_equal(stream, 9);
    assert_true(hb_slice_equal(hb_buf_view(&key), hb_slice_of(KEYS[i], SIZES[i])));
    assert_false(hb_key_parse_row(hb_slice_of(row.data, row.size - 1), &stream, &key));
    hb_buf_append_u8(&row, 1);
    assert_false(hb_key_parse_row(hb_buf_view(&row), &stream, &key));
    hb_buf_done(&row);
    hb_buf_done(&key);
  }
}

/* Written with a commit, found after the store was opened again; other keys and streams have none.
 */
static void rows_are_found_again(void **state) {
  struct fixture *fixture = *state;
  struct hb_key_record record = full_record();
  struct hb_key_record back;
  struct hb_err err;
  bool found = true;
  make_stream(fixture, 3, "keys");
  hb_write_put_next_stream(fixture->write, 4);
  hb_write_put_key(fixture->write, 3, hb_slice_text("k"), &record);
  apply(fixture);
  reopen_store(fixture);
  must(hb_key_record_read(fixture->store, 3, hb_slice_text("k"), &found, &back, &err), &err);
  assert_true(found && back.next == record.next);
  must(hb_key_record_read(fixture->store, 3, hb_slice_text("k2"), &found, &back, &err), &err);
  assert_false(found);
  must(hb_key_record_read(fixture->store, 2, hb_slice_text("k"), &found, &back, &err), &err);
  assert_false(found);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_as_documented),
      cmocka_unit_test(records_come_back),
      cmocka_unit_test(numbers_are_checked),
      cmocka_unit_test(rows_are_named_by_any_bytes),
      cmocka_unit_test_setup_teardown(rows_are_found_again, setup_store, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
