/* Decides what a person sees while events are sent. */
#include "client/cmd/meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

enum { DRAW_MS = 200, ASK_MS = 1000, BAR_WIDTH = 24 };

void meter_start(struct meter *meter, uint64_t input_size) {
  const char *no_colour = getenv("NO_COLOR");
  *meter = (struct meter){.on = isatty(STDERR_FILENO) == 1,
                          .colour = !(no_colour && no_colour[0]),
                          .started_ms = hb_clock_mono_ms(),
                          .shown_ms = hb_clock_mono_ms(),
                          .size = input_size};
}

bool meter_is_due(const struct meter *meter) {
  return meter->on && hb_clock_mono_ms() >= meter->shown_ms + DRAW_MS;
}

void meter_format_count(double count, char *out, unsigned out_size) {
  static const char units[] = {' ', 'k', 'M', 'G', 'T'};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < sizeof units) {
    count /= 1000;
    unit++;
  }
  if (unit == 0) {
    (void)snprintf(out, out_size, "%.0f", count);
  } else {
    (void)snprintf(out, out_size, "%.*f%c", count < 99.95 ? 1 : 0, count, units[unit]);
  }
}

static void ask_held(struct meter *meter, struct holdback_client *client, const char *stream) {
  uint64_t now_ms = hb_clock_mono_ms();
  if (now_ms < meter->asked_ms + ASK_MS) return;
  meter->asked_ms = now_ms;
  struct holdback_stream_status status;
  if (holdback_stream_get(client, stream, NULL, &status, NULL) != HOLDBACK_OK) return;
  meter->has_held = true;
  meter->held = status.held_events;
}

static void draw_bar(const struct meter *meter, uint64_t offset) {
  if (meter->size == 0) return;
  uint64_t done = offset < meter->size ? offset : meter->size;
  unsigned filled = (unsigned)(done * BAR_WIDTH / meter->size);
  fputs(meter->colour ? "[\033[32m" : "[", stderr);
  for (unsigned i = 0; i < BAR_WIDTH; i++) fputc(i < filled ? '#' : ' ', stderr);
  fprintf(stderr, "%s] %3u%%  ", meter->colour ? "\033[0m" : "",
          (unsigned)(done * 100 / meter->size));
}

void meter_draw(struct meter *meter, struct holdback_client *client, const char *stream,
                struct holdback_appender *appender, uint64_t input_offset) {
  ask_held(meter, client, stream);
  struct holdback_append_progress progress;
  holdback_appender_progress(appender, &progress);
  uint64_t now_ms = hb_clock_mono_ms();
  double seconds = (double)(now_ms - meter->shown_ms) / 1000;
  char sent[16];
  char rate[16];
  meter_format_count((double)progress.sent, sent, sizeof sent);
  meter_format_count((double)(progress.sent - meter->sent_before) / (seconds > 0 ? seconds : 1),
                     rate, sizeof rate);
  fputs("\r\033[K", stderr);
  draw_bar(meter, input_offset);
  fprintf(stderr, "%s events, %s/s", sent, rate);
  if (progress.has_frontier) fprintf(stderr, ", frontier %" PRId64, progress.frontier);
  if (meter->has_held) fprintf(stderr, ", held %" PRIu64, meter->held);
  fflush(stderr);
  meter->sent_before = progress.sent;
  meter->shown_ms = now_ms;
}

void meter_stop(struct meter *meter) {
  if (!meter->on) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
}
