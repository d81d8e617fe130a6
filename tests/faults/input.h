/* What a run sends: batches made from a seed, so that who checks can make them again. */
#ifndef HB_TESTS_FAULTS_INPUT_H
#define HB_TESTS_FAULTS_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/model/test_batch.h"

enum { HB_INPUT_STREAMS = 3, HB_INPUT_BATCHES = 24, HB_INPUT_PER_BATCH = 8 };
enum { HB_INPUT_EVENTS = HB_INPUT_BATCHES * HB_INPUT_PER_BATCH }; /* of a stream: 0 .. EVENTS-1 */
enum { HB_INPUT_KEYED = 2, HB_INPUT_KEYS = 5 };

struct hb_input {
  uint64_t seed;
  /* Of each stream (0: acks are durable, 1: ASYNC, 2: PER_KEY, durable) the numbers in the order in
   * which they come: displaced by up to a few batches. A number is the sequence; in the PER_KEY
   * stream number n is sequence n / KEYS of key n % KEYS. */
  int64_t order[HB_INPUT_STREAMS][HB_INPUT_EVENTS];
};

void hb_input_init(struct hb_input *input, uint64_t seed);
/* The events of batch `number` of a stream. */
void hb_input_events(const struct hb_input *input, uint32_t stream, uint32_t number,
                     struct hb_test_event out[HB_INPUT_PER_BATCH]);
/* The number that stands at a place of a batch. */
int64_t hb_input_number(const struct hb_input *input, uint32_t stream, uint32_t batch, uint32_t at);
/* The content that a number has, in every copy. */
uint32_t hb_input_content(const struct hb_input *input, uint32_t stream, int64_t number);
/* "k0" ... of the PER_KEY stream; static. */
const char *hb_input_key(uint32_t key);
uint64_t hb_input_random(uint64_t *state);

#endif
