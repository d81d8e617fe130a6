/* Rules of base/utf8.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */

#include "base/utf8.h"

/* Well-formed UTF-8 only: no overlong forms, surrogates, or what lies above U+10FFFF. */
static void utf8(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t size;
    bool valid;
  } rows[] = {
      {"", 0, true},
      {"plain ascii, longer than a word", 31, true},
      {"a\0b", 3, true},
      {"\xc3\xa9", 2, true},
      {"\xe2\x82\xac", 3, true},
      {"\xf0\x9f\x98\x80", 4, true},
      {"\xf4\x8f\xbf\xbf", 4, true},
      {"12345678\xc3\xa9", 10, true},
      {"\x80", 1, false},
      {"\xc3", 1, false},
      {"\xc0\x80", 2, false},
      {"\xc1\xbf", 2, false},
      {"\xe0\x9f\xbf", 3, false},
      {"\xed\xa0\x80", 3, false},
      {"\xe2\x82", 2, false},
      {"\xf0\x8f\xbf\xbf", 4, false},
      {"\xf4\x90\x80\x80", 4, false},
      {"\xf5\x80\x80\x80", 4, false},
      {"12345678\xff", 9, false},
      {"1234567\xc3"
       "a",
       9, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(hb_utf8_valid(hb_slice_of(rows[i].text, rows[i].size)), rows[i].valid);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(utf8)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
