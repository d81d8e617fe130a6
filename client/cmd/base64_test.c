/* Base64: RFC 4648's own vectors, every byte, and what is not base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "client/cmd/base64.h"

/* The vectors of RFC 4648, section 10, both ways. */
static void vectors(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"", ""},
                                        {"f", "Zg=="},
                                        {"fo", "Zm8="},
                                        {"foo", "Zm9v"},
                                        {"foob", "Zm9vYg=="},
                                        {"fooba", "Zm9vYmE="},
                                        {"foobar", "Zm9vYmFy"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct hb_buf text = {0};
    struct hb_buf bytes = {0};
    size_t at;
    base64_encode(&text, hb_slice_text(rows[i][0]));
    assert_true(hb_slice_equal(hb_buf_view(&text), hb_slice_text(rows[i][1])));
    assert_true(base64_decode(&bytes, hb_slice_text(rows[i][1]), &at));
    assert_true(hb_slice_equal(hb_buf_view(&bytes), hb_slice_text(rows[i][0])));
    hb_buf_done(&text);
    hb_buf_done(&bytes);
  }
}

/* All byte values, at each length around the group's size. */
static void round_trip(void **state) {
  (void)state;
  uint8_t all[256];
  for (size_t i = 0; i < sizeof all; i++) all[i] = (uint8_t)i;
  for (size_t size = 250; size <= 256; size++) {
    struct hb_buf text = {0};
    struct hb_buf bytes = {0};
    size_t at;
    base64_encode(&text, hb_slice_of(all, size));
    assert_true(base64_decode(&bytes, hb_buf_view(&text), &at));
    assert_true(hb_slice_equal(hb_buf_view(&bytes), hb_slice_of(all, size)));
    hb_buf_done(&text);
    hb_buf_done(&bytes);
  }
}

/* Where it goes wrong is told, and what was there before stays. */
static void not_base64(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t at;
  } rows[] = {{"Z", 1},     {"Zg", 2},       {"Zg=", 3},  {"Zg=a", 2},
              {"Zm9v=", 5}, {"Zg==Zg==", 2}, {"Zm 9", 2}, {"Z-==", 1},
              {"====", 0},  {"Zm9vZh==", 5}, {"Zm9=", 2}, {"Zm9v\nZg==", 4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct hb_buf bytes = {0};
    size_t at = 99;
    hb_buf_append(&bytes, "kept", 4);
    assert_false(base64_decode(&bytes, hb_slice_text(rows[i].text), &at));
    assert_int_equal(at, rows[i].at);
    assert_true(hb_slice_equal(hb_buf_view(&bytes), hb_slice_text("kept")));
    hb_buf_done(&bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(round_trip),
                                     cmocka_unit_test(not_base64)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
