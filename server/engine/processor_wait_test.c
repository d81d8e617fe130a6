/* Keys that wait at an event that failed, in a running engine: which modes have that, how copies
 * are found, what is asked for again; and that each result comes once, whichever write fails. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <poll.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/engine/processors.h"
#include "server/engine/testing.h"
#include "server/engine/testing_burst.h"

#define PLENTY (UINT64_C(1) << 40)

/* ---- helpers */

static struct hb_stream *keyed_stream(struct rig *rig) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.name = "s", .mode = HB_MODE_PER_KEY, .first_sequence = 1}};
  if (rig_job(rig, &job) != HB_OK) fail_msg("create: %s", job.error.message);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  assert_non_null(stream);
  return stream;
}

static void make_room(struct rig *rig) {
  atomic_store(&rig->disk_free, PLENTY);
  rig_until_disk(rig, HB_DISK_OK);
}

static enum hb_code try_attach(struct rig *rig, enum hb_on_error on_error, struct hb_err *out_err) {
  struct hb_processor_request request = {
      .name = "p", .processor = "sum", .on_error = on_error, .key_status = HB_KEY_STATUS_KEPT};
  struct hb_job job = {
      .kind = HB_JOB_ATTACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  enum hb_code code = rig_job(rig, &job);
  if (out_err) *out_err = job.error;
  return code;
}

static void attach(struct rig *rig) {
  while (try_attach(rig, HB_ON_ERROR_DEFAULT, NULL) != HB_OK) make_room(rig);
}

static struct hb_processor_info info_of(struct rig *rig, struct hb_stream *stream) {
  struct hb_processor_info info;
  assert_true(hb_engine_get_processor(rig->engine, stream, "p", &info));
  hb_processor_info_done(&info);
  return info;
}

/* Events [from, to) of a key, one batch; again until it is answered well. */
static void put(struct rig *rig, struct hb_stream *stream, const char *key, int64_t from,
                int64_t to, const char *payload) {
  struct ev events[40];
  for (int64_t i = from; i < to; i++) {
    events[i - from] = (struct ev){.sequence = i, .key = key, .payload = payload};
  }
  enum hb_code code;
  do {
    struct sent *sent = rig_send(rig, stream, 0, events, (size_t)(to - from));
    rig_wait(sent);
    code = sent->append.batch.error.code;
    rig_free(sent);
    if (code != HB_OK) make_room(rig);
  } while (code != HB_OK);
}

static void wait_until(struct rig *rig, struct hb_stream *stream, int64_t position,
                       uint64_t blocked) {
  for (;;) {
    struct hb_processor_info info = info_of(rig, stream);
    if (info.begun && info.position == position && info.blocked_keys == blocked) return;
    if (hb_disk_is_lost(rig->engine)) make_room(rig);
    (void)poll(NULL, 0, 1);
  }
}

/* A copy that is kept. The next one comes in a later millisecond: those of one are in the order of
 * their hashes. */
static void put_copy(struct rig *rig, struct hb_stream *stream, int64_t sequence, const char *key,
                     const char *payload) {
  assert_int_equal(rig_put(rig, stream, sequence, key, payload), HB_OUTCOME_CONFLICT);
  uint64_t now_ms = hb_clock_wall_ms();
  while (hb_clock_wall_ms() == now_ms) sched_yield();
}

static void wait_results(struct rig *rig, struct hb_stream *stream, int64_t count) {
  while (info_of(rig, stream).results < count) {
    if (hb_disk_is_lost(rig->engine)) make_room(rig);
    (void)poll(NULL, 0, 1);
  }
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, "p");
  rig_until(rig, results, rig_frontier_at_least, count);
  hb_stream_unref(results);
}

