/* Processors and a disk that fills up: a bundle whose fate nobody knows is made again from what is
 * stored, exactly once; at the floor bundles wait; and no user code holds up the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>

#include "base/alloc.h"
#include "server/engine/processors.h"
#include "server/engine/testing.h"
#include "server/engine/testing_burst.h"
#include "server/engine/testing_gate.h"

#define PLENTY (UINT64_C(1) << 40)
#define MIB (UINT64_C(1) << 20)

static char library_folder[1024]; /* of ordered.so */

/* ---- writes that fail. Seams have no context: one test at a time. */

static struct rig *failing;     /* whose disk is full afterwards; NULL: it stays as it is */
static _Atomic int writes_left; /* until one fails; negative: none does any more */

static bool is_its_turn(void) { return atomic_fetch_sub(&writes_left, 1) == 0; }

static enum hb_code no_space(struct hb_err *err) {
  if (failing) atomic_store(&failing->disk_free, 0);
  return hb_err_set(err, HB_NO_SPACE, NULL, "write: injected");
}

static enum hb_code fail_one(struct hb_store *store, struct hb_write *write, uint64_t commit,
                             bool sync, struct hb_err *err) {
  if (is_its_turn()) return no_space(err);
  return hb_store_write(store, write, commit, sync, err);
}

/* Written all the same: what a failed write left is not known. */
static enum hb_code write_and_fail_one(struct hb_store *store, struct hb_write *write,
                                       uint64_t commit, bool sync, struct hb_err *err) {
  bool fails = is_its_turn();
  enum hb_code code = hb_store_write(store, write, commit, sync, err);
  return code == HB_OK && fails ? no_space(err) : code;
}

static void fail_after(struct rig *rig, hb_store_write_fn *how, int writes) {
  atomic_store(&writes_left, writes);
  atomic_store(&rig->engine->store_write, how);
}

static void make_room(struct rig *rig) {
  atomic_store(&rig->disk_free, PLENTY);
  rig_until_disk(rig, HB_DISK_OK);
}

/* ---- jobs and events that are tried until they are answered well */

static enum hb_code try_job(struct rig *rig, enum hb_job_kind kind, const char *name,
                            const char *processor, bool keep_state) {
  struct hb_processor_request request = {.keep_state = keep_state,
                                         .key_status = HB_KEY_STATUS_EVERY_EVENT};
  (void)snprintf(request.name, sizeof request.name, "%s", name);
  (void)snprintf(request.processor, sizeof request.processor, "%s", processor);
  struct hb_job job = {.kind = kind, .processor = &request, .config = {.name = "s"}};
  return rig_job(rig, &job);
}

static void attach(struct rig *rig, const char *name, const char *processor) {
  enum hb_code code;
  while ((code = try_job(rig, HB_JOB_ATTACH_PROCESSOR, name, processor, false)) != HB_OK) {
    assert_true(code == HB_UNAVAILABLE || code == HB_NO_SPACE);
    make_room(rig);
  }
}

enum { BATCH = 20 };

static enum hb_code try_put(struct rig *rig, struct hb_stream *stream, int64_t from) {
  struct ev events[BATCH];
  char keys[BATCH][8];
  for (int64_t i = 0; i < BATCH; i++) {
    int64_t sequence = from + i;
    (void)snprintf(keys[i], sizeof keys[i], "k%d", (int)(sequence % 7));
    events[i] = (struct ev){
        .sequence = sequence, .key = keys[i], .seconds = 100 + sequence / 4 - sequence % 3};
  }
  struct sent *sent = rig_send(rig, stream, 0, events, BATCH);
  rig_wait(sent);
  enum hb_code code = sent->append.batch.error.code;
  rig_free(sent);
  return code;
}

static void put(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to) {
  for (; from < to; from += BATCH) {
    enum hb_code code;
    while ((code = try_put(rig, stream, from)) != HB_OK) {
      assert_true(code == HB_UNAVAILABLE || code == HB_NO_SPACE);
      make_room(rig);
    }
  }
}

static void wait_processed(struct rig *rig, struct hb_stream *stream, const char *name,
                           int64_t position) {
  while (rig_processor_info(rig, stream, name).position < position) {
    if (hb_disk_is_lost(rig->engine)) make_room(rig);
    (void)poll(NULL, 0, 1);
  }
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, name);
  rig_until(rig, results, rig_frontier_at_least, rig_processor_info(rig, stream, name).results);
  hb_stream_unref(results);
}

static void init(struct rig *rig) {
  rig_init(rig);
  rig->tuning.find_processor = burst_find;
  rig->tuning.processing.results = 23;
  rig->tuning.processing.cache_bytes = 1000;
  rig->tuning.index_idle_ms = rig->tuning.index_age_ms = rig->tuning.save_ms = 1000000;
  rig->limits.shared_blocks_max = 1 << 20;
  rig->processor_dir = library_folder;
}

