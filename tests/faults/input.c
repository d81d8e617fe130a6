/* Decides which events a run sends, and in which order: all from its seed. */
#include "tests/faults/input.h"

enum { DISPLACED = 20 };

uint64_t hb_input_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

static uint64_t hash(uint64_t a, uint64_t b) {
  uint64_t state = a * 0x9e3779b97f4a7c15U + b;
  return hb_input_random(&state);
}

void hb_input_init(struct hb_input *input, uint64_t seed) {
  input->seed = seed;
  for (uint32_t stream = 0; stream < HB_INPUT_STREAMS; stream++) {
    int64_t *order = input->order[stream];
    uint64_t random = hash(seed, stream);
    for (int64_t i = 0; i < HB_INPUT_EVENTS; i++) order[i] = i;
    for (int64_t i = 0; i < HB_INPUT_EVENTS; i++) {
      int64_t to = i + (int64_t)(hb_input_random(&random) % DISPLACED);
      if (to >= HB_INPUT_EVENTS) continue;
      int64_t kept = order[i];
      order[i] = order[to];
      order[to] = kept;
    }
  }
}

int64_t hb_input_number(const struct hb_input *input, uint32_t stream, uint32_t batch,
                        uint32_t at) {
  return input->order[stream][batch * HB_INPUT_PER_BATCH + at];
}

uint32_t hb_input_content(const struct hb_input *input, uint32_t stream, int64_t number) {
  return (uint32_t)hash(input->seed + stream, (uint64_t)number);
}

const char *hb_input_key(uint32_t key) {
  static const char *const KEYS[HB_INPUT_KEYS] = {"k0", "k1", "k2", "k3", "k4"};
  return KEYS[key];
}

void hb_input_events(const struct hb_input *input, uint32_t stream, uint32_t number,
                     struct hb_test_event out[HB_INPUT_PER_BATCH]) {
  for (uint32_t i = 0; i < HB_INPUT_PER_BATCH; i++) {
    int64_t event = hb_input_number(input, stream, number, i);
    uint32_t content = hb_input_content(input, stream, event);
    out[i] = (struct hb_test_event){.sequence = event,
                                    .content = content,
                                    .size = 4 + content % 1500,
                                    .seconds = 1 + (int64_t)(content % 1000)};
    if (stream != HB_INPUT_KEYED) continue;
    out[i].sequence = event / HB_INPUT_KEYS;
    out[i].key = hb_input_key((uint32_t)(event % HB_INPUT_KEYS));
  }
}