/* "1 2 3" of one key. */
static void expect_results(struct rig *rig, struct hb_stream *stream, const char *key,
                           const char *expected) {
  struct hb_buf frames = {0};
  struct hb_buf text = {0};
  burst_read_all(rig, stream, "p", &frames);
  for (struct hb_slice rest = hb_buf_view(&frames); rest.size;) {
    struct hb_event event;
    assert_int_equal(hb_scan_frame(rest, &event, NULL), HB_OK);
    if (hb_slice_equal(hb_event_key(&event), hb_slice_text(key))) {
      struct hb_slice payload = hb_event_payload(&event);
      if (text.size) hb_buf_append_u8(&text, ' ');
      hb_buf_append(&text, payload.data, payload.size);
    }
    rest = hb_slice_of(rest.data + event.frame_size, rest.size - event.frame_size);
  }
  hb_buf_append_u8(&text, '\0');
  assert_string_equal((const char *)text.data, expected);
  hb_buf_done(&text);
  hb_buf_done(&frames);
}

/* ---- asking again */

struct asked {
  struct hb_retry retry; /* first */
  _Atomic bool done;
};

static void retried(struct hb_retry *retry) { atomic_store(&((struct asked *)retry)->done, true); }

static struct hb_retry ask(struct rig *rig, struct hb_stream *stream, const char *key) {
  struct asked asked = {.retry = {.name = "p",
                                  .has_key = key != NULL,
                                  .key = hb_slice_text(key ? key : ""),
                                  .done = retried}};
  hb_engine_retry_blocked(rig->engine, stream, &asked.retry);
  while (!atomic_load(&asked.done)) sched_yield();
  return asked.retry;
}

/* Let it go on; `sequence` 0: without whichever event it waits at. */
static struct hb_retry give_up(struct rig *rig, struct hb_stream *stream, const char *key,
                               int64_t sequence) {
  struct asked asked = {.retry = {.name = "p",
                                  .has_key = true,
                                  .key = hb_slice_text(key),
                                  .gives_up = true,
                                  .has_sequence = sequence != 0,
                                  .sequence = sequence,
                                  .done = retried}};
  hb_engine_retry_blocked(rig->engine, stream, &asked.retry);
  while (!atomic_load(&asked.done)) {
    if (hb_disk_is_lost(rig->engine)) make_room(rig);
    sched_yield();
  }
  return asked.retry;
}

/* ---- tests */

