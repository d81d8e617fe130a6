/* Appending: answers, their order, what waits for a comparison, who is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  rig_open(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

/* A new store has the stream `default`, from 1; events sent in disorder are released in order, and
 * the answer's numbers include what it acknowledges. */
static void test_founding_example(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "default");
  assert_non_null(stream);
  struct ev events[] = {{.sequence = 2, .key = "b"}, {.sequence = 1, .key = "a"},
                        {.sequence = 4, .key = "a"}, {.sequence = 2, .key = "b"},
                        {.sequence = 4, .key = "x"}, {.sequence = 0, .key = "a"}};
  struct sent *sent = rig_send(rig, stream, 0, events, 6);
  rig_wait(sent);
  const struct hb_decision *decisions = sent->append.batch.decisions;
  assert_int_equal(decisions[0].outcome, HB_OUTCOME_STORED);
  assert_int_equal(decisions[1].outcome, HB_OUTCOME_STORED);
  assert_int_equal(decisions[2].outcome, HB_OUTCOME_STORED);
  assert_int_equal(decisions[3].outcome, HB_OUTCOME_DUPLICATE);
  assert_int_equal(decisions[4].outcome, HB_OUTCOME_CONFLICT);
  assert_int_equal(decisions[5].outcome, HB_OUTCOME_BEFORE_FIRST);
  assert_int_equal(sent->append.status.record.frontier, 3);
  assert_int_equal(sent->append.status.held_events, 1);
  rig_free(sent);
  assert_int_equal(rig_check_log(rig, stream, 1), 2);
  assert_int_equal(rig_put(rig, stream, 3, "c", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_check_log(rig, stream, 1), 4);
  hb_stream_unref(stream);
}

/* Batches of one call are answered in the order in which they were handed in. */
static void test_answers_in_order(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct sent *sent[40];
  for (int i = 0; i < 40; i++) {
    int64_t from = 1 + 100 * (i ^ 1); /* neighbours swapped */
    sent[i] = rig_send_range(rig, stream, 7, from, from + 100, 10);
  }
  uint64_t last = 0;
  for (int i = 0; i < 40; i++) {
    rig_wait(sent[i]);
    assert_int_equal(sent[i]->append.batch.error.code, HB_OK);
    assert_true(sent[i]->order > last);
    last = sent[i]->order;
    rig_free(sent[i]);
  }
  assert_int_equal(rig_check_log(rig, stream, 1), 4000);
  hb_stream_unref(stream);
}

/* What was released long ago is compared by a reader (NEED): the same again is a duplicate, other
 * content a conflict, whichever call sends it. */
static void test_history_is_compared(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct sent *first = rig_send_range(rig, stream, 1, 1, 5001, 10);
  rig_wait(first);
  rig_free(first);
  hb_stream_unref(stream);
  rig_reopen(rig); /* nothing in memory */
  stream = hb_engine_find_stream(rig->engine, "s");
  struct sent *again = rig_send_range(rig, stream, 2, 1, 5001, 10);
  struct sent *other = rig_send_range(rig, stream, 3, 1, 5001, 11);
  rig_wait(again);
  rig_wait(other);
  for (int i = 0; i < 5000; i++) {
    assert_int_equal(again->append.batch.decisions[i].outcome, HB_OUTCOME_DUPLICATE);
    bool same = (i + 1) % 10 == (i + 1) % 11;
    assert_int_equal(other->append.batch.decisions[i].outcome,
                     same ? HB_OUTCOME_DUPLICATE : HB_OUTCOME_CONFLICT);
  }
  rig_free(again);
  rig_free(other);
  hb_stream_unref(stream);
}

/* ---- group commit: the first write is held up until the other batches are handed in */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int writes;

static enum hb_code gated_write(struct hb_store *store, struct hb_write *write, uint64_t commit,
                                bool sync, struct hb_err *err) {
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  writes++;
  return hb_store_write(store, write, commit, sync, err);
}

/* What comes while a write is on its way is one commit together: one write, one fsync. */
static void test_group_commit(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct sent *sent[50];
  pthread_mutex_lock(&gate);
  atomic_store(&rig->engine->store_write, gated_write);
  writes = 0;
  for (int i = 0; i < 50; i++) sent[i] = rig_send_range(rig, stream, 0, 1 + i, 2 + i, 10);
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < 50; i++) {
    rig_wait(sent[i]);
    assert_int_equal(sent[i]->append.batch.decisions[0].outcome, HB_OUTCOME_STORED);
    rig_free(sent[i]);
  }
  assert_true(writes <= 4); /* two commits; served time, index rows at most */
  assert_int_equal(rig_check_log(rig, stream, 1), 50);
  atomic_store(&rig->engine->store_write, hb_store_write);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_founding_example, setup, teardown),
      cmocka_unit_test_setup_teardown(test_answers_in_order, setup, teardown),
      cmocka_unit_test_setup_teardown(test_group_commit, setup, teardown),
      cmocka_unit_test_setup_teardown(test_history_is_compared, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
