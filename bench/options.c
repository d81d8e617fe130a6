/* Decides the flags, their defaults (the setting that the project's figures are for) and bounds. */
#include "bench/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"

/* The sum of two still fits the 32 bits in which the sending order is kept. */
static const uint64_t NUMBERS_MAX = 2000000000;

enum flag {
  FLAG_EVENTS = 256,
  FLAG_ORDER,
  FLAG_DISORDER,
  FLAG_PAYLOAD,
  FLAG_KEYS,
  FLAG_ZIPF,
  FLAG_PRODUCERS,
  FLAG_BATCH,
  FLAG_IN_FLIGHT,
  FLAG_SUBSCRIBERS,
  FLAG_SEED,
  FLAG_RATE,
  FLAG_KILL,
  FLAG_SLOW_SUBSCRIBER,
  FLAG_ASYNC,
  FLAG_TCP,
  FLAG_JSON,
  FLAG_LIST,
  FLAG_ALL,
  FLAG_ROW,
  FLAG_QUICK,
  FLAG_RUNS,
  FLAG_OUT,
  FLAG_FLOOR,
  FLAG_COUNTER,
  FLAG_SYSTEM,
  FLAG_PROCESSOR,
  FLAG_HELP
};

static const struct option flags[] = {
    {"events", required_argument, NULL, FLAG_EVENTS},
    {"order", required_argument, NULL, FLAG_ORDER},
    {"disorder", required_argument, NULL, FLAG_DISORDER},
    {"payload", required_argument, NULL, FLAG_PAYLOAD},
    {"keys", required_argument, NULL, FLAG_KEYS},
    {"zipf", no_argument, NULL, FLAG_ZIPF},
    {"producers", required_argument, NULL, FLAG_PRODUCERS},
    {"batch", required_argument, NULL, FLAG_BATCH},
    {"in-flight", required_argument, NULL, FLAG_IN_FLIGHT},
    {"subscribers", required_argument, NULL, FLAG_SUBSCRIBERS},
    {"seed", required_argument, NULL, FLAG_SEED},
    {"rate", required_argument, NULL, FLAG_RATE},
    {"kill", required_argument, NULL, FLAG_KILL},
    {"slow-subscriber", required_argument, NULL, FLAG_SLOW_SUBSCRIBER},
    {"async", no_argument, NULL, FLAG_ASYNC},
    {"tcp", no_argument, NULL, FLAG_TCP},
    {"json", no_argument, NULL, FLAG_JSON},
    {"list", no_argument, NULL, FLAG_LIST},
    {"all", no_argument, NULL, FLAG_ALL},
    {"row", required_argument, NULL, FLAG_ROW},
    {"quick", no_argument, NULL, FLAG_QUICK},
    {"runs", required_argument, NULL, FLAG_RUNS},
    {"out", required_argument, NULL, FLAG_OUT},
    {"floor", required_argument, NULL, FLAG_FLOOR},
    {"count-syncs", required_argument, NULL, FLAG_COUNTER},
    {"system", required_argument, NULL, FLAG_SYSTEM},
    {"processor", required_argument, NULL, FLAG_PROCESSOR},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: holdback_bench HOLDBACKD [flags]\n"
    "Starts HOLDBACKD on a temporary folder, sends events in a wrong order, checks that they come\n"
    "out in the right one, each once, and says how long it took.\n\n"
    "The table of docs/PERFORMANCE.md:\n"
    "  --list               the rows by name, and stop\n"
    "  --all                every row\n"
    "  --row=NAME           this row; may be given several times\n"
    "  --quick              small sizes, one run: to see that it works, not to quote\n"
    "  --runs=N             interleaved runs of what is compared [5; 1 with --quick]\n"
    "  --out=FILE           all figures as JSON, for bench/report.py\n\n"
    "One workload of your own:\n"
    "  --system=NAME        holdback, floor, redis-always, redis-everysec, nats [holdback]\n"
    "  --events=N           how many [2000000]\n"
    "  --order=ORDER        sliding, reversed, gap (the first one comes last), alternating "
    "[sliding]\n"
    "  --disorder=W         sliding: event i is sent at the rank of i + uniform[0, W) [1000]\n"
    "  --payload=BYTES      incompressible [100]\n"
    "  --keys=N             distinct keys [10000]\n"
    "  --zipf               keys by Zipf's law with exponent 1 [uniform]\n"
    "  --producers=N        batches are dealt to them in turn [1]\n"
    "  --batch=N            events per batch [1000]\n"
    "  --in-flight=N        batches unanswered at a time, of each producer [8]\n"
    "  --subscribers=N      each checks everything; 0: checked after the measurement [1]\n"
    "  --rate=N             open loop: N events a second, latency from the intended send time\n"
    "  --async              acknowledged before the sync\n"
    "  --processor=NAME     a built-in processor, attached before anything is sent [none]\n"
    "  --tcp                over loopback [a Unix socket]\n"
    "  --seed=N             of order and payloads [1]\n"
    "  --kill=N             SIGKILL when N events have come out, then go on with a new process\n"
    "  --slow-subscriber=N  measure twice, without and with N subscribers that stop reading\n"
    "  --json               one line of JSON instead of text\n";

static const char *const order_names[] = {
    [HB_ORDER_SLIDING] = "sliding",
    [HB_ORDER_REVERSED] = "reversed",
    [HB_ORDER_GAP] = "gap",
    [HB_ORDER_ALTERNATING] = "alternating",
};
enum { ORDERS = sizeof order_names / sizeof order_names[0] };

const char *hb_order_name(enum hb_order order) { return order_names[order]; }

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

static bool set_order(struct hb_bench_options *options, const char *text) {
  for (size_t i = 0; i < ORDERS; i++) {
    if (strcmp(text, order_names[i]) != 0) continue;
    options->order = (enum hb_order)i;
    return true;
  }
  (void)fprintf(
      stderr, "holdback_bench: --order is %s, none of sliding, reversed, gap, alternating\n", text);
  return false;
}

/* The flags of one workload. */
static bool set_workload(struct hb_bench_options *options, int flag, const char *name,
                         const char *text) {
  switch (flag) {
    case FLAG_EVENTS:
      return number(name, text, 1, NUMBERS_MAX, &options->events);
    case FLAG_ORDER:
      return set_order(options, text);
    case FLAG_DISORDER:
      return number(name, text, 1, NUMBERS_MAX, &options->disorder);
    case FLAG_PAYLOAD:
      return number(name, text, 0, HB_BENCH_PAYLOAD_MAX, &options->payload);
    case FLAG_KEYS:
      return number(name, text, 1, 100000000, &options->keys);
    case FLAG_PRODUCERS:
      return number(name, text, 1, HB_BENCH_PRODUCERS_MAX, &options->producers);
    case FLAG_BATCH:
      return number(name, text, 1, 65536, &options->batch);
    case FLAG_IN_FLIGHT:
      return number(name, text, 1, 1000, &options->in_flight);
    case FLAG_SUBSCRIBERS:
      return number(name, text, 0, HB_BENCH_SUBSCRIBERS_MAX, &options->subscribers);
    case FLAG_SEED:
      return number(name, text, 0, UINT64_MAX, &options->seed);
    case FLAG_RATE:
      return number(name, text, 1, 10000000, &options->rate);
    case FLAG_KILL:
      return number(name, text, 1, NUMBERS_MAX, &options->kill_at);
    case FLAG_SLOW_SUBSCRIBER:
      return number(name, text, 1, HB_BENCH_SUBSCRIBERS_MAX, &options->stalled);
    default:
      return false;
  }
}

static bool add_row(struct hb_bench_command *command, const char *name) {
  size_t max = sizeof command->rows / sizeof command->rows[0] - 1;
  for (size_t i = 0; i < max; i++) {
    if (command->rows[i]) continue;
    command->rows[i] = name;
    return true;
  }
  (void)fprintf(stderr, "holdback_bench: more than %zu times --row\n", max);
  return false;
}

static bool set(struct hb_bench_command *command, int flag, const char *name, const char *text) {
  switch (flag) {
    case FLAG_ZIPF:
      return command->options.zipf = true;
    case FLAG_ASYNC:
      return command->options.async = true;
    case FLAG_TCP:
      return command->options.tcp = true;
    case FLAG_JSON:
      return command->json = true;
    case FLAG_LIST:
      return command->list = true;
    case FLAG_ALL:
      return command->all = true;
    case FLAG_QUICK:
      return command->quick = true;
    case FLAG_ROW:
      return add_row(command, text);
    case FLAG_RUNS:
      return number(name, text, 1, 100, &command->runs);
    case FLAG_OUT:
      command->out = text;
      return true;
    case FLAG_FLOOR:
      command->floor = text;
      return true;
    case FLAG_COUNTER:
      command->counter = text;
      return true;
    case FLAG_SYSTEM:
      command->system = text;
      return true;
    case FLAG_PROCESSOR:
      command->options.processor = text;
      return true;
    default:
      return set_workload(&command->options, flag, name, text);
  }
}

struct hb_bench_options hb_bench_options_default(void) {
  return (struct hb_bench_options){.events = 2000000,
                                   .disorder = 1000,
                                   .payload = 100,
                                   .keys = 10000,
                                   .producers = 1,
                                   .batch = 1000,
                                   .in_flight = 8,
                                   .subscribers = 1,
                                   .seed = 1};
}

bool hb_bench_command_parse(struct hb_bench_command *command, int argc, char **argv,
                            int *out_exit) {
  *command = (struct hb_bench_command){.options = hb_bench_options_default()};
  *out_exit = 64;
  int index = 0;
  for (int flag = 0; (flag = getopt_long(argc, argv, "", flags, &index)) != -1;) {
    if (flag == FLAG_HELP) {
      (void)fputs(help, stdout);
      *out_exit = 0;
      return false;
    }
    if (flag == '?' || !set(command, flag, flags[index].name, optarg)) return false;
  }
  if (optind + 1 != argc) {
    (void)fputs(help, stderr);
    return false;
  }
  struct hb_bench_options *options = &command->options;
  options->server = argv[optind];
  if (options->kill_at >= options->events) options->kill_at = 0;
  return true;
}
