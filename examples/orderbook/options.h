/* What a run may be told. */
#ifndef EXAMPLES_ORDERBOOK_OPTIONS_H
#define EXAMPLES_ORDERBOOK_OPTIONS_H

#include <stdbool.h>

#include "examples/orderbook/feed.h"

struct ob_options {
  struct ob_feed_options feed;
  uint64_t disorder; /* places that an event may be too late; 1 = in order */
  size_t depth;
  const char *holdbackd; /* the run's own; set by Bazel */
  const char *processor;
};

/* -1: go on; else the exit code, all having been said. */
int ob_options_parse(int argc, char **argv, struct ob_options *out);

#endif
