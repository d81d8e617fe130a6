/* What the server counts of its calls, in one table: name, unit, help. */
#ifndef HB_SERVER_RPC_COUNTERS_H
#define HB_SERVER_RPC_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*   X(name, unit, help); names that end in _open or _in_flight go up and down */
#define HB_COUNTERS_TABLE(X)                                                               \
  X(calls_open, "calls", "calls that are being served")                                    \
  X(calls_total, "calls", "calls accepted since start")                                    \
  X(calls_refused_total, "calls", "calls refused because calls_max were open")             \
  X(calls_shed_total, "calls", "calls ended because gRPC's memory for receiving was full") \
  X(calls_failed_total, "calls", "calls that the server ended with an error")              \
  X(subscriptions_open, "subscriptions", "Subscribe calls that are being served")          \
  X(batches_total, "batches", "batches handed to the engine")                              \
  X(events_total, "events", "events in those batches")                                     \
  X(batches_open, "batches", "batches that were read and are not answered yet")            \
  X(batches_parked_open, "batches", "batches left in gRPC's hands while others wait")      \
  X(answers_in_flight, "bytes", "answers to subscribers on their way")                     \
  X(delivered_bytes_total, "bytes", "batches sent to subscribers")

#define HB_COUNTER_ENUM(name, unit, help) HB_COUNTER_##name,
enum hb_counter { HB_COUNTERS_TABLE(HB_COUNTER_ENUM) HB_COUNTER_COUNT };
#undef HB_COUNTER_ENUM

struct hb_counters {
  _Atomic uint64_t values[HB_COUNTER_COUNT];
};

struct hb_counter_row {
  const char *name;
  const char *unit;
  const char *help;
};

/* Static; HB_COUNTER_COUNT rows. */
const struct hb_counter_row *hb_counter_rows(void);

/* Any thread. The value before. */
static inline uint64_t hb_count(struct hb_counters *counters, enum hb_counter which, uint64_t by) {
  return atomic_fetch_add_explicit(&counters->values[which], by, memory_order_relaxed);
}
static inline void hb_uncount(struct hb_counters *counters, enum hb_counter which, uint64_t by) {
  atomic_fetch_sub_explicit(&counters->values[which], by, memory_order_relaxed);
}
static inline uint64_t hb_counter_get(struct hb_counters *counters, enum hb_counter which) {
  return atomic_load_explicit(&counters->values[which], memory_order_relaxed);
}

/* Name of a counter of things that live (…_open, …_in_flight) and isn't 0; NULL: all are gone.
 * For the end of the process, where each of them must be 0. */
const char *hb_counters_find_live(struct hb_counters *counters);

#endif
