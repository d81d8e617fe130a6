/* Decides nothing: the table of counters. */
#include "server/rpc/counters.h"

#include <stdbool.h>
#include <string.h>

#define HB_COUNTER_ROW(name, unit, help) {#name, unit, help},
static const struct hb_counter_row rows[HB_COUNTER_COUNT] = {HB_COUNTERS_TABLE(HB_COUNTER_ROW)};
#undef HB_COUNTER_ROW

const struct hb_counter_row *hb_counter_rows(void) { return rows; }

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text);
  size_t end_size = strlen(end);
  return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

const char *hb_counters_find_live(struct hb_counters *counters) {
  for (size_t i = 0; i < HB_COUNTER_COUNT; i++) {
    bool living = ends_with(rows[i].name, "_open") || ends_with(rows[i].name, "_in_flight");
    if (living && hb_counter_get(counters, (enum hb_counter)i) != 0) return rows[i].name;
  }
  return NULL;
}
