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

#include "base/alloc.h"
#include "base/frame/block.h"
#include "server/engine/processors.h"
#include "server/engine/testing.h"
#include "server/engine/testing_gate.h"

static int setup(void **state) {
  struct rig *rig = hb_calloc(1, sizeof *rig);
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

/* ---- attaching */

static struct hb_processor_request request_of(const char *name, const char *processor) {
  struct hb_processor_request request = {.keep_state = true};
  snprintf(request.name, sizeof request.name, "%s", name);
  snprintf(request.processor, sizeof request.processor, "%s", processor);
  return request;
}

static enum hb_code run_job(struct rig *rig, enum hb_job_kind kind, const char *stream,
                            struct hb_processor_request *request, struct hb_err *out_err) {
  struct hb_job job = {.kind = kind, .processor = request};
  snprintf(job.config.name, sizeof job.config.name, "%s", stream);
  enum hb_code code = rig_job(rig, &job);
  if (out_err) *out_err = job.error;
  return code;
}

static void attach(struct rig *rig, const char *name, const char *processor) {
  struct hb_processor_request request = request_of(name, processor);
  struct hb_err err;
  if (run_job(rig, HB_JOB_ATTACH_PROCESSOR, "s", &request, &err)) fail_msg("%s", err.message);
}

static void detach(struct rig *rig, const char *name, bool keep_state) {
  struct hb_processor_request request = request_of(name, "");
  request.keep_state = keep_state;
  assert_int_equal(run_job(rig, HB_JOB_DETACH_PROCESSOR, "s", &request, NULL), HB_OK);
}

static void put(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to, int keys) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, keys);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  rig_free(sent);
}

/* ---- results */

/* Appends the frames of all results from `from` to `to`; they must be there without a hole. */
static void read_results(struct rig *rig, struct hb_stream *results, int64_t from, int64_t to,
                         struct hb_buf *out) {
  while (from < to) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = results, .position = from, .bytes_max = 1 << 20};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    assert_true(read.blocks_count > 0);
    for (uint32_t i = 0; i < read.blocks_count; i++) {
      struct hb_block block;
      assert_int_equal(hb_block_decode(hb_bytes_view(read.blocks[i]), &block, NULL), HB_OK);
      uint32_t first = hb_block_find(&block, from);
      struct hb_slice frames = hb_block_frames(&block, first, block.count - first);
      assert_int_equal(hb_block_sequence(&block, first), from);
      hb_buf_append(out, frames.data, frames.size);
      from = block.to;
    }
    hb_read_done(&read);
  }
}

/* Waits until there are `count` results of the processor; the payload of the last one. */
static void wait_results(struct rig *rig, struct hb_stream *stream, const char *name, int64_t count,
                         char *out_last, size_t size) {
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, name);
  assert_non_null(results);
  rig_until(rig, results, rig_frontier_at_least, count);
  struct hb_buf frames = {0};
  read_results(rig, results, count - 1, count, &frames);
  struct hb_event event;
  assert_int_equal(hb_scan_frame(hb_buf_view(&frames), &event, NULL), HB_OK);
  assert_int_equal(event.sequence, count - 1);
  struct hb_slice payload = hb_event_payload(&event);
  snprintf(out_last, size, "%.*s", (int)payload.size, (const char *)payload.data);
  hb_buf_done(&frames);
  hb_stream_unref(results);
}

/* A processor runs over what is there already, then over what comes; its place is where it says. */
static void test_attach(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  put(rig, stream, 1, 1001, 10);
  attach(rig, "counts", "count");
  char last[40];
  wait_results(rig, stream, "counts", 1000, last, sizeof last);
  assert_string_equal(last, "100");
  put(rig, stream, 1001, 1011, 10);
  wait_results(rig, stream, "counts", 1010, last, sizeof last);
  assert_string_equal(last, "101");
  struct hb_processor_info info = rig_processor_info(rig, stream, "counts");
  assert_int_equal(info.state, HB_PROCESSOR_RUNNING);
  assert_int_equal(info.position, 1011);
  assert_int_equal(info.results, 1010);
  assert_int_equal(info.events, 1010);
  assert_int_equal(info.lag, 0);
  hb_stream_unref(stream);
}

