/* Pages of gaps, and of keys that have some: none is missed or repeated, whatever comes between two
 * pages. (Of one key, against a naive model: hb_rig_check of tests/model, in every PER_KEY test.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ordering/gap_list.h"
#include "tests/model/driver.h"
#include "tests/model/per_key_rig.h"

/* ---- GLOBAL */

static struct hb_driver driver;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 40};
}

static int start(void **state) {
  (void)state;
  hb_driver_start(&driver, NULL);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

static struct hb_gap_page page_from(int64_t from, struct hb_gap *gaps, size_t max) {
  struct hb_gap_page page = {.from = from, .gaps = gaps, .max = max};
  assert_true(hb_ordering_list_gaps(driver.core, 1, (struct hb_slice){0}, &page));
  return page;
}

/* Several pages of the interval set's, each once, with the time when a gap was first seen. */
static void all_gaps_of_a_stream(void **state) {
  (void)state;
  enum { GAPS = 1000, PAGE = 7 };
  static struct hb_test_event events[GAPS];
  for (int i = 0; i < GAPS; i++) events[i] = event(4 + 3 * i);
  hb_driver_submit(&driver, 1, 1, events, GAPS);
  hb_driver_settle(&driver);
  struct hb_gap gaps[PAGE];
  int64_t next = 1;
  for (int64_t from = INT64_MIN, count = 0;; from = gaps[PAGE - 1].end) {
    struct hb_gap_page page = page_from(from, gaps, PAGE);
    for (size_t i = 0; i < page.count; i++, count++) {
      assert_int_equal(gaps[i].start, next);
      assert_int_equal(gaps[i].end, 4 + 3 * count);
      assert_int_equal(gaps[i].first_seen_served_ms, driver.now.served_ms);
      next = gaps[i].end + 1;
    }
    assert_int_equal(page.more, count < GAPS);
    if (!page.more) break;
  }
  assert_int_equal(next, 4 + 3 * (GAPS - 1) + 1);
}

/* What is filled between two pages is not told by the second one, nor is any of the first. */
static void filled_between_two_pages(void **state) {
  (void)state;
  hb_driver_send(&driver, 1, event(5));
  hb_driver_send(&driver, 1, event(10));
  hb_driver_send(&driver, 1, event(20));
  struct hb_gap gaps[3];
  struct hb_gap_page page = page_from(INT64_MIN, gaps, 1);
  assert_true(page.more);
  assert_int_equal(gaps[0].end, 5);
  hb_driver_send(&driver, 1, event(3));
  hb_driver_send(&driver, 1, event(6));
  hb_driver_send(&driver, 1, event(7));
  page = page_from(5, gaps, 3);
  assert_int_equal(page.count, 2);
  assert_int_equal(gaps[0].start, 8);
  assert_int_equal(gaps[1].start, 11);
  for (int64_t i = 1; i < 12; i++) hb_driver_send(&driver, 1, event(i));
  page = page_from(10, gaps, 3);
  assert_int_equal(page.count, 1);
  assert_int_equal(gaps[0].start, 12);
  assert_int_equal(page_from(20, gaps, 3).count, 0);
  assert_int_equal(page_from(INT64_MAX, gaps, 3).count, 0);
}

/* There is nothing of a stream that is not there, and no keys where keys have no gaps of their own.
 */
static void other_streams(void **state) {
  (void)state;
  struct hb_gap gap;
  struct hb_gap_page page = {.gaps = &gap, .max = 1};
  assert_false(hb_ordering_list_gaps(driver.core, 2, (struct hb_slice){0}, &page));
  assert_int_equal(page_from(INT64_MIN, &gap, 1).count, 0);
  struct hb_buf bytes = {0};
  struct hb_key_gaps key;
  struct hb_gap_keys_page keys = {.keys = &key, .max = 1, .looks_max = 1, .bytes = &bytes};
  assert_false(hb_ordering_list_gap_keys(driver.core, 1, &keys));
}

/* ---- PER_KEY */

static struct hb_per_key_rig rig;

static int rig_start(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  hb_rig_start(&rig, &config, NULL);
  return 0;
}

static int rig_stop(void **state) {
  (void)state;
  hb_rig_stop(&rig);
  return 0;
}

/* Keys [from, to) get an event that waits; every third one that does not, too. */
static void send_keys(int from, int to) {
  for (int i = from; i < to; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "%s%d", i % 2 ? "odd" : "even", i);
    struct hb_test_event one = {.sequence = i % 3 == 0 ? 0 : 1, .key = name};
    hb_test_batch_destroy(hb_rig_send(&rig, &one, 1));
  }
}

