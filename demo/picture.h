/* What was held when, drawn with characters.
 *
 * One step per event that was sent alone and whose answer was awaited: after it, `frontier` says
 * what is out, and whatever was sent and is not below it is held. */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include <stddef.h>
#include <stdint.h>

struct demo_step {
  int64_t sequence;
  int64_t frontier; /* after the answer; the stream starts at 1 */
};

/* A row for each of the first steps: what arrives, what goes out, what is held. */
void demo_picture_rows(const struct demo_step *steps, size_t count);
/* How many are held, over all steps. Returns the most that were held at once. */
size_t demo_picture_chart(const struct demo_step *steps, size_t count);

#endif
