/* What is read from the first bytes of a connection. That gRPC writes them so is tested with a real
 * server, under tests/abuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/rpc/pressure.h"

enum { HIGH = HB_PRESSURE_HIGH, LOW = HB_PRESSURE_LOW, UNKNOWN = HB_PRESSURE_UNKNOWN };

static const struct {
  const char *what;
  size_t size;
  int expected;
  uint8_t bytes[32];
} rows[] = {
    {"nothing", 0, UNKNOWN, {0}},
    {"half a head", 8, UNKNOWN, {0, 0, 6, 4}},
    {"half a frame", 14, UNKNOWN, {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0}},
    {"128 bytes", 15, HIGH, {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 128}},
    {"16,383 bytes", 15, HIGH, {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0x3f, 0xff}},
    {"16,384 bytes", 15, LOW, {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0x40, 0}},
    {"the second setting", 21, HIGH, {0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 3,
                                      0, 0, 0,  9, 0, 4, 0, 0, 1, 0}},
    {"another setting", 15, LOW, {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 128}},
    {"no setting", 9, LOW, {0, 0, 0, 4}},
    {"a setting cut short", 13, LOW, {0, 0, 4, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0}},
    {"another frame", 15, LOW, {0, 0, 6, 7, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 128}},
};

/* Only a whole SETTINGS frame that gives a small window says that memory is short. */
static void window_tells(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int found = (int)hb_pressure_of(rows[i].bytes, rows[i].size);
    if (found != rows[i].expected) fail_msg("%s: %d", rows[i].what, found);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(window_tells)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