/* ---- each write of a workload fails in turn */

enum { EVENTS = 200 };

/* Statuses are committed with what they count: together they have seen each event once. */
static void check_statuses(struct rig *rig, struct hb_stream *stream) {
  uint64_t id = rig_processor_info(rig, stream, "p").id;
  struct hb_read read = {.kind = HB_READ_KEYS, .stream = stream, .processor = id, .page_size = 100};
  if (rig_read(rig, &read) != HB_OK) fail_msg("%s", read.error.message);
  assert_int_equal(read.keys_count, 7);
  uint64_t seen = 0;
  for (size_t i = 0; i < read.keys_count; i++) {
    const struct hb_key_standing *standing = &read.standings[i];
    assert_int_equal(standing->waiting, 0);
    seen += standing->status.processed + standing->status.failed;
  }
  assert_int_equal(seen, EVENTS);
  hb_read_done(&read);
}

/* What came of it, before and after a restart. *out_writes: how many it took, where none fails. */
static void run_workload(hb_store_write_fn *how, int fails_at, const char *processor,
                         struct hb_buf *out, int *out_writes) {
  struct rig rig;
  init(&rig);
  rig.tuning.bundles_untimed = true;
  rig_open(&rig);
  failing = fails_at % 3 ? &rig : NULL;
  struct hb_stream *stream = rig_stream(&rig, "s");
  fail_after(&rig, how, fails_at);
  attach(&rig, "p", processor);
  /* In step, and bundles don't end by time: so which write is which does not depend on load. */
  for (int64_t from = 1; from < 1 + EVENTS; from += BATCH) {
    put(&rig, stream, from, from + BATCH);
    wait_processed(&rig, stream, "p", from + BATCH);
  }
  *out_writes = fails_at - atomic_load(&writes_left);
  if (atomic_load(&writes_left) < 0) make_room(&rig);
  burst_read_all(&rig, stream, "p", out);
  hb_stream_unref(stream);
  rig_reopen(&rig);
  stream = hb_engine_find_stream(rig.engine, "s");
  struct hb_buf again = {0};
  burst_read_all(&rig, stream, "p", &again);
  check_statuses(&rig, stream);
  assert_true(hb_slice_equal(hb_buf_view(out), hb_buf_view(&again)));
  assert_int_equal(rig_processor_info(&rig, stream, "p").state, HB_PROCESSOR_RUNNING);
  assert_int_equal(rig.fatal, 0);
  hb_buf_done(&again);
  hb_stream_unref(stream);
  rig_done(&rig);
}

static void fail_each_write(const char *processor) {
  struct hb_buf expected = {0};
  int writes;
  run_workload(fail_one, 1000000, processor, &expected, &writes);
  /* The attaching; for each batch itself and, of `burst`, two bundles, of `ordered` a mark and one.
   */
  assert_int_equal(writes, 1 + EVENTS / BATCH * 3);
  assert_true(expected.size > EVENTS);
  int step = writes / 20 + 1;
  for (int i = 0; i < writes - 3; i += step) {
    struct hb_buf results = {0};
    int made;
    run_workload(i / step % 2 ? write_and_fail_one : fail_one, i, processor, &results, &made);
    if (!hb_slice_equal(hb_buf_view(&expected), hb_buf_view(&results))) {
      fail_msg("write %d of %d: %zu bytes of results, should be %zu and the same", i, writes,
               results.size, expected.size);
    }
    hb_buf_done(&results);
  }
  hb_buf_done(&expected);
}

/* Whichever write meets the full disk, the one that attaches, an append's or a bundle's, and
 * whether it left something or not: the results are those of a run with room, each once. */
static void results_are_the_same(void **state) {
  (void)state;
  fail_each_write("burst");
}

/* The same for loaded code, whose marks are writes too: none of it counts as an attempt. */
static void marks_are_no_attempts(void **state) {
  (void)state;
  fail_each_write("ordered");
}

/* ---- */

static int setup(void **state) {
  struct rig *rig = hb_calloc(1, sizeof *rig);
  init(rig);
  failing = rig;
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

/* A processor that has nothing to do while the store is opened again goes on with its states. */
static void an_idle_one_goes_on(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "counts", "count");
  put(rig, stream, 1, 101);
  wait_processed(rig, stream, "counts", 101);
  fail_after(rig, fail_one, 0);
  put(rig, stream, 101, 201); /* it makes room */
  wait_processed(rig, stream, "counts", 201);
  struct hb_buf frames = {0};
  burst_read_all(rig, stream, "counts", &frames);
  struct hb_processor_info info = rig_processor_info(rig, stream, "counts");
  assert_int_equal(info.results, 200);
  assert_int_equal(info.events, 200);
  hb_buf_done(&frames);
  hb_stream_unref(stream);
}

