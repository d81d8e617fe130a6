/* Decides which instants have a text. Proleptic Gregorian, no leap seconds: as
 * google.protobuf.Timestamp counts. */
#include "client/cmd/rfc3339.h"

#include <stdio.h>

enum { DAY_SECONDS = 86400 };
static const int64_t seconds_min = INT64_C(-62135596800); /* 0001-01-01T00:00:00Z */
static const int64_t seconds_max = INT64_C(253402300799); /* 9999-12-31T23:59:59Z */

/* Days since 1970-01-01. Years are taken to begin in March, so that the leap day is the last. */
static int64_t days_from_date(int year, int month, int day) {
  int64_t y = month <= 2 ? year - 1 : year;
  int64_t era = (y >= 0 ? y : y - 399) / 400;
  int64_t year_of_era = y - era * 400;
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

static void date_from_days(int64_t days, int *year, int *month, int *day) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t day_of_era = days - era * 146097;
  int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * day_of_year + 2) / 153;
  *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
  *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
  *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

static size_t format_fraction(int32_t nanos, char *out, size_t size) {
  if (nanos == 0) return 0;
  int digits = nanos % 1000000 == 0 ? 3 : nanos % 1000 == 0 ? 6 : 9;
  int value = digits == 3 ? nanos / 1000000 : digits == 6 ? nanos / 1000 : nanos;
  return (size_t)snprintf(out, size, ".%0*d", digits, value);
}

void rfc3339_format(int64_t seconds, int32_t nanos, char out[RFC3339_SIZE]) {
  int64_t days = (seconds >= 0 ? seconds : seconds - (DAY_SECONDS - 1)) / DAY_SECONDS;
  int in_day = (int)(seconds - days * DAY_SECONDS);
  int year;
  int month;
  int day;
  date_from_days(days, &year, &month, &day);
  char fraction[16] = "";
  (void)format_fraction(nanos, fraction, sizeof fraction);
  char text[80];
  (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", year, month, day,
                 in_day / 3600, in_day / 60 % 60, in_day % 60, fraction);
  (void)snprintf(out, RFC3339_SIZE, "%.*s", RFC3339_SIZE - 1, text);
}

/* What is left of the text. */
struct cursor {
  const char *at;
  const char *end;
};

static bool take_number(struct cursor *cursor, int digits, int *out) {
  if (cursor->end - cursor->at < digits) return false;
  int value = 0;
  for (int i = 0; i < digits; i++) {
    char c = *cursor->at++;
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  *out = value;
  return true;
}

static bool take_char(struct cursor *cursor, const char *any_of) {
  if (cursor->at == cursor->end) return false;
  for (; *any_of; any_of++) {
    if (*cursor->at != *any_of) continue;
    cursor->at++;
    return true;
  }
  return false;
}

static int days_of_month(int year, int month) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : days[month - 1];
}

static const char *parse_fraction(struct cursor *cursor, int32_t *out_nanos) {
  *out_nanos = 0;
  if (!take_char(cursor, ".")) return NULL;
  int32_t unit = 100000000;
  const char *start = cursor->at;
  while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
    if (unit == 0) return "more than nine digits of a second";
    *out_nanos += (*cursor->at++ - '0') * unit;
    unit /= 10;
  }
  return cursor->at == start ? "a point without digits" : NULL;
}

static const char *parse_offset(struct cursor *cursor, int *out_seconds) {
  *out_seconds = 0;
  if (take_char(cursor, "Zz")) return NULL;
  int sign = take_char(cursor, "+") ? 1 : take_char(cursor, "-") ? -1 : 0;
  int hours;
  int minutes;
  if (!sign || !take_number(cursor, 2, &hours) || !take_char(cursor, ":") ||
      !take_number(cursor, 2, &minutes) || hours > 23 || minutes > 59)
    return "the offset must be Z or +hh:mm";
  *out_seconds = sign * (hours * 3600 + minutes * 60);
  return NULL;
}

const char *rfc3339_parse(const char *text, size_t size, int64_t *out_seconds, int32_t *out_nanos) {
  struct cursor cursor = {text, text + size};
  int year;
  int month;
  int day;
  int hour;
  int minute;
  int second;
  if (!take_number(&cursor, 4, &year) || !take_char(&cursor, "-") ||
      !take_number(&cursor, 2, &month) || !take_char(&cursor, "-") ||
      !take_number(&cursor, 2, &day) || !take_char(&cursor, "Tt ") ||
      !take_number(&cursor, 2, &hour) || !take_char(&cursor, ":") ||
      !take_number(&cursor, 2, &minute) || !take_char(&cursor, ":") ||
      !take_number(&cursor, 2, &second))
    return "not of the form 2001-02-03T04:05:06Z";
  if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
    return "there is no such day";
  if (hour > 23 || minute > 59 || second > 59) return "there is no such time of day";
  int32_t nanos;
  int offset;
  const char *wrong = parse_fraction(&cursor, &nanos);
  if (!wrong) wrong = parse_offset(&cursor, &offset);
  if (wrong) return wrong;
  if (cursor.at != cursor.end) return "something follows the offset";
  int64_t seconds =
      days_from_date(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset;
  if (seconds < seconds_min || seconds > seconds_max) return "outside of the years 0001 to 9999";
  *out_seconds = seconds;
  *out_nanos = nanos;
  return NULL;
}
