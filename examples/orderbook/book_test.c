/* One book: OB5, what changes it, what can't be right, and its bytes. */
#include "examples/orderbook/book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct ob_event event(enum ob_type type, enum ob_side side, int64_t price, int64_t number) {
  static int64_t sequence;
  ++sequence;
  return (struct ob_event){.type = type,
                           .side = side,
                           .timestamp_ms = 1000 + sequence,
                           .contract = 345,
                           .sequence = sequence,
                           .contract_sequence = sequence,
                           .price = price,
                           .quantity = number,
                           .remaining = type == OB_EXECUTED ? 0 : number,
                           .filled = type == OB_EXECUTED ? number : 0};
}

static void apply(struct ob_book *book, struct ob_event event) {
  struct ob_why why = {""};
  if (!ob_book_apply(book, &event, &why)) fail_msg("%s", why.text);
}

static struct ob_depth depth_of(const struct ob_book *book, size_t levels,
                                const struct ob_event *trade) {
  static uint8_t bytes[OB_DEPTH_SIZE_MAX];
  struct ob_depth depth;
  size_t size = ob_book_depth(book, levels, trade, bytes);
  assert_null(ob_depth_decode(bytes, size, &depth));
  return depth;
}

static void expect_level(const struct ob_depth *depth, size_t index, int64_t price,
                         int64_t quantity) {
  struct ob_level level = ob_depth_level(depth, index);
  assert_int_equal(level.price, price);
  assert_int_equal(level.quantity, quantity);
}

/* OB5: a buy and a sell that do not meet make one level on each side, as of the second event. */
static void ob5_builder(void **state) {
  (void)state;
  struct ob_book book = {0};
  struct ob_event buy = event(OB_NEW, OB_BUY, 100, 100);
  struct ob_event sell = event(OB_NEW, OB_SELL, 101, 100);
  buy.sequence = buy.contract_sequence = 1;
  sell.sequence = sell.contract_sequence = 2;
  apply(&book, buy);
  apply(&book, sell);
  struct ob_depth depth = depth_of(&book, 10, NULL);
  assert_int_equal(depth.bids, 1);
  assert_int_equal(depth.offers, 1);
  expect_level(&depth, 0, 100, 100);
  expect_level(&depth, 1, 101, 100);
  assert_int_equal(depth.contract_sequence, 2);
  assert_int_equal(depth.sequence, 2);
  assert_int_equal(depth.timestamp_ms, sell.timestamp_ms);
  assert_false(depth.has_trade);
}

/* Levels come best first, no more than asked for of each side, added up by price. */
static void levels_are_best_first(void **state) {
  (void)state;
  struct ob_book book = {0};
  static const int64_t bids[] = {7, 9, 8, 9};
  static const int64_t offers[] = {12, 11, 13, 11};
  for (size_t i = 0; i < 4; i++) {
    apply(&book, event(OB_NEW, OB_BUY, bids[i], 10));
    apply(&book, event(OB_NEW, OB_SELL, offers[i], 5));
  }
  struct ob_depth depth = depth_of(&book, 2, NULL);
  assert_int_equal(depth.bids, 2);
  assert_int_equal(depth.offers, 2);
  expect_level(&depth, 0, 9, 20);
  expect_level(&depth, 1, 8, 10);
  expect_level(&depth, 2, 11, 10);
  expect_level(&depth, 3, 12, 5);
}

/* NEW adds what remains, EXECUTED takes what it filled, DELETED what remained; a level at 0 goes.
 */
static void quantities_follow_the_events(void **state) {
  (void)state;
  struct ob_book book = {0};
  apply(&book, event(OB_NEW, OB_SELL, 100, 70));
  apply(&book, event(OB_EXECUTED, OB_SELL, 100, 50));
  struct ob_depth depth = depth_of(&book, 5, NULL);
  assert_int_equal(depth.offers, 1);
  expect_level(&depth, 0, 100, 20);
  apply(&book, event(OB_DELETED, OB_SELL, 100, 20));
  assert_int_equal(depth_of(&book, 5, NULL).offers, 0);
}

