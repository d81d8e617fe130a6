/* The load is what the figures are about: the order must be the promised one, the bytes checkable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/load.h"

static struct hb_bench_options options_of(uint64_t events, uint64_t disorder) {
  return (struct hb_bench_options){
      .events = events, .disorder = disorder, .payload = 100, .keys = 10, .seed = 7};
}

/* Each sequence is sent exactly once. */
static void order_is_a_permutation(void **state) {
  (void)state;
  struct hb_bench_options options = options_of(10000, 777);
  uint32_t *order = hb_load_order(&options);
  uint8_t *seen = hb_calloc(options.events + 1, 1);
  for (uint64_t i = 0; i < options.events; i++) {
    assert_in_range(order[i], 1, options.events);
    assert_int_equal(seen[order[i]]++, 0);
  }
  free(seen);
  free(order);
}

/* No event is overtaken by one that is `disorder` or more above it, and some are by nearly that. */
static void displacement_slides(void **state) {
  (void)state;
  struct hb_bench_options options = options_of(20000, 500);
  uint32_t *order = hb_load_order(&options);
  uint32_t highest = 0;
  uint32_t furthest = 0;
  for (uint64_t i = 0; i < options.events; i++) {
    if (order[i] > highest) highest = order[i];
    if (highest - order[i] > furthest) furthest = highest - order[i];
  }
  assert_in_range(furthest, 400, 499);
  free(order);
}

/* Aligned windows are no borders: across each multiple of the disorder events change places. */
static void windows_are_not_aligned(void **state) {
  (void)state;
  struct hb_bench_options options = options_of(10000, 1000);
  uint32_t *order = hb_load_order(&options);
  for (uint64_t border = 1000; border < options.events; border += 1000) {
    uint64_t crossed = 0;
    for (uint64_t i = 0; i < border; i++) crossed += order[i] > border;
    assert_true(crossed > 0);
  }
  free(order);
}

/* Disorder 1 is the order itself, and a seed gives the same order again. */
static void order_follows_disorder_and_seed(void **state) {
  (void)state;
  struct hb_bench_options options = options_of(1000, 1);
  uint32_t *order = hb_load_order(&options);
  for (uint64_t i = 0; i < options.events; i++) assert_int_equal(order[i], i + 1);
  free(order);
  options.disorder = 50;
  order = hb_load_order(&options);
  uint32_t *again = hb_load_order(&options);
  assert_memory_equal(order, again, options.events * sizeof *order);
  free(again);
  options.seed++;
  again = hb_load_order(&options);
  assert_memory_not_equal(order, again, options.events * sizeof *order);
  free(again);
  free(order);
}

/* A receiver knows an event by itself: one changed byte, or another event's bytes, are found. */
static void wrong_bytes_are_found(void **state) {
  (void)state;
  struct hb_bench_options options = options_of(10, 1);
  struct hb_load sender;
  struct hb_load receiver;
  hb_load_init(&sender, &options);
  hb_load_init(&receiver, &options);
  struct holdback_event event;
  hb_load_make(&sender, 3, &event);
  assert_int_equal(event.payload.size, 100);
  assert_true(hb_load_is(&receiver, &event));
  event.sequence = 4;
  assert_false(hb_load_is(&receiver, &event));
  event.sequence = 3;
  sender.payload[99] ^= 1;
  assert_false(hb_load_is(&receiver, &event));
  sender.payload[99] ^= 1;
  event.payload.size--;
  assert_false(hb_load_is(&receiver, &event));
  hb_load_done(&receiver);
  hb_load_done(&sender);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_is_a_permutation),  cmocka_unit_test(displacement_slides),
      cmocka_unit_test(windows_are_not_aligned), cmocka_unit_test(order_follows_disorder_and_seed),
      cmocka_unit_test(wrong_bytes_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
