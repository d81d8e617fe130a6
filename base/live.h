/* How many objects of each kind live in this process: what the server says of itself at its end,
 * where each must be 0. One table, counted by whoever makes and frees the kind. */
#ifndef HB_BASE_LIVE_H
#define HB_BASE_LIVE_H

#include <stdatomic.h>
#include <stdint.h>

/*   X(name, what one of them is) */
#define HB_LIVE_TABLE(X)                                              \
  X(calls, "a gRPC call, from its arrival until all of it came back") \
  X(subscriptions, "a Subscribe call that was admitted")              \
  X(appends, "a batch in the engine's hands, until it is answered")   \
  X(jobs, "an administrative job in the engine's hands, likewise")    \
  X(reads, "a read in the engine's hands, likewise")                  \
  X(watches, "who is told when a stream publishes")                   \
  X(streams, "a stream's object; a forgotten reference keeps it")     \
  X(blocks, "shared bytes: log blocks, bundles, what answers refer to")

#define HB_LIVE_ENUM(name, help) HB_LIVE_##name,
enum hb_live { HB_LIVE_TABLE(HB_LIVE_ENUM) HB_LIVE_COUNT };
#undef HB_LIVE_ENUM

extern _Atomic int64_t hb_live_counts[HB_LIVE_COUNT];

/* Any thread. */
static inline void hb_live_born(enum hb_live kind) {
  atomic_fetch_add_explicit(&hb_live_counts[kind], 1, memory_order_relaxed);
}
static inline void hb_live_gone(enum hb_live kind) {
  atomic_fetch_sub_explicit(&hb_live_counts[kind], 1, memory_order_relaxed);
}
static inline int64_t hb_live_get(enum hb_live kind) {
  return atomic_load_explicit(&hb_live_counts[kind], memory_order_relaxed);
}
/* "calls", ...; static. */
const char *hb_live_name(enum hb_live kind);

#endif
