/* The exchange: OB6 and OB7, and who comes first. */
#include "examples/orderbook/matcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TOLD_MAX = 16, ORDERS_MAX = 8 };

struct told {
  struct ob_event events[TOLD_MAX];
  size_t count;
};

static void tell(void *context, const struct ob_event *event) {
  struct told *told = context;
  assert_true(told->count < TOLD_MAX);
  told->events[told->count++] = *event;
}

/* quantity 0 ends a list; price 0: cancel order `cancel`. */
struct order {
  enum ob_side side;
  int64_t quantity, price, cancel;
};

struct expected {
  enum ob_type type;
  int64_t order;
  enum ob_side side;
  int64_t price, filled, remaining, match;
};

/* Orders have the numbers 1, 2, ... `skip`: how many events of the first are not looked at. */
static const struct {
  const char *id;
  struct order orders[ORDERS_MAX];
  size_t skip;
  struct expected expected[TOLD_MAX];
} cases[] = {
    {"OB6",
     {{OB_SELL, 100, 100, 0},
      {OB_SELL, 100, 100, 0},
      {OB_SELL, 100, 100, 0},
      {OB_SELL, 100, 101, 0},
      {OB_SELL, 100, 101, 0},
      {OB_SELL, 100, 102, 0},
      {OB_BUY, 150, 100, 0}},
     6,
     {{OB_EXECUTED, 1, OB_SELL, 100, 100, 0, 0}, {OB_EXECUTED, 2, OB_SELL, 100, 50, 50, 1}}},
    {"OB7",
     {{OB_SELL, 100, 100, 0}, {OB_BUY, 100, 100, 0}},
     0,
     {{OB_NEW, 1, OB_SELL, 100, 0, 100, 0}, {OB_EXECUTED, 1, OB_SELL, 100, 100, 0, 0}}},
    {"better price first, then who was first",
     {{OB_BUY, 10, 99, 0}, {OB_BUY, 10, 100, 0}, {OB_BUY, 10, 100, 0}, {OB_SELL, 25, 99, 0}},
     3,
     {{OB_EXECUTED, 2, OB_BUY, 100, 10, 0, 0},
      {OB_EXECUTED, 3, OB_BUY, 100, 10, 0, 1},
      {OB_EXECUTED, 1, OB_BUY, 99, 5, 5, 2}}},
    {"what is left rests",
     {{OB_SELL, 10, 100, 0}, {OB_BUY, 30, 101, 0}},
     1,
     {{OB_EXECUTED, 1, OB_SELL, 100, 10, 0, 0}, {OB_NEW, 2, OB_BUY, 101, 0, 20, 0}}},
    {"cancelled: what remains, once",
     {{OB_SELL, 10, 100, 0}, {OB_BUY, 4, 100, 0}, {.cancel = 1}, {.cancel = 1}, {.cancel = 2}},
     2,
     {{OB_DELETED, 1, OB_SELL, 100, 0, 6, 0}}},
    {"prices that do not meet",
     {{OB_BUY, 10, 99, 0}, {OB_SELL, 10, 100, 0}},
     1,
     {{OB_NEW, 2, OB_SELL, 100, 0, 10, 0}}},
};

static void expect(const char *id, const struct ob_event *got, const struct expected *wanted) {
  if (got->type == wanted->type && got->order == wanted->order && got->side == wanted->side &&
      got->price == wanted->price && got->filled == wanted->filled &&
      got->remaining == wanted->remaining && got->match == wanted->match) {
    return;
  }
  fail_msg("%s: type %d order %lld side %d price %lld filled %lld remaining %lld match %lld", id,
           (int)got->type, (long long)got->order, (int)got->side, (long long)got->price,
           (long long)got->filled, (long long)got->remaining, (long long)got->match);
}

static void run_case(size_t number) {
  struct ob_matcher matcher = {0};
  struct told told = {.count = 0};
  for (size_t i = 0; i < ORDERS_MAX; i++) {
    const struct order *order = &cases[number].orders[i];
    if (order->cancel) ob_matcher_remove(&matcher, order->cancel, tell, &told);
    if (order->quantity == 0) continue;
    ob_matcher_add(&matcher, (int64_t)i + 1, order->side, order->price, order->quantity, tell,
                   &told);
  }
  size_t at = cases[number].skip;
  for (const struct expected *wanted = cases[number].expected; wanted->order; wanted++) {
    if (at == told.count) fail_msg("%s: nothing more was told", cases[number].id);
    expect(cases[number].id, &told.events[at++], wanted);
  }
  if (at != told.count) fail_msg("%s: too much was told", cases[number].id);
  ob_matcher_done(&matcher);
}

/* Each row tells exactly the events that it names. */
static void rows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(i);
}

/* What rests is added up by price, bids best first before offers best first; no more is written
 * than there is room for. */
static void levels_of_what_rests(void **state) {
  (void)state;
  struct ob_matcher matcher = {0};
  struct told told = {.count = 0};
  struct ob_level levels[4] = {{0}};
  ob_matcher_add(&matcher, 1, OB_BUY, 98, 1, tell, &told);
  ob_matcher_add(&matcher, 2, OB_BUY, 99, 2, tell, &told);
  ob_matcher_add(&matcher, 3, OB_BUY, 99, 3, tell, &told);
  ob_matcher_add(&matcher, 4, OB_SELL, 101, 4, tell, &told);
  assert_int_equal(ob_matcher_levels(&matcher, levels, 2), 3);
  assert_int_equal(levels[2].quantity, 0);
  assert_int_equal(ob_matcher_levels(&matcher, levels, 4), 3);
  static const struct ob_level wanted[] = {{-99, 5}, {-98, 1}, {101, 4}};
  assert_memory_equal(levels, wanted, sizeof wanted);
  ob_matcher_done(&matcher);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows),
                                     cmocka_unit_test(levels_of_what_rests)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
