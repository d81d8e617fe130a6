/* Decides how a limit is written (1048576, 64KiB, 2^62) and that it lies within its bounds. */
#include "base/limits.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HB_LIMIT_ROW(name, value, min, max, unit, kind, help) \
  {#name, value, min, max, unit, HB_LIMIT_##kind, help, offsetof(struct hb_limits, name)},
static const struct hb_limit_row rows[] = {HB_LIMITS_TABLE(HB_LIMIT_ROW)};
#undef HB_LIMIT_ROW

const struct hb_limit_row *hb_limits_rows(size_t *out_count) {
  *out_count = sizeof rows / sizeof rows[0];
  return rows;
}

const struct hb_limit_row *hb_limits_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  }
  return NULL;
}

struct hb_limits hb_limits_default(void) {
  return (struct hb_limits){
#define HB_LIMIT_DEFAULT(name, value, min, max, unit, kind, help) .name = value,
      HB_LIMITS_TABLE(HB_LIMIT_DEFAULT)
#undef HB_LIMIT_DEFAULT
  };
}

uint64_t hb_limits_get(const struct hb_limits *limits, const struct hb_limit_row *row) {
  uint64_t value;
  memcpy(&value, (const char *)limits + row->offset, sizeof value);
  return value;
}

enum hb_code hb_limits_set(struct hb_limits *limits, const struct hb_limit_row *row, uint64_t value,
                           struct hb_err *err) {
  if (value < row->min || value > row->max) {
    return hb_err_set(err, HB_INVALID, "LIMIT_OUT_OF_BOUNDS",
                      "%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64 " %s", row->name,
                      value, row->min, row->max, row->unit);
  }
  memcpy((char *)limits + row->offset, &value, sizeof value);
  return HB_OK;
}

static const struct {
  const char *suffix;
  unsigned shift;
} suffixes[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

enum hb_code hb_limits_parse(const char *text, uint64_t *out, struct hb_err *err) {
  char *end = NULL;
  errno = 0;
  unsigned long long number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
  if (!end || errno) goto invalid;
  if (strncmp(end, "^", 1) == 0 && number == 2 && isdigit((unsigned char)end[1])) {
    unsigned long exponent = strtoul(end + 1, &end, 10);
    if (*end || exponent > 63) goto invalid;
    *out = UINT64_C(1) << exponent;
    return HB_OK;
  }
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    if (strcmp(end, suffixes[i].suffix) != 0) continue;
    if (number > UINT64_MAX >> suffixes[i].shift) goto invalid;
    *out = (uint64_t)number << suffixes[i].shift;
    return HB_OK;
  }
invalid:
  return hb_err_set(err, HB_INVALID, "NOT_A_NUMBER",
                    "'%s' is not a number such as 1048576, 64KiB, 4GiB or 2^62", text);
}
