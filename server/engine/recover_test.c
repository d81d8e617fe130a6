/* What is there after an end: after close, after SIGKILL, after a failed write. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static enum hb_code put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, 10);
  rig_wait(sent);
  enum hb_code code = sent->append.batch.error.code;
  rig_free(sent);
  return code;
}

/* ---- SIGKILL. Runs first: the child is forked before this process has threads. */

/* The child: batches of 100, each second one sent before the one below it; writes the number of
 * acknowledged batches to the pipe after each answer. */
static void child(struct rig *rig, int out) {
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t i = 0;; i++) {
    int64_t from = 1 + 100 * (i ^ 1);
    if (put_range(rig, stream, from, from + 100) != HB_OK) _exit(2);
    int64_t acknowledged = i + 1;
    if (write(out, &acknowledged, sizeof acknowledged) != sizeof acknowledged) _exit(3);
  }
}

static int64_t run_and_kill(struct rig *rig, int64_t batches) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  (void)fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    close(ends[0]);
    child(rig, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  int64_t acknowledged = 0;
  int64_t last = 0;
  while (last < batches && read(ends[0], &acknowledged, sizeof acknowledged) > 0) {
    last = acknowledged;
  }
  kill(pid, SIGKILL);
  while (read(ends[0], &acknowledged, sizeof acknowledged) > 0) last = acknowledged;
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  close(ends[0]);
  return last;
}

/* What was acknowledged is there after SIGKILL (I1), in order, each once; sending all again stores
 * just what was missing. */
static void test_sigkill(void **state) {
  struct rig *rig = *state;
  int64_t acknowledged = run_and_kill(rig, 51); /* odd: the last one waits for the one below */
  assert_true(acknowledged >= 51);
  rig_open(rig);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  assert_non_null(stream);
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_true(status.record.counters.stored >= 100 * (uint64_t)acknowledged);
  int64_t released = rig_check_log(rig, stream, 1);
  assert_int_equal(released, status.record.frontier - 1);
  for (int64_t i = 0; i < acknowledged + 3; i++) {
    assert_int_equal(put_range(rig, stream, 1 + 100 * i, 101 + 100 * i), HB_OK);
  }
  hb_stream_get_status(stream, &status);
  assert_true(status.record.frontier > 100 * (acknowledged + 3));
  assert_int_equal(rig_check_log(rig, stream, 1), status.record.frontier - 1);
  hb_stream_unref(stream);
}

/* After a clean close and open: numbers, held events, gaps with their age, index, peers, and served
 * time that goes on. */
static void test_reopen(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  uint32_t alice = hb_engine_intern_peer(rig->engine, hb_slice_text("alice"));
  uint32_t bob = hb_engine_intern_peer(rig->engine, hb_slice_text("bob"));
  assert_true(alice > 0 && bob > 0 && alice != bob);
  assert_int_equal(put_range(rig, stream, 1, 1001), HB_OK);
  assert_int_equal(put_range(rig, stream, 1101, 1201), HB_OK);
  assert_int_equal(put_range(rig, stream, 1301, 1401), HB_OK);
  rig_until(rig, stream, rig_indexed_at_least, 1001);
  struct hb_stream_status before;
  hb_stream_get_status(stream, &before);
  hb_stream_unref(stream);
  uint64_t served = hb_engine_served_ms(rig->engine);
  rig_reopen(rig);
  assert_true(hb_engine_served_ms(rig->engine) >= served);
  assert_int_equal(hb_engine_info(rig->engine)->streams, 2);
  assert_int_equal(hb_engine_info(rig->engine)->held_events, 200);
  assert_int_equal(hb_engine_intern_peer(rig->engine, hb_slice_text("alice")), alice);
  assert_int_equal(hb_engine_intern_peer(rig->engine, hb_slice_text("bob")), bob);
  stream = hb_engine_find_stream(rig->engine, "s");
  struct hb_stream_status after;
  hb_stream_get_status(stream, &after);
  assert_int_equal(after.record.frontier, 1001);
  assert_int_equal(after.record.highest, before.record.highest);
  assert_int_equal(after.held_events, 200);
  assert_int_equal(after.held_bytes, before.held_bytes);
  assert_int_equal(after.indexed_to, 1001);
  assert_int_equal(after.gaps_total, 2);
  assert_int_equal(after.gaps[0].start, 1001);
  assert_int_equal(after.gaps[1].end, 1301);
  assert_int_equal(put_range(rig, stream, 1001, 1101), HB_OK);
  assert_int_equal(put_range(rig, stream, 1201, 1301), HB_OK);
  rig_until(rig, stream, rig_frontier_at_least, 1401);
  assert_int_equal(rig_check_log(rig, stream, 1), 1400);
  hb_stream_unref(stream);
}

/* ---- a write that fails */

static enum hb_code no_space(struct hb_store *store, struct hb_write *write, uint64_t commit,
                             bool sync, struct hb_err *err) {
  (void)store;
  (void)write;
  (void)commit;
  (void)sync;
  return hb_err_set(err, HB_IO, NULL, "write: injected");
}

/* After a failed write every call gets UNAVAILABLE, whatever it waits for; on_fatal comes once;
 * what was published stays readable; nothing of the failed batches is there after a restart (I6).
 */
static void test_failed_write(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(put_range(rig, stream, 1, 101), HB_OK);
  atomic_store(&rig->engine->store_write, no_space);
  struct sent *sent[8];
  for (int i = 0; i < 8; i++) {
    int64_t from = i % 2 ? 101 + 100 * i : 1; /* new ones, and ones to be compared */
    sent[i] = rig_send_range(rig, stream, 0, from, from + 100, i % 2 ? 10 : 7);
  }
  for (int i = 0; i < 8; i++) {
    rig_wait(sent[i]);
    assert_int_equal(sent[i]->append.batch.error.code, HB_UNAVAILABLE);
    assert_int_equal(sent[i]->append.status.record.frontier, 101);
    rig_free(sent[i]);
  }
  assert_int_equal(put_range(rig, stream, 101, 201), HB_UNAVAILABLE);
  struct hb_job job = {.kind = HB_JOB_DELETE_STREAM, .config = {.name = "s"}};
  assert_int_equal(rig_job(rig, &job), HB_UNAVAILABLE);
  assert_int_equal(rig->fatal, 1);
  assert_int_equal(rig->fatal_err.code, HB_IO);
  assert_int_equal(rig_check_log(rig, stream, 1), 100);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(rig_check_log(rig, stream, 1), 100);
  assert_int_equal(rig_put(rig, stream, 101, "k", NULL), HB_OUTCOME_STORED);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sigkill, setup, teardown),
      cmocka_unit_test_setup_teardown(test_reopen, setup, teardown),
      cmocka_unit_test_setup_teardown(test_failed_write, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