/* At the floor nothing is written: bundles wait, and so does who wants to attach or seal; what was
 * attached can go. With room the bundle that waited is written, and nothing is made twice. */
static void bundles_wait_at_the_floor(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put(rig, stream, 1, 101);
  attach(rig, "p", "burst");
  wait_processed(rig, stream, "p", 101);
  attach(rig, "gone", "count");
  wait_processed(rig, stream, "gone", 101);
  put(rig, stream, 101, 201);
  atomic_store(&rig->disk_free, 100 * MIB);
  rig_until_disk(rig, HB_DISK_FLOOR);
  assert_int_equal(try_job(rig, HB_JOB_ATTACH_PROCESSOR, "q", "count", true), HB_NO_SPACE);
  struct hb_job seal = {.kind = HB_JOB_SEAL_STREAM, .config = {.name = "s"}, .seal_end = 201};
  assert_int_equal(rig_job(rig, &seal), HB_NO_SPACE);
  assert_int_equal(try_job(rig, HB_JOB_DETACH_PROCESSOR, "gone", "", false), HB_OK);
  make_room(rig);
  wait_processed(rig, stream, "p", 201);
  assert_int_equal(rig_job(rig, &seal), HB_OK);
  hb_stream_unref(stream);
}

/* An engine whose bundle waits for room, or is lost, can be stopped; it is made again later. */
static void stops_while_one_waits(void **state) {
  struct rig *rig = *state;
  for (int lost = 0; lost < 2; lost++) {
    rig_open(rig);
    struct hb_stream *stream = rig_stream(rig, "s");
    attach(rig, "p", "burst");
    int64_t from = 1 + 100 * lost;
    put(rig, stream, from, from + 100);
    if (lost) {
      fail_after(rig, fail_one, 0);
      assert_int_not_equal(try_put(rig, stream, from + 100), HB_OK);
    } else {
      atomic_store(&rig->disk_free, 100 * MIB);
      rig_until_disk(rig, HB_DISK_FLOOR);
    }
    hb_stream_unref(stream);
    rig_close(rig);
    atomic_store(&rig->disk_free, PLENTY);
    rig_open(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
    wait_processed(rig, stream, "p", from + 100);
    hb_stream_unref(stream);
    rig_close(rig);
  }
  rig_open(rig);
}

static bool is_suspended(struct rig *rig, struct hb_stream *stream, const char *name) {
  return rig_processor_info(rig, stream, name).state == HB_PROCESSOR_SUSPENDED;
}

/* A stop while the store is lost can't take the mark of loaded code away. It is no crash: however
 * often it happens at one place, the code is not suspended. */
static void a_stop_is_no_attempt(void **state) {
  struct rig *rig = *state;
  for (int round = 0; round < 4; round++) {
    atomic_store(&rig->disk_free, round == 0 ? PLENTY : 100 * MIB);
    rig_open(rig);
    struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
    if (!stream) {
      stream = rig_stream(rig, "s");
      attach(rig, "p", "ordered");
      fail_after(rig, fail_one, 2); /* the append, the mark; and the bundle fails */
      assert_int_equal(try_put(rig, stream, 1), HB_OK);
    } else {
      rig_until_disk(rig, HB_DISK_FLOOR);
      fail_after(rig, fail_one, 1); /* the mark; and the bundle fails */
      atomic_store(&rig->disk_free, PLENTY);
    }
    while (!hb_disk_is_lost(rig->engine)) {
      assert_false(is_suspended(rig, stream, "p"));
      (void)poll(NULL, 0, 1);
    }
    hb_stream_unref(stream);
    rig_close(rig);
  }
  atomic_store(&rig->disk_free, PLENTY);
  rig_open(rig);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  while (rig_processor_info(rig, stream, "p").position < 1 + BATCH) {
    assert_false(is_suspended(rig, stream, "p"));
    (void)poll(NULL, 0, 1);
  }
  hb_stream_unref(stream);
}

/* What became of attaching and detaching whose write seemed to fail is seen in the store. */
static void unknown_outcomes_are_looked_up(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put(rig, stream, 1, 101);
  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(try_job(rig, HB_JOB_ATTACH_PROCESSOR, "p", "burst", false), HB_UNAVAILABLE);
  make_room(rig);
  wait_processed(rig, stream, "p", 101); /* it was written: it runs */

  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(try_job(rig, HB_JOB_DETACH_PROCESSOR, "p", "", true), HB_UNAVAILABLE);
  make_room(rig);
  assert_int_equal(rig_processor_info(rig, stream, "p").state, HB_PROCESSOR_DETACHED);
  put(rig, stream, 101, 201);

  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(try_job(rig, HB_JOB_ATTACH_PROCESSOR, "p", "burst", false), HB_UNAVAILABLE);
  make_room(rig);
  wait_processed(rig, stream, "p", 201);

  fail_after(rig, fail_one, 0);
  assert_int_equal(try_job(rig, HB_JOB_DETACH_PROCESSOR, "p", "", false), HB_UNAVAILABLE);
  make_room(rig);
  put(rig, stream, 201, 301);
  wait_processed(rig, stream, "p", 301); /* not written: it is still there */

  fail_after(rig, write_and_fail_one, 0);
  assert_int_equal(try_job(rig, HB_JOB_DETACH_PROCESSOR, "p", "", false), HB_UNAVAILABLE);
  make_room(rig);
  struct hb_processor_info none;
  assert_false(hb_engine_get_processor(rig->engine, stream, "p", &none));
  hb_stream_unref(stream);
}

/* ---- user code that takes its time */

/* The store is opened again though user code has not come back; when it does, it finds that its
 * store is gone, and all of it is done again. */
static void user_code_holds_up_no_store(void **state) {
  struct rig *rig = *state;
  rig->tuning.find_processor = gate_find;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "gate", "gate");
  put(rig, stream, 1, 101);
  gate_wait();
  fail_after(rig, fail_one, 0);
  put(rig, stream, 101, 201); /* opened again meanwhile */
  make_room(rig);
  assert_int_equal(rig_processor_info(rig, stream, "gate").lag, 200);
  gate_set(true);
  wait_processed(rig, stream, "gate", 201);
  assert_int_equal(rig_processor_info(rig, stream, "gate").results, 200);
  hb_stream_unref(stream);
}

