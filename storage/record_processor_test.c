#include "storage/record_processor_internal.h"

#include "storage/test_store_internal.h"

/* Every shortening, a byte too many and an unknown version of a value are refused, none is read
 * past its end. */
static void check(const struct hb_buf *value,
                  enum hb_code (*decode)(struct hb_slice value, struct hb_err *err),
                  bool open_ended) {
  struct hb_err err;
  assert_int_equal(decode(hb_buf_view(value), &err), HB_OK);
  for (size_t size = 0; size < value->size; size++) {
    uint8_t *exact = hb_memdup(value->data, size);
    enum hb_code code = decode(hb_slice_of(exact, size), &err);
    free(exact);
    if (!open_ended) assert_int_equal(code, HB_CORRUPT);
  }
  struct hb_buf other = {0};
  hb_buf_append(&other, value->data, value->size);
  hb_buf_append_u8(&other, 0);
  if (!open_ended) assert_int_equal(decode(hb_buf_view(&other), &err), HB_CORRUPT);
  other.data[0] = 2;
  assert_int_equal(decode(hb_buf_view(&other), &err), HB_VERSION);
  hb_buf_done(&other);
}

static enum hb_code get_processor(struct hb_slice value, struct hb_err *err) {
  struct hb_processor_config out;
  return hb_record_get_processor(value, &out, err);
}

static enum hb_code get_place(struct hb_slice value, struct hb_err *err) {
  struct hb_processor_place out;
  return hb_record_get_place(value, &out, err);
}

static enum hb_code get_attempt(struct hb_slice value, struct hb_err *err) {
  struct hb_processor_attempt out;
  return hb_record_get_attempt(value, &out, err);
}

static enum hb_code get_key_status(struct hb_slice value, struct hb_err *err) {
  struct hb_key_status out;
  return hb_record_get_key_status(value, &out, err);
}

static enum hb_code get_blocked(struct hb_slice value, struct hb_err *err) {
  struct hb_blocked_row out = {.sequence = 0};
  return hb_record_get_blocked(value, &out, err);
}

/* A key that waits comes back whole; a phase that there is not, and more run than was passed, are
 * damage. */
static void test_blocked(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_blocked_row row = {.phase = HB_BLOCKED_CHOSEN,
                               .sequence = -2,
                               .position = 3,
                               .passed = 4,
                               .run = 4,
                               .next = 5,
                               .skip = 6,
                               .is_copy = true,
                               .copy = UINT64_MAX};
  hb_record_put_blocked(&value, &row);
  check(&value, get_blocked, false);
  struct hb_blocked_row out = {.key = hb_slice_text("k")};
  assert_int_equal(hb_record_get_blocked(hb_buf_view(&value), &out, NULL), HB_OK);
  row.key = out.key;
  assert_memory_equal(&out, &row, sizeof row);
  value.data[1] = 3;
  assert_int_equal(get_blocked(hb_buf_view(&value), NULL), HB_CORRUPT);
  hb_buf_clear(&value);
  row.run = 5;
  hb_record_put_blocked(&value, &row);
  assert_int_equal(get_blocked(hb_buf_view(&value), NULL), HB_CORRUPT);
  hb_buf_done(&value);
}

static void test_values(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_processor_config config = {.name = "n", .processor = "p"};
  hb_record_put_processor(&value, &config);
  check(&value, get_processor, true);
  hb_buf_clear(&value);
  struct hb_processor_place place = {.position = 3};
  hb_record_put_place(&value, &place);
  check(&value, get_place, false);
  hb_buf_clear(&value);
  struct hb_processor_attempt attempt = {.position = 3, .attempts = 1};
  hb_record_put_attempt(&value, &attempt);
  check(&value, get_attempt, false);
  hb_buf_clear(&value);
  struct hb_key_status status = {.any = true, .last_processed = -7, .rejected = 9};
  hb_record_put_key_status(&value, &status);
  check(&value, get_key_status, false);
  struct hb_key_status out;
  assert_int_equal(hb_record_get_key_status(hb_buf_view(&value), &out, NULL), HB_OK);
  assert_true(out.any && !out.last_received);
  assert_int_equal(out.last_processed, -7);
  assert_int_equal(out.rejected, 9);
  value.data[1] = 4;
  assert_int_equal(hb_record_get_key_status(hb_buf_view(&value), &out, NULL), HB_CORRUPT);
  hb_buf_done(&value);
}

/* Flags and names that no version wrote are damage. */
static void test_damage(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_err err;
  struct hb_processor_config config = {.name = "name", .processor = "p"};
  hb_record_put_processor(&value, &config);
  value.data[1] = 0x80;
  assert_int_equal(get_processor(hb_buf_view(&value), &err), HB_CORRUPT);
  value.data[1] = 2 | 16; /* suspended by a failure, and waiting at one */
  assert_int_equal(get_processor(hb_buf_view(&value), &err), HB_CORRUPT);
  value.data[1] = 0;
  value.data[2] = 4; /* a mode of statuses */
  assert_int_equal(get_processor(hb_buf_view(&value), &err), HB_CORRUPT);
  value.data[2] = 3;
  assert_int_equal(get_processor(hb_buf_view(&value), &err), HB_OK);
  value.data[9] = 0; /* a NUL in the name */
  assert_int_equal(get_processor(hb_buf_view(&value), &err), HB_CORRUPT);
  hb_buf_clear(&value);
  struct hb_processor_place place = {.position = 3};
  hb_record_put_place(&value, &place);
  value.data[2] = 4; /* phase */
  assert_int_equal(get_place(hb_buf_view(&value), &err), HB_CORRUPT);
  hb_buf_done(&value);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_blocked),
                                     cmocka_unit_test(test_damage)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
