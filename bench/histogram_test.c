/* Latencies are only as good as the histogram: what is told must be within a thousandth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "bench/histogram.h"

static void *made(void) { return hb_calloc(1, sizeof(struct hb_histogram)); }

/* Nothing recorded, nothing told. */
static void empty_is_zero(void **state) {
  (void)state;
  struct hb_histogram *histogram = made();
  assert_int_equal(hb_histogram_quantile(histogram, 0.5), 0);
  assert_int_equal(hb_histogram_quantile(histogram, 1), 0);
  free(histogram);
}

/* One value of any size comes back as itself, at every quantile: the maximum bounds the part. */
static void one_value_is_exact(void **state) {
  (void)state;
  static const uint64_t values[] = {0, 1, 1023, 1024, 1025, 999999, 123456789, 1000000000000};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    struct hb_histogram *histogram = made();
    hb_histogram_record(histogram, values[i]);
    assert_int_equal(hb_histogram_quantile(histogram, 0.5), values[i]);
    assert_int_equal(hb_histogram_quantile(histogram, 0.999), values[i]);
    free(histogram);
  }
}

/* Of 1 .. 1,000,000 each quantile is its own number, within a five-hundredth, and never below. */
static void quantiles_are_within_the_promised_error(void **state) {
  (void)state;
  struct hb_histogram *histogram = made();
  for (uint64_t value = 1; value <= 1000000; value++) hb_histogram_record(histogram, value);
  static const double shares[] = {0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
  for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
    double exact = shares[i] * 1000000;
    double told = (double)hb_histogram_quantile(histogram, shares[i]);
    assert_true(told >= exact - 1);
    assert_true(told <= exact * 1.002 + 1);
  }
  free(histogram);
}

/* A tail of one in a thousand is seen at p99.9 and not at p99. */
static void tail_is_seen(void **state) {
  (void)state;
  struct hb_histogram *histogram = made();
  for (int i = 0; i < 9980; i++) hb_histogram_record(histogram, 1000);
  for (int i = 0; i < 20; i++) hb_histogram_record(histogram, 50000000);
  assert_int_equal(hb_histogram_quantile(histogram, 0.99), 1000);
  assert_true(hb_histogram_quantile(histogram, 0.999) >= 50000000 - 50000);
  free(histogram);
}

/* Two halves merged are the whole, and what is too long counts as the longest there is. */
static void merging_and_the_longest(void **state) {
  (void)state;
  struct hb_histogram *whole = made();
  struct hb_histogram *half = made();
  hb_histogram_record(whole, 10);
  hb_histogram_record(half, UINT64_MAX);
  hb_histogram_merge(whole, half);
  assert_int_equal(whole->total, 2);
  assert_int_equal(hb_histogram_quantile(whole, 0.5), 10);
  assert_int_equal(hb_histogram_quantile(whole, 1), (UINT64_C(1) << 40) - 1);
  free(half);
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(empty_is_zero),
      cmocka_unit_test(one_value_is_exact),
      cmocka_unit_test(quantiles_are_within_the_promised_error),
      cmocka_unit_test(tail_is_seen),
      cmocka_unit_test(merging_and_the_longest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