/* The trade is there for an execution only, and only where it is asked for. */
static void trade_of_an_execution(void **state) {
  (void)state;
  struct ob_book book = {0};
  struct ob_event rest = event(OB_NEW, OB_BUY, 100, 70);
  struct ob_event trade = event(OB_EXECUTED, OB_BUY, 100, 30);
  apply(&book, rest);
  assert_false(depth_of(&book, 1, &rest).has_trade);
  apply(&book, trade);
  struct ob_depth depth = depth_of(&book, 1, &trade);
  assert_true(depth.has_trade);
  assert_int_equal(depth.trade_price, 100);
  assert_int_equal(depth.trade_quantity, 30);
  assert_false(depth_of(&book, 1, NULL).has_trade);
}

/* What can't be right is refused with its field, and changes nothing. */
static void impossible_events(void **state) {
  (void)state;
  static const struct {
    const char *id;
    struct ob_event event; /* number, contract and time: as below, where 0 */
    const char *why;
  } cases[] = {
      {"more than there is",
       {.type = OB_EXECUTED, .side = OB_BUY, .price = 100, .filled = 71},
       "quantity"},
      {"nothing there", {.type = OB_DELETED, .side = OB_BUY, .price = 99, .remaining = 1}, "price"},
      {"other side", {.type = OB_EXECUTED, .side = OB_SELL, .price = 100, .filled = 1}, "price"},
      {"no side", {.type = OB_NEW, .price = 100, .remaining = 1}, "side"},
      {"no price", {.type = OB_NEW, .side = OB_BUY, .remaining = 1}, "price"},
      {"negative", {.type = OB_NEW, .side = OB_BUY, .price = 1, .remaining = -1}, "remaining"},
      {"negative fill", {.type = OB_NEW, .side = OB_BUY, .price = 1, .filled = -1}, "filled"},
      {"too much",
       {.type = OB_NEW, .side = OB_BUY, .price = 100, .remaining = INT64_MAX},
       "quantity"},
      {"again",
       {.type = OB_NEW, .side = OB_BUY, .price = 1, .contract_sequence = 10},
       "contract_sequence"},
      {"other contract", {.type = OB_NEW, .side = OB_BUY, .price = 1, .contract = 346}, "contract"},
  };
  struct ob_book book = {0};
  struct ob_event first = event(OB_NEW, OB_BUY, 100, 70);
  first.contract_sequence = 10;
  apply(&book, first);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct ob_event given = cases[i].event;
    if (given.contract == 0) given.contract = 345;
    if (given.contract_sequence == 0) given.contract_sequence = 11;
    struct ob_book before = book;
    struct ob_why why = {""};
    if (ob_book_apply(&book, &given, &why)) fail_msg("%s: was taken", cases[i].id);
    if (strncmp(why.text, cases[i].why, strlen(cases[i].why)) != 0) {
      fail_msg("%s: '%s'", cases[i].id, why.text);
    }
    assert_memory_equal(&before, &book, sizeof book);
  }
}

/* After its last event a contract is closed. */
static void closed_contract(void **state) {
  (void)state;
  struct ob_book book = {0};
  struct ob_why why = {""};
  struct ob_event last = event(OB_UNSPECIFIED, OB_NO_SIDE, 0, 0);
  last.last = true;
  apply(&book, last);
  struct ob_event late = event(OB_NEW, OB_BUY, 1, 1);
  assert_false(ob_book_apply(&book, &late, &why));
  assert_non_null(strstr(why.text, "closed"));
}

/* A book has its bound, and goes on below it. */
static void level_bound(void **state) {
  (void)state;
  static struct ob_book book;
  struct ob_why why = {""};
  for (int64_t i = 1; i <= OB_LEVELS_MAX; i++) apply(&book, event(OB_NEW, OB_SELL, 2 * i, 1));
  struct ob_event more = event(OB_NEW, OB_SELL, 1, 1);
  assert_false(ob_book_apply(&book, &more, &why));
  assert_non_null(strstr(why.text, "1024"));
  apply(&book, event(OB_NEW, OB_SELL, 2, 1));
  static uint8_t bytes[OB_DEPTH_SIZE_MAX];
  assert_int_equal(ob_book_final(&book, bytes), OB_DEPTH_SIZE_MAX);
}

