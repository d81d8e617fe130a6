/* The limits as values and as a table that can be walked. See limits_table.h for each. */
#ifndef HB_BASE_LIMITS_H
#define HB_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits_table.h"

enum hb_limit_kind { HB_LIMIT_SERVER, HB_LIMIT_STREAM, HB_LIMIT_FIXED };

/* One member per row, its default in hb_limits_default(). */
struct hb_limits {
#define HB_LIMIT_MEMBER(name, value, min, max, unit, kind, help) uint64_t name;
  HB_LIMITS_TABLE(HB_LIMIT_MEMBER)
#undef HB_LIMIT_MEMBER
};

struct hb_limit_row {
  const char *name;
  uint64_t value; /* default */
  uint64_t min;
  uint64_t max;
  const char *unit;
  enum hb_limit_kind kind;
  const char *help;
  size_t offset; /* of the member in struct hb_limits */
};

/* Static. */
const struct hb_limit_row *hb_limits_rows(size_t *out_count);
const struct hb_limit_row *hb_limits_find(const char *name); /* NULL: none */
struct hb_limits hb_limits_default(void);
uint64_t hb_limits_get(const struct hb_limits *limits, const struct hb_limit_row *row);
/* HB_INVALID with name, value and bounds in the message. */
HB_MUST_CHECK enum hb_code hb_limits_set(struct hb_limits *limits, const struct hb_limit_row *row,
                                         uint64_t value, struct hb_err *err);
/* "1048576", "64KiB", "4GiB", "2^62" -> value; HB_INVALID naming what is wrong. */
HB_MUST_CHECK enum hb_code hb_limits_parse(const char *text, uint64_t *out, struct hb_err *err);

#endif
