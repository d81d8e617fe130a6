/* All that can be measured, by name. */
#ifndef HB_BENCH_SYSTEMS_H
#define HB_BENCH_SYSTEMS_H

#include <stddef.h>

#include "bench/options.h"
#include "bench/run.h"

enum hb_system_id {
  HB_SYSTEM_HOLDBACK,
  HB_SYSTEM_FLOOR,
  HB_SYSTEM_REDIS_ALWAYS,
  HB_SYSTEM_REDIS_EVERYSEC,
  HB_SYSTEM_NATS,
  HB_SYSTEMS
};

const struct hb_system *hb_system_of(enum hb_system_id id);
/* NULL: it can be measured; else why not. */
const char *hb_system_missing(enum hb_system_id id, const struct hb_bench_command *command);
/* HB_SYSTEMS: there is none with this name. */
enum hb_system_id hb_system_find(const char *name);

#endif
