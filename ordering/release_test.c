#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/frame/block.h"
#include "tests/model/driver.h"

static struct hb_driver driver;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 100};
}

static void start(struct hb_ordering_options options, uint64_t streams) {
  if (!options.limits.ahead_max) options.limits = hb_limits_default();
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  for (uint64_t id = 1; id <= streams; id++) hb_driver_add(&driver, id, &config);
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* Events [from, to) in one batch. */
static struct hb_test_batch *submit(uint64_t stream, int64_t from, int64_t to) {
  static struct hb_test_event events[2000];
  for (int64_t i = from; i < to; i++) events[i - from] = event(i);
  return hb_driver_submit(&driver, stream, stream, events, (size_t)(to - from));
}

static size_t released_bytes(const struct hb_fake_stream *stream, size_t from_block) {
  size_t bytes = 0;
  for (size_t i = from_block; i < stream->blocks_count; i++) bytes += stream->blocks[i].block->size;
  return bytes;
}

/* Filling the gap before many held events releases them slice by slice; complete_to jumps at once
 * and new events are decided in between. */
static void releases_in_slices(void **state) {
  (void)state;
  start((struct hb_ordering_options){.release_stream_bytes = 5000, .block_bytes = 1000}, 1);
  submit(1, 2, 400);
  hb_driver_settle(&driver);
  submit(1, 1, 2);
  assert_true(hb_driver_commit(&driver));
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.complete_to, 400);
  assert_true(status.record.frontier > 20 && status.record.frontier < 60);
  struct hb_fake_stream *stored = hb_fake_find(&driver.store, 1);
  while (hb_ordering_has_work(driver.core)) {
    size_t blocks = stored->blocks_count;
    int64_t before = stored->record.frontier;
    assert_true(hb_driver_commit(&driver));
    assert_true(stored->record.frontier > before);
    assert_true(released_bytes(stored, blocks) <= 5000);
  }
  assert_int_equal(stored->record.frontier, 400);
  assert_int_equal(stored->bundles_count, 0);
}

/* Blocks hold at most block_bytes of frames, or one event; max_time runs through them. */
static void cuts_blocks(void **state) {
  (void)state;
  start((struct hb_ordering_options){.block_bytes = 600}, 1);
  struct hb_test_event events[21];
  for (int i = 0; i < 21; i++) events[i] = event(i + 1);
  events[3].seconds = 900;
  events[9].seconds = 400;
  events[12].size = 5000;
  hb_driver_submit(&driver, 1, 1, events, 21);
  hb_driver_settle(&driver);
  struct hb_fake_stream *stored = hb_fake_find(&driver.store, 1);
  assert_true(stored->blocks_count > 3);
  for (size_t i = 0; i < stored->blocks_count; i++) {
    struct hb_block block;
    struct hb_bytes *bytes = stored->blocks[i].block;
    assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
    assert_true(block.frames.size <= 600 || block.count == 1);
    if (block.to > 4) assert_int_equal(block.max_time.seconds, 900);
  }
  assert_int_equal(stored->record.max_event_time.seconds, 900);
}

/* An event's receipt survives being held. */
static void receipts_survive(void **state) {
  (void)state;
  start((struct hb_ordering_options){0}, 1);
  struct hb_test_event two = event(2);
  struct hb_test_event one = event(1);
  hb_driver_submit(&driver, 1, 17, &two, 1);
  hb_driver_settle(&driver);
  hb_driver_restart(&driver);
  hb_driver_submit(&driver, 1, 23, &one, 1);
  hb_driver_settle(&driver);
  struct hb_block block;
  struct hb_bytes *bytes = hb_fake_find(&driver.store, 1)->blocks[0].block;
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
  assert_int_equal(hb_block_receipt(&block, 0).peer, 23);
  assert_int_equal(hb_block_receipt(&block, 1).peer, 17);
  assert_int_equal(hb_block_receipt(&block, 1).received_ms, 1017);
}

/* Where others wait for the same commits, a release of what was held takes a quarter of its slice,
 * then and for a while after; alone again, it takes all of it. */
