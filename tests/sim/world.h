/* Virtual time: what happens, in which order, and by which chance. One thread; a run is repeated by
 * its seed, and its trace says whether it was the same. */
#ifndef HB_TESTS_SIM_WORLD_H
#define HB_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void hb_world_act(void *context, uint64_t argument);

struct hb_world_event {
  uint64_t at_us;
  uint64_t order; /* what was planned first comes first at the same time */
  hb_world_act *act;
  void *context;
  uint64_t argument;
};

struct hb_world {
  uint64_t now_us;
  uint64_t random;
  uint64_t hash; /* of every note so far */
  bool tell;     /* notes are printed */
  uint64_t order;
  struct hb_world_event *events; /* a heap */
  size_t events_count, events_cap;
};

void hb_world_init(struct hb_world *world, uint64_t seed, bool tell);
void hb_world_done(struct hb_world *world);
/* Call act(context, argument) after `delay_us`. It can't be taken back. */
void hb_world_plan(struct hb_world *world, uint64_t delay_us, hb_world_act *act, void *context,
                   uint64_t argument);
/* The next planned thing happens. False: there is none. */
bool hb_world_step(struct hb_world *world);

uint64_t hb_world_below(struct hb_world *world, uint64_t end);
uint64_t hb_world_between(struct hb_world *world, uint64_t from, uint64_t to);
bool hb_world_chance(struct hb_world *world, unsigned percent);

/* A line of the trace. */
void hb_world_note(struct hb_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Something that must not be: cmocka's failure, with the time. */
_Noreturn void hb_world_fail(struct hb_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