/* A state gives its book back, and what is no state is refused. */
static void state_round_trip(void **state) {
  (void)state;
  static struct ob_book book, back;
  static uint8_t bytes[OB_BOOK_SIZE_MAX];
  for (int64_t i = 1; i <= 20; i++) {
    apply(&book, event(OB_NEW, i % 2 ? OB_SELL : OB_BUY, 100 + i, i));
  }
  size_t size = ob_book_encode(&book, bytes);
  assert_null(ob_book_decode(bytes, size, &back));
  assert_memory_equal(&book, &back, sizeof book);
  assert_non_null(ob_book_decode(bytes, size - 1, &back));
  assert_non_null(ob_book_decode(bytes, OB_BOOK_HEADER_SIZE - 1, &back));
  bytes[0] = 2;
  assert_non_null(ob_book_decode(bytes, size, &back));
}

/* An order event's bytes give it back; each field has its own. */
static void event_round_trip(void **state) {
  (void)state;
  uint8_t bytes[OB_EVENT_SIZE];
  struct ob_event back;
  struct ob_event given = {.type = OB_EXECUTED,
                           .side = OB_SELL,
                           .last = true,
                           .timestamp_ms = -1,
                           .contract = INT64_MAX,
                           .sequence = INT64_MIN,
                           .contract_sequence = 4,
                           .order = 5,
                           .price = 6,
                           .quantity = 7,
                           .remaining = 8,
                           .filled = 9,
                           .match = 10};
  ob_event_encode(&given, bytes);
  assert_null(ob_event_decode(bytes, sizeof bytes, &back));
  assert_int_equal(back.type, OB_EXECUTED);
  assert_int_equal(back.side, OB_SELL);
  assert_true(back.last);
  size_t numbers = offsetof(struct ob_event, timestamp_ms);
  assert_memory_equal((const char *)&given + numbers, (const char *)&back + numbers,
                      sizeof given - numbers);
  assert_int_equal(bytes[48], 6); /* as README.md has it: little-endian, price at 48 */
  assert_int_equal(bytes[32], 4);
}

/* Bytes that are no order event are refused with what is wrong. */
static void malformed_events(void **state) {
  (void)state;
  static const struct {
    size_t at;
    uint8_t byte;
    const char *why;
  } cases[] = {{0, 0, "version"}, {1, 4, "type"}, {2, 3, "side"}, {3, 2, "flags"}, {7, 1, "bytes"}};
  struct ob_event out;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t bytes[OB_EVENT_SIZE];
    ob_event_encode(&(struct ob_event){0}, bytes);
    assert_null(ob_event_decode(bytes, sizeof bytes, &out));
    bytes[cases[i].at] = cases[i].byte;
    const char *why = ob_event_decode(bytes, sizeof bytes, &out);
    assert_non_null(why);
    assert_non_null(strstr(why, cases[i].why));
  }
  assert_non_null(ob_event_decode(NULL, 0, &out));
}

/* A depth's levels must be there, all of them and no more. */
static void malformed_depths(void **state) {
  (void)state;
  uint8_t bytes[OB_DEPTH_HEADER_SIZE + OB_LEVEL_SIZE] = {0};
  struct ob_depth depth = {.bids = 1};
  ob_depth_encode_header(&depth, bytes);
  assert_null(ob_depth_decode(bytes, sizeof bytes, &depth));
  assert_non_null(ob_depth_decode(bytes, sizeof bytes - 1, &depth));
  assert_non_null(ob_depth_decode(bytes, OB_DEPTH_HEADER_SIZE - 1, &depth));
  bytes[6] = 1; /* an offer that is not there */
  assert_non_null(ob_depth_decode(bytes, sizeof bytes, &depth));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ob5_builder),
      cmocka_unit_test(levels_are_best_first),
      cmocka_unit_test(quantities_follow_the_events),
      cmocka_unit_test(trade_of_an_execution),
      cmocka_unit_test(impossible_events),
      cmocka_unit_test(closed_contract),
      cmocka_unit_test(level_bound),
      cmocka_unit_test(state_round_trip),
      cmocka_unit_test(event_round_trip),
      cmocka_unit_test(malformed_events),
      cmocka_unit_test(malformed_depths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
