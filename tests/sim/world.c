/* Decides what happens next: the earliest, and of those the one that was planned first. */
#include "tests/sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/alloc.h"

void hb_world_init(struct hb_world *world, uint64_t seed, bool tell) {
  *world =
      (struct hb_world){.random = seed * 7919, .hash = UINT64_C(0xcbf29ce484222325), .tell = tell};
}

void hb_world_done(struct hb_world *world) { free(world->events); }

static bool before(const struct hb_world_event *a, const struct hb_world_event *b) {
  return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct hb_world_event *a, struct hb_world_event *b) {
  struct hb_world_event kept = *a;
  *a = *b;
  *b = kept;
}

void hb_world_plan(struct hb_world *world, uint64_t delay_us, hb_world_act *act, void *context,
                   uint64_t argument) {
  hb_reserve((void **)&world->events, &world->events_cap, world->events_count + 1,
             sizeof *world->events);
  size_t at = world->events_count++;
  world->events[at] =
      (struct hb_world_event){world->now_us + delay_us, world->order++, act, context, argument};
  for (; at && before(&world->events[at], &world->events[(at - 1) / 2]); at = (at - 1) / 2) {
    swap(&world->events[at], &world->events[(at - 1) / 2]);
  }
}

bool hb_world_step(struct hb_world *world) {
  if (!world->events_count) return false;
  struct hb_world_event event = world->events[0];
  world->events[0] = world->events[--world->events_count];
  for (size_t at = 0;;) {
    size_t least = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
      bool there = child < world->events_count;
      if (there && before(&world->events[child], &world->events[least])) least = child;
    }
    if (least == at) break;
    swap(&world->events[at], &world->events[least]);
    at = least;
  }
  world->now_us = event.at_us;
  event.act(event.context, event.argument);
  return true;
}

static uint64_t next_random(struct hb_world *world) {
  uint64_t z = (world->random += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint64_t hb_world_below(struct hb_world *world, uint64_t end) { return next_random(world) % end; }

uint64_t hb_world_between(struct hb_world *world, uint64_t from, uint64_t to) {
  return from + hb_world_below(world, to - from);
}

bool hb_world_chance(struct hb_world *world, unsigned percent) {
  return hb_world_below(world, 100) < percent;
}

void hb_world_note(struct hb_world *world, const char *format, ...) {
  char line[400];
  int size = snprintf(line, sizeof line, "%10.3f ", (double)world->now_us / 1000);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + size, sizeof line - (size_t)size, format, arguments);
  va_end(arguments);
  for (const char *c = line; *c; c++) {
    world->hash = (world->hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
  }
  if (world->tell) printf("%s\n", line);
}

_Noreturn void hb_world_fail(struct hb_world *world, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("%10.3f WRONG: ", (double)world->now_us / 1000);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  fail();
  abort(); /* not reached: cmocka went back to the test */
}
