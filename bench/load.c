/* Decides what an event of the benchmark looks like and in which order events are sent. */
#include "bench/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* splitmix64: every output is a good random number, whatever the input. */
static uint64_t mix(uint64_t z) {
  z += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void hb_load_init(struct hb_load *load, const struct hb_bench_options *options) {
  *load = (struct hb_load){.options = options, .payload = hb_alloc(options->payload + 8)};
}

void hb_load_done(struct hb_load *load) {
  free(load->payload);
  *load = (struct hb_load){0};
}

/* Eight digits at least: snprintf per event would be a fifth of the client's time. */
size_t hb_load_key_bytes(uint64_t key, char out[24]) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + key % 10);
    key /= 10;
  } while (key || count < 8);
  for (size_t i = 0; i < count; i++) out[i] = digits[count - 1 - i];
  return count;
}

static uint64_t state_of(const struct hb_bench_options *options, int64_t sequence) {
  return mix(options->seed ^ ((uint64_t)sequence << 20));
}

/* Zipf with exponent 1 by inversion: key k (from 0) has the probability
 * ln((k + 2) / (k + 1)) / ln(keys + 1), which is 1 / (k + 1) in all but the first few. */
static uint64_t zipf(uint64_t state, uint64_t keys) {
  double uniform = (double)(state >> 11) / 9007199254740992.0;
  uint64_t key = (uint64_t)exp(uniform * log((double)keys + 1)) - 1;
  return key < keys ? key : keys - 1;
}

static uint64_t key_of(const struct hb_bench_options *options, int64_t sequence, uint64_t state) {
  if (options->spread_every && (uint64_t)sequence % options->spread_every == 0)
    return options->keys;
  return options->zipf ? zipf(state, options->keys) : state % options->keys;
}

uint64_t hb_load_key(const struct hb_bench_options *options, int64_t sequence) {
  return key_of(options, sequence, state_of(options, sequence));
}

void hb_load_make(struct hb_load *load, int64_t sequence, struct holdback_event *out) {
  uint64_t state = state_of(load->options, sequence);
  size_t key_size = hb_load_key_bytes(key_of(load->options, sequence, state), load->key);
  for (uint64_t at = 0; at < load->options->payload; at += sizeof state) {
    state = mix(state);
    memcpy(load->payload + at, &state, sizeof state);
  }
  *out = (struct holdback_event){
      .sequence = sequence,
      .key = {load->key, key_size},
      .payload = {load->payload, load->options->payload},
  };
}

static bool same(struct holdback_bytes a, struct holdback_bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool hb_load_is(struct hb_load *load, const struct holdback_event *event) {
  struct holdback_event made;
  hb_load_make(load, event->sequence, &made);
  return same(made.key, event->key) && same(made.payload, event->payload);
}

/* ---- the order of sending */

/* Sorted by counting: ranks are dense, and ten million of them take a fraction of a second. */
static void slide(const struct hb_bench_options *options, uint32_t *order) {
  uint64_t events = options->events;
  uint64_t ranks = events + options->disorder;
  uint32_t *rank = hb_calloc(events, sizeof *rank);
  uint32_t *place = hb_calloc(ranks + 1, sizeof *place);
  uint64_t state = mix(options->seed);
  for (uint64_t i = 0; i < events; i++) {
    state = mix(state);
    rank[i] = (uint32_t)(i + state % options->disorder);
    place[rank[i] + 1]++;
  }
  for (uint64_t i = 1; i <= ranks; i++) place[i] += place[i - 1];
  for (uint64_t i = 0; i < events; i++) order[place[rank[i]]++] = (uint32_t)(i + 1);
  free(place);
  free(rank);
}

uint32_t *hb_load_order(const struct hb_bench_options *options) {
  uint64_t events = options->events;
  uint32_t *order = hb_calloc(events, sizeof *order);
  switch (options->order) {
    case HB_ORDER_SLIDING:
      slide(options, order);
      break;
    case HB_ORDER_REVERSED:
      for (uint64_t i = 0; i < events; i++) order[i] = (uint32_t)(events - i);
      break;
    case HB_ORDER_GAP:
      for (uint64_t i = 0; i < events; i++) order[i] = (uint32_t)(i + 2);
      order[events - 1] = 1;
      break;
    case HB_ORDER_ALTERNATING:
      for (uint64_t i = 0; i < events; i++) {
        order[i] = (uint32_t)(i < events / 2 ? 2 * i + 2 : 2 * (i - events / 2) + 1);
      }
      break;
  }
  return order;
}
