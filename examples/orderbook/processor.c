/* The processor: market depth per contract from a feed of order events.
 *
 * The key is the contract, its state the contract's book. Each event gives one depth, and the end
 * of a sealed stream each contract's whole book. */
#include <stdlib.h>
#include <string.h>

#include "examples/orderbook/book.h"
#include "processing/holdback/processor.h"

enum { DEPTH_DEFAULT = 5 };

/* Book and bytes are room to work in: nothing in them is read that the same call did not write. */
struct self {
  size_t depth;
  bool last_trade;
  struct ob_book book;
  uint8_t bytes[OB_BOOK_SIZE_MAX > OB_DEPTH_SIZE_MAX ? OB_BOOK_SIZE_MAX : OB_DEPTH_SIZE_MAX];
};

static const struct hbp_bytes book_name = {"book", 4};

/* ---- parameters */

static int refuse(char *error, size_t error_size, const char *text) {
  if (error_size == 0) return HBP_FAILED;
  size_t size = strnlen(text, error_size - 1);
  memcpy(error, text, size);
  error[size] = '\0';
  return HBP_FAILED;
}

/* 0: not a number between 1 and OB_LEVELS_MAX. */
static size_t parse_depth(struct hbp_bytes text) {
  const char *at = text.data;
  size_t number = 0;
  for (size_t i = 0; i < text.size; i++) {
    if (at[i] < '0' || at[i] > '9') return 0;
    number = number * 10 + (size_t)(at[i] - '0');
    if (number > OB_LEVELS_MAX) return 0;
  }
  return number;
}

static bool is(struct hbp_bytes bytes, const char *text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static int take_parameter(struct self *self, const struct hbp_parameter *given, char *error,
                          size_t error_size) {
  if (strcmp(given->name, "depth") == 0) {
    self->depth = parse_depth(given->value);
    if (self->depth) return HBP_OK;
    return refuse(error, error_size, "depth: must be a number from 1 to 1024");
  }
  if (strcmp(given->name, "last_trade") == 0) {
    self->last_trade = is(given->value, "true");
    if (self->last_trade || is(given->value, "false")) return HBP_OK;
    return refuse(error, error_size, "last_trade: must be true or false");
  }
  return refuse(error, error_size, "the parameters are depth and last_trade");
}

static int create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                  char *error, size_t error_size) {
  struct self *self = calloc(1, sizeof *self);
  if (!self) return refuse(error, error_size, "out of memory");
  self->depth = DEPTH_DEFAULT;
  self->last_trade = true;
  for (size_t i = 0; i < count; i++) {
    if (take_parameter(self, &parameters[i], error, error_size) != HBP_OK) {
      free(self);
      return HBP_FAILED;
    }
  }
  *out_self = self;
  return HBP_OK;
}

/* ---- events */

/* The key's book, as it was left by its last event, in self->book. */
static int load_book(struct self *self, const struct hbp_host *host) {
  struct hbp_bytes value = {NULL, 0};
  int found = 0;
  if (host->state_get(host, book_name, &value, &found) != HBP_OK) return HBP_FAILED;
  self->book.begun = false;
  self->book.closed = false;
  self->book.count = 0;
  if (!found) return HBP_OK;
  const char *wrong = ob_book_decode(value.data, value.size, &self->book);
  return wrong ? host->give_up(host, wrong) : HBP_OK;
}

static int save_book(struct self *self, const struct hbp_host *host) {
  size_t size = ob_book_encode(&self->book, self->bytes);
  return host->state_put(host, book_name, (struct hbp_bytes){self->bytes, size});
}

static int on_event(void *context, const struct hbp_host *host, const struct hbp_event *event) {
  struct self *self = context;
  struct ob_event order;
  const char *wrong = ob_event_decode(event->payload.data, event->payload.size, &order);
  if (wrong) return host->give_up(host, wrong);
  if (load_book(self, host) != HBP_OK) return HBP_FAILED;
  struct ob_why why;
  if (!ob_book_apply(&self->book, &order, &why)) return host->give_up(host, why.text);
  if (save_book(self, host) != HBP_OK) return HBP_FAILED;
  const struct ob_event *trade = self->last_trade ? &order : NULL;
  size_t size = ob_book_depth(&self->book, self->depth, trade, self->bytes);
  return host->emit(host, (struct hbp_bytes){self->bytes, size});
}

static int on_end(void *context, const struct hbp_host *host, const struct hbp_end *end) {
  (void)end;
  struct self *self = context;
  if (load_book(self, host) != HBP_OK) return HBP_FAILED;
  size_t size = ob_book_final(&self->book, self->bytes);
  return host->emit(host, (struct hbp_bytes){self->bytes, size});
}

HBP_EXPORT const struct hbp_processor holdback_processor = {
    .abi_version = HBP_ABI,
    .size = sizeof(struct hbp_processor),
    .name = "orderbook",
    .help = "market depth per contract; depth=1..1024 (5), last_trade=true|false (true)",
    .create = create,
    .destroy = free,
    .on_event = on_event,
    .on_end = on_end,
};
