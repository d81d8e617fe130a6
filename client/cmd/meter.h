/* The progress bar of send: one line on a terminal, rewritten a few times a second. */
#ifndef HB_CLIENT_CMD_METER_H
#define HB_CLIENT_CMD_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/holdback.h"

struct meter {
  bool on; /* standard error is a terminal */
  bool colour;
  uint64_t started_ms;
  uint64_t shown_ms;
  uint64_t asked_ms; /* when the server was asked what is held */
  uint64_t sent_before;
  uint64_t size; /* of the input, 0 = not known */
  bool has_held;
  uint64_t held;
};

void meter_start(struct meter *meter, uint64_t input_size);
/* Whether it is time to draw again; cheap, called often. */
bool meter_is_due(const struct meter *meter);
void meter_draw(struct meter *meter, struct holdback_client *client, const char *stream,
                struct holdback_appender *appender, uint64_t input_offset);
/* Leave the terminal as it was. */
void meter_stop(struct meter *meter);

/* "12.3k", "4.5M": at most five characters. */
void meter_format_count(double count, char *out, unsigned out_size);

#endif
