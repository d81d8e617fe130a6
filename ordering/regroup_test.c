/* Wide bundles are sorted into narrow ones before they are spilled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/model/driver.h"

enum { BATCHES = 200, EACH = 100, FIRST_HELD = 2, MEMORY = 256 << 10 };

static struct hb_driver driver;
static struct hb_fake_stream *stored;

/* Five times the memory, in bundles that each reach over everything that is held. */
static int hold_wide_bundles(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default(), .bundle_bytes = 16 << 10};
  options.limits.held_memory_max = MEMORY;
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  stored = hb_fake_find(&driver.store, 1);
  for (int i = 0; i < BATCHES; i++) {
    struct hb_test_event events[EACH];
    for (int k = 0; k < EACH; k++) {
      events[k] = (struct hb_test_event){
          .sequence = FIRST_HELD + i + k * BATCHES, .content = 7, .size = 40};
    }
    hb_driver_submit(&driver, 1, 1, events, EACH);
    hb_driver_settle(&driver);
  }
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* What waits lies in exactly one bundle all the time (I10), and nothing is counted twice. */
static void nothing_is_lost_or_doubled(void **state) {
  (void)state;
  hb_fake_check(stored);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.held_events, BATCHES * EACH);
  assert_int_equal(status.record.counters.held, BATCHES * EACH);
  assert_int_equal(status.held_bytes, hb_fake_held_bytes(stored));
}

/* A release reads each bundle back about once. (Left wide, each would be read for every event or
 * two: thousands of times in all.) */
static void a_release_reads_each_bundle_about_once(void **state) {
  (void)state;
  size_t bundles = stored->bundles_count;
  size_t fetches = 0;
  struct hb_test_event first = {.sequence = 1, .content = 7, .size = 40};
  hb_driver_submit(&driver, 1, 1, &first, 1);
  do {
    fetches += hb_driver_fetches(&driver);
  } while (hb_driver_commit(&driver) || hb_ordering_has_work(driver.core));
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, FIRST_HELD + BATCHES * EACH);
  assert_true(fetches > 0);
  assert_true(fetches <= 2 * bundles);
  hb_fake_check(stored);
}

/* The bundles are the truth after a restart, sorted or not. */
static void a_restart_goes_on(void **state) {
  (void)state;
  hb_driver_restart(&driver);
  hb_driver_send(&driver, 1, (struct hb_test_event){.sequence = 1, .content = 7, .size = 40});
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, FIRST_HELD + BATCHES * EACH);
  hb_fake_check(stored);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nothing_is_lost_or_doubled, hold_wide_bundles, stop),
      cmocka_unit_test_setup_teardown(a_release_reads_each_bundle_about_once, hold_wide_bundles,
                                      stop),
      cmocka_unit_test_setup_teardown(a_restart_goes_on, hold_wide_bundles, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
