/* Decides which flags there are, and what they may be. */
#include "examples/orderbook/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "examples/orderbook/book.h"

enum { EXIT_USAGE = 64 };

enum flag { EVENTS, CONTRACTS, SEED, DISORDER, DEPTH, FLAGS, HELP };

static const struct {
  const char *name;
  uint64_t least, most, usual;
  const char *help;
} flags[FLAGS] = {
    {"events", 1, 5000000, 100000, "order events; closing ones, one a contract, come on top"},
    {"contracts", 1, 10000, 100, "contracts; the later ones are the busier ones"},
    {"seed", 0, UINT64_MAX, 1, "another number, another feed; the same, the same"},
    {"disorder", 1, 10000000, 1000, "each event is displaced by less than this; 1: in order"},
    {"depth", 1, OB_LEVELS_MAX, 5, "levels of each side in a result"},
};

static void print_help(FILE *out) {
  (void)fprintf(
      out,
      "orderbook: builds the order books of many contracts from one disordered feed.\n\n"
      "It makes a feed of order events with a matcher, shuffles it, starts a holdbackd in a\n"
      "temporary folder, attaches the processor 'orderbook', sends the feed, shows the books that\n"
      "come out, and compares every result with those built from the feed in order.\n\n"
      "  ./bazelw run //examples/orderbook -- [FLAG...]\n\n");
  for (int i = 0; i < FLAGS; i++) {
    (void)fprintf(out, "  --%s=N%*s%s (%" PRIu64 ")\n", flags[i].name,
                  (int)(12 - snprintf(NULL, 0, "%s", flags[i].name)), "", flags[i].help,
                  flags[i].usual);
  }
  (void)fprintf(out,
                "  --help          this\n\n"
                "Examples:\n"
                "  ./bazelw run //examples/orderbook\n"
                "  ./bazelw run //examples/orderbook -- --events=20000 --contracts=3 --depth=2\n"
                "  ./bazelw run //examples/orderbook -- --seed=7 --disorder=50000\n"
                "  ./bazelw run --config=opt //examples/orderbook -- --events=1000000\n\n"
                "Exit code: 0 all results right, 1 not so, 64 wrong use.\n");
}

static bool parse(int flag, const char *text, uint64_t *out) {
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && value >= flags[flag].least &&
      value <= flags[flag].most) {
    *out = value;
    return true;
  }
  (void)fprintf(stderr, "orderbook: --%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n",
                flags[flag].name, text, flags[flag].least, flags[flag].most);
  return false;
}

static int usage(void) {
  (void)fprintf(stderr, "orderbook: try --help\n");
  return EXIT_USAGE;
}

int ob_options_parse(int argc, char **argv, struct ob_options *out) {
  struct option known[FLAGS + 2] = {{0}};
  uint64_t values[FLAGS];
  for (int i = 0; i < FLAGS; i++) {
    known[i] = (struct option){flags[i].name, required_argument, NULL, i};
    values[i] = flags[i].usual;
  }
  known[FLAGS] = (struct option){"help", no_argument, NULL, HELP};
  for (int flag; (flag = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (flag == HELP) {
      print_help(stdout);
      return 0;
    }
    if (flag < 0 || flag >= FLAGS) return usage();
    if (!parse(flag, optarg, &values[flag])) return EXIT_USAGE;
  }
  /* Bazel's own two; see BUILD. */
  if (argc - optind != 2) return usage();
  *out = (struct ob_options){.feed = {.events = values[EVENTS],
                                      .contracts = (uint32_t)values[CONTRACTS],
                                      .seed = values[SEED]},
                             .disorder = values[DISORDER],
                             .depth = values[DEPTH],
                             .holdbackd = argv[optind],
                             .processor = argv[optind + 1]};
  return -1;
}
