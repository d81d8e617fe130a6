#include "storage/format_file_internal.h"

#include "storage/folder_internal.h"
#include "storage/test_store_internal.h"

static void encode(uint32_t version, uint8_t out[HB_FORMAT_SIZE]) {
  struct hb_format format = {.version = version, .store_id = "0123456789abcde"};
  hb_format_encode(&format, out);
}

/* What was written comes back; it becomes FORMAT only when it is published. */
static void format_comes_back(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  struct hb_format format = {.version = HB_FORMAT_VERSION, .store_id = "0123456789abcde"};
  struct hb_format back = {0};
  must(hb_format_write_new(fixture->folder, &format, &err), &err);
  assert_int_equal(hb_format_read(fixture->folder, HB_FILE_FORMAT, &back, &err), HB_PERMISSION);
  must(hb_format_publish(fixture->folder, &err), &err);
  must(hb_format_read(fixture->folder, HB_FILE_FORMAT, &back, &err), &err);
  assert_memory_equal(back.store_id, format.store_id, HB_STORE_ID_SIZE);
  assert_int_equal(back.version, HB_FORMAT_VERSION);
}

/* Each single byte that changes is noticed: as another program's, or as damage. */
static void a_changed_byte_is_noticed(void **state) {
  (void)state;
  for (size_t at = 0; at < HB_FORMAT_SIZE; at++) {
    uint8_t bytes[HB_FORMAT_SIZE];
    struct hb_format back;
    encode(HB_FORMAT_VERSION, bytes);
    bytes[at] ^= 0x20;
    enum hb_code expected = at < 8 ? HB_VERSION : HB_CORRUPT;
    assert_int_equal(hb_format_decode(hb_slice_of(bytes, sizeof bytes), &back, NULL), expected);
  }
}

/* A cut file is damage, at whatever byte. */
static void a_cut_file_is_damage(void **state) {
  (void)state;
  for (size_t size = 0; size < HB_FORMAT_SIZE; size++) {
    uint8_t bytes[HB_FORMAT_SIZE];
    struct hb_format back;
    encode(HB_FORMAT_VERSION, bytes);
    assert_int_equal(hb_format_decode(hb_slice_of(bytes, size), &back, NULL), HB_CORRUPT);
  }
}

/* A newer format is told from damage, also where it has more bytes. */
static void a_newer_format_says_so(void **state) {
  (void)state;
  uint8_t bytes[HB_FORMAT_SIZE + 4] = {0};
  struct hb_format back;
  struct hb_err err;
  encode(2, bytes);
  for (size_t more = 0; more <= 4; more += 4) {
    assert_int_equal(hb_format_decode(hb_slice_of(bytes, HB_FORMAT_SIZE + more), &back, &err),
                     HB_VERSION);
    assert_non_null(strstr(err.message, "format 2, this program knows 1"));
  }
  encode(HB_FORMAT_VERSION, bytes);
  assert_int_equal(hb_format_decode(hb_slice_of(bytes, sizeof bytes), &back, NULL), HB_CORRUPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(format_comes_back, setup_folder, teardown),
      cmocka_unit_test(a_changed_byte_is_noticed),
      cmocka_unit_test(a_cut_file_is_damage),
      cmocka_unit_test(a_newer_format_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