/* One that starts now sees only what is released after it was attached; several are independent. */
static void test_start_now(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  put(rig, stream, 1, 101, 1);
  struct hb_processor_request request = request_of("new", "count");
  request.start_now = true;
  assert_int_equal(run_job(rig, HB_JOB_ATTACH_PROCESSOR, "s", &request, NULL), HB_OK);
  attach(rig, "all", "count");
  put(rig, stream, 101, 111, 1);
  char last[40];
  wait_results(rig, stream, "new", 10, last, sizeof last);
  assert_string_equal(last, "10");
  wait_results(rig, stream, "all", 110, last, sizeof last);
  assert_string_equal(last, "110");
  struct hb_processor_info infos[2];
  bool more;
  assert_int_equal(hb_engine_list_processors(rig->engine, stream, "", infos, 1, &more), 1);
  assert_true(more);
  assert_string_equal(infos[0].name, "all");
  hb_processor_info_done(&infos[0]);
  assert_int_equal(hb_engine_list_processors(rig->engine, stream, "all", infos, 2, &more), 1);
  assert_false(more);
  assert_string_equal(infos[0].name, "new");
  hb_processor_info_done(&infos[0]);
  hb_stream_unref(stream);
}

/* What was attached goes on where it was after a restart. */
static void test_restart(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "counts", "count");
  put(rig, stream, 1, 101, 4);
  char last[40];
  wait_results(rig, stream, "counts", 100, last, sizeof last);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  put(rig, stream, 101, 105, 4);
  wait_results(rig, stream, "counts", 104, last, sizeof last);
  assert_string_equal(last, "26");
  wait_results(rig, stream, "counts", 1, last, sizeof last);
  assert_string_equal(last, "1");
  hb_stream_unref(stream);
}

/* Detached with its state it stands still, also over a restart, and goes on when it is attached
 * again; detached without, nothing of it is left, and its subscribers are told. */
static void test_detach(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "counts", "count");
  put(rig, stream, 1, 11, 1);
  char last[40];
  wait_results(rig, stream, "counts", 10, last, sizeof last);
  detach(rig, "counts", true);
  put(rig, stream, 11, 21, 1);
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  struct hb_processor_info info = rig_processor_info(rig, stream, "counts");
  assert_int_equal(info.state, HB_PROCESSOR_DETACHED);
  assert_int_equal(info.lag, 10);
  wait_results(rig, stream, "counts", 10, last, sizeof last);
  attach(rig, "counts", "count");
  wait_results(rig, stream, "counts", 20, last, sizeof last);
  assert_string_equal(last, "20");
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, "counts");
  detach(rig, "counts", false);
  assert_true(hb_stream_is_deleted(results));
  hb_stream_unref(results);
  struct hb_processor_info none;
  assert_false(hb_engine_get_processor(rig->engine, stream, "counts", &none));
  attach(rig, "counts", "count");
  wait_results(rig, stream, "counts", 20, last, sizeof last);
  assert_string_equal(last, "20");
  hb_stream_unref(stream);
}

