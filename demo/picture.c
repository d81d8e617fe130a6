/* Decides how the steps are drawn: rows for a look at single events, a chart for the shape. */
#include "demo/picture.h"

#include <stdio.h>

enum { CHART_WIDTH = 60, CHART_HEIGHT = 8, TEXT_SIZE = 80 };

/* "3 4 5" for held sequences, or a range "1-4", cut where the column ends. */
static void held_text(const struct demo_step *steps, size_t upto, int64_t frontier, char *out) {
  int64_t highest = 0;
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i <= upto; i++) {
    if (steps[i].sequence > highest) highest = steps[i].sequence;
  }
  for (int64_t wanted = frontier; wanted <= highest && used + 8 < TEXT_SIZE; wanted++) {
    for (size_t i = 0; i <= upto; i++) {
      if (steps[i].sequence != wanted) continue;
      int put =
          snprintf(out + used, TEXT_SIZE - used, "%s%lld", used ? " " : "", (long long)wanted);
      if (put > 0) used += (size_t)put;
    }
  }
}

static void out_text(int64_t from, int64_t end, char *out) {
  out[0] = 0;
  if (end == from + 1) (void)snprintf(out, TEXT_SIZE, "%lld", (long long)from);
  if (end > from + 1) {
    (void)snprintf(out, TEXT_SIZE, "%lld-%lld", (long long)from, (long long)(end - 1));
  }
}

void demo_picture_rows(const struct demo_step *steps, size_t count) {
  int64_t before = 1;
  (void)printf("    arrives   goes out   held\n");
  for (size_t i = 0; i < count; i++) {
    char out[TEXT_SIZE];
    char held[TEXT_SIZE];
    out_text(before, steps[i].frontier, out);
    held_text(steps, i, steps[i].frontier, held);
    (void)printf("    %7lld   %8s%s%s\n", (long long)steps[i].sequence, out, held[0] ? "   " : "",
                 held);
    before = steps[i].frontier;
  }
}

/* Each sequence from 1 comes once, so what was sent and is not out is held. */
static size_t held_after(const struct demo_step *steps, size_t i) {
  size_t out = (size_t)(steps[i].frontier - 1);
  return i + 1 > out ? i + 1 - out : 0;
}

size_t demo_picture_chart(const struct demo_step *steps, size_t count) {
  size_t columns[CHART_WIDTH] = {0};
  size_t most = 0;
  for (size_t i = 0; i < count; i++) {
    size_t held = held_after(steps, i);
    size_t *column = &columns[i * CHART_WIDTH / count];
    if (held > *column) *column = held;
    if (held > most) most = held;
  }
  for (size_t row = CHART_HEIGHT; row-- > 0;) {
    char line[CHART_WIDTH + 1] = "";
    for (size_t i = 0; i < CHART_WIDTH; i++) {
      line[i] = columns[i] * CHART_HEIGHT > row * most ? '#' : ' ';
    }
    (void)printf("    %4zu |%s\n", most * (row + 1) / CHART_HEIGHT, line);
  }
  (void)printf("  held   +");
  for (size_t i = 0; i < CHART_WIDTH; i++) (void)putchar('-');
  (void)printf("\n          1 ... arrivals ... %zu\n", count);
  return most;
}
