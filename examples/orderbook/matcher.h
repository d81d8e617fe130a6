/* The exchange of one contract: orders meet by price, then by who was first.
 *
 * Events tell of the order that rested, never of the one that came: that one shows only where a
 * part of it stays and rests itself. */
#ifndef EXAMPLES_ORDERBOOK_MATCHER_H
#define EXAMPLES_ORDERBOOK_MATCHER_H

#include "examples/orderbook/wire.h"

struct ob_order {
  int64_t id; /* ascending: lower was first */
  enum ob_side side;
  int64_t price;
  int64_t quantity;
  int64_t remaining;
};

/* One side's resting orders; the best is the last. */
struct ob_queue {
  struct ob_order *orders; /* owned */
  size_t count;
  size_t cap;
};

/* Zeroed = empty. */
struct ob_matcher {
  struct ob_queue buys;
  struct ob_queue sells;
  int64_t matches;
};

/* Gets type, side, order, price, quantity, remaining, filled and match; the rest is 0. */
typedef void ob_tell(void *context, const struct ob_event *event);

/* Match it against the other side while they cross; what is left rests. */
void ob_matcher_add(struct ob_matcher *matcher, int64_t id, enum ob_side side, int64_t price,
                    int64_t quantity, ob_tell *tell, void *context);
/* Nothing is told where it does not rest any more. */
void ob_matcher_remove(struct ob_matcher *matcher, int64_t id, ob_tell *tell, void *context);
/* What rests, added up by price as in a book: signed price, ascending; at most `room` levels are
 * written. Returns how many there are. */
size_t ob_matcher_levels(const struct ob_matcher *matcher, struct ob_level *out, size_t room);
void ob_matcher_done(struct ob_matcher *matcher);

#endif
