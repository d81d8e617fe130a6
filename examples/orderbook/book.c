/* Decides what an order event does to a book, and which events can't be right.
 *
 * Levels are one array in the order of signed price. A book has some dozens of them, nearly always
 * touched near its middle: a memmove there is cheaper than any tree, and the array is its own
 * encoding. */
#include "examples/orderbook/book.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 1 };

__attribute__((format(printf, 2, 3))) static bool refuse(struct ob_why *why, const char *format,
                                                         ...) {
  va_list given;
  va_start(given, format);
  (void)vsnprintf(why->text, sizeof why->text, format, given);
  va_end(given);
  return false;
}

/* ---- levels */

/* The first level that is not below `price`. */
static size_t lower_bound(const struct ob_book *book, int64_t price) {
  size_t low = 0;
  size_t high = book->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (book->levels[middle].price < price) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t ob_book_bids(const struct ob_book *book) { return lower_bound(book, 0); }

static void insert(struct ob_book *book, size_t at, struct ob_level level) {
  memmove(&book->levels[at + 1], &book->levels[at], (book->count - at) * sizeof *book->levels);
  book->levels[at] = level;
  book->count++;
}

static void erase(struct ob_book *book, size_t at) {
  book->count--;
  memmove(&book->levels[at], &book->levels[at + 1], (book->count - at) * sizeof *book->levels);
}

static bool add_level(struct ob_book *book, size_t at, struct ob_level level, struct ob_why *why) {
  if (level.quantity < 0) {
    return refuse(why, "price: there is nothing at %" PRId64 " to take %" PRId64 " from",
                  level.price < 0 ? -level.price : level.price, -level.quantity);
  }
  if (book->count == OB_LEVELS_MAX) {
    return refuse(why, "price: a book has at most %d levels", OB_LEVELS_MAX);
  }
  insert(book, at, level);
  return true;
}

static bool change(struct ob_book *book, int64_t price, int64_t delta, struct ob_why *why) {
  size_t at = lower_bound(book, price);
  if (at == book->count || book->levels[at].price != price) {
    return add_level(book, at, (struct ob_level){price, delta}, why);
  }
  int64_t quantity = 0;
  if (__builtin_add_overflow(book->levels[at].quantity, delta, &quantity) || quantity < 0) {
    return refuse(why, "quantity: %" PRId64 " at price %" PRId64 " can't change by %" PRId64,
                  book->levels[at].quantity, price < 0 ? -price : price, delta);
  }
  book->levels[at].quantity = quantity;
  if (quantity == 0) erase(book, at);
  return true;
}

/* ---- events */

static int64_t delta_of(const struct ob_event *event) {
  switch (event->type) {
    case OB_NEW:
      return event->remaining;
    case OB_EXECUTED:
      return -event->filled;
    case OB_DELETED:
      return -event->remaining;
    case OB_UNSPECIFIED:
      break;
  }
  return 0;
}

static bool check_place(const struct ob_book *book, const struct ob_event *event,
                        struct ob_why *why) {
  if (!book->begun) return true;
  if (event->contract != book->contract) {
    return refuse(why, "contract: %" PRId64 " under the key of %" PRId64, event->contract,
                  book->contract);
  }
  if (event->contract_sequence <= book->contract_sequence) {
    return refuse(why, "contract_sequence: %" PRId64 " after %" PRId64, event->contract_sequence,
                  book->contract_sequence);
  }
  if (book->closed) return refuse(why, "contract: %" PRId64 " is closed", book->contract);
  return true;
}

static bool check_numbers(const struct ob_event *event, struct ob_why *why) {
  if (event->remaining < 0) {
    return refuse(why, "remaining: %" PRId64 " is below 0", event->remaining);
  }
  if (event->filled < 0) return refuse(why, "filled: %" PRId64 " is below 0", event->filled);
  if (delta_of(event) == 0) return true;
  if (event->side == OB_NO_SIDE) return refuse(why, "side: neither BUY nor SELL");
  if (event->price < 1) return refuse(why, "price: %" PRId64 " is below 1", event->price);
  return true;
}

bool ob_book_apply(struct ob_book *book, const struct ob_event *event, struct ob_why *why) {
  if (!check_place(book, event, why) || !check_numbers(event, why)) return false;
  int64_t delta = delta_of(event);
  int64_t price = event->side == OB_BUY ? -event->price : event->price;
  if (delta != 0 && !change(book, price, delta, why)) return false;
  book->begun = true;
  book->closed = event->last;
  book->timestamp_ms = event->timestamp_ms;
  book->contract = event->contract;
  book->sequence = event->sequence;
  book->contract_sequence = event->contract_sequence;
  return true;
}

/* ---- depths */

static size_t at_most(size_t count, size_t most) { return count < most ? count : most; }

static size_t put_levels(const struct ob_level *levels, size_t count, uint8_t *out) {
  for (size_t i = 0; i < count; i++) {
    int64_t price = levels[i].price < 0 ? -levels[i].price : levels[i].price;
    ob_level_encode((struct ob_level){price, levels[i].quantity}, out + i * OB_LEVEL_SIZE);
  }
  return count * OB_LEVEL_SIZE;
}

static size_t encode_depth(const struct ob_book *book, struct ob_depth *depth, size_t levels,
                           uint8_t *out) {
  size_t bids = ob_book_bids(book);
  depth->timestamp_ms = book->timestamp_ms;
  depth->contract = book->contract;
  depth->sequence = book->sequence;
  depth->contract_sequence = book->contract_sequence;
  depth->bids = (uint16_t)at_most(bids, levels);
  depth->offers = (uint16_t)at_most(book->count - bids, levels);
  ob_depth_encode_header(depth, out);
  size_t size = OB_DEPTH_HEADER_SIZE;
  size += put_levels(book->levels, depth->bids, out + size);
  return size + put_levels(book->levels + bids, depth->offers, out + size);
}

size_t ob_book_depth(const struct ob_book *book, size_t levels, const struct ob_event *event,
                     uint8_t out[OB_DEPTH_SIZE_MAX]) {
  struct ob_depth depth = {0};
  if (event && event->type == OB_EXECUTED) {
    depth.has_trade = true;
    depth.trade_price = event->price;
    depth.trade_quantity = event->filled;
  }
  return encode_depth(book, &depth, levels, out);
}

size_t ob_book_final(const struct ob_book *book, uint8_t out[OB_DEPTH_SIZE_MAX]) {
  struct ob_depth depth = {.final = true};
  return encode_depth(book, &depth, OB_LEVELS_MAX, out);
}

/* ---- as a state */

size_t ob_book_encode(const struct ob_book *book, uint8_t out[OB_BOOK_SIZE_MAX]) {
  memset(out, 0, 8);
  out[0] = VERSION;
  out[1] = book->closed;
  ob_put_i64(out + 8, book->timestamp_ms);
  ob_put_i64(out + 16, book->contract);
  ob_put_i64(out + 24, book->sequence);
  ob_put_i64(out + 32, book->contract_sequence);
  for (size_t i = 0; i < book->count; i++) {
    ob_level_encode(book->levels[i], out + OB_BOOK_HEADER_SIZE + i * OB_LEVEL_SIZE);
  }
  return OB_BOOK_HEADER_SIZE + book->count * OB_LEVEL_SIZE;
}

const char *ob_book_decode(const void *data, size_t size, struct ob_book *out) {
  const uint8_t *at = data;
  if (size < OB_BOOK_HEADER_SIZE || size > OB_BOOK_SIZE_MAX) return "state: its size is wrong";
  if (at[0] != VERSION || at[1] > 1) return "state: of another version";
  size_t bytes = size - OB_BOOK_HEADER_SIZE;
  if (bytes % OB_LEVEL_SIZE) return "state: its size is not that of its levels";
  out->begun = true;
  out->closed = at[1] != 0;
  out->timestamp_ms = ob_get_i64(at + 8);
  out->contract = ob_get_i64(at + 16);
  out->sequence = ob_get_i64(at + 24);
  out->contract_sequence = ob_get_i64(at + 32);
  out->count = bytes / OB_LEVEL_SIZE;
  for (size_t i = 0; i < out->count; i++) {
    out->levels[i] = ob_level_decode(at + OB_BOOK_HEADER_SIZE + i * OB_LEVEL_SIZE);
  }
  return NULL;
}
