/* What a measurement is made of: the command line as values. */
#ifndef HB_BENCH_OPTIONS_H
#define HB_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  HB_BENCH_PAYLOAD_MAX = 1 << 20,
  HB_BENCH_SUBSCRIBERS_MAX = 128,
  HB_BENCH_PRODUCERS_MAX = 128
};

/* In which order sequences 1 .. events are sent. */
enum hb_order {
  HB_ORDER_SLIDING,    /* event i at the rank of i + uniform[0, disorder); disorder 1: in order */
  HB_ORDER_REVERSED,   /* the last one first: everything waits for the very last send */
  HB_ORDER_GAP,        /* 1 comes last, 2 .. events in order before it */
  HB_ORDER_ALTERNATING /* every even one, then every odd one: events / 2 gaps */
};

/* One workload. */
struct hb_bench_options {
  const char *server; /* path of holdbackd, or of what is measured in its place */
  uint64_t events;
  enum hb_order order;
  uint64_t disorder;
  uint64_t payload;      /* bytes, incompressible */
  uint64_t keys;         /* distinct ones */
  bool zipf;             /* exponent 1 instead of uniform */
  uint64_t spread_every; /* each multiple of it has the key `keys`, nothing else has; 0 = none */
  uint64_t producers;    /* batches are dealt to them in turn */
  uint64_t batch;
  uint64_t in_flight; /* batches, of each producer */
  uint64_t subscribers;
  uint64_t seed;
  uint64_t rate;    /* events a second, open loop; 0 = as fast as answers come */
  uint64_t kill_at; /* SIGKILL when the first subscriber has so many events; 0 = never */
  uint64_t stalled; /* subscribers that stop reading after their first message */
  bool async;
  bool tcp;              /* loopback instead of a Unix socket */
  const char *processor; /* attached before anything is sent; NULL = none */
};

/* What the program is asked for. */
struct hb_bench_command {
  struct hb_bench_options options; /* a single workload */
  bool list;
  bool all;
  bool quick;
  bool json;            /* a single workload: one line of JSON */
  const char *rows[32]; /* --row, NULL ends them */
  uint64_t runs;        /* interleaved, of each compared system; 0 = the mode's default */
  const char *out;      /* JSON file of all rows; NULL = none */
  const char *floor;    /* path of the floor's server; NULL = its rows are not measured */
  const char *system;   /* a single workload: instead of Holdback; NULL = Holdback */
  const char *counter;  /* path of the library that counts syncs; NULL = they are not counted */
};

struct hb_bench_options hb_bench_options_default(void);
/* False: wrong usage or --help, *out_exit says with which code to end. */
bool hb_bench_command_parse(struct hb_bench_command *command, int argc, char **argv, int *out_exit);
/* "2 million"-like; for reports. Static words: "sliding", "reversed", ... */
const char *hb_order_name(enum hb_order order);

#endif
