/* Decides which clocks there are: CLOCK_MONOTONIC to measure (coarse where it is often),
 * CLOCK_REALTIME to show. */
#include "base/clock.h"

#include <time.h>

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now); /* can't fail for these clocks */
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hb_clock_mono_ns(void) { return now_ns(CLOCK_MONOTONIC); }
uint64_t hb_clock_mono_ms(void) { return now_ns(CLOCK_MONOTONIC) / 1000000u; }
uint64_t hb_clock_mono_coarse_ms(void) { return now_ns(CLOCK_MONOTONIC_COARSE) / 1000000u; }
uint64_t hb_clock_wall_ms(void) { return now_ns(CLOCK_REALTIME) / 1000000u; }