/* The same again is fine and changes nothing; anything else under the name is refused by field. */
static void test_attach_again(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_buf parameters = {0};
  hb_parameters_append(&parameters, "every", hb_slice_text("2"));
  static const struct {
    const char *processor;
    bool parameters;
    bool stop;
    enum hb_code code;
    const char *message;
  } CASES[] = {
      {"count", true, false, HB_OK, ""},
      {"count", true, false, HB_OK, ""},
      {"sum", true, false, HB_EXISTS, "processor 'p' exists with another processor"},
      {"count", false, false, HB_EXISTS, "processor 'p' exists with another parameters"},
      {"count", true, true, HB_EXISTS, "processor 'p' exists with another on_error"},
      {"distinct", true, false, HB_INVALID,
       "processor 'distinct': parameter 'every' is not known to this processor"},
      {"none", true, false, HB_NOT_FOUND,
       "processor 'none' is not known; built in are passthrough, count, sum, min, max, mean, last, "
       "distinct, concat; --processor-dir has none of that name"},
      {"No", true, false, HB_INVALID,
       "processor 'No' must be 1 to 64 characters a-z, 0-9, '.', '_', '-', the first a letter or "
       "digit"}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    struct hb_processor_request request = request_of("p", CASES[i].processor);
    if (CASES[i].parameters) request.parameters = hb_buf_view(&parameters);
    request.on_error = CASES[i].stop ? HB_ON_ERROR_SUSPEND : HB_ON_ERROR_CONTINUE;
    struct hb_err err;
    assert_int_equal(run_job(rig, HB_JOB_ATTACH_PROCESSOR, "s", &request, &err), CASES[i].code);
    assert_string_equal(err.message, CASES[i].message);
  }
  struct hb_processor_request request = request_of("p", "count");
  assert_int_equal(run_job(rig, HB_JOB_ATTACH_PROCESSOR, "none", &request, NULL), HB_NOT_FOUND);
  snprintf(request.name, sizeof request.name, "q");
  assert_int_equal(run_job(rig, HB_JOB_DETACH_PROCESSOR, "s", &request, NULL), HB_NOT_FOUND);
  hb_buf_done(&parameters);
  hb_stream_unref(stream);
}

struct failures {
  int count;
  int64_t position;
  char explanation[64];
};

static bool see_failure(void *context, const struct hb_stored_failure *row) {
  struct failures *failures = context;
  failures->count++;
  failures->position = row->position;
  snprintf(failures->explanation, sizeof failures->explanation, "%.*s", (int)row->explanation.size,
           (const char *)row->explanation.data);
  return true;
}

static void put_text(struct rig *rig, struct hb_stream *stream, int64_t sequence,
                     const char *payload) {
  assert_int_equal(rig_put(rig, stream, sequence, "k", payload), HB_OUTCOME_STORED);
}

/* An event that fails is kept with its explanation, and the key goes on. */
static void test_failure(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "sums", "sum");
  put_text(rig, stream, 1, "1");
  put_text(rig, stream, 2, "bad");
  put_text(rig, stream, 3, "2.5");
  char last[40];
  wait_results(rig, stream, "sums", 2, last, sizeof last);
  assert_string_equal(last, "3.5");
  struct failures failures = {0};
  assert_int_equal(hb_failure_each(rig->engine->store, stream->id, see_failure, &failures, NULL),
                   HB_OK);
  assert_int_equal(failures.count, 1);
  assert_int_equal(failures.position, 2);
  assert_memory_equal(failures.explanation, "payload 'bad' is no number", 26);
  hb_stream_unref(stream);
  rig_reopen(rig); /* what was kept does not confuse a start */
}

static bool is_suspended(struct rig *rig, struct hb_stream *stream) {
  return rig_processor_info(rig, stream, "sums").state == HB_PROCESSOR_SUSPENDED;
}

/* With on_error "suspend" it stops before the event, durably, and says why. */
static void test_suspend(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_processor_request request = request_of("sums", "sum");
  request.on_error = HB_ON_ERROR_SUSPEND;
  assert_int_equal(run_job(rig, HB_JOB_ATTACH_PROCESSOR, "s", &request, NULL), HB_OK);
  put_text(rig, stream, 1, "1");
  put_text(rig, stream, 2, "bad");
  put_text(rig, stream, 3, "2");
  while (!is_suspended(rig, stream)) sched_yield();
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = hb_engine_find_stream(rig->engine, "s");
  struct hb_processor_info info = rig_processor_info(rig, stream, "sums");
  assert_int_equal(info.state, HB_PROCESSOR_SUSPENDED);
  assert_int_equal(info.stopped_at, 2);
  assert_int_equal(info.position, 2);
  assert_int_equal(info.results, 1);
  assert_int_equal(info.lag, 2);
  assert_memory_equal(info.why, "payload 'bad' is no number", 26);
  hb_stream_unref(stream);
}

