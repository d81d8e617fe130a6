/* When a gap was first seen, in eight bytes: served time to the millisecond and wall time to the
 * second.
 *
 * Served and wall time run in step except where the wall clock is set or the server was down. The
 * few differences between the two that occur are kept in a table; a moment is a served time and
 * the number of its difference. Wall time is for display, so a second of slack is fine. */
#ifndef HB_ORDERING_MOMENTS_H
#define HB_ORDERING_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

enum { HB_MOMENT_OFFSETS_MAX = 1 << 16 };

/* Zeroed = empty. */
struct hb_moments {
  int64_t *offsets; /* owned: wall minus served, ms */
  size_t count;
  size_t cap;
  size_t last; /* used last: tried first */
};

void hb_moments_done(struct hb_moments *moments);
/* Moments compare as their served times do. When the table is full the last difference is used. */
uint64_t hb_moment_of(struct hb_moments *moments, uint64_t served_ms, uint64_t wall_ms);
uint64_t hb_moment_served_ms(uint64_t moment);
uint64_t hb_moment_wall_ms(const struct hb_moments *moments, uint64_t moment);

#endif
