/* The judge takes the right results, and none that is wrong in any way. */
#include "examples/orderbook/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "examples/orderbook/outside.h"

enum { DEPTH = 3, EVENTS = 300, CONTRACTS = 12 };

/* What a server would give out, made here with books of its own. */
struct row {
  struct holdback_processor_result result;
  char key[OB_KEY_SIZE];
  uint8_t *payload; /* owned */
};

struct world {
  struct ob_feed feed;
  struct ob_judge judge;
  struct row *rows;
  size_t count;
};

static void add_row(struct world *world, int64_t contract, const uint8_t *payload, size_t size,
                    int64_t cause, int kind) {
  struct row *row = &world->rows[world->count];
  row->payload = hb_memdup(payload, size);
  row->result = (struct holdback_processor_result){.position = (int64_t)world->count++,
                                                   .key = ob_key(contract, row->key),
                                                   .payload = {row->payload, size},
                                                   .cause_position = cause,
                                                   .kind = kind};
}

static void make_rows(struct world *world) {
  static const int64_t by_bytes[CONTRACTS] = {1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9};
  struct ob_book *books = hb_calloc(CONTRACTS, sizeof *books);
  static uint8_t bytes[OB_DEPTH_SIZE_MAX];
  world->rows = hb_calloc(world->feed.count + CONTRACTS, sizeof *world->rows);
  for (size_t i = 0; i < world->feed.count; i++) {
    const struct ob_event *event = &world->feed.events[i];
    struct ob_why why;
    assert_true(ob_book_apply(&books[event->contract - 1], event, &why));
    size_t size = ob_book_depth(&books[event->contract - 1], DEPTH, event, bytes);
    add_row(world, event->contract, bytes, size, event->sequence, HOLDBACK_RESULT_EVENT);
  }
  for (size_t i = 0; i < CONTRACTS; i++) {
    size_t size = ob_book_final(&books[by_bytes[i] - 1], bytes);
    add_row(world, by_bytes[i], bytes, size, (int64_t)world->feed.count + 1, HOLDBACK_RESULT_END);
  }
  free(books);
}

static int setup(void **state) {
  struct world *world = hb_calloc(1, sizeof *world);
  ob_feed_make(&(struct ob_feed_options){EVENTS, CONTRACTS, 1}, &world->feed);
  ob_judge_init(&world->judge, &world->feed, DEPTH);
  make_rows(world);
  *state = world;
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  for (size_t i = 0; i < world->count; i++) free(world->rows[i].payload);
  free(world->rows);
  ob_judge_done(&world->judge);
  ob_feed_done(&world->feed);
  free(world);
  return 0;
}

/* How many rows are taken from the first on. */
static size_t take_all(struct world *world) {
  size_t taken = 0;
  while (taken < world->count && ob_judge_take(&world->judge, &world->rows[taken].result)) taken++;
  return taken;
}

/* All that is right is taken, and that is all that is due. */
static void right(void **state) {
  struct world *world = *state;
  assert_int_equal(take_all(world), world->count);
  assert_true(ob_judge_finish(&world->judge));
}

/* One byte of a payload. */
static void wrong_byte(void **state) {
  struct world *world = *state;
  world->rows[100].payload[world->rows[100].result.payload.size - 1] ^= 1;
  assert_int_equal(take_all(world), 100);
}

/* Two results in the other order. */
static void wrong_order(void **state) {
  struct world *world = *state;
  struct holdback_processor_result kept = world->rows[50].result;
  world->rows[50].result = world->rows[51].result;
  world->rows[51].result = kept;
  assert_int_equal(take_all(world), 50);
}

/* Somebody else's key, another cause, a place that is not the next. */
static void wrong_fields(void **state) {
  struct world *world = *state;
  struct holdback_processor_result wrong = world->rows[0].result;
  wrong.key.data = "x";
  assert_false(ob_judge_take(&world->judge, &wrong));
  struct world fresh = {.feed = world->feed};
  ob_judge_init(&fresh.judge, &fresh.feed, DEPTH);
  wrong = world->rows[0].result;
  wrong.cause_position++;
  assert_false(ob_judge_take(&fresh.judge, &wrong));
  ob_judge_done(&fresh.judge);
  ob_judge_init(&fresh.judge, &fresh.feed, DEPTH);
  wrong = world->rows[0].result;
  wrong.position++;
  assert_false(ob_judge_take(&fresh.judge, &wrong));
  ob_judge_done(&fresh.judge);
}

/* The last result is missing. */
static void one_too_few(void **state) {
  struct world *world = *state;
  world->count--;
  assert_int_equal(take_all(world), world->count);
  assert_false(ob_judge_finish(&world->judge));
  world->count++;
}

/* A final book twice, which leaves another out. */
static void final_twice(void **state) {
  struct world *world = *state;
  struct row *last = &world->rows[world->count - 1];
  last->result.key = last[-1].result.key;
  last->result.payload = last[-1].result.payload;
  assert_int_equal(take_all(world), world->count - 1);
}

/* A final book that is the feed's, but not what rests in the exchange. */
static void other_than_the_matcher(void **state) {
  struct world *world = *state;
  struct ob_matcher *matcher = &world->feed.matchers[0];
  assert_true(matcher->buys.count > 0);
  matcher->buys.orders[0].remaining++;
  assert_int_equal(take_all(world), world->feed.count);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(right),       TEST(wrong_byte),  TEST(wrong_order),           TEST(wrong_fields),
      TEST(one_too_few), TEST(final_twice), TEST(other_than_the_matcher)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
