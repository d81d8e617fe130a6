/* The only place that reads a clock. The core never does: time comes to it in events. */
#ifndef HB_BASE_CLOCK_H
#define HB_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic, from an arbitrary start. Any thread. */
uint64_t hb_clock_mono_ns(void);
uint64_t hb_clock_mono_ms(void);
/* The same clock as it was at the last tick of the kernel, at most 10 ms ago: at a fifth of the
 * price, for who asks after each event. */
uint64_t hb_clock_mono_coarse_ms(void);
/* Since 1970, UTC; may step. For display and receipts, never for a decision. */
uint64_t hb_clock_wall_ms(void);

#endif
