/* Decides what each system needs to be measured here. */
#include "bench/systems.h"

#include <string.h>

#include "bench/peers/peers.h"

static const struct hb_system *const systems[HB_SYSTEMS] = {
    [HB_SYSTEM_HOLDBACK] = &hb_system_holdback,
    [HB_SYSTEM_FLOOR] = &hb_system_floor,
    [HB_SYSTEM_REDIS_ALWAYS] = &hb_system_redis_always,
    [HB_SYSTEM_REDIS_EVERYSEC] = &hb_system_redis_everysec,
    [HB_SYSTEM_NATS] = &hb_system_nats,
};

const struct hb_system *hb_system_of(enum hb_system_id id) { return systems[id]; }

const char *hb_system_missing(enum hb_system_id id, const struct hb_bench_command *command) {
  switch (id) {
    case HB_SYSTEM_FLOOR:
      return command->floor ? NULL : "no --floor was given";
    case HB_SYSTEM_REDIS_ALWAYS:
    case HB_SYSTEM_REDIS_EVERYSEC:
      return hb_redis_missing();
    case HB_SYSTEM_NATS:
      return hb_nats_missing();
    case HB_SYSTEM_HOLDBACK:
    case HB_SYSTEMS:
      break;
  }
  return NULL;
}

enum hb_system_id hb_system_find(const char *name) {
  for (int i = 0; i < HB_SYSTEMS; i++) {
    if (strcmp(systems[i]->name, name) == 0) return (enum hb_system_id)i;
  }
  return HB_SYSTEMS;
}
