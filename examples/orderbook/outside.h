/* An order event as an event of the stream: which sequence, key and time it has. */
#ifndef EXAMPLES_ORDERBOOK_OUTSIDE_H
#define EXAMPLES_ORDERBOOK_OUTSIDE_H

#include "client/holdback.h"
#include "examples/orderbook/wire.h"

enum { OB_KEY_SIZE = 24 };

struct ob_outside {
  char key[OB_KEY_SIZE];
  uint8_t payload[OB_EVENT_SIZE];
};

/* A contract's key: its number as decimal text. */
struct holdback_bytes ob_key(int64_t contract, char room[OB_KEY_SIZE]);
/* Points into `room`. */
struct holdback_event ob_outside(const struct ob_event *event, struct ob_outside *room);

#endif
