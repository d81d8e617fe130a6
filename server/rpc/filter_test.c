/* Filters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/rpc/filter.h"

static ProtobufCBinaryData data(const char *text) {
  return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static void expect(const struct hb_filter *filter, const char *key, bool passes) {
  if (hb_filter_matches(filter, hb_slice_text(key)) != passes) {
    fail_msg("'%s' should %spass", key, passes ? "" : "not ");
  }
}

/* A key passes if it is named or begins with a prefix; overlapping prefixes hide nothing. */
static void keys_and_prefixes(void **state) {
  (void)state;
  ProtobufCBinaryData keys[] = {data("beta"), data("alpha"), data("")};
  ProtobufCBinaryData prefixes[] = {data("user/1"), data("user/"), data("z"), data("user/9/")};
  Holdback__V1__Filter from = HOLDBACK__V1__FILTER__INIT;
  from.n_keys = 3;
  from.keys = keys;
  from.n_key_prefixes = 4;
  from.key_prefixes = prefixes;
  struct hb_limits limits = hb_limits_default();
  struct hb_filter filter;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, NULL), HB_OK);
  expect(&filter, "alpha", true);
  expect(&filter, "beta", true);
  expect(&filter, "", true);
  expect(&filter, "alph", false);
  expect(&filter, "alphabet", false);
  expect(&filter, "user/", true);
  expect(&filter, "user/1", true);
  expect(&filter, "user/15", true);
  expect(&filter, "user/2", true);
  expect(&filter, "user", false);
  expect(&filter, "zebra", true);
  expect(&filter, "y", false);
  hb_filter_done(&filter);
}

/* No filter lets everything through; an empty prefix does too. */
static void everything(void **state) {
  (void)state;
  struct hb_limits limits = hb_limits_default();
  struct hb_filter filter;
  assert_int_equal(hb_filter_init(NULL, &limits, &filter, NULL), HB_OK);
  expect(&filter, "any", true);
  hb_filter_done(&filter);
  ProtobufCBinaryData empty = data("");
  Holdback__V1__Filter from = HOLDBACK__V1__FILTER__INIT;
  from.n_key_prefixes = 1;
  from.key_prefixes = &empty;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, NULL), HB_OK);
  expect(&filter, "any", true);
  expect(&filter, "", true);
  hb_filter_done(&filter);
}

/* Neither keys nor prefixes, too many of them, too many bytes: refused with the numbers. */
static void limits_are_kept(void **state) {
  (void)state;
  struct hb_limits limits = hb_limits_default();
  struct hb_filter filter;
  struct hb_err err;
  Holdback__V1__Filter from = HOLDBACK__V1__FILTER__INIT;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, &err), HB_INVALID);
  assert_string_equal(err.reason, "FILTER_EMPTY");
  ProtobufCBinaryData *keys = calloc(1001, sizeof *keys);
  from.keys = keys;
  from.n_keys = 1001;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, &err), HB_INVALID);
  assert_string_equal(err.message, "filter has 1001 keys and prefixes, filter_keys_max is 1000");
  from.n_keys = 1000;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, &err), HB_OK);
  hb_filter_done(&filter);
  uint8_t *large = calloc(1, 65537);
  keys[0] = (ProtobufCBinaryData){.len = 65537, .data = large};
  from.n_keys = 1;
  assert_int_equal(hb_filter_init(&from, &limits, &filter, &err), HB_INVALID);
  assert_string_equal(err.message, "filter has 65537 bytes, filter_bytes_max is 65536");
  free(large);
  free(keys);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keys_and_prefixes),
                                     cmocka_unit_test(everything),
                                     cmocka_unit_test(limits_are_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
