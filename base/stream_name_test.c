/* Rules of base/stream_name.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/stream_name.h"
#include "base/types.h"

static const struct {
  const char *name;
  const char *reason; /* NULL: good */
} names[] = {
    {"default", NULL},
    {"0", NULL},
    {"a.b_c-9", NULL},
    {"", "STREAM_MISSING"},
    {"-a", "STREAM_NAME_INVALID"},
    {".a", "STREAM_NAME_INVALID"},
    {"Orders", "STREAM_NAME_INVALID"},
    {"a/b", "STREAM_NAME_INVALID"},
    {"a b", "STREAM_NAME_INVALID"},
    {"\xc3\xa9", "STREAM_NAME_INVALID"},
};

/* Names are [a-z0-9][a-z0-9._-]{0,127}. */
static void names_are_checked(void **state) {
  (void)state;
  struct hb_err err;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    enum hb_code code = hb_stream_name_check("stream", hb_slice_text(names[i].name), &err);
    assert_int_equal(code, names[i].reason ? HB_INVALID : HB_OK);
    if (code) assert_string_equal(err.reason, names[i].reason);
  }
  char longest[HB_STREAM_NAME_MAX + 1];
  memset(longest, 'a', sizeof longest);
  assert_int_equal(hb_stream_name_check("stream", hb_slice_of(longest, HB_STREAM_NAME_MAX), &err),
                   HB_OK);
  assert_int_equal(hb_stream_name_check("stream", hb_slice_of(longest, sizeof longest), &err),
                   HB_INVALID);
  assert_string_equal(err.message, "stream has 129 bytes, at most 128");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
