/* Where the figures were taken: hardware, versions, and what the disk itself can do. */
#ifndef HB_BENCH_MACHINE_H
#define HB_BENCH_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/histogram.h"

/* A new reference. */
json_t *hb_json_machine(void);

/* Append 512 bytes to a file in `folder` and wait for them, `count` times: what any log costs. */
bool hb_device_syncs(const char *folder, uint64_t count, struct hb_histogram *out);
/* Bytes a second of one file written from start to end and synced. 0: it went wrong. */
double hb_device_write_rate(const char *folder, uint64_t bytes);

#endif
