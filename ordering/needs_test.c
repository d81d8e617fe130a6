#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/model/driver.h"

static struct hb_driver driver;

static struct hb_test_event event(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 7, .size = 40};
}

static struct hb_test_event other(int64_t sequence) {
  return (struct hb_test_event){.sequence = sequence, .content = 8, .size = 40};
}

static struct hb_test_batch *submit(uint64_t call, struct hb_test_event one) {
  return hb_driver_submit(&driver, 1, call, &one, 1);
}

/* A stream from 1 on, with almost no memory for held events where `spilled`. */
static int start(bool spilled) {
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  if (spilled) options.limits.held_memory_max = 1;
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  return 0;
}

static int stop(void **state) {
  (void)state;
  hb_driver_stop(&driver);
  return 0;
}

/* The one question that is there, as a reader takes it. */
static struct hb_need *take(size_t items) {
  struct hb_need *need = hb_ordering_take_need(driver.core);
  assert_non_null(need);
  assert_int_equal(need->count, items);
  assert_null(hb_ordering_take_need(driver.core));
  return need;
}

static void answer(struct hb_need *need) {
  hb_fake_answer(&driver.store, need);
  hb_ordering_answer_need(driver.core, need);
}

/* Content below the frontier is asked for in the log; the batch decides nothing meanwhile. */
static void asks_the_log_for_released_content(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_event events[] = {event(2), other(1), event(1)};
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, 3);
  struct hb_need *need = take(2);
  assert_int_equal(need->items[0].place, HB_PLACE_LOG);
  assert_false(hb_ordering_has_work(driver.core));
  assert_null(hb_ordering_decide(driver.core, driver.now));
  assert_int_equal(hb_ordering_waiting_bytes(driver.core), batch->batch.bytes);
  answer(need);
  assert_int_equal(hb_ordering_waiting_bytes(driver.core), 0);
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  hb_driver_expect(batch, 2, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
}

/* Held content in memory is compared without a question. */
static void compares_what_is_in_memory(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(5));
  struct hb_test_event events[] = {event(5), other(5)};
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, 2);
  assert_null(hb_ordering_take_need(driver.core));
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
}

/* Spilled content is asked for in its bundle; released meanwhile, it is found in the log. */
static void released_between_question_and_answer(void **state) {
  (void)state;
  start(true);
  hb_driver_send(&driver, 1, event(2));
  struct hb_test_batch *copy = submit(1, other(2));
  struct hb_need *need = take(1);
  assert_int_equal(need->items[0].place, HB_PLACE_BUNDLE);
  struct hb_test_batch *filler = submit(2, event(1));
  hb_driver_settle(&driver);
  hb_driver_expect(filler, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 3);
  answer(need);
  hb_driver_settle(&driver);
  hb_driver_expect(copy, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
}

/* MOVED asks again, only for the event that moved, with the place as it is now. */
static void moved_asks_again_with_the_fresh_place(void **state) {
  (void)state;
  start(true);
  hb_driver_send(&driver, 1, event(2));
  hb_driver_send(&driver, 1, event(9));
  struct hb_test_event events[] = {event(2), event(9)};
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, 2);
  struct hb_need *need = take(2);
  (void)submit(2, event(1));
  hb_driver_settle(&driver);
  assert_int_equal(hb_driver_status(&driver, 1).record.frontier, 3);
  need->items[0].verdict = HB_VERDICT_MOVED;
  need->items[1].verdict = HB_VERDICT_EQUAL;
  hb_ordering_answer_need(driver.core, need);
  need = take(1);
  assert_int_equal(need->items[0].sequence, 2);
  assert_int_equal(need->items[0].place, HB_PLACE_LOG);
  answer(need);
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
}

/* What another call stored after the question is found when the batch is decided: it goes back
 * with a new question, keeps the verdicts that it has, and blocks nobody. */
