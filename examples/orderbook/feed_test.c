/* The feed: the same seed the same feed, numbers without holes, and books that are what rests. */
#include "examples/orderbook/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "examples/orderbook/book.h"

enum { EVENTS = 20000, CONTRACTS = 25 };

static struct ob_feed make(uint64_t seed) {
  struct ob_feed feed;
  ob_feed_make(&(struct ob_feed_options){EVENTS, CONTRACTS, seed}, &feed);
  return feed;
}

static bool is_equal(const struct ob_feed *left, const struct ob_feed *right) {
  if (left->count != right->count) return false;
  for (size_t i = 0; i < left->count; i++) {
    uint8_t bytes[2][OB_EVENT_SIZE];
    ob_event_encode(&left->events[i], bytes[0]);
    ob_event_encode(&right->events[i], bytes[1]);
    if (memcmp(bytes[0], bytes[1], OB_EVENT_SIZE) != 0) return false;
  }
  return true;
}

/* A seed is a feed. */
static void seeds(void **state) {
  (void)state;
  struct ob_feed one = make(1);
  struct ob_feed again = make(1);
  struct ob_feed other = make(2);
  assert_true(is_equal(&one, &again));
  assert_false(is_equal(&one, &other));
  ob_feed_done(&one);
  ob_feed_done(&again);
  ob_feed_done(&other);
}

/* Both numbers go up by one; each contract's last event, and no other, closes it; time goes on. */
static void numbers(void **state) {
  (void)state;
  struct ob_feed feed = make(3);
  int64_t counts[CONTRACTS] = {0};
  bool closed[CONTRACTS] = {false};
  assert_true(feed.count >= EVENTS + CONTRACTS);
  for (size_t i = 0; i < feed.count; i++) {
    const struct ob_event *event = &feed.events[i];
    assert_in_range(event->contract, 1, CONTRACTS);
    assert_int_equal(event->sequence, i + 1);
    assert_int_equal(event->contract_sequence, ++counts[event->contract - 1]);
    assert_false(closed[event->contract - 1]);
    closed[event->contract - 1] = event->last;
    if (i > 0) assert_true(event->timestamp_ms >= event[-1].timestamp_ms);
  }
  for (size_t i = 0; i < CONTRACTS; i++) assert_true(closed[i]);
  assert_true(counts[CONTRACTS - 1] > 2 * counts[0]); /* the later, the busier */
  ob_feed_done(&feed);
}

/* Books that are built from the feed are what rests in the matchers, and all kinds of events are
 * there in number. */
static void books(void **state) {
  (void)state;
  struct ob_feed feed = make(4);
  struct ob_book *built = hb_calloc(CONTRACTS, sizeof *built);
  struct ob_level levels[OB_LEVELS_MAX];
  size_t kinds[OB_DELETED + 1] = {0};
  for (size_t i = 0; i < feed.count; i++) {
    struct ob_why why = {""};
    const struct ob_event *event = &feed.events[i];
    if (!ob_book_apply(&built[event->contract - 1], event, &why)) fail_msg("%s", why.text);
    kinds[event->type]++;
  }
  for (size_t i = 0; i < CONTRACTS; i++) {
    size_t count = ob_matcher_levels(&feed.matchers[i], levels, OB_LEVELS_MAX);
    assert_true(count > 0);
    assert_int_equal(count, built[i].count);
    assert_memory_equal(levels, built[i].levels, count * sizeof *levels);
  }
  for (int kind = OB_NEW; kind <= OB_DELETED; kind++) {
    if (kinds[kind] < EVENTS / 10) fail_msg("%zu events of type %d", kinds[kind], kind);
  }
  free(built);
  ob_feed_done(&feed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(seeds), cmocka_unit_test(numbers),
                                     cmocka_unit_test(books)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