struct seen {
  int times[200];
  size_t pages;
};

/* Up to `pages` of them; true: there are more. */
static bool see(struct hb_gap_keys_page *page, struct seen *seen, size_t pages) {
  static char last[16];
  struct hb_key_gaps keys[3];
  struct hb_buf bytes = {0};
  page->keys = keys;
  page->max = 3;
  if (!page->bytes_max) page->bytes_max = 1000;
  page->bytes = &bytes;
  bool more = true;
  for (size_t n = 0; n < pages && more; n++, seen->pages++) {
    hb_buf_clear(&bytes);
    assert_true(hb_ordering_list_gap_keys(rig.core, HB_RIG_STREAM, page));
    for (size_t i = 0; i < page->count; i++) {
      memset(last, 0, sizeof last);
      memcpy(last, keys[i].key.data, keys[i].key.size);
      seen->times[strtol(strpbrk(last, "0123456789"), NULL, 10)]++;
      assert_int_equal(keys[i].complete_to, 0);
      assert_int_equal(keys[i].gap.end, 1);
    }
    more = page->more;
    page->order = page->more_order;
    page->has_after = page->more_has_key;
    page->after = hb_slice_text(last);
  }
  hb_buf_done(&bytes);
  return more;
}

/* Keys that were there all the time are told once each, though the table grew to many times its
 * size, and was another one after a restart; those without a gap never. */
static void the_table_changes_between_pages(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hb_gap_keys_page page = {.looks_max = 4};
  send_keys(0, 20);
  assert_true(see(&page, &seen, 3));
  send_keys(20, 60);
  assert_true(see(&page, &seen, 3));
  hb_rig_recover(&rig);
  while (see(&page, &seen, 1)) hb_rig_recover(&rig);
  for (int i = 0; i < 20; i++) assert_int_equal(seen.times[i], i % 3 != 0);
  for (int i = 20; i < 60; i++) assert_in_range(seen.times[i], 0, i % 3 != 0);
  assert_true(seen.pages > 12);
}

/* A page looks at a bounded part of the table, so it may be empty though more follow; and only keys
 * with the prefix count. */
static void prefix(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hb_gap_keys_page page = {.looks_max = 1, .prefix = hb_slice_text("odd")};
  send_keys(0, 30);
  (void)see(&page, &seen, SIZE_MAX);
  for (int i = 0; i < 30; i++) assert_int_equal(seen.times[i], i % 2 == 1 && i % 3 != 0);
  assert_true(seen.pages >= 64);
}

/* Bytes of keys bound a page, but one key always fits. A page may end between two keys of one place
 * of the table. */
static void long_keys(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hb_gap_keys_page page = {.bytes_max = 1, .looks_max = 1000};
  send_keys(0, 60);
  (void)see(&page, &seen, SIZE_MAX);
  for (int i = 0; i < 60; i++) assert_int_equal(seen.times[i], i % 3 != 0);
  assert_in_range(seen.pages, 40, 41);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
#define KEYED(name) cmocka_unit_test_setup_teardown(name, rig_start, rig_stop)
  const struct CMUnitTest tests[] = {
      TEST(all_gaps_of_a_stream),
      TEST(filled_between_two_pages),
      TEST(other_streams),
      KEYED(the_table_changes_between_pages),
      KEYED(prefix),
      KEYED(long_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
