/* Decides what a stream of order events looks like from outside. */
#include "examples/orderbook/outside.h"

#include <inttypes.h>
#include <stdio.h>

struct holdback_bytes ob_key(int64_t contract, char room[OB_KEY_SIZE]) {
  int size = snprintf(room, OB_KEY_SIZE, "%" PRId64, contract);
  return (struct holdback_bytes){room, (size_t)size};
}

struct holdback_event ob_outside(const struct ob_event *event, struct ob_outside *room) {
  ob_event_encode(event, room->payload);
  return (struct holdback_event){
      .sequence = event->sequence,
      .key = ob_key(event->contract, room->key),
      .payload = {room->payload, sizeof room->payload},
      .has_event_time = true,
      .event_time_seconds = event->timestamp_ms / 1000,
      .event_time_nanos = (int32_t)(event->timestamp_ms % 1000) * 1000000};
}
