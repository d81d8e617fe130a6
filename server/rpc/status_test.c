/* Errors on the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "server/rpc/status.h"

/* Every code has a status of gRPC's and details that say the same, with reason and domain. */
static void every_code_has_details(void **state) {
  (void)state;
  for (int code = HB_OK + 1; code < HB_CODE_COUNT; code++) {
    struct hb_err err;
    hb_err_set(&err, (enum hb_code)code, "SOME_REASON", "gaps_max is 0: é");
    grpc_slice details = hb_status_details(&err);
    Google__Rpc__Status *status = google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(details),
                                                              GRPC_SLICE_START_PTR(details));
    assert_non_null(status);
    assert_int_equal(status->code, hb_status_code(&err));
    assert_int_not_equal(status->code, GRPC_STATUS_OK);
    assert_string_equal(status->message, err.message);
    assert_int_equal(status->n_details, 1);
    assert_string_equal(status->details[0]->type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    Google__Rpc__ErrorInfo *info = google__rpc__error_info__unpack(
        NULL, status->details[0]->value.len, status->details[0]->value.data);
    assert_string_equal(info->domain, "holdback");
    assert_string_equal(info->reason, "SOME_REASON");
    google__rpc__error_info__free_unpacked(info, NULL);
    google__rpc__status__free_unpacked(status, NULL);
    grpc_slice_unref(details);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_code_has_details)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
