/* Rules of base/limits.h and of the rows in base/limits_table.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/limits.h"

/* No row contradicts itself, and what is fixed has no room. */
static void every_default_lies_in_its_bounds(void **state) {
  (void)state;
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++) {
    if (rows[i].value < rows[i].min || rows[i].value > rows[i].max) {
      fail_msg("%s: default out of bounds", rows[i].name);
    }
    bool fixed = rows[i].min == rows[i].max;
    if (fixed != (rows[i].kind == HB_LIMIT_FIXED)) fail_msg("%s: kind and bounds", rows[i].name);
    assert_true(strlen(rows[i].unit) > 0 && strlen(rows[i].help) > 0);
  }
}

/* A name is one row; the row leads to its member, which holds the default at first. */
static void names_lead_to_members(void **state) {
  (void)state;
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  struct hb_limits limits = hb_limits_default();
  for (size_t i = 0; i < count; i++) {
    assert_ptr_equal(hb_limits_find(rows[i].name), &rows[i]);
    assert_int_equal(hb_limits_get(&limits, &rows[i]), rows[i].value);
  }
  assert_null(hb_limits_find("key_bytes"));
  assert_null(hb_limits_find(""));
  assert_int_equal(limits.event_bytes_max, 1 << 20);
  assert_int_equal(limits.ahead_max, UINT64_C(1) << 62);
}

/* Each bound can be set; one beyond it is refused by name, value and bounds, and changes nothing.
 */
static void bounds_are_kept(void **state) {
  (void)state;
  const struct hb_limit_row *row = hb_limits_find("event_bytes_max");
  struct hb_limits limits = hb_limits_default();
  struct hb_err err = {0};
  assert_int_equal(hb_limits_set(&limits, row, 1024, &err), HB_OK);
  assert_int_equal(limits.event_bytes_max, 1024);
  assert_int_equal(hb_limits_set(&limits, row, 3145728, &err), HB_OK);
  assert_int_equal(limits.event_bytes_max, 3145728);
  assert_int_equal(hb_limits_set(&limits, row, 3145729, &err), HB_INVALID);
  assert_string_equal(err.reason, "LIMIT_OUT_OF_BOUNDS");
  assert_string_equal(err.message,
                      "event_bytes_max is 3145729, must be from 1024 to 3145728 bytes");
  assert_int_equal(hb_limits_set(&limits, row, 1023, NULL), HB_INVALID);
  assert_int_equal(limits.event_bytes_max, 3145728);
}

/* Bare numbers, binary units and powers of two are read exactly, up to 64 bits. */
static void numbers_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t value;
  } rows[] = {
      {"0", 0},
      {"1048576", 1048576},
      {"18446744073709551615", UINT64_MAX},
      {"7B", 7},
      {"64KiB", 65536},
      {"16MiB", 16777216},
      {"4GiB", UINT64_C(4294967296)},
      {"1TiB", UINT64_C(1099511627776)},
      {"16777215TiB", UINT64_C(16777215) << 40},
      {"2^0", 1},
      {"2^62", UINT64_C(1) << 62},
      {"2^63", UINT64_C(1) << 63},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint64_t value = 1234;
    if (hb_limits_parse(rows[i].text, &value, NULL) != HB_OK) fail_msg("%s", rows[i].text);
    assert_int_equal(value, rows[i].value);
  }
}

/* Everything else is refused with the text quoted, and nothing is written. */
static void nonsense_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",   "-1",   "+1",  " 1",   "1 ",   "1kb",  "KiB", "1MB",         "1.5",
      "2^", "2^64", "3^2", "2^-1", "2^6x", "0x10", "1e6", "16777216TiB", "18446744073709551616"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    uint64_t value = 1234;
    struct hb_err err = {0};
    if (hb_limits_parse(texts[i], &value, &err) != HB_INVALID) fail_msg("'%s'", texts[i]);
    assert_int_equal(value, 1234);
    assert_string_equal(err.reason, "NOT_A_NUMBER");
    assert_non_null(strstr(err.message, texts[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_default_lies_in_its_bounds),
      cmocka_unit_test(names_lead_to_members),
      cmocka_unit_test(bounds_are_kept),
      cmocka_unit_test(numbers_are_read),
      cmocka_unit_test(nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
