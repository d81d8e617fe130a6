#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "storage/crc32c_internal.h"

struct row {
  uint8_t first;
  uint8_t step; /* each byte is the one before plus this */
  size_t size;
  uint32_t crc;
};

/* The vectors of RFC 3720, B.4. */
static void the_known_vectors(void **state) {
  (void)state;
  static const struct row ROWS[] = {
      {0x00, 0, 32, 0x8a9136aaU},
      {0xff, 0, 32, 0x62a8ab43U},
      {0x00, 1, 32, 0x46dd794eU},
      {0x1f, 0xff, 32, 0x113fdb5cU},
  };
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    uint8_t bytes[32];
    for (size_t at = 0; at < sizeof bytes; at++) {
      bytes[at] = (uint8_t)(ROWS[i].first + at * ROWS[i].step);
    }
    struct hb_slice slice = hb_slice_of(bytes, ROWS[i].size);
    assert_int_equal(hb_crc32c(0, slice), ROWS[i].crc);
    assert_int_equal(hb_crc32c_by_tables(0, slice), ROWS[i].crc);
  }
  struct hb_slice digits = hb_slice_text("123456789");
  assert_int_equal(hb_crc32c(0, digits), 0xe3069283U);
  assert_int_equal(hb_crc32c_by_tables(0, digits), 0xe3069283U);
}

/* A checksum in pieces, at any address, is that of the whole. */
static void pieces_add_up(void **state) {
  (void)state;
  uint8_t bytes[100];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + 11);
  uint32_t whole = hb_crc32c(0, hb_slice_of(bytes, sizeof bytes));
  for (size_t cut = 0; cut <= sizeof bytes; cut++) {
    struct hb_slice left = hb_slice_of(bytes, cut);
    struct hb_slice right = hb_slice_of(bytes + cut, sizeof bytes - cut);
    assert_int_equal(hb_crc32c(hb_crc32c(0, left), right), whole);
    assert_int_equal(hb_crc32c_by_tables(hb_crc32c_by_tables(0, left), right), whole);
  }
}

static void the_mask_is_rocksdbs(void **state) {
  (void)state;
  assert_int_equal(hb_crc32c_mask(0), 0xa282ead8U);
  assert_int_equal(hb_crc32c_mask(0x8000U), 0xa282ead9U);
  assert_int_equal(hb_crc32c_mask(1), 0xa284ead8U);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_known_vectors),
      cmocka_unit_test(pieces_add_up),
      cmocka_unit_test(the_mask_is_rocksdbs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