static int setup(void **state) {
  struct rig *rig = hb_calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

/* Waiting is what a PER_KEY stream's processor does where nothing is said; in GLOBAL mode it can't
 * be asked for, and processing goes on. */
static void test_modes(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_err err;
  assert_int_equal(try_attach(rig, HB_ON_ERROR_WAIT, &err), HB_INVALID);
  assert_string_equal(err.reason, "ON_ERROR_INVALID");
  assert_int_equal(try_attach(rig, HB_ON_ERROR_DEFAULT, NULL), HB_OK);
  assert_int_equal(info_of(rig, stream).on_error, HB_ON_ERROR_CONTINUE);
  hb_stream_unref(stream);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  stream = keyed_stream(rig);
  assert_int_equal(try_attach(rig, HB_ON_ERROR_DEFAULT, NULL), HB_OK);
  assert_int_equal(try_attach(rig, HB_ON_ERROR_WAIT, NULL), HB_OK);
  assert_int_equal(try_attach(rig, HB_ON_ERROR_CONTINUE, &err), HB_EXISTS);
  assert_int_equal(info_of(rig, stream).on_error, HB_ON_ERROR_WAIT);
  hb_stream_unref(stream);
}

/* With on_error CONTINUE a PER_KEY stream's key goes on. */
static void test_continue(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  assert_int_equal(try_attach(rig, HB_ON_ERROR_CONTINUE, NULL), HB_OK);
  put(rig, stream, "a", 1, 2, "1");
  put(rig, stream, "a", 2, 3, "bad");
  put(rig, stream, "a", 3, 4, "1");
  wait_results(rig, stream, 2);
  expect_results(rig, stream, "a", "1 2");
  assert_int_equal(info_of(rig, stream).blocked_keys, 0);
  hb_stream_unref(stream);
}

/* Copies are tried as they came, a bad one is passed, of other keys none is; what comes too late is
 * a mere refusal. A second failure makes the key wait again, further on. */
static void test_copies(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  put(rig, stream, "a", 1, 2, "bad");
  put(rig, stream, "b", 1, 2, "bad");
  put(rig, stream, "a", 2, 4, "1");
  put(rig, stream, "a", 4, 5, "worse");
  put(rig, stream, "a", 5, 7, "1");
  wait_until(rig, stream, 7, 2);
  put_copy(rig, stream, 1, "a", "bad too");
  put_copy(rig, stream, 1, "a", "10");
  put_copy(rig, stream, 1, "a", "20");
  wait_results(rig, stream, 3);
  wait_until(rig, stream, 7, 2);
  assert_int_equal(info_of(rig, stream).failure_at, 4);
  expect_results(rig, stream, "a", "10 11 12");
  expect_results(rig, stream, "b", "");
  assert_int_equal(rig_put(rig, stream, 4, "a", "100"), HB_OUTCOME_CONFLICT);
  wait_results(rig, stream, 6);
  wait_until(rig, stream, 7, 1);
  expect_results(rig, stream, "a", "10 11 12 112 113 114");
  put(rig, stream, "a", 7, 8, "1");
  wait_results(rig, stream, 7);
  expect_results(rig, stream, "a", "10 11 12 112 113 114 115");
  hb_stream_unref(stream);
}

/* What waits can be asked for: all keys, or one; with nothing that waits none is tried; who does
 * not run, or is not there, says so. */
static void test_retry(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  assert_int_equal(ask(rig, stream, NULL).error.code, HB_NOT_FOUND);
  attach(rig);
  assert_int_equal(ask(rig, stream, NULL).tried, 0);
  put(rig, stream, "a", 1, 2, "bad");
  put(rig, stream, "b", 1, 2, "bad");
  wait_until(rig, stream, 2, 2);
  struct hb_retry retry = ask(rig, stream, "a");
  assert_int_equal(retry.error.code, HB_OK);
  assert_int_equal(retry.tried, 1);
  assert_int_equal(retry.good, 0);
  assert_int_equal(retry.blocked, 2);
  assert_non_null(strstr(retry.why, "is no number"));
  assert_int_equal(ask(rig, stream, "c").tried, 0);
  assert_int_equal(ask(rig, stream, NULL).tried, 2);
  assert_int_equal(info_of(rig, stream).failed, 2);
  struct hb_processor_request request = {.name = "p", .keep_state = true};
  struct hb_job job = {
      .kind = HB_JOB_DETACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  enum hb_code code = ask(rig, stream, NULL).error.code; /* before its thread has ended, or after */
  assert_true(code == HB_PRECONDITION || code == HB_UNAVAILABLE);
  hb_stream_unref(stream);
}

/* An event is given up only where the key waits at it. What waited follows without it, and where
 * one of that fails the key waits again; the answer says so. A copy that comes later changes
 * nothing, and other keys wait as before. */
static void test_give_up(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  assert_int_equal(give_up(rig, stream, "a", 0).error.code, HB_NOT_FOUND);
  attach(rig);
  put(rig, stream, "a", 1, 2, "bad");
  put(rig, stream, "b", 1, 2, "bad");
  put(rig, stream, "a", 2, 4, "1");
  put(rig, stream, "a", 4, 5, "worse");
  put(rig, stream, "a", 5, 7, "1");
  wait_until(rig, stream, 7, 2);
  struct hb_retry told = give_up(rig, stream, "c", 0);
  assert_int_equal(told.error.code, HB_PRECONDITION);
  assert_string_equal(told.error.reason, "KEY_NOT_BLOCKED");
  told = give_up(rig, stream, "a", 4);
  assert_int_equal(told.error.code, HB_PRECONDITION);
  assert_string_equal(told.error.reason, "KEY_BLOCKED_ELSEWHERE");
  assert_int_equal(info_of(rig, stream).results, 0);

  told = give_up(rig, stream, "a", 1);
  assert_int_equal(told.error.code, HB_OK);
  assert_int_equal(told.given_up, 1);
  assert_true(told.is_blocked);
  assert_int_equal(told.blocked_at, 4);
  assert_int_equal(told.blocked, 2);
  put_copy(rig, stream, 1, "a", "10");
  told = give_up(rig, stream, "a", 0);
  assert_int_equal(told.given_up, 4);
  assert_false(told.is_blocked);
  assert_int_equal(told.blocked, 1);
  wait_results(rig, stream, 4);
  expect_results(rig, stream, "a", "1 2 3 4");
  assert_int_equal(info_of(rig, stream).failed, 3);
  assert_int_equal(give_up(rig, stream, "a", 0).error.code, HB_PRECONDITION);
  hb_stream_unref(stream);

  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  put(rig, stream, "a", 7, 8, "1");
  wait_results(rig, stream, 5);
  wait_until(rig, stream, 8, 1);
  expect_results(rig, stream, "a", "1 2 3 4 5");
  hb_stream_unref(stream);
}

static bool see_copy(void *context, const struct hb_stored_failure *row) {
  uint64_t *times = context;
  struct hb_event event;
  assert_int_equal(hb_scan_frame(row->frame, &event, NULL), HB_OK);
  if (hb_slice_equal(hb_event_payload(&event), hb_slice_text("bad too"))) *times += row->count;
  return true;
}

/* A copy that fails again raises its row's counter, and takes no more of the quota, also where it
 * is tried after a start. */
static void test_bad_copy_counts_once(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  put(rig, stream, "a", 1, 2, "bad");
  wait_until(rig, stream, 1, 1);
  put_copy(rig, stream, 1, "a", "bad too");
  assert_int_equal(ask(rig, stream, "a").blocked, 1);
  uint64_t bytes = rig->engine->processors.items[0]->committed.unprocessed_bytes;
  assert_true(bytes > 0);
  assert_int_equal(ask(rig, stream, "a").blocked, 1);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(ask(rig, stream, "a").blocked, 1);
  assert_int_equal(rig->engine->processors.items[0]->committed.unprocessed_bytes, bytes);
  uint64_t times = 0;
  assert_int_equal(hb_failure_each(rig->engine->store, stream->id, see_copy, &times, NULL), HB_OK);
  assert_in_range(times, 3, 5); /* the start may have tried it beside who asked */
  hb_stream_unref(stream);
}

/* Many keys that wait at one number get each its own copies, in their order, also those that come
 * later; what they share in finding them is nobody's to see. */
static void test_many_at_one_number(void **state) {
  enum { KEYS = 60 };
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  char keys[KEYS][8];
  for (int i = 0; i < KEYS; i++) {
    (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
    put(rig, stream, keys[i], 1, 2, "bad");
    if (i % 3 == 0) (void)rig_put(rig, stream, 1, keys[i], "bad too");
  }
  wait_until(rig, stream, KEYS, KEYS);
  assert_int_equal(ask(rig, stream, NULL).blocked, KEYS);
  for (int i = 0; i < KEYS; i += 2) {
    char good[8];
    (void)snprintf(good, sizeof good, "%d", i);
    assert_int_equal(rig_put(rig, stream, 1, keys[i], good), HB_OUTCOME_CONFLICT);
  }
  wait_until(rig, stream, KEYS, KEYS / 2);
  wait_results(rig, stream, KEYS / 2);
  for (int i = 0; i < KEYS; i += 2) expect_results(rig, stream, keys[i], keys[i] + 1);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  assert_int_equal(ask(rig, stream, NULL).blocked, KEYS / 2);
  assert_int_equal(rig_put(rig, stream, 1, keys[1], "1"), HB_OUTCOME_CONFLICT);
  wait_until(rig, stream, KEYS, KEYS / 2 - 1);
  wait_results(rig, stream, KEYS / 2 + 1);
  expect_results(rig, stream, keys[1], "1");
  hb_stream_unref(stream);
}

static _Atomic int syncs;

static enum hb_code count_syncs(struct hb_store *store, struct hb_write *write, uint64_t commit,
                                bool sync, struct hb_err *err) {
  if (sync) atomic_fetch_add(&syncs, 1);
  return hb_store_write(store, write, commit, sync, err);
}

/* Who is told that an event was given up is told of something durable, though bundles of processors
 * are not fsynced on their own. */
static void test_given_up_durably(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_idle_ms = rig->tuning.index_age_ms = rig->tuning.save_ms = 1000000;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  put(rig, stream, "a", 1, 2, "bad");
  wait_until(rig, stream, 1, 1);
  atomic_store(&syncs, 0);
  atomic_store(&rig->engine->store_write, count_syncs);
  assert_int_equal(ask(rig, stream, "a").blocked, 1);
  assert_int_equal(atomic_load(&syncs), 0);
  assert_int_equal(give_up(rig, stream, "a", 1).error.code, HB_OK);
  assert_int_equal(atomic_load(&syncs), 1);
  hb_stream_unref(stream);
}

static _Atomic bool accepts_all;

static int picky_create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                        char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  return HBP_OK;
}

static int picky_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  bool bad = *(const char *)event->payload.data == 'b' && !atomic_load(&accepts_all);
  return bad ? HBP_FAILED : host->emit(host, event->payload);
}

static const struct hbp_processor PICKY = {.abi_version = HBP_ABI,
                                           .size = sizeof PICKY,
                                           .name = "sum",
                                           .create = picky_create,
                                           .on_event = picky_event};

static const struct hbp_processor *find_picky(const char *name) {
  return strcmp(name, "sum") == 0 ? &PICKY : NULL;
}

/* Code that takes the failed event by now gets it when it is asked for, and when it is attached
 * again; what waited follows. */
static void test_new_code(void **state) {
  struct rig *rig = *state;
  rig->tuning.find_processor = find_picky;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  atomic_store(&accepts_all, false);
  put(rig, stream, "a", 1, 2, "bad");
  put(rig, stream, "a", 2, 4, "good");
  wait_until(rig, stream, 3, 1);
  atomic_store(&accepts_all, true);
  struct hb_retry retry = ask(rig, stream, NULL);
  assert_int_equal(retry.tried, 1);
  assert_int_equal(retry.good, 1);
  assert_int_equal(retry.blocked, 0);
  assert_string_equal(retry.why, "");
  wait_results(rig, stream, 3);
  expect_results(rig, stream, "a", "bad good good");

  atomic_store(&accepts_all, false);
  put(rig, stream, "a", 4, 5, "bad");
  put(rig, stream, "a", 5, 6, "good");
  wait_until(rig, stream, 5, 1);
  struct hb_processor_request request = {.name = "p", .keep_state = true};
  struct hb_job job = {
      .kind = HB_JOB_DETACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  atomic_store(&accepts_all, true);
  attach(rig);
  wait_results(rig, stream, 5);
  expect_results(rig, stream, "a", "bad good good bad good");
  wait_until(rig, stream, 5, 0);
  hb_stream_unref(stream);
}

/* A key more than may wait suspends the processor at its event, whatever else waits. */
static void test_limit(void **state) {
  struct rig *rig = *state;
  rig->limits.blocked_keys_max = 2;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig);
  attach(rig);
  put(rig, stream, "a", 1, 2, "bad");
  put(rig, stream, "b", 1, 2, "bad");
  put(rig, stream, "a", 2, 3, "bad");
  wait_until(rig, stream, 3, 2);
  put(rig, stream, "c", 1, 2, "bad");
  while (info_of(rig, stream).state != HB_PROCESSOR_SUSPENDED) sched_yield();
  struct hb_processor_info info = info_of(rig, stream);
  assert_int_equal(info.stopped_at, 3);
  assert_non_null(strstr(info.why, "blocked_keys_max"));
  hb_stream_unref(stream);
}

/* ---- each write of a workload fails in turn. The seam has no context. */

static struct rig *failing;
static _Atomic int writes_left;

static enum hb_code fail_one(struct hb_store *store, struct hb_write *write, uint64_t commit,
                             bool sync, struct hb_err *err) {
  bool fails = atomic_fetch_sub(&writes_left, 1) == 0;
  if (fails) {
    atomic_store(&failing->disk_free, 0);
    return hb_err_set(err, HB_NO_SPACE, NULL, "write: injected");
  }
  return hb_store_write(store, write, commit, sync, err);
}

/* Written all the same. */
static enum hb_code write_and_fail_one(struct hb_store *store, struct hb_write *write,
                                       uint64_t commit, bool sync, struct hb_err *err) {
  bool fails = atomic_fetch_sub(&writes_left, 1) == 0;
  enum hb_code code = hb_store_write(store, write, commit, sync, err);
  if (code != HB_OK || !fails) return code;
  atomic_store(&failing->disk_free, 0);
  return hb_err_set(err, HB_NO_SPACE, NULL, "write: injected");
}

static void check_workload(struct rig *rig, struct hb_stream *stream) {
  static const char GOOD[] =
      "1 2 3 4 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119";
  expect_results(rig, stream, "a", GOOD);
  expect_results(rig, stream, "b", GOOD);
  expect_results(rig, stream, "c", "1 2 3 4");
  expect_results(rig, stream, "d", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
  struct hb_read read = {.kind = HB_READ_KEY_STATUS,
                         .stream = stream,
                         .key = hb_slice_text("c"),
                         .processor = info_of(rig, stream).id};
  if (rig_read(rig, &read) != HB_OK) fail_msg("%s", read.error.message);
  const struct hb_key_standing *standing = &read.standings[0];
  assert_true(standing->blocked);
  assert_int_equal(standing->blocked_at, 5);
  assert_int_equal(standing->waiting, 15);
  assert_int_equal(standing->earliest, 6);
  assert_int_equal(standing->latest, 20);
  assert_int_equal(standing->status.processed, 4);
  assert_int_equal(standing->status.failed, 1);
  hb_read_done(&read);
}

/* Until it is: the answer may be lost with a write. */
static void give_up_surely(struct rig *rig, struct hb_stream *stream, const char *key) {
  for (;;) {
    struct hb_retry told = give_up(rig, stream, key, 5);
    if (told.error.code == HB_OK) return;
    if (strcmp(told.error.reason, "KEY_NOT_BLOCKED") == 0) return;
    assert_int_equal(told.error.code, HB_UNAVAILABLE);
  }
}

static int run_workload(hb_store_write_fn *how, int fails_at) {
  struct rig rig;
  rig_init(&rig);
  rig.tuning.processing.results = 3;
  rig.tuning.index_idle_ms = rig.tuning.index_age_ms = rig.tuning.save_ms = 1000000;
  rig_open(&rig);
  failing = &rig;
  struct hb_stream *stream = keyed_stream(&rig);
  atomic_store(&writes_left, fails_at);
  atomic_store(&rig.engine->store_write, how);
  attach(&rig);
  static const char *const KEYS[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; i++) put(&rig, stream, KEYS[i], 1, 5, "1");
  for (int i = 0; i < 4; i++) put(&rig, stream, KEYS[i], 5, 6, "bad");
  put(&rig, stream, "a", 5, 6, "100");
  for (int i = 0; i < 4; i++) put(&rig, stream, KEYS[i], 6, 21, "1");
  put(&rig, stream, "b", 5, 6, "worse");
  put(&rig, stream, "b", 5, 6, "100");
  wait_until(&rig, stream, 80, 2);
  give_up_surely(&rig, stream, "d");
  wait_results(&rig, stream, 63);
  wait_until(&rig, stream, 80, 1);
  int writes = fails_at - atomic_load(&writes_left);
  if (atomic_load(&writes_left) < 0) make_room(&rig);
  check_workload(&rig, stream);
  hb_stream_unref(stream);
  rig_reopen(&rig);
  stream = hb_engine_find_stream(rig.engine, "s");
  wait_until(&rig, stream, 80, 1);
  check_workload(&rig, stream);
  assert_int_equal(rig.fatal, 0);
  hb_stream_unref(stream);
  rig_done(&rig);
  return writes;
}

/* Whichever write fails, and whether it left something or not, also amid catching up behind a good
 * event or behind one that was given up: each result comes once, in its key's order, and what waits
 * is counted right. */
static void test_writes_fail(void **state) {
  (void)state;
  int writes = run_workload(fail_one, 1000000);
  assert_true(writes >= 12);
  int step = writes / 16 + 1;
  for (int i = 0; i < writes - 2; i += step) {
    (void)run_workload(i / step % 2 ? write_and_fail_one : fail_one, i);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_modes),
                                     TEST(test_continue),
                                     TEST(test_copies),
                                     TEST(test_retry),
                                     TEST(test_give_up),
                                     TEST(test_given_up_durably),
                                     TEST(test_bad_copy_counts_once),
                                     TEST(test_many_at_one_number),
                                     TEST(test_limit),
                                     TEST(test_new_code),
                                     cmocka_unit_test(test_writes_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