static void slices_are_small_in_company(void **state) {
  (void)state;
  start((struct hb_ordering_options){.release_stream_bytes = 8000, .block_bytes = 500}, 2);
  submit(1, 2, 2000);
  hb_driver_settle(&driver);
  submit(1, 1, 2);
  assert_true(hb_driver_commit(&driver));
  struct hb_fake_stream *stored = hb_fake_find(&driver.store, 1);
  assert_in_range(released_bytes(stored, 0), 7000, 8000);
  size_t blocks = stored->blocks_count;
  submit(2, 1, 2);
  assert_true(hb_driver_commit(&driver));
  assert_int_equal(hb_driver_status(&driver, 2).record.frontier, 2);
  assert_in_range(released_bytes(stored, blocks), 1000, 2000);
  for (int commit = 1; commit < 64; commit++) {
    blocks = stored->blocks_count;
    assert_true(hb_driver_commit(&driver));
    assert_in_range(released_bytes(stored, blocks), 1000, 2000);
  }
  blocks = stored->blocks_count;
  assert_true(hb_driver_commit(&driver));
  assert_in_range(released_bytes(stored, blocks), 7000, 8000);
}

/* New events are never held for the sake of others: the slice grows with them. */
static void new_events_go_through_in_company(void **state) {
  (void)state;
  start((struct hb_ordering_options){.release_stream_bytes = 8000, .block_bytes = 500}, 2);
  submit(1, 1, 40);
  submit(2, 1, 40);
  assert_true(hb_driver_commit(&driver));
  for (uint64_t id = 1; id <= 2; id++) {
    assert_int_equal(hb_driver_status(&driver, id).record.frontier, 40);
    assert_int_equal(hb_driver_status(&driver, id).record.counters.held, 0);
  }
}

/* All streams share release_bytes in turn: none starves. */
static void streams_take_turns(void **state) {
  (void)state;
  start(
      (struct hb_ordering_options){
          .release_stream_bytes = 4000, .release_bytes = 9000, .block_bytes = 1000},
      5);
  for (uint64_t id = 1; id <= 5; id++) submit(id, 2, 300);
  hb_driver_settle(&driver);
  for (uint64_t id = 1; id <= 5; id++) submit(id, 1, 2);
  int64_t before[6] = {0};
  unsigned served[6] = {0};
  for (int commit = 0; commit < 10; commit++) {
    assert_true(hb_driver_commit(&driver));
    size_t bytes = 0;
    for (size_t i = 0; i < driver.last.blocks_count; i++) bytes++;
    assert_true(bytes <= 12);
    for (uint64_t id = 1; id <= 5; id++) {
      int64_t frontier = hb_driver_status(&driver, id).record.frontier;
      served[id] += frontier > before[id];
      before[id] = frontier;
    }
  }
  for (uint64_t id = 1; id <= 5; id++) assert_true(served[id] >= 4);
  hb_driver_settle(&driver);
  for (uint64_t id = 1; id <= 5; id++) {
    assert_int_equal(hb_driver_status(&driver, id).record.frontier, 300);
  }
}

/* While a release runs even the event at complete_to is held and may be refused; it goes on by
 * itself, so nothing is locked. */
static void event_at_complete_to_is_held_during_a_release(void **state) {
  (void)state;
  start((struct hb_ordering_options){.release_stream_bytes = 1000, .block_bytes = 500}, 1);
  submit(1, 2, 100);
  hb_driver_settle(&driver);
  hb_ordering_set_disk_reserve(driver.core, true);
  submit(1, 1, 2);
  struct hb_test_batch *next = submit(1, 100, 101);
  assert_true(hb_driver_commit(&driver));
  hb_driver_collect(&driver);
  hb_driver_expect(next, 0, HB_OUTCOME_WINDOW_FULL, HB_REASON_DISK_RESERVE);
  hb_driver_settle(&driver);
  struct hb_decision again = hb_driver_send(&driver, 1, event(100));
  assert_int_equal(again.outcome, HB_OUTCOME_STORED);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 101);
}

/* ---- memory */

