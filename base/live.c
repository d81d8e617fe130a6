/* Decides nothing: the counts, and the names that go with them. */
#include "base/live.h"

_Atomic int64_t hb_live_counts[HB_LIVE_COUNT];

const char *hb_live_name(enum hb_live kind) {
#define HB_LIVE_NAME(name, help) #name,
  static const char *const names[HB_LIVE_COUNT] = {HB_LIVE_TABLE(HB_LIVE_NAME)};
#undef HB_LIVE_NAME
  return names[kind];
}
