/* Rules of base/err.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/err.h"

/* One call fills code, reason and message, and returns the code. */
static void set_fills_and_returns(void **state) {
  (void)state;
  struct hb_err err = {0};
  assert_int_equal(hb_err_set(&err, HB_LIMIT, "TOO_MANY", "streams is %d, limit %d", 11, 10),
                   HB_LIMIT);
  assert_int_equal(err.code, HB_LIMIT);
  assert_string_equal(err.reason, "TOO_MANY");
  assert_string_equal(err.message, "streams is 11, limit 10");
}

/* Who needs no message passes NULL and still gets the code. */
static void err_may_be_null(void **state) {
  (void)state;
  assert_int_equal(hb_err_set(NULL, HB_NOT_FOUND, NULL, "x"), HB_NOT_FOUND);
  hb_err_wrap(NULL, "context");
}

/* Without a reason of its own an error carries its code's name. */
static void reason_defaults_to_the_codes_name(void **state) {
  (void)state;
  struct hb_err err;
  hb_err_set(&err, HB_NOT_FOUND, NULL, "x");
  assert_string_equal(err.reason, "NOT_FOUND");
}

/* A message that does not fit is cut, not overrun, and stays a string. */
static void long_messages_are_cut(void **state) {
  (void)state;
  char text[HB_ERR_MESSAGE_SIZE * 2];
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = 0;
  struct hb_err err;
  hb_err_set(&err, HB_INVALID, NULL, "%s", text);
  assert_int_equal(strlen(err.message), HB_ERR_MESSAGE_SIZE - 1);
}

/* Wrapping puts the context in front and changes nothing else. */
static void wrap_puts_context_in_front(void **state) {
  (void)state;
  struct hb_err err;
  hb_err_set(&err, HB_IO, "SYNC_FAILED", "no space");
  hb_err_wrap(&err, "stream %s", "flights");
  assert_string_equal(err.message, "stream flights: no space");
  assert_string_equal(err.reason, "SYNC_FAILED");
  assert_int_equal(err.code, HB_IO);
}

/* Context and message together may be too long, or the context alone: cut at the buffer's end. */
static void long_wraps_are_cut(void **state) {
  (void)state;
  char text[HB_ERR_MESSAGE_SIZE + 100];
  struct hb_err err;
  for (size_t size = HB_ERR_MESSAGE_SIZE - 8; size < HB_ERR_MESSAGE_SIZE + 8; size++) {
    memset(text, 'c', size);
    text[size] = 0;
    hb_err_set(&err, HB_IO, NULL, "message");
    hb_err_wrap(&err, "%s", text);
    size_t length = strlen(err.message);
    assert_true(length < HB_ERR_MESSAGE_SIZE);
    assert_memory_equal(err.message, text, length < size ? length : size);
  }
}

/* The numbers are part of what is promised: gRPC's statuses and sysexits' codes. */
static void rows_are_as_documented(void **state) {
  (void)state;
  static const struct {
    enum hb_code code;
    const char *reason;
    int grpc;
    int exit_code;
  } rows[] = {
      {HB_OK, "OK", 0, 0},
      {HB_INVALID, "INVALID", 3, 64},
      {HB_ADDRESS_IN_USE, "ADDRESS_IN_USE", 14, 69},
      {HB_PERMISSION, "PERMISSION", 7, 73},
      {HB_IO, "IO", 14, 74},
      {HB_LOCKED, "LOCKED", 14, 75},
      {HB_VERSION, "VERSION", 9, 76},
      {HB_CORRUPT, "CORRUPT", 15, 65},
      {HB_LIMIT, "LIMIT", 8, 1},
      {HB_UNAVAILABLE, "UNAVAILABLE", 14, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_string_equal(hb_code_reason(rows[i].code), rows[i].reason);
    assert_int_equal(hb_code_grpc_status(rows[i].code), rows[i].grpc);
    assert_int_equal(hb_code_exit(rows[i].code), rows[i].exit_code);
  }
}

/* Every code has a text, a status that gRPC knows, and ends no process as if all were well. */
static void every_row_is_complete(void **state) {
  (void)state;
  for (int i = HB_OK; i < HB_CODE_COUNT; i++) {
    enum hb_code code = (enum hb_code)i;
    assert_true(strlen(hb_code_text(code)) > 0);
    assert_in_range(hb_code_grpc_status(code), 0, 16);
    assert_int_equal(hb_code_exit(code) == 0, code == HB_OK);
    if (code == HB_OK) assert_false(hb_code_is_retryable(code) || hb_code_is_fatal(code));
  }
  assert_true(hb_code_is_retryable(HB_UNAVAILABLE));
  assert_true(hb_code_is_fatal(HB_CORRUPT));
  assert_false(hb_code_is_retryable(HB_CORRUPT));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(set_fills_and_returns),
      cmocka_unit_test(err_may_be_null),
      cmocka_unit_test(reason_defaults_to_the_codes_name),
      cmocka_unit_test(long_messages_are_cut),
      cmocka_unit_test(wrap_puts_context_in_front),
      cmocka_unit_test(long_wraps_are_cut),
      cmocka_unit_test(rows_are_as_documented),
      cmocka_unit_test(every_row_is_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
