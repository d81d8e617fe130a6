/* Compares what the server gives out with books that are built here from the feed in order.
 *
 * Every byte of every result counts: key, place, cause, payload. In the end each final book must be
 * the server's, ours, and what rests in the exchange's own matcher, which knows no books. */
#ifndef EXAMPLES_ORDERBOOK_JUDGE_H
#define EXAMPLES_ORDERBOOK_JUDGE_H

#include "client/holdback.h"
#include "examples/orderbook/book.h"
#include "examples/orderbook/feed.h"

struct ob_judge {
  const struct ob_feed *feed; /* borrowed */
  size_t depth;
  struct ob_book *books; /* owned; by contract - 1 */
  size_t events;         /* results of events so far */
  uint32_t finals;
  char last_key[24];
};

void ob_judge_init(struct ob_judge *judge, const struct ob_feed *feed, size_t depth);
/* False: it is not the result that is due; said why. */
bool ob_judge_take(struct ob_judge *judge, const struct holdback_processor_result *result);
/* All that was due has come. False: said what has not. */
bool ob_judge_finish(const struct ob_judge *judge);
void ob_judge_done(struct ob_judge *judge);

#endif
