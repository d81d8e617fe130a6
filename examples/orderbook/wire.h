/* The payloads of the order book: order events in, market depths out, as bytes.
 *
 * Fixed places, little-endian, no library: see README.md for the tables and for why. Whoever reads
 * such bytes gets NULL where they are right, else what is wrong with them. */
#ifndef EXAMPLES_ORDERBOOK_WIRE_H
#define EXAMPLES_ORDERBOOK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ob_type { OB_UNSPECIFIED = 0, OB_NEW = 1, OB_EXECUTED = 2, OB_DELETED = 3 };
enum ob_side { OB_NO_SIDE = 0, OB_BUY = 1, OB_SELL = 2 };

/* What happened to one resting order. Prices and quantities are whole numbers. */
struct ob_event {
  enum ob_type type;
  enum ob_side side;
  bool last; /* the contract closes; it carries no order */
  int64_t timestamp_ms;
  int64_t contract;
  int64_t sequence;          /* over all contracts, from 1 */
  int64_t contract_sequence; /* within the contract */
  int64_t order;
  int64_t price;
  int64_t quantity;  /* as it was ordered */
  int64_t remaining; /* after this event; of DELETED: before it */
  int64_t filled;    /* by this event */
  int64_t match;     /* counts the executions of a contract, from 0 */
};

enum { OB_EVENT_SIZE = 88, OB_DEPTH_HEADER_SIZE = 56, OB_LEVEL_SIZE = 16 };

void ob_event_encode(const struct ob_event *event, uint8_t out[OB_EVENT_SIZE]);
/* `out` is written only where the answer is NULL. */
const char *ob_event_decode(const void *data, size_t size, struct ob_event *out);

/* All orders at one price. In a book a bid's price is negative, so that ascending order is best
 * first on both sides, bids before offers. */
struct ob_level {
  int64_t price;
  int64_t quantity;
};

/* The best levels of a contract after an event. */
struct ob_depth {
  int64_t timestamp_ms;
  int64_t contract;
  int64_t sequence;
  int64_t contract_sequence;
  bool final;     /* every level, after the last event of all */
  bool has_trade; /* the event was an execution: */
  int64_t trade_price;
  int64_t trade_quantity;
  uint16_t bids;
  uint16_t offers;
  const uint8_t *levels; /* bids, then offers; see ob_depth_level */
};

/* Writes the header; the levels follow it in `out`. */
void ob_depth_encode_header(const struct ob_depth *depth, uint8_t out[OB_DEPTH_HEADER_SIZE]);
void ob_level_encode(struct ob_level level, uint8_t out[OB_LEVEL_SIZE]);
struct ob_level ob_level_decode(const uint8_t at[OB_LEVEL_SIZE]);
/* out->levels points into `data`. */
const char *ob_depth_decode(const void *data, size_t size, struct ob_depth *out);
/* index < bids + offers; prices are positive. */
struct ob_level ob_depth_level(const struct ob_depth *depth, size_t index);

void ob_put_i64(uint8_t *at, int64_t value);
int64_t ob_get_i64(const uint8_t *at);

#endif
