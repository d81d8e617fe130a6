/* A commit that is written by the writer while the next is decided: nobody may notice before it is
 * durable, and a failure takes with it what was decided on top. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/engine/testing.h"

#define PLENTY (UINT64_C(1) << 40)

/* ---- the seam: a write of a commit waits at the gate, and then ends as it is told. Seams have no
 * context: one test at a time. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int arrived; /* all of these are protected by the mutex */
static int let_through;
static enum hb_code ending;

static enum hb_code gated_write(struct hb_store *store, struct hb_write *write, uint64_t commit,
                                bool sync, struct hb_err *err) {
  pthread_mutex_lock(&mutex);
  int number = ++arrived;
  pthread_cond_broadcast(&changed);
  while (let_through < number) pthread_cond_wait(&changed, &mutex);
  enum hb_code code = ending;
  pthread_mutex_unlock(&mutex);
  if (code) return hb_err_set(err, code, NULL, "write: injected");
  return hb_store_write(store, write, commit, sync, err);
}

static void close_gate(struct rig *rig) {
  arrived = let_through = 0;
  ending = HB_OK;
  atomic_store(&rig->engine->store_write, gated_write);
}

static void wait_for_writes(int count) {
  pthread_mutex_lock(&mutex);
  while (arrived < count) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void let_writes_end(int count, enum hb_code code) {
  pthread_mutex_lock(&mutex);
  let_through = count;
  ending = code;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static int count_writes(void) {
  pthread_mutex_lock(&mutex);
  int count = arrived;
  pthread_mutex_unlock(&mutex);
  return count;
}

/* ---- */

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  /* Each write should be the test's. */
  rig->tuning.index_idle_ms = rig->tuning.index_age_ms = rig->tuning.save_ms = 1000000;
  rig->tuning.tick_ms = 1000000;
  rig_open(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static bool is_answered(struct sent *sent) {
  pthread_mutex_lock(&sent->rig->mutex);
  bool answered = sent->answered;
  pthread_mutex_unlock(&sent->rig->mutex);
  return answered;
}

/* The sequencer has taken what was handed in: it decides it, or will. */
static void wait_until_taken(struct rig *rig) {
  while (hb_mailbox_weight(rig->engine->sequencer.inbox) > 0) sched_yield();
}

static uint64_t held(struct hb_stream *stream) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  return status.held_events;
}

static void expect(struct sent *sent, enum hb_outcome outcome) {
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  assert_int_equal(sent->append.batch.decisions[0].outcome, outcome);
  rig_free(sent);
}

/* While a commit is on its way the next is decided, and that is all: no answer, no status, no
 * second write. A copy of an event on its way is answered when the event is durable, not before,
 * though nothing of the copy is written (I1). */
static void nobody_notices_before(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  close_gate(rig);
  struct sent *first = rig_send_range(rig, stream, 7, 10, 20, 5);
  wait_for_writes(1);
  struct sent *copy = rig_send_range(rig, stream, 7, 10, 20, 5);
  wait_until_taken(rig);
  struct sent *next = rig_send_range(rig, stream, 7, 30, 40, 5);
  struct sent *release = rig_send_range(rig, stream, 7, 1, 10, 5);
  assert_false(is_answered(first) || is_answered(copy) || is_answered(next));
  assert_int_equal(held(stream), 0);
  assert_int_equal(count_writes(), 1);
  let_writes_end(1, HB_OK);
  rig_wait(first);
  assert_int_equal(first->append.status.held_events, 10); /* shown before it is answered (I2) */
  expect(first, HB_OUTCOME_STORED);
  let_writes_end(100, HB_OK);
  expect(copy, HB_OUTCOME_DUPLICATE);
  expect(next, HB_OUTCOME_STORED);
  expect(release, HB_OUTCOME_STORED);
  assert_int_equal(rig_check_log(rig, stream, 1), 19);
  assert_int_equal(held(stream), 10);
  hb_stream_unref(stream);
  atomic_store(&rig->engine->store_write, hb_store_write);
  rig_reopen(rig);
  stream = rig_stream(rig, "s");
  assert_int_equal(rig_check_log(rig, stream, 1), 19);
  assert_int_equal(held(stream), 10);
  hb_stream_unref(stream);
}

/* What was decided is answered in the order in which a call sent it, also over several commits. */
static void answers_keep_their_order(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  enum { BATCHES = 40 };
  struct sent *sent[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    int64_t from = 2 + i / 2 * 10; /* each twice */
    sent[i] = rig_send_range(rig, stream, 3, from, from + 5, 5);
  }
  for (int i = 0; i < BATCHES; i++) {
    rig_wait(sent[i]);
    assert_int_equal(sent[i]->append.batch.decisions[0].outcome,
                     i % 2 ? HB_OUTCOME_DUPLICATE : HB_OUTCOME_STORED);
    if (i > 0) assert_true(sent[i]->order > sent[i - 1]->order);
  }
  for (int i = 0; i < BATCHES; i++) rig_free(sent[i]);
  hb_stream_unref(stream);
}

/* A question about stored content that comes meanwhile is asked afterwards, and answered right. */
static void asks_afterwards(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(rig_put(rig, stream, 1, "k", "one"), HB_OUTCOME_STORED);
  close_gate(rig);
  struct sent *first = rig_send(rig, stream, 1, (struct ev[]){{.sequence = 3, .key = "k"}}, 1);
  wait_for_writes(1);
  struct ev other = {.sequence = 1, .key = "k", .payload = "two"};
  struct sent *conflict = rig_send(rig, stream, 2, &other, 1);
  wait_until_taken(rig);
  assert_false(is_answered(conflict));
  let_writes_end(100, HB_OK);
  expect(first, HB_OUTCOME_STORED);
  expect(conflict, HB_OUTCOME_CONFLICT);
  hb_stream_unref(stream);
}

/* Made or deleted meanwhile: a stream waits for the write that is on its way, as everything does
 * that writes. */
static void jobs_wait_for_it(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int i = 0; i < 20; i++) {
    struct sent *sent = rig_send_range(rig, stream, 0, 10 + i * 10, 15 + i * 10, 5);
    struct hb_job create = {.kind = HB_JOB_CREATE_STREAM,
                            .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 1, .name = "t"}};
    assert_int_equal(rig_job(rig, &create), HB_OK);
    struct hb_stream *made = hb_engine_find_stream(rig->engine, "t");
    struct sent *lost = rig_send_range(rig, made, 0, 2, 9, 5);
    assert_int_equal(rig_delete(rig, "t"), HB_OK);
    expect(sent, HB_OUTCOME_STORED);
    rig_wait(lost);
    assert_true(lost->append.batch.error.code == HB_OK ||
                lost->append.batch.error.code == HB_NOT_FOUND);
    rig_free(lost);
    hb_stream_unref(made);
  }
  assert_int_equal(held(stream), 100);
  hb_stream_unref(stream);
}

