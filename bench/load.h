/* The events of a measurement: made from seed and sequence, so that who receives one can check it
 * without having seen who sent it. And the order in which they are sent. */
#ifndef HB_BENCH_LOAD_H
#define HB_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/options.h"
#include "client/holdback.h"

/* One thread's memory for events. */
struct hb_load {
  const struct hb_bench_options *options;
  uint8_t *payload; /* owned */
  char key[24];
};

void hb_load_init(struct hb_load *load, const struct hb_bench_options *options);
void hb_load_done(struct hb_load *load);
/* The event with this sequence; its bytes live until the next call with the same `load`. */
void hb_load_make(struct hb_load *load, int64_t sequence, struct holdback_event *out);
/* Whether `event` is what hb_load_make makes of its sequence. */
bool hb_load_is(struct hb_load *load, const struct holdback_event *event);

/* The number of the key that the event with this sequence has. */
uint64_t hb_load_key(const struct hb_bench_options *options, int64_t sequence);
/* A key's bytes into `out`; how many. */
size_t hb_load_key_bytes(uint64_t key, char out[24]);

/* events sequences, 1 .. events, in sending order; free(). A sliding displacement: event i stands
 * at the rank of i + uniform[0, disorder), equal ranks in the order of i. */
uint32_t *hb_load_order(const struct hb_bench_options *options);

#endif
