/* The books as a person sees them: best bid and offer of each contract, redrawn on a terminal. */
#ifndef EXAMPLES_ORDERBOOK_TABLE_H
#define EXAMPLES_ORDERBOOK_TABLE_H

#include "examples/orderbook/wire.h"

/* One contract's latest depth. */
struct ob_row {
  int64_t events;
  struct ob_level bid; /* quantity 0: nobody */
  struct ob_level offer;
  int64_t trade_price; /* 0: none yet */
};

struct ob_table {
  struct ob_row *rows; /* owned; by contract - 1 */
  uint32_t contracts;
  size_t total; /* events that are to come */
  size_t seen;
  bool live;         /* stdout is a terminal */
  uint32_t drawn;    /* lines on the screen */
  uint64_t drawn_ms; /* when */
  uint64_t begun_ms;
};

void ob_table_init(struct ob_table *table, uint32_t contracts, size_t total);
/* A depth of one of the contracts came. Draws now and then, where it is live. */
void ob_table_take(struct ob_table *table, const struct ob_depth *depth);
/* For the last time: also where it is not live. */
void ob_table_finish(struct ob_table *table);
void ob_table_done(struct ob_table *table);

#endif
