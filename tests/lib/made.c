/* Decides what a made event holds: uneven sizes and keys, nothing random. */
#include "tests/lib/made.h"

#include <stdio.h>
#include <string.h>

/* Knuth's multiplicative hash: neighbours get unlike keys and sizes. */
static uint32_t spread(int64_t sequence) { return (uint32_t)sequence * UINT32_C(2654435761); }

void hbt_made(struct hbt_made *made, int64_t sequence) {
  uint32_t mixed = spread(sequence);
  int key_size = snprintf(made->key, sizeof made->key, "key-%u", (mixed >> 8) % HBT_MADE_KEYS);
  int head = snprintf(made->payload, sizeof made->payload, "payload of %lld ", (long long)sequence);
  size_t tail = (mixed >> 16) % 200;
  memset(made->payload + head, 'a' + (int)(mixed % 26), tail);
  made->event = (struct holdback_event){.sequence = sequence,
                                        .key = {made->key, (size_t)key_size},
                                        .payload = {made->payload, (size_t)head + tail}};
}

static bool same(struct holdback_bytes left, struct holdback_bytes right) {
  return left.size == right.size && memcmp(left.data, right.data, left.size) == 0;
}

bool hbt_made_is(const struct holdback_event *event) {
  struct hbt_made made;
  hbt_made(&made, event->sequence);
  return same(event->key, made.event.key) && same(event->payload, made.event.payload);
}