/* The mark of two attempts at BATCH + 1, as a process that ended leaves it; the engine is stopped.
 */
static struct hb_processor_id leave_mark(struct rig *rig, const char *name) {
  struct hb_engine *engine = rig->engine;
  struct hb_processor_attempt attempt = {
      .position = 1 + BATCH, .attempts = 2, .until = 1 + 2 * BATCH};
  struct hb_processor *processor = NULL;
  for (size_t i = 0; i < engine->processors.count; i++) {
    processor = engine->processors.items[i];
    if (strcmp(processor->config.name, name) == 0) break;
  }
  assert_non_null(processor);
  struct hb_write *write = hb_write_create(engine->store);
  hb_write_put_attempt(write, processor->id, &attempt);
  uint64_t number = hb_ordering_take_number(engine->sequencer.core);
  assert_int_equal(hb_store_write(engine->store, write, number, true, NULL), HB_OK);
  hb_write_destroy(write);
  return processor->id;
}

/* A stop that is told of one processor's mark excuses no other's: that one ended by a crash. */
static void a_stop_excuses_whom_it_names(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "crashed", "ordered");
  attach(rig, "stopped", "ordered");
  put(rig, stream, 1, 1 + BATCH);
  wait_processed(rig, stream, "crashed", 1 + BATCH);
  wait_processed(rig, stream, "stopped", 1 + BATCH);
  hb_stream_unref(stream);
  hb_engine_stop(rig->engine);
  (void)leave_mark(rig, "crashed");
  hb_stopped_note(rig->path, leave_mark(rig, "stopped"));
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  put(rig, stream, 1 + BATCH, 1 + 2 * BATCH);
  wait_processed(rig, stream, "stopped", 1 + 2 * BATCH);
  while (!is_suspended(rig, stream, "crashed")) (void)poll(NULL, 0, 1);
  assert_false(is_suspended(rig, stream, "stopped"));
  hb_stream_unref(stream);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
  char path[PATH_MAX];
  if (argc != 2 || !realpath(argv[1], path)) {
    fprintf(stderr, "usage: %s PATH/ordered.so\n", argv[0]);
    return 2;
  }
  (void)snprintf(library_folder, sizeof library_folder, "%s", dirname(path));
  const struct CMUnitTest tests[] = {
      TEST(an_idle_one_goes_on),
      TEST(bundles_wait_at_the_floor),
      TEST(stops_while_one_waits),
      TEST(a_stop_is_no_attempt),
      TEST(a_stop_excuses_whom_it_names),
      TEST(unknown_outcomes_are_looked_up),
      TEST(user_code_holds_up_no_store),
      cmocka_unit_test(results_are_the_same),
      cmocka_unit_test(marks_are_no_attempts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
