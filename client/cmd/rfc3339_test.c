/* Instants as text: known ones both ways, offsets, and what is no instant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>
#include <time.h>

#include "client/cmd/rfc3339.h"

/* The canonical text of an instant is read back as that instant. */
static void both_ways(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t seconds;
    int32_t nanos;
  } rows[] = {
      {"1970-01-01T00:00:00Z", 0, 0},
      {"1969-12-31T23:59:59.999999999Z", -1, 999999999},
      {"2001-01-01T01:24:00Z", 978312240, 0},
      {"2000-02-29T12:00:00.500Z", 951825600, 500000000},
      {"2026-11-29T22:00:00.000001Z", 1795989600, 1000},
      {"0001-01-01T00:00:00Z", -62135596800, 0},
      {"9999-12-31T23:59:59.999999999Z", 253402300799, 999999999},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[RFC3339_SIZE];
    int64_t seconds;
    int32_t nanos;
    rfc3339_format(rows[i].seconds, rows[i].nanos, text);
    assert_string_equal(text, rows[i].text);
    assert_null(rfc3339_parse(text, strlen(text), &seconds, &nanos));
    assert_int_equal(seconds, rows[i].seconds);
    assert_int_equal(nanos, rows[i].nanos);
  }
}

/* Every day from 1600 to 2400 agrees with the C library's calendar. */
static void every_day(void **state) {
  (void)state;
  for (int64_t day = -135140; day < 157054; day++) {
    char text[RFC3339_SIZE];
    char expected[RFC3339_SIZE];
    time_t at = (time_t)(day * 86400 + 3661);
    struct tm parts;
    gmtime_r(&at, &parts);
    strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", &parts);
    rfc3339_format(at, 0, text);
    if (strcmp(text, expected) != 0) fail_msg("%s, expected %s", text, expected);
    int64_t seconds;
    int32_t nanos;
    assert_null(rfc3339_parse(text, strlen(text), &seconds, &nanos));
    if (seconds != at) fail_msg("%s is read as %lld", text, (long long)seconds);
  }
}

/* Other spellings of the same instant. */
static void spellings(void **state) {
  (void)state;
  static const char *const rows[] = {
      "2001-01-01T01:24:00+00:00", "2001-01-01t01:24:00z",      "2001-01-01 01:24:00Z",
      "2001-01-01T03:24:00+02:00", "2000-12-31T17:54:00-07:30", "2001-01-01T01:24:00.0Z",
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t seconds;
    int32_t nanos;
    assert_null(rfc3339_parse(rows[i], strlen(rows[i]), &seconds, &nanos));
    assert_int_equal(seconds, 978312240);
    assert_int_equal(nanos, 0);
  }
}

/* What is no instant is refused, with the reason. */
static void wrong(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"", "form"},
      {"2001-01-01", "form"},
      {"2001-1-01T00:00:00Z", "form"},
      {"2001-01-01T00:00:00", "offset"},
      {"2001-01-01T00:00:00+1:00", "offset"},
      {"2001-01-01T00:00:00+24:00", "offset"},
      {"2001-02-29T00:00:00Z", "no such day"},
      {"1900-02-29T00:00:00Z", "no such day"},
      {"2001-13-01T00:00:00Z", "no such day"},
      {"2001-00-01T00:00:00Z", "no such day"},
      {"2001-04-31T00:00:00Z", "no such day"},
      {"2001-01-01T24:00:00Z", "time of day"},
      {"2001-01-01T00:60:00Z", "time of day"},
      {"2016-12-31T23:59:60Z", "time of day"},
      {"2001-01-01T00:00:00.Z", "point"},
      {"2001-01-01T00:00:00.1234567890Z", "nine digits"},
      {"2001-01-01T00:00:00Zx", "follows"},
      {"0000-12-31T23:59:59Z", "years"},
      {"0001-01-01T00:00:00+00:01", "years"},
      {"9999-12-31T23:59:59-00:01", "years"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t seconds = 42;
    int32_t nanos = 43;
    const char *reason = rfc3339_parse(rows[i][0], strlen(rows[i][0]), &seconds, &nanos);
    if (!reason || !strstr(reason, rows[i][1])) fail_msg("'%s': %s", rows[i][0], reason);
    assert_int_equal(seconds, 42);
    assert_int_equal(nanos, 43);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways), cmocka_unit_test(every_day),
                                     cmocka_unit_test(spellings), cmocka_unit_test(wrong)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