/* ---- code that takes its time */

/* A processor that does not come back slows no append and no other processor; it lags, visibly,
 * and health tells of it; when it comes back it goes on. */
static void test_slow(void **state) {
  struct rig *rig = *state;
  rig_close(rig);
  rig->tuning.find_processor = gate_find;
  rig->tuning.stuck_ms = 1;
  rig_open(rig);
  gate_set(false);
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "gate", "gate");
  attach(rig, "counts", "count");
  for (int64_t from = 1; from < 2001; from += 100) put(rig, stream, from, from + 100, 5);
  char last[40];
  wait_results(rig, stream, "counts", 2000, last, sizeof last);
  gate_wait();
  while (!hb_engine_processing_is_stuck(rig->engine)) sched_yield();
  struct hb_processor_info info = rig_processor_info(rig, stream, "gate");
  assert_int_equal(info.lag, 2000);
  assert_true(info.call_ms > 0);
  gate_set(true);
  wait_results(rig, stream, "gate", 2000, last, sizeof last);
  assert_string_equal(last, "v2000");
  while (hb_engine_processing_is_stuck(rig->engine)) sched_yield();
  hb_stream_unref(stream);
}

/* ---- code that does not come back from its parameters */

struct hanging {
  struct hb_processor_request request;
  struct hb_job job;
  _Atomic bool done;
};

static void hanging_done(struct hb_job *job) {
  struct hanging *hanging = job->context;
  hanging->done = true;
}

/* Attaches it in the stream "s", and waits until it is in its create. */
static void begin_hanging(struct rig *rig, struct hanging *hanging) {
  rig_close(rig);
  rig->tuning.find_processor = gate_find;
  rig->tuning.stuck_ms = 1;
  rig->tuning.stop_wait_ms = 1;
  rig_open(rig);
  gate_set(false);
  gate_set_creates(true);
  hb_stream_unref(rig_stream(rig, "s"));
  hanging->request = request_of("gate", "gate");
  hanging->job = (struct hb_job){.kind = HB_JOB_ATTACH_PROCESSOR,
                                 .config = {.name = "s"},
                                 .processor = &hanging->request,
                                 .done = hanging_done,
                                 .context = hanging};
  hb_engine_submit_job(rig->engine, &hanging->job);
  gate_wait();
}

/* A create that hangs is told of by health, and holds up nothing but its own attaching: not that of
 * others, no deletion, no compaction. When it comes back it is attached. */
static void test_create_hangs(void **state) {
  struct rig *rig = *state;
  struct hanging hanging = {.done = false};
  begin_hanging(rig, &hanging);
  while (!hb_engine_processing_is_stuck(rig->engine)) sched_yield();
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "counts", "count");
  put(rig, stream, 1, 11, 1);
  char last[40];
  wait_results(rig, stream, "counts", 10, last, sizeof last);
  hb_stream_unref(rig_stream(rig, "other"));
  assert_int_equal(rig_delete(rig, "other"), HB_OK);
  hb_engine_wait_deletions(rig->engine);
  assert_false(hanging.done);
  gate_set(true);
  while (!hanging.done) sched_yield();
  assert_int_equal(hanging.job.error.code, HB_OK);
  wait_results(rig, stream, "gate", 10, last, sizeof last);
  while (hb_engine_processing_is_stuck(rig->engine)) sched_yield();
  gate_set_creates(false);
  hb_stream_unref(stream);
}

