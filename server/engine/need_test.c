/* NEED: what stored content says, whatever happened between question and answer; and that who waits
 * for a comparison stops nobody else. Readers are held up where a test must come in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/engine/testing.h"
#include "storage/read.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  rig->limits.held_memory_max = 1; /* all that is held is on disk only */
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static void put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 10);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  rig_free(sent);
}

/* ---- holding the readers up: a read's callback that does not return */

struct block {
  struct hb_read reads[2];
  struct rig *rig;
  int running; /* protected by rig->mutex, as the rest */
  bool go;
  int ended;
};

static void hold(struct hb_read *read) {
  struct block *block = read->context;
  pthread_mutex_lock(&block->rig->mutex);
  block->running++;
  pthread_cond_broadcast(&block->rig->changed);
  while (!block->go) pthread_cond_wait(&block->rig->changed, &block->rig->mutex);
  block->ended++;
  pthread_cond_broadcast(&block->rig->changed);
  pthread_mutex_unlock(&block->rig->mutex);
}

static void block_start(struct block *block, struct rig *rig, struct hb_stream *stream) {
  *block = (struct block){.rig = rig};
  for (int i = 0; i < 2; i++) {
    block->reads[i] = (struct hb_read){
        .kind = HB_READ_LOG, .stream = stream, .position = INT64_MAX, .done = hold};
    block->reads[i].context = block;
    hb_engine_read(rig->engine, &block->reads[i]);
  }
  pthread_mutex_lock(&rig->mutex);
  while (block->running < 2) pthread_cond_wait(&rig->changed, &rig->mutex);
  pthread_mutex_unlock(&rig->mutex);
}

static void block_stop(struct block *block) {
  pthread_mutex_lock(&block->rig->mutex);
  block->go = true;
  pthread_cond_broadcast(&block->rig->changed);
  while (block->ended < 2) pthread_cond_wait(&block->rig->changed, &block->rig->mutex);
  pthread_mutex_unlock(&block->rig->mutex);
}

/* Until the question is out: another call's batch was decided after it came. */
static void wait_asked(struct rig *rig, struct hb_stream *stream, int64_t next) {
  put_range(rig, stream, next, next + 1);
}

static void expect_all(struct sent *sent, enum hb_outcome outcome) {
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  for (uint32_t i = 0; i < sent->append.batch.count; i++) {
    assert_int_equal(sent->append.batch.decisions[i].outcome, outcome);
  }
  rig_free(sent);
}

/* While one call's batch waits for its comparison, other calls' batches are decided, and the
 * waiting call keeps its order. */
static void test_others_go_on(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 101);
  struct block block;
  block_start(&block, rig, stream);
  struct sent *again = rig_send_range(rig, stream, 5, 1, 101, 10);
  struct sent *behind = rig_send_range(rig, stream, 5, 200, 210, 10);
  wait_asked(rig, stream, 101);
  put_range(rig, stream, 102, 110);
  pthread_mutex_lock(&rig->mutex);
  assert_false(again->answered);
  assert_false(behind->answered);
  pthread_mutex_unlock(&rig->mutex);
  block_stop(&block);
  rig_wait(again);
  rig_wait(behind);
  assert_true(again->order < behind->order);
  expect_all(again, HB_OUTCOME_DUPLICATE);
  expect_all(behind, HB_OUTCOME_STORED);
  hb_stream_unref(stream);
}

/* The stream is deleted between question and answer: NOT_FOUND. */
static void test_deleted_meanwhile(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 101);
  struct block block;
  block_start(&block, rig, stream);
  struct sent *again = rig_send_range(rig, stream, 5, 1, 101, 10);
  wait_asked(rig, stream, 101);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  block_stop(&block);
  rig_wait(again);
  assert_int_equal(again->append.batch.error.code, HB_NOT_FOUND);
  rig_free(again);
  hb_stream_unref(stream);
}

static enum hb_code fail_write(struct hb_store *store, struct hb_write *write, uint64_t commit,
                               bool sync, struct hb_err *err) {
  (void)store;
  (void)write;
  (void)commit;
  (void)sync;
  return hb_err_set(err, HB_IO, NULL, "write: injected");
}

/* A write fails between question and answer: UNAVAILABLE, when the question is back. */
static void test_failed_meanwhile(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 101);
  struct block block;
  block_start(&block, rig, stream);
  struct sent *again = rig_send_range(rig, stream, 5, 1, 101, 10);
  wait_asked(rig, stream, 101);
  atomic_store(&rig->engine->store_write, fail_write);
  struct sent *other = rig_send_range(rig, stream, 6, 102, 103, 10);
  rig_wait(other);
  assert_int_equal(other->append.batch.error.code, HB_UNAVAILABLE);
  rig_free(other);
  block_stop(&block);
  rig_wait(again);
  assert_int_equal(again->append.batch.error.code, HB_UNAVAILABLE);
  rig_free(again);
  assert_int_equal(rig->fatal, 1);
  hb_stream_unref(stream);
}

/* Held events on disk are compared in their bundle; when the gap is filled meanwhile they are
 * fetched and released, and the waiting batch still gets the right answer. */
