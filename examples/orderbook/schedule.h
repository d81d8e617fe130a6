/* What is to be done when: a queue by tick, and within a tick in the order in which it was put. */
#ifndef EXAMPLES_ORDERBOOK_SCHEDULE_H
#define EXAMPLES_ORDERBOOK_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ob_task {
  int64_t tick;
  uint64_t place; /* the schedule's */
  uint32_t contract;
  int64_t cancel; /* the order to cancel; 0: make one */
};

/* Zeroed = empty. */
struct ob_schedule {
  struct ob_task *heap; /* owned */
  size_t count;
  size_t cap;
  uint64_t places;
};

void ob_schedule_put(struct ob_schedule *schedule, const struct ob_task *task);
/* False: it is empty. */
bool ob_schedule_take(struct ob_schedule *schedule, struct ob_task *out);
void ob_schedule_done(struct ob_schedule *schedule);

#endif
