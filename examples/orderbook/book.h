/* One contract's book: how much is wanted and offered at each price, built from its events. */
#ifndef EXAMPLES_ORDERBOOK_BOOK_H
#define EXAMPLES_ORDERBOOK_BOOK_H

#include "examples/orderbook/wire.h"

/* A bound, since what comes from outside must not grow a state without end. */
enum {
  OB_LEVELS_MAX = 1024,
  OB_BOOK_HEADER_SIZE = 40,
  OB_BOOK_SIZE_MAX = OB_BOOK_HEADER_SIZE + OB_LEVELS_MAX * OB_LEVEL_SIZE,
  OB_DEPTH_SIZE_MAX = OB_DEPTH_HEADER_SIZE + OB_LEVELS_MAX * OB_LEVEL_SIZE
};

struct ob_book {
  bool begun; /* it had an event; else all of it is 0 */
  bool closed;
  int64_t timestamp_ms; /* of the latest event, as the numbers below */
  int64_t contract;
  int64_t sequence;
  int64_t contract_sequence;
  size_t count;
  struct ob_level levels[OB_LEVELS_MAX]; /* ascending by signed price */
};

/* Why an event was refused, for a person. */
struct ob_why {
  char text[160];
};

/* False: the event can't be right, and the book is as before. */
bool ob_book_apply(struct ob_book *book, const struct ob_event *event, struct ob_why *why);
/* How many of the levels are bids. */
size_t ob_book_bids(const struct ob_book *book);
/* The best `levels` of each side as an ob_depth; the trade is that of `event` where it is an
 * execution (NULL: no trade). Returns its size. */
size_t ob_book_depth(const struct ob_book *book, size_t levels, const struct ob_event *event,
                     uint8_t out[OB_DEPTH_SIZE_MAX]);
/* The same with every level, marked as final. */
size_t ob_book_final(const struct ob_book *book, uint8_t out[OB_DEPTH_SIZE_MAX]);

/* As the state of a key. */
size_t ob_book_encode(const struct ob_book *book, uint8_t out[OB_BOOK_SIZE_MAX]);
/* NULL, or what is wrong; then the book is as before. */
const char *ob_book_decode(const void *data, size_t size, struct ob_book *out);

#endif