static void test_held_and_released_meanwhile(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 101, 201);
  struct sent *again = rig_send_range(rig, stream, 0, 101, 201, 10);
  expect_all(again, HB_OUTCOME_DUPLICATE);
  struct block block;
  block_start(&block, rig, stream);
  again = rig_send_range(rig, stream, 0, 101, 201, 10);
  struct sent *other = rig_send_range(rig, stream, 0, 101, 102, 7); /* k101 % 10 != % 7 */
  put_range(rig, stream, 1, 101);
  block_stop(&block);
  expect_all(again, HB_OUTCOME_DUPLICATE);
  expect_all(other, HB_OUTCOME_CONFLICT);
  rig_until(rig, stream, rig_frontier_at_least, 201);
  assert_int_equal(rig_check_log(rig, stream, 1), 200);
  hb_stream_unref(stream);
}

/* ---- the reader's rules, one by one */

static bool first_bundle(void *context, struct hb_bundle_id id, struct hb_slice block) {
  (void)block;
  *(struct hb_bundle_id *)context = id;
  return false;
}

static enum hb_verdict compare(struct rig *rig, struct sent *sent, struct hb_stream *stream,
                               enum hb_place_kind place, struct hb_bundle_id id,
                               enum hb_code expected) {
  struct hb_need_item item = {.place = place,
                              .commit = id.commit,
                              .part = id.part,
                              .sequence = sent->append.batch.events[0].sequence};
  struct hb_need need = {.batch = &sent->append.batch, .items = &item, .count = 1};
  struct hb_err err = {0};
  assert_int_equal(hb_need_compare(rig->engine, &need, stream, &err), expected);
  return item.verdict;
}

/* The named bundle first, then the log, else MOVED; a released event that the log lacks is damage.
 */
static void test_reader_rules(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 2, 3);
  struct hb_bundle_id id = {0};
  struct hb_bundle_id nowhere = {.stream = stream->id, .commit = UINT64_MAX / 2};
  assert_int_equal(hb_bundle_each(rig->engine->store, stream->id, NULL, first_bundle, &id, NULL),
                   HB_OK);
  struct sent *same = rig_send_range(rig, stream, 0, 2, 3, 10);
  struct sent *other = rig_send_range(rig, stream, 0, 2, 3, 2);
  rig_wait(same);
  rig_wait(other);
  const enum hb_place_kind bundle = HB_PLACE_BUNDLE;
  assert_int_equal(compare(rig, same, stream, bundle, id, HB_OK), HB_VERDICT_EQUAL);
  assert_int_equal(compare(rig, other, stream, bundle, id, HB_OK), HB_VERDICT_DIFFERENT);
  assert_int_equal(compare(rig, same, stream, bundle, nowhere, HB_OK), HB_VERDICT_MOVED);
  compare(rig, same, stream, HB_PLACE_LOG, nowhere, HB_CORRUPT);
  put_range(rig, stream, 1, 2);
  rig_until(rig, stream, rig_frontier_at_least, 3);
  assert_int_equal(compare(rig, same, stream, bundle, id, HB_OK), HB_VERDICT_EQUAL);
  assert_int_equal(compare(rig, other, stream, bundle, nowhere, HB_OK), HB_VERDICT_DIFFERENT);
  assert_int_equal(compare(rig, same, stream, HB_PLACE_LOG, nowhere, HB_OK), HB_VERDICT_EQUAL);
  rig_free(same);
  rig_free(other);
  hb_stream_unref(stream);
}

/* ---- room */

static void room_called(struct hb_room *room) {
  struct rig *rig = room->context;
  pthread_mutex_lock(&rig->mutex);
  rig->fatal = 100; /* borrowed as a flag */
  pthread_cond_broadcast(&rig->changed);
  pthread_mutex_unlock(&rig->mutex);
}

/* Over waiting_bytes_max a call with a waiting batch is refused until batches were answered; a
 * call without one is not. */
static void test_waiting_cap(void **state) {
  struct rig *rig = *state;
  rig->limits.waiting_bytes_max = 1000;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 101);
  struct sent *refused = rig_send_range(rig, stream, 5, 101, 111, 10);
  expect_all(refused, HB_OUTCOME_STORED);
  struct block block;
  block_start(&block, rig, stream);
  struct sent *again = rig_send_range(rig, stream, 5, 1, 101, 10); /* over 1000 bytes */
  wait_asked(rig, stream, 111);
  struct ev event = {.sequence = 113, .key = "k"};
  struct sent *spare = rig_send(rig, stream, 6, &event, 1);
  rig_wait(spare);
  spare->append.batch.call = 5;
  spare->append.batch.decisions[0] = (struct hb_decision){0};
  assert_false(hb_engine_try_append(rig->engine, &spare->append));
  put_range(rig, stream, 112, 113);
  block_stop(&block);
  struct hb_room room = {.room = room_called, .context = rig};
  hb_engine_on_room(rig->engine, &room);
  pthread_mutex_lock(&rig->mutex);
  while (rig->fatal != 100) pthread_cond_wait(&rig->changed, &rig->mutex);
  spare->answered = false;
  pthread_mutex_unlock(&rig->mutex);
  expect_all(again, HB_OUTCOME_DUPLICATE);
  assert_true(hb_engine_try_append(rig->engine, &spare->append));
  expect_all(spare, HB_OUTCOME_DUPLICATE);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_others_go_on, setup, teardown),
      cmocka_unit_test_setup_teardown(test_deleted_meanwhile, setup, teardown),
      cmocka_unit_test_setup_teardown(test_failed_meanwhile, setup, teardown),
      cmocka_unit_test_setup_teardown(test_held_and_released_meanwhile, setup, teardown),
      cmocka_unit_test_setup_teardown(test_reader_rules, setup, teardown),
      cmocka_unit_test_setup_teardown(test_waiting_cap, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
