/* How often a child process waited for the disk: a counter that it and this process map. */
#ifndef HB_BENCH_SYNCS_H
#define HB_BENCH_SYNCS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/tempdir.h"

/* Names the counter's file to the preloaded library. */
#define HB_SYNCS_VARIABLE "HB_BENCH_SYNCS"

struct hb_syncs {
  char path[HBT_PATH_SIZE];
  const uint64_t *counter; /* NULL: nothing is counted */
};

/* Children that are started from now on count in a file in `dir`; library NULL: they don't. */
void hb_syncs_begin(struct hb_syncs *syncs, const char *library, const struct hbt_tempdir *dir);
/* So far. False: it isn't known. */
bool hb_syncs_get(const struct hb_syncs *syncs, uint64_t *out);
void hb_syncs_end(struct hb_syncs *syncs);

#endif
