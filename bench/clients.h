/* The two sides of a measurement, each on a thread and a connection of its own. */
#ifndef HB_BENCH_CLIENTS_H
#define HB_BENCH_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/gate.h"
#include "bench/histogram.h"
#include "bench/options.h"
#include "bench/pacer.h"

#define HB_BENCH_STREAM "bench"

/* Immutable while threads run. */
struct hb_bench_setting {
  const struct hb_bench_options *options;
  const char *address; /* of the server */
  const char *stream;
  const uint32_t *order; /* sequences in sending order; NULL: 1, 2, 3 .. */
  const uint32_t *place; /* of each sequence in the order, from 0; NULL: nobody asks */
  uint64_t from, to;     /* what producers send: order[from .. to) */
  uint64_t read_to;      /* what readers read: sequences 1 .. read_to */
  bool until_stopped;    /* producers end at the gate's stop, too, without a complaint */
  bool as_sent;          /* readers expect the order of sending: nothing puts it right */
  struct hb_gate *gate;
};

struct hb_bench_thread {
  const struct hb_bench_setting *setting;
  pthread_t thread;
  bool running;    /* started and not joined */
  uint64_t number; /* among the producers, or the readers */
  bool first;      /* a reader whose count the gate gets */
  bool stalled;    /* a reader that stops after its first message */
  struct hb_pacer pacer;
  struct hb_histogram *latency; /* owned; NULL in a closed loop */
  uint64_t stored;              /* a producer's events that were answered STORED or DUPLICATE */
};

/* Send its share, wait for every answer; each must be STORED, or DUPLICATE after a crash. */
void *hb_bench_produce(void *context);
/* Read from the start on and check every event: sequence, position, key, payload. */
void *hb_bench_read(void *context);

void hb_bench_start(struct hb_bench_thread *thread, const struct hb_bench_setting *setting,
                    void *(*run)(void *));
/* Nothing to do where it is not running. It may be started again then, and goes on counting. */
void hb_bench_join(struct hb_bench_thread *thread);
/* After join. */
void hb_bench_thread_done(struct hb_bench_thread *thread);

/* ---- for clients of other systems, which make the same events and check them the same way */

/* The sequence that `number`'s producer sends as its i-th, *out_index its place in the whole
 * order; false: it has sent everything. */
bool hb_bench_share(const struct hb_bench_thread *thread, uint64_t i, uint64_t *out_index,
                    int64_t *out_sequence);
/* What a reader must get as its i-th event, from 0. */
int64_t hb_bench_expected(const struct hb_bench_setting *setting, uint64_t i);

#endif
