/* What calls end with: details, transience, waiting, names, UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "client/backoff.h"
#include "client/status.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

static size_t pack_status(const char *message, const char *type_url, uint8_t *out) {
  Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
  info.reason = (char *)"KEY_TOO_LARGE";
  uint8_t value[64];
  Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
  any.type_url = (char *)type_url;
  any.value = (ProtobufCBinaryData){google__rpc__error_info__pack(&info, value), value};
  Google__Protobuf__Any *details[] = {&any};
  Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
  status.code = 3;
  status.message = (char *)message;
  status.n_details = 1;
  status.details = details;
  return google__rpc__status__pack(&status, out);
}

/* Reason and message come from google.rpc.Status, whatever host the type's URL names. */
static void details_are_read(void **state) {
  (void)state;
  uint8_t bytes[256];
  static const char *const urls[] = {"type.googleapis.com/google.rpc.ErrorInfo",
                                     "/google.rpc.ErrorInfo"};
  for (size_t i = 0; i < 2; i++) {
    struct holdback_error error = {.status = 3, .message = "short"};
    size_t size = pack_status("key: 70000 bytes", urls[i], bytes);
    hbc_status_details_decode(hb_slice_of(bytes, size), &error);
    assert_string_equal(error.reason, "KEY_TOO_LARGE");
    assert_string_equal(error.message, "key: 70000 bytes");
  }
}

/* Other details, none, and malformed ones leave what the status line said. */
static void other_details_are_left(void **state) {
  (void)state;
  uint8_t bytes[256];
  struct holdback_error error = {.status = 3, .message = "short"};
  size_t size = pack_status("", "type.googleapis.com/google.rpc.RetryInfo", bytes);
  hbc_status_details_decode(hb_slice_of(bytes, size), &error);
  hbc_status_details_decode(hb_slice_of("\xff\xff", 2), &error);
  hbc_status_details_decode(hb_slice_of("", 0), &error);
  assert_string_equal(error.reason, "");
  assert_string_equal(error.message, "short");
}

/* Only the connection's own ends and UNAVAILABLE are worth another try. */
static void transience(void **state) {
  (void)state;
  static const struct {
    int status;
    const char *reason;
    bool transient;
    const char *message;
  } rows[] = {
      {HOLDBACK_UNAVAILABLE, "", true, ""},
      {HOLDBACK_UNAVAILABLE, "STOPPING", true, ""},
      {HOLDBACK_UNKNOWN, "", true, ""},
      {HOLDBACK_INTERNAL, "", true, ""},
      {HOLDBACK_INTERNAL, "INTERNAL", false, ""},
      {HOLDBACK_INVALID_ARGUMENT, "", false, ""},
      {HOLDBACK_NOT_FOUND, "NOT_FOUND", false, ""},
      {HOLDBACK_FAILED_PRECONDITION, "X", false, ""},
      {HOLDBACK_RESOURCE_EXHAUSTED, "", true, "s: Received RST_STREAM with error code 11"},
      {HOLDBACK_RESOURCE_EXHAUSTED, "", false, "s: Received message larger than max (9 vs. 8)"},
      {HOLDBACK_RESOURCE_EXHAUSTED, "TOO_MANY_CALLS", false, ""},
      {HOLDBACK_UNIMPLEMENTED, "", false, ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct holdback_error error = {.status = rows[i].status};
    strcpy(error.reason, rows[i].reason);
    strcpy(error.message, rows[i].message);
    assert_int_equal(hbc_status_is_transient(&error), rows[i].transient);
  }
}

/* The delay doubles from 50 ms to 1 s, less up to a quarter; a success begins anew. */
static void backoff_delays(void **state) {
  (void)state;
  struct hbc_backoff backoff = {0};
  static const uint32_t delays[] = {50, 100, 200, 400, 800, 1000, 1000};
  for (size_t i = 0; i < sizeof delays / sizeof *delays; i++)
    assert_int_equal(hbc_backoff_failed(&backoff, 0), delays[i]);
  for (uint32_t dice = 0; dice < 1000; dice++) {
    uint32_t delay = hbc_backoff_failed(&backoff, dice);
    assert_in_range(delay, 750, 1000);
  }
  hbc_backoff_succeeded(&backoff);
  assert_int_equal(hbc_backoff_failed(&backoff, 0), 50);
}

/* The time without a server counts from the first attempt, not from the last. */
static void backoff_ends(void **state) {
  (void)state;
  struct hbc_backoff backoff = {0};
  assert_false(hbc_backoff_is_over(&backoff, 1000, 10));
  hbc_backoff_attempt(&backoff, 1000);
  hbc_backoff_attempt(&backoff, 1500);
  assert_false(hbc_backoff_is_over(&backoff, 1999, 1000));
  assert_true(hbc_backoff_is_over(&backoff, 2000, 1000));
  hbc_backoff_succeeded(&backoff);
  assert_false(hbc_backoff_is_over(&backoff, 9999, 1000));
}

/* Every number has a name, those that nobody knows too. */
static void names(void **state) {
  (void)state;
  assert_string_equal(holdback_outcome_name(HOLDBACK_STORED), "STORED");
  assert_string_equal(holdback_outcome_name(HOLDBACK_WINDOW_FULL), "WINDOW_FULL");
  assert_string_equal(holdback_outcome_name(0), "UNKNOWN");
  assert_string_equal(holdback_outcome_name(99), "UNKNOWN");
  assert_string_equal(holdback_outcome_name(-1), "UNKNOWN");
  assert_string_equal(holdback_reason_name(0), "");
  assert_string_equal(holdback_reason_name(9), "HELD_EVENTS");
  assert_string_equal(holdback_status_name(HOLDBACK_NOT_FOUND), "NOT_FOUND");
  assert_string_equal(holdback_status_name(17), "UNKNOWN");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(details_are_read), cmocka_unit_test(other_details_are_left),
      cmocka_unit_test(transience),       cmocka_unit_test(backoff_delays),
      cmocka_unit_test(backoff_ends),     cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
