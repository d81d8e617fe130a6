#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/frame/block.h"
#include "tests/model/driver.h"

static struct hb_driver driver;
static struct hb_stream_config config;
static struct hb_err err;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 40};
}

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  config = hb_driver_config(1);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* A bundle of the sequences [from, to). */
static struct hb_bytes *bundle(int64_t from, int64_t to) {
  static const uint8_t frame[] = {0x0A, 2, 8, 1};
  struct hb_block_entry entries[64];
  for (int64_t i = from; i < to; i++) {
    entries[i - from] = (struct hb_block_entry){.sequence = i, .frame = frame, .frame_size = 4};
  }
  return hb_block_encode(HB_BLOCK_EVENTS, from, to, (struct hb_time){0}, entries,
                         (size_t)(to - from));
}

static enum hb_code recover(uint64_t commit, int64_t from, int64_t to) {
  struct hb_bytes *bytes = bundle(from, to);
  enum hb_code code = hb_ordering_recover_bundle(
      driver.core, (struct hb_bundle_id){.stream = 1, .commit = commit}, bytes, &err);
  hb_bytes_unref(bytes);
  return code;
}

static void add(int64_t frontier, int64_t complete_to) {
  struct hb_frontier record = hb_ordering_new_record(&config);
  record.frontier = frontier;
  record.complete_to = complete_to;
  record.any = true;
  record.highest = 100;
  assert_int_equal(hb_ordering_add_stream(driver.core, 1, &config, &record, NULL), HB_OK);
}

static enum hb_code end(void) { return hb_ordering_recover_end(driver.core, 1, driver.now, &err); }

/* Bundles in any order give the coverage back; an unfinished release goes on by itself. */
static void coverage_is_derived_from_bundles(void **state) {
  (void)state;
  add(5, 12);
  assert_int_equal(recover(3, 20, 22), HB_OK);
  assert_int_equal(recover(2, 8, 12), HB_OK);
  assert_int_equal(recover(1, 3, 8), HB_OK); /* 3 and 4 are released already */
  assert_int_equal(end(), HB_OK);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.held_events, 9);
  assert_int_equal(status.gaps_total, 1);
  assert_int_equal(status.gaps[0].start, 12);
  assert_true(hb_ordering_has_work(driver.core));
}

/* Coverage that ends elsewhere than complete_to is refused with both numbers. */
static void coverage_must_end_at_complete_to(void **state) {
  (void)state;
  add(5, 12);
  assert_int_equal(recover(1, 5, 10), HB_OK);
  assert_int_equal(end(), HB_CORRUPT);
  assert_non_null(strstr(err.message, "10"));
  assert_non_null(strstr(err.message, "12"));
  assert_non_null(strstr(err.message, "stream 1"));
}

static void coverage_beyond_complete_to_is_refused(void **state) {
  (void)state;
  add(5, 5);
  assert_int_equal(recover(1, 5, 6), HB_OK);
  assert_int_equal(end(), HB_CORRUPT);
}

/* I10: a sequence at or above the frontier in two bundles is refused. */
static void a_sequence_in_two_bundles_is_refused(void **state) {
  (void)state;
  add(1, 1);
  assert_int_equal(recover(1, 10, 20), HB_OK);
  assert_int_equal(recover(2, 19, 21), HB_CORRUPT);
  assert_non_null(strstr(err.message, "another bundle"));
}

static void damaged_bundles_are_refused(void **state) {
  (void)state;
  add(1, 1);
  struct hb_bytes *bytes = bundle(5, 9);
  uint8_t copy[512];
  memcpy(copy, bytes->data, bytes->size);
  copy[bytes->size / 2] ^= 1;
  struct hb_bytes *damaged = hb_bytes_copy(hb_slice_of(copy, bytes->size));
  struct hb_bundle_id id = {.stream = 1, .commit = 77};
  assert_int_equal(hb_ordering_recover_bundle(driver.core, id, damaged, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "bundle 77/0"));
  id.stream = 9;
  assert_int_equal(hb_ordering_recover_bundle(driver.core, id, bytes, &err), HB_CORRUPT);
  hb_bytes_unref(bytes);
  hb_bytes_unref(damaged);
}

static void a_bundle_before_any_first_sequence_is_refused(void **state) {
  (void)state;
  config.first_seen = true;
  struct hb_frontier record = hb_ordering_new_record(&config);
  assert_int_equal(hb_ordering_add_stream(driver.core, 1, &config, &record, NULL), HB_OK);
  assert_int_equal(recover(1, 5, 6), HB_CORRUPT);
}

/* A bundle with nothing left is deleted by the next commit, and only by one that writes. */
static void empty_bundles_are_deleted(void **state) {
  (void)state;
  add(50, 50);
  assert_int_equal(recover(4, 40, 50), HB_OK);
  assert_int_equal(end(), HB_OK);
  assert_false(hb_ordering_has_work(driver.core));
  assert_null(hb_ordering_decide(driver.core, driver.now));
  struct hb_test_event one = event(60);
  hb_driver_submit(&driver, 1, 1, &one, 1);
  const struct hb_commit *commit = hb_ordering_decide(driver.core, driver.now);
  assert_int_equal(commit->drained_count, 1);
  assert_int_equal(commit->drained[0].commit, 4);
  hb_ordering_committed(driver.core, commit);
  hb_driver_collect(&driver);
}

/* Commit numbers go on above what was found. */
static void numbering_goes_on(void **state) {
  (void)state;
  hb_driver_add(&driver, 1, &config);
  hb_driver_send(&driver, 1, event(1));
  hb_driver_send(&driver, 1, event(2));
  uint64_t before = driver.last.number;
  hb_driver_restart(&driver);
  hb_driver_send(&driver, 1, event(3));
  assert_int_equal(driver.last.number, before + 1);
}

/* More bundles than memory has room for: the lowest stay, all are released. */
static void recovers_more_than_fits_into_memory(void **state) {
  (void)state;
  driver.options.limits.held_memory_max = 2000;
  driver.options.bundle_bytes = 600;
  hb_driver_add(&driver, 1, &config);
  hb_driver_restart(&driver);
  struct hb_test_event events[200];
  for (int i = 0; i < 200; i++) events[i] = event(2 + i);
  hb_driver_submit(&driver, 1, 1, events, 200);
  hb_driver_settle(&driver);
  hb_driver_restart(&driver);
  hb_driver_send(&driver, 1, event(1));
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 202);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(coverage_is_derived_from_bundles),
      TEST(coverage_must_end_at_complete_to),
      TEST(coverage_beyond_complete_to_is_refused),
      TEST(a_sequence_in_two_bundles_is_refused),
      TEST(damaged_bundles_are_refused),
      TEST(a_bundle_before_any_first_sequence_is_refused),
      TEST(empty_bundles_are_deleted),
      TEST(numbering_goes_on),
      TEST(recovers_more_than_fits_into_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
