/* Decides who trades with whom.
 *
 * An order lives for some twenty others of its contract, so that a side is a short array: the best
 * at its end, where orders come and go most. */
#include "examples/orderbook/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* True: `left` trades before `right`, both of one side. */
static bool is_better(const struct ob_order *left, const struct ob_order *right) {
  if (left->price == right->price) return left->id < right->id;
  return (left->price > right->price) == (left->side == OB_BUY);
}

static void rest(struct ob_queue *queue, const struct ob_order *order) {
  hb_reserve((void **)&queue->orders, &queue->cap, queue->count + 1, sizeof *queue->orders);
  size_t at = queue->count;
  while (at > 0 && is_better(&queue->orders[at - 1], order)) at--;
  memmove(&queue->orders[at + 1], &queue->orders[at], (queue->count - at) * sizeof *order);
  queue->orders[at] = *order;
  queue->count++;
}

static struct ob_event about(enum ob_type type, const struct ob_order *order) {
  return (struct ob_event){.type = type,
                           .side = order->side,
                           .order = order->id,
                           .price = order->price,
                           .quantity = order->quantity,
                           .remaining = order->remaining};
}

static bool crosses(const struct ob_order *order, const struct ob_order *resting) {
  return order->side == OB_BUY ? order->price >= resting->price : order->price <= resting->price;
}

static void fill(struct ob_matcher *matcher, struct ob_order *order, struct ob_queue *others,
                 ob_tell *tell, void *context) {
  struct ob_order *resting = &others->orders[others->count - 1];
  int64_t filled = resting->remaining;
  if (filled > order->remaining) filled = order->remaining;
  resting->remaining -= filled;
  order->remaining -= filled;
  struct ob_event event = about(OB_EXECUTED, resting);
  event.filled = filled;
  event.match = matcher->matches++;
  if (resting->remaining == 0) others->count--;
  tell(context, &event);
}

void ob_matcher_add(struct ob_matcher *matcher, int64_t id, enum ob_side side, int64_t price,
                    int64_t quantity, ob_tell *tell, void *context) {
  struct ob_order order = {id, side, price, quantity, quantity};
  struct ob_queue *own = side == OB_BUY ? &matcher->buys : &matcher->sells;
  struct ob_queue *others = side == OB_BUY ? &matcher->sells : &matcher->buys;
  while (order.remaining > 0 && others->count > 0 &&
         crosses(&order, &others->orders[others->count - 1])) {
    fill(matcher, &order, others, tell, context);
  }
  if (order.remaining == 0) return;
  rest(own, &order);
  struct ob_event event = about(OB_NEW, &order);
  tell(context, &event);
}

static bool remove_from(struct ob_queue *queue, int64_t id, ob_tell *tell, void *context) {
  for (size_t i = 0; i < queue->count; i++) {
    if (queue->orders[i].id != id) continue;
    struct ob_event event = about(OB_DELETED, &queue->orders[i]);
    queue->count--;
    memmove(&queue->orders[i], &queue->orders[i + 1], (queue->count - i) * sizeof *queue->orders);
    tell(context, &event);
    return true;
  }
  return false;
}

void ob_matcher_remove(struct ob_matcher *matcher, int64_t id, ob_tell *tell, void *context) {
  if (!remove_from(&matcher->buys, id, tell, context)) {
    (void)remove_from(&matcher->sells, id, tell, context);
  }
}

static size_t add_up(const struct ob_queue *queue, struct ob_level *out, size_t room,
                     size_t count) {
  int64_t last = 0; /* no order has this price */
  for (size_t i = queue->count; i-- > 0;) {
    const struct ob_order *order = &queue->orders[i];
    int64_t price = order->side == OB_BUY ? -order->price : order->price;
    if (price != last) {
      if (count < room) out[count] = (struct ob_level){price, 0};
      count++;
      last = price;
    }
    if (count <= room) out[count - 1].quantity += order->remaining;
  }
  return count;
}

size_t ob_matcher_levels(const struct ob_matcher *matcher, struct ob_level *out, size_t room) {
  return add_up(&matcher->sells, out, room, add_up(&matcher->buys, out, room, 0));
}

void ob_matcher_done(struct ob_matcher *matcher) {
  free(matcher->buys.orders);
  free(matcher->sells.orders);
  *matcher = (struct ob_matcher){0};
}
