/* What a measurement is made of: the command line as values. */
#ifndef HB_BENCH_OPTIONS_H
#define HB_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HB_BENCH_PAYLOAD_MAX = 1 << 20, HB_BENCH_SUBSCRIBERS_MAX = 64 };

struct hb_bench_options {
  const char *server; /* path of holdbackd */
  uint64_t events;
  uint64_t disorder; /* event i is sent at the rank of i + uniform[0, disorder) */
  uint64_t payload;  /* bytes */
  uint64_t keys;
  uint64_t batch;
  uint64_t in_flight;
  uint64_t subscribers;
  uint64_t seed;
  uint64_t kill_at; /* SIGKILL when the first subscriber has so many events; 0 = never */
  uint64_t stalled; /* subscribers that stop reading after their first message */
  bool async;
  bool json;
};

/* False: wrong usage or --help, *out_exit says with which code to end. */
bool hb_bench_options_parse(struct hb_bench_options *options, int argc, char **argv, int *out_exit);

#endif
