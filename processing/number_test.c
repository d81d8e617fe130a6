#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "processing/number.h"

static struct hbp_bytes bytes(const char *text) { return (struct hbp_bytes){text, strlen(text)}; }

/* What is a number comes back as its shortest text. */
static void test_round_trip(void **state) {
  (void)state;
  static const char *const CASES[][2] = {{"0", "0"},
                                         {"-0", "0"},
                                         {"007", "7"},
                                         {"1.50", "1.5"},
                                         {"-0.25", "-0.25"},
                                         {"10", "10"},
                                         {"0.000000001", "0.000000001"},
                                         {"9223372036854775807", "9223372036854775807"},
                                         {"-9223372036854775808", "-9223372036854775808"},
                                         {"100.001", "100.001"}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    hb_number number;
    char error[200];
    char text[HB_NUMBER_TEXT_SIZE];
    assert_true(hb_number_parse(bytes(CASES[i][0]), &number, error, sizeof error));
    assert_int_equal(hb_number_print(number, text), strlen(CASES[i][1]));
    assert_string_equal(text, CASES[i][1]);
  }
}

/* What is none is refused, and shown. */
static void test_refused(void **state) {
  (void)state;
  static const char *const CASES[] = {"",
                                      "-",
                                      ".5",
                                      "5.",
                                      "+5",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "1_0",
                                      "0x1",
                                      "--1",
                                      "1.0000000001",
                                      "9223372036854775809"};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    hb_number number;
    char error[200] = "";
    assert_false(hb_number_parse(bytes(CASES[i]), &number, error, sizeof error));
    assert_non_null(strstr(error, CASES[i]));
  }
}

/* A mean is rounded half away from zero at the ninth decimal. */
static void test_mean(void **state) {
  (void)state;
  static const struct {
    long sum;
    unsigned long count;
    long mean;
  } CASES[] = {{10, 4, 3}, {-10, 4, -3}, {9, 4, 2}, {-9, 4, -2}, {0, 3, 0}, {7, 1, 7}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    assert_true(hb_number_mean(CASES[i].sum, CASES[i].count) == CASES[i].mean);
  }
}

/* A count is decimal text, from 0 to the largest. */
static void test_count(void **state) {
  (void)state;
  static const uint64_t CASES[] = {0, 1, 9, 10, 99, 100, 1234567890, UINT64_MAX - 1, UINT64_MAX};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    char text[HB_NUMBER_TEXT_SIZE];
    char expected[32];
    int size = snprintf(expected, sizeof expected, "%llu", (unsigned long long)CASES[i]);
    assert_int_equal(hb_number_print_count(CASES[i], text), size);
    assert_string_equal(text, expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_mean),
                                     cmocka_unit_test(test_count)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
