/* Decides which orders are made when and at what price. Whole numbers only: a seed gives the same
 * feed everywhere. */
#include "examples/orderbook/feed.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "examples/orderbook/schedule.h"
#include "tests/lib/rng.h"

enum {
  TICKS_LEAST = 10, /* of the busiest contract, between two of its orders */
  TICKS_MORE = 40,  /* of the quietest, on top */
  LIFETIME = 20,    /* orders of a contract that an order outlives */
  ANCHOR = 100,     /* where prices begin, and what they are drawn to */
  SPREAD = 5,
  MARGIN = 3,
  VOLUME_KEPT = 2000 /* of trades that make the price; beyond it they are halved */
};
/* 2001-01-01T00:00:00Z; a tick is a millisecond. */
static const int64_t begin_ms = INT64_C(978307200000);

/* What a contract's prices follow. */
struct market {
  int64_t events; /* of the contract so far */
  int64_t notional;
  int64_t volume;
};

struct maker {
  struct ob_feed *feed;
  struct market *markets;
  struct ob_schedule schedule;
  struct hbt_rng rng;
  int64_t orders;
  /* of the event at hand */
  uint32_t contract;
  int64_t tick;
};

/* ---- events */

static void follow(struct market *market, const struct ob_event *event) {
  if (event->type != OB_EXECUTED) return;
  market->notional += event->price * event->filled;
  market->volume += event->filled;
  if (market->volume <= VOLUME_KEPT) return;
  market->notional /= 2;
  market->volume /= 2;
}

static void add_event(void *context, const struct ob_event *told) {
  struct maker *maker = context;
  struct ob_feed *feed = maker->feed;
  struct market *market = &maker->markets[maker->contract];
  hb_reserve((void **)&feed->events, &feed->cap, feed->count + 1, sizeof *feed->events);
  struct ob_event *event = &feed->events[feed->count++];
  *event = *told;
  event->timestamp_ms = begin_ms + maker->tick;
  event->contract = (int64_t)maker->contract + 1;
  event->sequence = (int64_t)feed->count;
  event->contract_sequence = ++market->events;
  follow(market, event);
}

/* ---- orders */

static int64_t anchor_of(uint32_t contract) { return ANCHOR + contract; }

/* The volume-weighted price of the latest trades, a quarter of the way back to the anchor. */
static int64_t middle(const struct market *market, uint32_t contract) {
  int64_t anchor = anchor_of(contract);
  if (market->volume == 0) return anchor;
  int64_t price = market->notional / market->volume;
  return price + (anchor - price) / 4;
}

static int64_t random_between(struct maker *maker, int64_t least, int64_t most) {
  return least + (int64_t)hbt_rng_below(&maker->rng, (uint64_t)(most - least + 1));
}

static int64_t make_order(struct maker *maker) {
  uint32_t contract = maker->contract;
  int64_t quantity = random_between(maker, 10, 100);
  enum ob_side side = random_between(maker, 0, 1) ? OB_BUY : OB_SELL;
  int64_t price = middle(&maker->markets[contract], contract);
  price += random_between(maker, -SPREAD, SPREAD);
  price += side == OB_BUY ? -MARGIN : MARGIN;
  if (price < 1) price = 1;
  int64_t id = ++maker->orders;
  ob_matcher_add(&maker->feed->matchers[contract], id, side, price, quantity, add_event, maker);
  return id;
}

/* 10 + 40 * (1 - (i / n)^2), rounded. */
static int64_t order_ticks(uint32_t contract, uint32_t contracts) {
  int64_t i = contract;
  int64_t n = contracts;
  return TICKS_LEAST + (2 * TICKS_MORE * (n * n - i * i) + n * n) / (2 * n * n);
}

static void run_task(struct maker *maker, const struct ob_task *task) {
  maker->contract = task->contract;
  maker->tick = task->tick;
  struct ob_matcher *matcher = &maker->feed->matchers[task->contract];
  if (task->cancel) {
    ob_matcher_remove(matcher, task->cancel, add_event, maker);
    return;
  }
  int64_t ticks = order_ticks(task->contract, maker->feed->contracts);
  struct ob_task cancel = {.tick = task->tick + ticks * (LIFETIME + 1), .contract = task->contract};
  cancel.cancel = make_order(maker);
  ob_schedule_put(&maker->schedule, &cancel);
  struct ob_task again = {.tick = task->tick + ticks, .contract = task->contract};
  ob_schedule_put(&maker->schedule, &again);
}

static void close_all(struct maker *maker) {
  for (uint32_t i = 0; i < maker->feed->contracts; i++) {
    struct ob_event event = {.last = true};
    maker->contract = i;
    add_event(maker, &event);
  }
}

void ob_feed_make(const struct ob_feed_options *options, struct ob_feed *out) {
  *out = (struct ob_feed){.contracts = options->contracts,
                          .matchers = hb_calloc(options->contracts, sizeof *out->matchers)};
  struct maker maker = {.feed = out,
                        .markets = hb_calloc(options->contracts, sizeof *maker.markets),
                        .rng = {options->seed}};
  for (uint32_t i = 0; i < options->contracts; i++) {
    ob_schedule_put(&maker.schedule, &(struct ob_task){.contract = i});
  }
  struct ob_task task;
  while (out->count < options->events && ob_schedule_take(&maker.schedule, &task)) {
    run_task(&maker, &task);
  }
  close_all(&maker);
  ob_schedule_done(&maker.schedule);
  free(maker.markets);
}

void ob_feed_done(struct ob_feed *feed) {
  for (uint32_t i = 0; i < feed->contracts; i++) ob_matcher_done(&feed->matchers[i]);
  free(feed->matchers);
  free(feed->events);
  *feed = (struct ob_feed){0};
}
