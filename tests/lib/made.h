/* Events that a test can make again: key and payload follow from the sequence. */
#ifndef TESTS_LIB_MADE_H
#define TESTS_LIB_MADE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/holdback.h"

enum { HBT_MADE_KEYS = 20 };

/* The event's bytes; lives as long as the struct. */
struct hbt_made {
  char key[16];
  char payload[320];
  struct holdback_event event; /* points into this struct: do not copy it */
};

void hbt_made(struct hbt_made *made, int64_t sequence);
/* Is it, byte for byte, what hbt_made makes for its sequence? */
bool hbt_made_is(const struct holdback_event *event);

#endif