static void stored_by_another_call_between_question_and_answer(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_event events[] = {event(1), other(2)};
  struct hb_test_batch *batch = hb_driver_submit(&driver, 1, 1, events, 2);
  struct hb_need *need = take(1);
  struct hb_test_batch *faster = submit(2, event(2));
  hb_driver_settle(&driver);
  hb_driver_expect(faster, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  answer(need);
  struct hb_test_batch *bystander = submit(3, event(3));
  assert_true(hb_driver_commit(&driver)); /* finds out, and decides the bystander */
  hb_driver_collect(&driver);
  hb_driver_expect(bystander, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  assert_false(batch->answered);
  need = take(1);
  assert_int_equal(need->items[0].sequence, 2);
  answer(need);
  hb_driver_settle(&driver);
  hb_driver_expect(batch, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(batch, 1, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
}

/* The answer may come while a commit is being written. */
static void answer_comes_while_a_commit_is_written(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_batch *copy = submit(1, event(1));
  struct hb_need *need = take(1);
  (void)submit(2, event(2));
  const struct hb_commit *commit = hb_ordering_decide(driver.core, driver.now);
  answer(need);
  assert_null(hb_ordering_take_need(driver.core));
  hb_fake_apply(&driver.store, commit);
  hb_ordering_committed(driver.core, commit);
  hb_driver_collect(&driver);
  assert_false(copy->answered);
  hb_driver_settle(&driver);
  hb_driver_expect(copy, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
}

/* Batches of one call are decided in the order they came, other calls don't wait. */
static void order_within_a_call_is_kept(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_batch *first = submit(1, event(1));
  struct hb_test_batch *second = submit(1, event(2));
  struct hb_test_batch *elsewhere = submit(2, other(2));
  struct hb_need *need = take(1);
  struct hb_test_batch *third = submit(1, event(3));
  hb_driver_settle(&driver);
  assert_false(first->answered || second->answered || third->answered);
  hb_driver_expect(elsewhere, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  answer(need);
  hb_driver_settle(&driver);
  hb_driver_expect(first, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  hb_driver_expect(second, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  hb_driver_expect(third, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
}

/* The stream is removed while the question is out: the batch comes back when the reader does. */
static void stream_removed_between_question_and_answer(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_batch *out = submit(1, event(1));
  struct hb_need *need = take(1);
  struct hb_test_batch *behind = submit(1, event(2));
  struct hb_test_batch *queued = submit(2, event(2));
  struct hb_test_batch *untaken = submit(3, event(1));
  hb_ordering_remove_stream(driver.core, 1);
  hb_fake_remove_stream(&driver.store, 1);
  hb_driver_collect(&driver);
  assert_true(queued->answered && untaken->answered);
  assert_int_equal(queued->batch.error.code, HB_NOT_FOUND);
  assert_false(out->answered);
  answer(need);
  hb_driver_collect(&driver);
  assert_true(out->answered && behind->answered);
  assert_int_equal(out->batch.error.code, HB_NOT_FOUND);
  assert_int_equal(behind->batch.error.code, HB_NOT_FOUND);
  assert_false(hb_ordering_has_work(driver.core));
}

/* A write fails while the question is out: every batch comes back unavailable, this one with the
 * reader, and no presence is left. */
static void write_fails_between_question_and_answer(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_batch *out = submit(1, event(1));
  struct hb_need *need = take(1);
  struct hb_test_batch *lost = submit(2, event(2));
  assert_non_null(hb_ordering_decide(driver.core, driver.now));
  struct hb_test_batch *later = submit(3, event(3));
  hb_ordering_fail(driver.core);
  hb_driver_collect(&driver);
  assert_int_equal(lost->batch.error.code, HB_UNAVAILABLE);
  assert_int_equal(later->batch.error.code, HB_UNAVAILABLE);
  assert_true(lost->answered && later->answered && !out->answered);
  answer(need);
  hb_driver_collect(&driver);
  assert_int_equal(out->batch.error.code, HB_UNAVAILABLE);
  hb_driver_restart(&driver);
  assert_int_equal(hb_driver_send(&driver, 1, other(2)).outcome, HB_OUTCOME_STORED);
}

/* A reader's failure fails that batch alone; those behind it go on. */
static void reader_failure_fails_one_batch(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  struct hb_test_batch *failed = submit(1, event(1));
  struct hb_need *need = take(1);
  struct hb_test_batch *behind = submit(1, event(2));
  (void)hb_err_set(&need->error, HB_IO, NULL, "log: read failed");
  hb_ordering_answer_need(driver.core, need);
  hb_driver_settle(&driver);
  assert_int_equal(failed->batch.error.code, HB_IO);
  hb_driver_expect(behind, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
}

/* Small batches of one call ask together, whose answers may come in any order; they are decided in
 * theirs, and one whose answer is not there holds back those behind it. */
static void a_call_asks_ahead(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  hb_driver_send(&driver, 1, event(2));
  hb_driver_send(&driver, 1, event(3));
  struct hb_test_batch *first = submit(1, event(1));
  struct hb_test_batch *second = submit(1, other(2));
  struct hb_test_batch *third = submit(1, event(4));
  struct hb_test_batch *fourth = submit(1, other(3));
  struct hb_need *needs[3];
  for (int i = 0; i < 3; i++) assert_non_null(needs[i] = hb_ordering_take_need(driver.core));
  assert_null(hb_ordering_take_need(driver.core));
  answer(needs[2]);
  assert_null(hb_ordering_decide(driver.core, driver.now));
  answer(needs[0]);
  hb_driver_settle(&driver);
  hb_driver_expect(first, 0, HB_OUTCOME_DUPLICATE, HB_REASON_NONE);
  assert_false(second->answered || third->answered || fourth->answered);
  answer(needs[1]);
  hb_driver_settle(&driver);
  hb_driver_expect(second, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  hb_driver_expect(third, 0, HB_OUTCOME_STORED, HB_REASON_NONE);
  hb_driver_expect(fourth, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  assert_int_equal(hb_ordering_waiting_bytes(driver.core), 0);
}

/* A write fails while two of a call have asked: both come back, each when its reader does. */
static void write_fails_while_a_call_asks_ahead(void **state) {
  (void)state;
  start(false);
  hb_driver_send(&driver, 1, event(1));
  hb_driver_send(&driver, 1, event(2));
  struct hb_test_batch *first = submit(1, event(1));
  struct hb_test_batch *second = submit(1, event(2));
  struct hb_need *needs[2];
  for (int i = 0; i < 2; i++) assert_non_null(needs[i] = hb_ordering_take_need(driver.core));
  hb_ordering_fail(driver.core);
  (void)hb_err_set(&needs[1]->error, HB_IO, NULL, "log: read failed");
  hb_ordering_answer_need(driver.core, needs[1]);
  hb_driver_collect(&driver);
  assert_false(first->answered || second->answered);
  answer(needs[0]);
  hb_driver_collect(&driver);
  assert_int_equal(first->batch.error.code, HB_UNAVAILABLE);
  assert_int_equal(second->batch.error.code, HB_UNAVAILABLE);
  assert_int_equal(hb_ordering_waiting_bytes(driver.core), 0);
}

/* Every verdict has its outcome. */
static void verdicts_have_outcomes(void **state) {
  (void)state;
  const struct {
    enum hb_verdict verdict;
    enum hb_outcome outcome;
    enum hb_reason reason;
  } table[] = {
      {HB_VERDICT_EQUAL, HB_OUTCOME_DUPLICATE, HB_REASON_NONE},
      {HB_VERDICT_DIFFERENT, HB_OUTCOME_CONFLICT, HB_REASON_NONE},
      {HB_VERDICT_VOID, HB_OUTCOME_LATE, HB_REASON_NONE},
      {HB_VERDICT_CHAIN, HB_OUTCOME_CONFLICT, HB_REASON_CHAIN_CONFLICT},
      {HB_VERDICT_TRUNCATED, HB_OUTCOME_DUPLICATE, HB_REASON_UNVERIFIED},
  };
  start(false);
  hb_driver_send(&driver, 1, event(1));
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    struct hb_test_batch *batch = submit(1, event(1));
    struct hb_need *need = take(1);
    need->items[0].verdict = table[i].verdict;
    hb_ordering_answer_need(driver.core, need);
    hb_driver_settle(&driver);
    hb_driver_expect(batch, 0, table[i].outcome, table[i].reason);
  }
}

/* Bundles are rewritten while a question about one is out: the reader says MOVED, the new place is
 * asked for. */
static void rewritten_between_question_and_answer(void **state) {
  (void)state;
  struct hb_ordering_options options = {.limits = hb_limits_default(), .bundle_bytes = 2500};
  options.limits.held_memory_max = 1;
  hb_driver_start(&driver, &options);
  struct hb_stream_config config = hb_driver_config(1);
  hb_driver_add(&driver, 1, &config);
  struct hb_test_event events[40];
  for (int i = 0; i < 40; i++) events[i] = event(i < 39 ? 2 + i : 500);
  hb_driver_submit(&driver, 1, 1, events, 40); /* one bundle; after 2..40 only 500 is left of it */
  hb_driver_settle(&driver);
  struct hb_test_batch *copy = submit(1, other(500));
  struct hb_need *need = take(1);
  uint64_t commit_before = need->items[0].commit;
  (void)submit(2, event(1));
  hb_driver_settle(&driver);
  struct hb_fake_stream *stored = hb_fake_find(&driver.store, 1);
  assert_int_equal(stored->record.frontier, 41);
  assert_int_equal(stored->bundles_count, 1);
  assert_true(stored->bundles[0].id.commit != commit_before);
  answer(need);
  need = take(1);
  assert_int_equal(need->items[0].commit, stored->bundles[0].id.commit);
  answer(need);
  hb_driver_settle(&driver);
  hb_driver_expect(copy, 0, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, stop)
  const struct CMUnitTest tests[] = {
      TEST(asks_the_log_for_released_content),
      TEST(compares_what_is_in_memory),
      TEST(released_between_question_and_answer),
      TEST(moved_asks_again_with_the_fresh_place),
      TEST(stored_by_another_call_between_question_and_answer),
      TEST(answer_comes_while_a_commit_is_written),
      TEST(order_within_a_call_is_kept),
      TEST(stream_removed_between_question_and_answer),
      TEST(write_fails_between_question_and_answer),
      TEST(reader_failure_fails_one_batch),
      TEST(a_call_asks_ahead),
      TEST(write_fails_while_a_call_asks_ahead),
      TEST(verdicts_have_outcomes),
      TEST(rewritten_between_question_and_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
