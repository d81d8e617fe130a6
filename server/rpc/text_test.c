/* Texts from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/rpc/text.h"

static const struct {
  const char *bytes;
  size_t size;
  int bad_at; /* -1: clean */
} texts[] = {
    {"", 0, -1},
    {"plain", 5, -1},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, -1},
    {"a\0b", 3, 1},
    {"a\xff", 2, 1},
    {"\xc0\x80", 2, 0},         /* overlong NUL */
    {"\xe0\x80\x80", 3, 0},     /* overlong */
    {"x\xed\xa0\x80", 4, 1},    /* surrogate */
    {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
    {"\xe2\x82", 2, 0},         /* cut */
    {"\xe2\x28\xa1", 3, 0},
};

/* UTF-8 without NUL, with the place of the first wrong byte. */
static void only_clean_text_passes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    size_t at = 99;
    bool clean = hb_text_is_clean(hb_slice_of(texts[i].bytes, texts[i].size), &at);
    assert_int_equal(clean, texts[i].bad_at < 0);
    if (!clean) assert_int_equal(at, texts[i].bad_at);
  }
}

/* Each byte that is wrong becomes a '?', the others stay. */
static void any_bytes_are_cleaned(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", ""}, {"good \xc3\xa4", "good \xc3\xa4"}, {"cut \xe2\x82", "cut ??"}, {"\xff", "?"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *clean = hb_text_cleaned(hb_slice_text(cases[i][0]));
    assert_string_equal(clean, cases[i][1]);
    free(clean);
  }
}

/* A name comes out as a string; what is no name leaves nothing. */
static void names_come_out(void **state) {
  (void)state;
  char out[HB_STREAM_NAME_MAX + 1] = "before";
  struct hb_err err;
  assert_int_equal(hb_text_stream_name("config.name", hb_slice_text("Orders"), out, &err),
                   HB_INVALID);
  assert_string_equal(err.message,
                      "config.name has byte 0x4f at 0: a name is [a-z0-9][a-z0-9._-]{0,127}");
  assert_string_equal(out, "before");
  assert_int_equal(hb_text_stream_name("config.name", hb_slice_text("orders"), out, &err), HB_OK);
  assert_string_equal(out, "orders");
}

/* Any bytes come back from their token; what is no token is refused and leaves nothing. */
static void tokens_come_back(void **state) {
  (void)state;
  struct hb_buf text = {0}, back = {0};
  struct hb_err err;
  static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff};
  hb_text_encode_token(hb_slice_of(bytes, sizeof bytes), &text);
  assert_int_equal(hb_text_decode_token(hb_buf_view(&text), &back, &err), HB_OK);
  assert_true(hb_slice_equal(hb_buf_view(&back), hb_slice_of(bytes, sizeof bytes)));
  hb_buf_clear(&back);
  assert_int_equal(hb_text_decode_token(hb_slice_text("0g"), &back, &err), HB_INVALID);
  assert_int_equal(hb_text_decode_token(hb_slice_text("00a"), &back, &err), HB_INVALID);
  assert_string_equal(err.reason, "PAGE_TOKEN_INVALID");
  assert_int_equal(back.size, 0);
  hb_buf_done(&text);
  hb_buf_done(&back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_clean_text_passes), cmocka_unit_test(any_bytes_are_cleaned),
      cmocka_unit_test(names_come_out), cmocka_unit_test(tokens_come_back)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
