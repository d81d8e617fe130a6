/* The counts of live objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/live.h"

/* Shared bytes live from their making until the last reference is dropped, wrapped ones too. */
static void shared_bytes_are_counted(void **state) {
  (void)state;
  int64_t before = hb_live_get(HB_LIVE_blocks);
  struct hb_bytes *copied = hb_bytes_copy(hb_slice_text("block"));
  struct hb_bytes *wrapped = hb_bytes_wrap(copied->data, copied->size, NULL, NULL);
  assert_int_equal(hb_live_get(HB_LIVE_blocks), before + 2);
  hb_bytes_unref(hb_bytes_ref(copied));
  assert_int_equal(hb_live_get(HB_LIVE_blocks), before + 2);
  hb_bytes_unref(wrapped);
  hb_bytes_unref(copied);
  assert_int_equal(hb_live_get(HB_LIVE_blocks), before);
}

/* Each kind is counted by itself, under its name. */
static void kinds_are_apart(void **state) {
  (void)state;
  hb_live_born(HB_LIVE_reads);
  assert_int_equal(hb_live_get(HB_LIVE_reads), 1);
  assert_int_equal(hb_live_get(HB_LIVE_calls), 0);
  hb_live_gone(HB_LIVE_reads);
  assert_int_equal(hb_live_get(HB_LIVE_reads), 0);
  assert_string_equal(hb_live_name(HB_LIVE_calls), "calls");
  assert_string_equal(hb_live_name(HB_LIVE_blocks), "blocks");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_bytes_are_counted),
                                     cmocka_unit_test(kinds_are_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
