/* Decides the flags, their defaults (the setting that the project's figures are for) and bounds. */
#include "bench/options.h"

#include <getopt.h>
#include <stdio.h>

#include "base/err.h"
#include "base/limits.h"

/* The sum of two still fits the 32 bits in which the sending order is kept. */
static const uint64_t NUMBERS_MAX = 2000000000;

enum flag {
  FLAG_EVENTS = 256,
  FLAG_DISORDER,
  FLAG_PAYLOAD,
  FLAG_KEYS,
  FLAG_BATCH,
  FLAG_IN_FLIGHT,
  FLAG_SUBSCRIBERS,
  FLAG_SEED,
  FLAG_KILL,
  FLAG_SLOW_SUBSCRIBER,
  FLAG_ASYNC,
  FLAG_JSON,
  FLAG_HELP
};

static const struct option flags[] = {
    {"events", required_argument, NULL, FLAG_EVENTS},
    {"disorder", required_argument, NULL, FLAG_DISORDER},
    {"payload", required_argument, NULL, FLAG_PAYLOAD},
    {"keys", required_argument, NULL, FLAG_KEYS},
    {"batch", required_argument, NULL, FLAG_BATCH},
    {"in-flight", required_argument, NULL, FLAG_IN_FLIGHT},
    {"subscribers", required_argument, NULL, FLAG_SUBSCRIBERS},
    {"seed", required_argument, NULL, FLAG_SEED},
    {"kill", required_argument, NULL, FLAG_KILL},
    {"slow-subscriber", required_argument, NULL, FLAG_SLOW_SUBSCRIBER},
    {"async", no_argument, NULL, FLAG_ASYNC},
    {"json", no_argument, NULL, FLAG_JSON},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: holdback_bench HOLDBACKD [flags]\n"
    "Starts HOLDBACKD on a temporary folder, sends events in a wrong order, checks that they come\n"
    "out in the right one, each once, and says how long it took.\n\n"
    "  --events=N           how many [2000000]\n"
    "  --disorder=W         event i is sent at the rank of i + uniform[0, W) [1000]\n"
    "  --payload=BYTES      incompressible [100]\n"
    "  --keys=N             distinct keys [10000]\n"
    "  --batch=N            events per batch [1000]\n"
    "  --in-flight=N        batches unanswered at a time [8]\n"
    "  --subscribers=N      each checks everything [1]\n"
    "  --async              acknowledged before the sync\n"
    "  --seed=N             of order and payloads [1]\n"
    "  --kill=N             SIGKILL when N events have come out, then go on with a new process\n"
    "  --slow-subscriber=N  measure twice, without and with N subscribers that stop reading\n"
    "  --json               one line of JSON instead of text\n";

/* In [min, max], with the units that limits have (64KiB, 2^20). */
static bool number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out) {
  struct hb_err err = {0};
  uint64_t value = 0;
  if (hb_limits_parse(text, &value, &err) != HB_OK) {
    (void)fprintf(stderr, "holdback_bench: --%s: %s\n", name, err.message);
    return false;
  }
  if (value < min || value > max) {
    (void)fprintf(stderr, "holdback_bench: --%s is %s, outside of %llu to %llu\n", name, text,
                  (unsigned long long)min, (unsigned long long)max);
    return false;
  }
  *out = value;
  return true;
}

static bool set(struct hb_bench_options *options, int flag, const char *name, const char *text) {
  switch (flag) {
    case FLAG_EVENTS:
      return number(name, text, 1, NUMBERS_MAX, &options->events);
    case FLAG_DISORDER:
      return number(name, text, 1, NUMBERS_MAX, &options->disorder);
    case FLAG_PAYLOAD:
      return number(name, text, 0, HB_BENCH_PAYLOAD_MAX, &options->payload);
    case FLAG_KEYS:
      return number(name, text, 1, 100000000, &options->keys);
    case FLAG_BATCH:
      return number(name, text, 1, 65536, &options->batch);
    case FLAG_IN_FLIGHT:
      return number(name, text, 1, 1000, &options->in_flight);
    case FLAG_SUBSCRIBERS:
      return number(name, text, 1, HB_BENCH_SUBSCRIBERS_MAX, &options->subscribers);
    case FLAG_SEED:
      return number(name, text, 0, UINT64_MAX, &options->seed);
    case FLAG_KILL:
      return number(name, text, 1, NUMBERS_MAX, &options->kill_at);
    case FLAG_SLOW_SUBSCRIBER:
      return number(name, text, 1, HB_BENCH_SUBSCRIBERS_MAX, &options->stalled);
    case FLAG_ASYNC:
      options->async = true;
      return true;
    case FLAG_JSON:
      options->json = true;
      return true;
    default:
      return false;
  }
}

bool hb_bench_options_parse(struct hb_bench_options *options, int argc, char **argv,
                            int *out_exit) {
  *options = (struct hb_bench_options){.events = 2000000,
                                       .disorder = 1000,
                                       .payload = 100,
                                       .keys = 10000,
                                       .batch = 1000,
                                       .in_flight = 8,
                                       .subscribers = 1,
                                       .seed = 1};
  *out_exit = 64;
  int index = 0;
  for (int flag = 0; (flag = getopt_long(argc, argv, "", flags, &index)) != -1;) {
    if (flag == FLAG_HELP) {
      (void)fputs(help, stdout);
      *out_exit = 0;
      return false;
    }
    if (flag == '?' || !set(options, flag, flags[index].name, optarg)) return false;
  }
  if (optind + 1 != argc) {
    (void)fputs(help, stderr);
    return false;
  }
  options->server = argv[optind];
  if (options->kill_at >= options->events) options->kill_at = 0;
  return true;
}
