/* Rules of the small headers: base/endian.h, base/types.h, base/clock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/clock.h"
#include "base/endian.h"
#include "base/types.h"

static int sign(int value) { return (value > 0) - (value < 0); }

/* The bytes are what docs/FORMAT.md says, whatever the machine; reading gives the value back. */
static void integers_have_fixed_bytes(void **state) {
  (void)state;
  uint8_t at[9];
  uint8_t *odd = at + 1; /* no alignment is asked for */
  hb_put_u32_le(odd, 0x01020304);
  assert_memory_equal(odd, "\x04\x03\x02\x01", 4);
  assert_int_equal(hb_get_u32_le(odd), 0x01020304);
  hb_put_u32_be(odd, 0x01020304);
  assert_memory_equal(odd, "\x01\x02\x03\x04", 4);
  assert_int_equal(hb_get_u32_be(odd), 0x01020304);
  hb_put_u64_le(odd, UINT64_C(0x0102030405060708));
  assert_memory_equal(odd, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  assert_int_equal(hb_get_u64_le(odd), UINT64_C(0x0102030405060708));
  hb_put_u64_be(odd, UINT64_C(0x0102030405060708));
  assert_memory_equal(odd, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  assert_int_equal(hb_get_u64_be(odd), UINT64_C(0x0102030405060708));
}

/* In a key the order of the bytes is the order of signed numbers. */
static void flipped_keys_ascend(void **state) {
  (void)state;
  static const int64_t ascending[] = {INT64_MIN, INT64_MIN + 1, -256, -1, 0, 1, 255, INT64_MAX};
  uint8_t before[8] = {0};
  for (size_t i = 0; i < sizeof ascending / sizeof ascending[0]; i++) {
    uint8_t key[8];
    hb_put_u64_be(key, hb_flip_sign(ascending[i]));
    assert_int_equal(hb_unflip_sign(hb_get_u64_be(key)), ascending[i]);
    if (i > 0) assert_true(memcmp(before, key, 8) < 0);
    memcpy(before, key, 8);
  }
}

/* Instants are ordered by seconds, then nanos; an absent one comes before all. */
static void instants_are_ordered(void **state) {
  (void)state;
  static const struct hb_time ascending[] = {
      {0, 0, false}, {INT64_MIN, 0, true}, {-1, 999999999, true},  {0, 0, true},
      {0, 1, true},  {1, 0, true},         {INT64_MAX, 999, true},
  };
  int count = sizeof ascending / sizeof ascending[0];
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < count; j++) {
      assert_int_equal(sign(hb_time_compare(ascending[i], ascending[j])), sign(i - j));
    }
  }
}

/* Monotonic time never goes back; its two units agree; wall time is of this age. */
static void clocks_run(void **state) {
  (void)state;
  uint64_t last_ns = hb_clock_mono_ns();
  for (int i = 0; i < 1000; i++) {
    uint64_t now_ns = hb_clock_mono_ns();
    assert_true(now_ns >= last_ns);
    last_ns = now_ns;
  }
  uint64_t now_ms = hb_clock_mono_ms();
  assert_true(now_ms >= last_ns / 1000000);
  assert_true(now_ms <= hb_clock_mono_ns() / 1000000);
  assert_true(hb_clock_wall_ms() > UINT64_C(1577836800000)); /* 2020 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_have_fixed_bytes),
      cmocka_unit_test(flipped_keys_ascend),
      cmocka_unit_test(instants_are_ordered),
      cmocka_unit_test(clocks_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
