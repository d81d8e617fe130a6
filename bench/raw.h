/* Many calls from one thread, straight on gRPC's C core: what is measured with a hundred
 * subscribers or 64 waiting producers is the server, so their own side has to be cheap.
 *
 * One connection and one call per peer, one completion queue for all. */
#ifndef HB_BENCH_RAW_H
#define HB_BENCH_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/clients.h"

struct hb_raw;

/* `count` Subscribe calls from the start of setting->stream. Each checks that the sequences come as
 * hb_bench_expected says; contents are the business of the readers beside it. Counts itself in the
 * gate as ready once per call, and as finished once per call. */
struct hb_raw *hb_raw_subscribe(const struct hb_bench_setting *setting, uint64_t count);
/* `count` AppendStream calls, each with one message of one event on its way. They share sequences
 * 1 .. options->events in the order of sending; with everything answered the gate is told once. */
struct hb_raw *hb_raw_append(const struct hb_bench_setting *setting, uint64_t count);
/* Ends the calls and frees. NULL is allowed. */
void hb_raw_destroy(struct hb_raw *raw);

#endif