/* One that never comes back does not keep the engine from ending; its caller is answered. */
static void test_create_is_abandoned(void **state) {
  struct rig *rig = *state;
  struct hanging hanging = {.done = false};
  begin_hanging(rig, &hanging);
  rig_close(rig);
  assert_true(hanging.done);
  assert_int_equal(hanging.job.error.code, HB_UNAVAILABLE);
  gate_set_creates(false);
  gate_set(true); /* its thread ends, and touches nothing of what is gone */
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_processor_info none;
  assert_false(hb_engine_get_processor(rig->engine, stream, "gate", &none));
  hb_stream_unref(stream);
}

/* A stream that is deleted takes its processors with it, and one of the same name begins anew. */
static void test_delete_stream(void **state) {
  struct rig *rig = *state;
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "counts", "count");
  put(rig, stream, 1, 11, 1);
  char last[40];
  wait_results(rig, stream, "counts", 10, last, sizeof last);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  hb_stream_unref(stream);
  hb_engine_wait_deletions(rig->engine);
  rig_reopen(rig);
  stream = rig_stream(rig, "s");
  struct hb_processor_info none;
  assert_false(hb_engine_get_processor(rig->engine, stream, "counts", &none));
  attach(rig, "counts", "count");
  put(rig, stream, 1, 3, 1);
  wait_results(rig, stream, "counts", 2, last, sizeof last);
  assert_string_equal(last, "2");
  hb_stream_unref(stream);
}

/* Results are found by their event times, on disk and behind the tail, and say how far the
 * processor is. */
static void test_times(void **state) {
  struct rig *rig = *state;
  rig_close(rig);
  rig->tuning.processing.results = 7; /* many blocks */
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  enum { EVENTS = 100 };
  struct ev events[EVENTS];
  for (int i = 0; i < EVENTS; i++) {
    events[i] = (struct ev){.sequence = i + 1, .key = "k", .payload = "", .seconds = 2 * i + 2};
  }
  struct sent *sent = rig_send(rig, stream, 0, events, EVENTS);
  rig_wait(sent);
  rig_free(sent);
  attach(rig, "all", "passthrough");
  char last[40];
  wait_results(rig, stream, "all", EVENTS, last, sizeof last);
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, "all");
  for (int64_t seconds = 1; seconds <= 2 * EVENTS + 1; seconds++) {
    struct hb_read read = {
        .kind = HB_READ_TIME, .stream = results, .time = {.seconds = seconds, .present = true}};
    assert_int_equal(rig_read(rig, &read), HB_OK);
    assert_int_equal(read.found_position, (seconds - 1) / 2);
    hb_read_done(&read);
  }
  struct hb_stream_status status;
  do {
    hb_stream_get_status(results, &status);
  } while (status.processed_to < EVENTS + 1);
  hb_stream_unref(results);
  hb_stream_unref(stream);
}

/* As many as the limit says, over all streams. */
static void test_limit(void **state) {
  struct rig *rig = *state;
  rig_close(rig);
  rig->limits.processors_max = 1;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "one", "count");
  struct hb_processor_request request = request_of("two", "count");
  struct hb_err err;
  assert_int_equal(run_job(rig, HB_JOB_ATTACH_PROCESSOR, "s", &request, &err), HB_LIMIT);
  assert_string_equal(err.message, "processors 1 reach the limit processors_max 1");
  hb_stream_unref(stream);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_attach),
                                     TEST(test_start_now),
                                     TEST(test_restart),
                                     TEST(test_detach),
                                     TEST(test_attach_again),
                                     TEST(test_failure),
                                     TEST(test_suspend),
                                     TEST(test_slow),
                                     TEST(test_delete_stream),
                                     TEST(test_limit),
                                     TEST(test_times),
                                     TEST(test_create_hangs),
                                     TEST(test_create_is_abandoned)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
