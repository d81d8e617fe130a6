/* Decides which of the known differences between wall and served time a moment gets. */
#include "ordering/moments.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { OFFSET_BITS = 16, SLACK_MS = 1000 };

static const uint64_t SERVED_MAX = UINT64_MAX >> OFFSET_BITS;

void hb_moments_done(struct hb_moments *moments) {
  free(moments->offsets);
  *moments = (struct hb_moments){0};
}

static bool is_near(int64_t a, int64_t b) {
  uint64_t distance = a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
  return distance < SLACK_MS;
}

static size_t find_offset(struct hb_moments *moments, int64_t offset) {
  if (moments->count && is_near(moments->offsets[moments->last], offset)) return moments->last;
  for (size_t i = 0; i < moments->count; i++) {
    if (is_near(moments->offsets[i], offset)) return i;
  }
  if (moments->count == HB_MOMENT_OFFSETS_MAX) return moments->count - 1;
  hb_reserve((void **)&moments->offsets, &moments->cap, moments->count + 1,
             sizeof *moments->offsets);
  moments->offsets[moments->count] = offset;
  return moments->count++;
}

uint64_t hb_moment_of(struct hb_moments *moments, uint64_t served_ms, uint64_t wall_ms) {
  moments->last = find_offset(moments, (int64_t)(wall_ms - served_ms));
  if (served_ms > SERVED_MAX) served_ms = SERVED_MAX;
  return served_ms << OFFSET_BITS | moments->last;
}

uint64_t hb_moment_served_ms(uint64_t moment) { return moment >> OFFSET_BITS; }

uint64_t hb_moment_wall_ms(const struct hb_moments *moments, uint64_t moment) {
  size_t offset = moment & (HB_MOMENT_OFFSETS_MAX - 1);
  if (offset >= moments->count) return hb_moment_served_ms(moment);
  return hb_moment_served_ms(moment) + (uint64_t)moments->offsets[offset];
}