/* The write fails for ever: everyone is told that the outcome is unknown, also who was decided on
 * top of it; nothing of it was shown, and the process is asked to end once (I6). */
static void failure_takes_what_is_on_top(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  close_gate(rig);
  struct sent *sent[3];
  sent[0] = rig_send_range(rig, stream, 7, 10, 20, 5);
  wait_for_writes(1);
  sent[1] = rig_send_range(rig, stream, 7, 10, 20, 5);
  wait_until_taken(rig);
  sent[2] = rig_send_range(rig, stream, 7, 1, 10, 5);
  let_writes_end(100, HB_IO);
  for (int i = 0; i < 3; i++) {
    rig_wait(sent[i]);
    assert_int_equal(sent[i]->append.batch.error.code, HB_UNAVAILABLE);
    if (i > 0) assert_true(sent[i]->order > sent[i - 1]->order);
  }
  for (int i = 0; i < 3; i++) rig_free(sent[i]);
  assert_int_equal(held(stream), 0);
  assert_int_equal(count_writes(), 1);
  assert_int_equal(rig->fatal, 1);
  hb_stream_unref(stream);
}

/* The disk is full: the same, but the store is opened again, and what is sent again is stored. */
static void full_disk_takes_what_is_on_top(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(rig_put(rig, stream, 1, "k", NULL), HB_OUTCOME_STORED);
  close_gate(rig);
  struct sent *first = rig_send_range(rig, stream, 7, 10, 20, 5);
  wait_for_writes(1);
  struct sent *top = rig_send_range(rig, stream, 7, 2, 10, 5);
  wait_until_taken(rig);
  atomic_store(&rig->disk_free, 0);
  let_writes_end(100, HB_NO_SPACE);
  rig_wait(first);
  rig_wait(top);
  assert_int_equal(first->append.batch.error.code, HB_UNAVAILABLE);
  assert_int_equal(top->append.batch.error.code, HB_UNAVAILABLE);
  rig_free(first);
  rig_free(top);
  rig_until_disk(rig, HB_DISK_LOST);
  atomic_store(&rig->engine->store_write, hb_store_write);
  atomic_store(&rig->disk_free, PLENTY);
  rig_until_disk(rig, HB_DISK_OK);
  assert_int_equal(rig_check_log(rig, stream, 1), 1);
  expect(rig_send_range(rig, stream, 7, 2, 20, 5), HB_OUTCOME_STORED);
  assert_int_equal(rig_check_log(rig, stream, 1), 19);
  assert_int_equal(rig->fatal, 0);
  hb_stream_unref(stream);
}

/* A stop ends what is on its way, and answers it. */
static void stop_waits_for_it(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct sent *sent[10];
  for (int i = 0; i < 10; i++) sent[i] = rig_send_range(rig, stream, 0, 10 + i, 11 + i, 5);
  hb_stream_unref(stream);
  rig_close(rig);
  for (int i = 0; i < 10; i++) expect(sent[i], HB_OUTCOME_STORED);
  rig_open(rig);
  stream = rig_stream(rig, "s");
  assert_int_equal(held(stream), 10);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nobody_notices_before, setup, teardown),
      cmocka_unit_test_setup_teardown(answers_keep_their_order, setup, teardown),
      cmocka_unit_test_setup_teardown(asks_afterwards, setup, teardown),
      cmocka_unit_test_setup_teardown(jobs_wait_for_it, setup, teardown),
      cmocka_unit_test_setup_teardown(failure_takes_what_is_on_top, setup, teardown),
      cmocka_unit_test_setup_teardown(full_disk_takes_what_is_on_top, setup, teardown),
      cmocka_unit_test_setup_teardown(stop_waits_for_it, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
