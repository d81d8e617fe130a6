/* The only place that reads a clock. The core never does: time comes to it in events. */
#ifndef HB_BASE_CLOCK_H
#define HB_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic, from an arbitrary start. Any thread. */
uint64_t hb_clock_mono_ns(void);
uint64_t hb_clock_mono_ms(void);
/* Since 1970, UTC; may step. For display and receipts, never for a decision. */
uint64_t hb_clock_wall_ms(void);

#endif
