/* The two sides of a measurement, each on a thread and a connection of its own. */
#ifndef HB_BENCH_CLIENTS_H
#define HB_BENCH_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/gate.h"
#include "bench/options.h"

#define HB_BENCH_STREAM "bench"

/* Immutable while threads run. */
struct hb_bench_setting {
  const struct hb_bench_options *options;
  const char *address;   /* of the server */
  const uint32_t *order; /* sequences in sending order */
  struct hb_gate *gate;
};

struct hb_bench_thread {
  const struct hb_bench_setting *setting;
  pthread_t thread;
  bool first;   /* a reader whose count the gate gets */
  bool stalled; /* a reader that stops after its first message */
};

/* Send everything, wait for every answer; each must be STORED, or DUPLICATE after a crash. */
void hb_bench_start_producer(struct hb_bench_thread *thread,
                             const struct hb_bench_setting *setting);
/* Read from the start on and check every event: sequence, position, key, payload. */
void hb_bench_start_reader(struct hb_bench_thread *thread, const struct hb_bench_setting *setting,
                           bool first, bool stalled);
void hb_bench_join(struct hb_bench_thread *thread);

#endif