/* With almost no memory a release stops at each spilled bundle, asks for it, and goes on. */
static void goes_on_when_bundles_are_fetched(void **state) {
  (void)state;
  struct hb_ordering_options options = {
      .limits = hb_limits_default(), .bundle_bytes = 500, .fetch_ahead_bytes = 1000};
  options.limits.held_memory_max = 800;
  start(options, 1);
  submit(1, 2, 200);
  hb_driver_settle(&driver);
  submit(1, 1, 2);
  size_t fetches = 0;
  size_t commits = 0;
  assert_true(hb_driver_commit(&driver));
  while (hb_driver_status(&driver, 1).record.frontier < 200) {
    size_t fetched = hb_driver_fetches(&driver);
    fetches += fetched;
    assert_true(fetched || hb_ordering_has_work(driver.core));
    commits += hb_driver_commit(&driver);
    assert_true(commits < 200);
  }
  assert_true(fetches >= 40);
}

/* A bundle that can't be read is asked for again after the next commit. */
static void asks_again_after_a_failed_fetch(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.held_memory_max = 1;
  start(options, 2);
  submit(1, 2, 5);
  hb_driver_settle(&driver);
  submit(1, 1, 2);
  assert_true(hb_driver_commit(&driver));
  struct hb_bundle_id id;
  assert_true(hb_ordering_take_fetch(driver.core, &id));
  assert_false(hb_ordering_take_fetch(driver.core, &id));
  hb_ordering_fetched(driver.core, id, NULL);
  assert_false(hb_ordering_take_fetch(driver.core, &id));
  assert_false(hb_ordering_has_work(driver.core));
  submit(2, 1, 2);
  assert_true(hb_driver_commit(&driver));
  hb_driver_settle(&driver);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 5);
}

/* A FETCH that comes back after its stream is gone changes nothing. */
static void fetched_after_removal_is_ignored(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.held_memory_max = 1;
  start(options, 1);
  submit(1, 2, 5);
  submit(1, 1, 2);
  (void)hb_driver_commit(&driver);
  submit(1, 8, 9);
  (void)hb_driver_commit(&driver);
  hb_driver_restart(&driver);
  submit(1, 5, 8);
  (void)hb_driver_commit(&driver);
  struct hb_bundle_id id;
  bool asked = hb_ordering_take_fetch(driver.core, &id);
  struct hb_bytes *block = asked ? hb_bytes_ref(hb_fake_fetch(&driver.store, id)) : NULL;
  hb_ordering_remove_stream(driver.core, 1);
  hb_fake_remove_stream(&driver.store, 1);
  assert_true(asked);
  hb_ordering_fetched(driver.core, id, block);
  hb_bytes_unref(block);
  assert_false(hb_ordering_has_work(driver.core));
}

/* ---- intake */

/* A commit takes commit_bytes of batches, in order, and at least one. */
static void takes_commit_bytes_of_batches(void **state) {
  (void)state;
  start((struct hb_ordering_options){.commit_bytes = 3000}, 2);
  struct hb_test_batch *big = submit(1, 1, 101);
  struct hb_test_batch *small = submit(2, 1, 3);
  assert_true(big->batch.bytes > 3000);
  assert_true(hb_driver_commit(&driver));
  hb_driver_collect(&driver);
  assert_true(big->answered && !small->answered);
  assert_true(hb_ordering_has_work(driver.core));
  hb_driver_settle(&driver);
  hb_driver_expect(small, 1, HB_OUTCOME_STORED, HB_REASON_NONE);
}

/* Input in order is written to the log once, never to a bundle first, however much waits. */
static void input_in_order_is_not_bundled(void **state) {
  (void)state;
  start((struct hb_ordering_options){.release_stream_bytes = 20000, .block_bytes = 4000}, 1);
  for (int i = 0; i < 20; i++) submit(1, 1 + i * 50, 51 + i * 50);
  hb_driver_settle(&driver);
  struct hb_stream_status status = hb_driver_status(&driver, 1);
  assert_int_equal(status.record.frontier, 1001);
  assert_int_equal(status.record.counters.held, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, stop)
  const struct CMUnitTest tests[] = {
      TEST(releases_in_slices),
      TEST(cuts_blocks),
      TEST(receipts_survive),
      TEST(slices_are_small_in_company),
      TEST(new_events_go_through_in_company),
      TEST(streams_take_turns),
      TEST(event_at_complete_to_is_held_during_a_release),
      TEST(goes_on_when_bundles_are_fetched),
      TEST(asks_again_after_a_failed_fetch),
      TEST(fetched_after_removal_is_ignored),
      TEST(takes_commit_bytes_of_batches),
      TEST(input_in_order_is_not_bundled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
