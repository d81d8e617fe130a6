/* A made day at an exchange: orders of many contracts, matched, as one feed of numbered events.
 *
 * The same options give the same feed, byte for byte. Later contracts are busier, as in life. Each
 * contract gets an order every few ticks, around the price of its latest trades; what does not
 * trade is cancelled some twenty orders later. After `events` events every contract closes, with
 * one more event each. */
#ifndef EXAMPLES_ORDERBOOK_FEED_H
#define EXAMPLES_ORDERBOOK_FEED_H

#include "examples/orderbook/matcher.h"

struct ob_feed_options {
  size_t events; /* reached, and passed by few: an order's executions are told together */
  uint32_t contracts;
  uint64_t seed;
};

struct ob_feed {
  struct ob_event *events; /* owned; events[i].sequence is i + 1 */
  size_t count;
  size_t cap;
  /* What rests at the end, by contract - 1. */
  struct ob_matcher *matchers; /* owned */
  uint32_t contracts;          /* numbered from 1 */
};

void ob_feed_make(const struct ob_feed_options *options, struct ob_feed *out);
void ob_feed_done(struct ob_feed *feed);

#endif
