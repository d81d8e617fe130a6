/* The appender against a server that misbehaves on cue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>

#include "base/frame/scan.h"
#include "client/holdback.h"
#include "client/testing/fake_server.h"
#include "holdback/v1/ingest.pb-c.h"
#include "holdback/v1/stream.pb-c.h"

enum { EVENTS_MAX = 4096, RUNS_MAX = EVENTS_MAX };

/* A stream, naive: which sequences are there, and how far ahead one may be. Its fields are the
 * server's thread's until the server is stopped, but for those behind the mutex. */
struct model {
  bool present[EVENTS_MAX]; /* index = sequence; first_sequence 1 */
  int64_t complete_to;
  int64_t ahead_max;
  unsigned drop_after; /* end the first call without an answer to this message; 0 = never */
  int drop_status;
  const char *drop_reason;
  bool wrong_ordinal;
  bool wrong_runs;
  unsigned polls;
  unsigned polls_until_open;     /* ahead_max is raised at this poll; 0 = never */
  int64_t order[2 * EVENTS_MAX]; /* sequences as they came */
  size_t order_count;
  unsigned calls;
  char incarnation[64]; /* of the last call's first message; "" = none */
  char stream[64];
};

static int outcome_of(struct model *model, int64_t sequence) {
  if (sequence < 1) return HOLDBACK_BEFORE_FIRST;
  if (model->present[sequence]) return HOLDBACK_DUPLICATE;
  if (sequence >= model->complete_to + model->ahead_max) return HOLDBACK_WINDOW_FULL;
  model->present[sequence] = true;
  while (model->complete_to < EVENTS_MAX && model->present[model->complete_to])
    model->complete_to++;
  return HOLDBACK_STORED;
}

static void answer(struct model *model, struct fake_call *call, struct hb_events *events,
                   uint64_t ordinal) {
  static Holdback__V1__OutcomeRun runs[RUNS_MAX];
  static Holdback__V1__OutcomeRun *pointers[RUNS_MAX];
  Holdback__V1__AppendResult result = HOLDBACK__V1__APPEND_RESULT__INIT;
  result.runs = pointers;
  for (size_t i = 0; i < events->count; i++) {
    int64_t sequence = events->items[i].sequence;
    model->order[model->order_count++] = sequence;
    int outcome = outcome_of(model, sequence);
    Holdback__V1__OutcomeRun *last = result.n_runs ? pointers[result.n_runs - 1] : NULL;
    if (last && (int)last->outcome == outcome) {
      last->count++;
      continue;
    }
    Holdback__V1__OutcomeRun *run = &runs[result.n_runs];
    holdback__v1__outcome_run__init(run);
    run->first_index = (uint32_t)i;
    run->count = 1;
    run->first_sequence = sequence;
    run->outcome = (Holdback__V1__Outcome)outcome;
    run->reason = outcome == HOLDBACK_WINDOW_FULL
                      ? HOLDBACK__V1__OUTCOME_REASON__OUTCOME_REASON_AHEAD
                      : HOLDBACK__V1__OUTCOME_REASON__OUTCOME_REASON_UNSPECIFIED;
    pointers[result.n_runs++] = run;
  }
  if (model->wrong_runs) runs[0].count++;
  result.complete_to_presence_case = HOLDBACK__V1__APPEND_RESULT__COMPLETE_TO_PRESENCE_COMPLETE_TO;
  result.complete_to = model->complete_to;
  result.frontier_presence_case = HOLDBACK__V1__APPEND_RESULT__FRONTIER_PRESENCE_FRONTIER;
  result.frontier = model->complete_to;
  result.window_end_presence_case = HOLDBACK__V1__APPEND_RESULT__WINDOW_END_PRESENCE_WINDOW_END;
  result.window_end = model->complete_to + model->ahead_max;
  result.incarnation = (ProtobufCBinaryData){4, (uint8_t *)"inc1"};
  Holdback__V1__AppendStreamResponse response = HOLDBACK__V1__APPEND_STREAM_RESPONSE__INIT;
  response.ordinal = model->wrong_ordinal ? ordinal + 1 : ordinal;
  response.result = &result;
  fake_call_send(call, &response.base);
}

static void on_append(struct model *model, struct fake_call *call, struct hb_slice message) {
  Holdback__V1__AppendStreamRequest *request =
      holdback__v1__append_stream_request__unpack(NULL, message.size, message.data);
  unsigned number = fake_call_messages(call);
  if (number == 0) {
    model->calls++;
    (void)snprintf(model->stream, sizeof model->stream, "%s", request->stream);
    (void)snprintf(model->incarnation, sizeof model->incarnation, "%.*s",
                   (int)request->incarnation.len, (char *)request->incarnation.data);
  }
  if (model->drop_after && number + 1 == model->drop_after && fake_call_number(call) == 0) {
    fake_call_finish(call, model->drop_status, model->drop_reason, "dropped");
  } else {
    uint8_t *batch = malloc(message.size);
    size_t size = holdback__v1__event_batch__pack(request->batch, batch);
    struct hb_limits limits = hb_limits_default();
    struct hb_events events = {0};
    if (hb_scan_batch(hb_slice_of(batch, size), &limits, &events, NULL) == HB_OK)
      answer(model, call, &events, number);
    hb_events_done(&events);
    free(batch);
  }
  holdback__v1__append_stream_request__free_unpacked(request, NULL);
}

static void on_get(struct model *model, struct fake_call *call) {
  if (++model->polls == model->polls_until_open) model->ahead_max = EVENTS_MAX;
  Holdback__V1__StreamLimits limits = HOLDBACK__V1__STREAM_LIMITS__INIT;
  limits.ahead_max = (uint64_t)model->ahead_max;
  Holdback__V1__StreamConfig config = HOLDBACK__V1__STREAM_CONFIG__INIT;
  config.limits = &limits;
  Holdback__V1__StreamStatus status = HOLDBACK__V1__STREAM_STATUS__INIT;
  status.complete_to_presence_case = HOLDBACK__V1__STREAM_STATUS__COMPLETE_TO_PRESENCE_COMPLETE_TO;
  status.complete_to = model->complete_to;
  Holdback__V1__GetStreamResponse response = HOLDBACK__V1__GET_STREAM_RESPONSE__INIT;
  response.config = &config;
  response.status = &status;
  fake_call_send(call, &response.base);
  fake_call_finish(call, 0, NULL, "");
}

static void handle(void *context, struct fake_call *call, struct hb_slice message, bool at_end) {
  struct model *model = context;
  if (at_end) {
    fake_call_finish(call, 0, NULL, "");
  } else if (strcmp(fake_call_method(call), "GetStream") == 0) {
    on_get(model, call);
  } else {
    on_append(model, call, message);
  }
}

/* What a test has: a model, a server, a client, and the results by index. */
struct fixture {
  struct model model;
  char *path;
  struct fake_server *server;
  struct holdback_client *client;
  struct holdback_appender *appender;
  int outcomes[EVENTS_MAX];      /* by index */
  int64_t sequences[EVENTS_MAX]; /* by index, where a result began there */
  unsigned told[EVENTS_MAX];     /* how often */
};

static void on_result(void *context, const struct holdback_result *result) {
  struct fixture *f = context;
  for (uint32_t i = 0; i < result->count; i++) {
    f->outcomes[result->index + i] = result->outcome;
    f->told[result->index + i]++;
  }
  f->sequences[result->index] = result->first_sequence;
}

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  f->model.complete_to = 1;
  f->model.ahead_max = EVENTS_MAX;
  f->path = fake_path_create();
  *state = f;
  return 0;
}

static void start(struct fixture *f, size_t batch_events, uint32_t timeout_ms) {
  f->server = fake_server_start(f->path, handle, &f->model);
  struct holdback_options options = {.server = f->path, .in_flight_batches = 4};
  assert_int_equal(holdback_client_create(&options, &f->client, NULL), 0);
  struct holdback_appender_options wanted = {.stream = "orders",
                                             .batch_events = batch_events,
                                             .window_timeout_ms = timeout_ms,
                                             .reconnect_timeout_ms = timeout_ms,
                                             .on_result = on_result,
                                             .context = f};
  assert_int_equal(holdback_appender_create(f->client, &wanted, &f->appender, NULL), 0);
}

static void stop_server(struct fixture *f) {
  if (f->server) fake_server_stop(f->server);
  f->server = NULL;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  holdback_client_destroy(f->client); /* ends the appender too */
  stop_server(f);
  fake_path_destroy(f->path);
  free(f);
  return 0;
}

static int append(struct fixture *f, int64_t sequence, uint64_t index) {
  struct holdback_event event = {.sequence = sequence, .key = {"k", 1}, .payload = {"p", 1}};
  return holdback_append(f->appender, index, &event, NULL);
}

static struct holdback_append_progress progress(struct fixture *f) {
  struct holdback_append_progress p;
  holdback_appender_progress(f->appender, &p);
  return p;
}

/* Every event is answered once; counts and indices are those of the caller. */
static void everything_is_answered(void **state) {
  struct fixture *f = *state;
  start(f, 100, 0);
  for (int64_t i = 0; i < 1050; i++) assert_int_equal(append(f, i + 1, (uint64_t)i), 0);
  assert_int_equal(append(f, -5, 2000), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  struct holdback_append_progress p = progress(f);
  assert_int_equal(p.sent, 1051);
  assert_int_equal(p.stored, 1050);
  assert_int_equal(p.before_first, 1);
  assert_int_equal(p.frontier, 1051);
  for (size_t i = 0; i < 1050; i++) assert_int_equal(f->told[i], 1);
  assert_int_equal(f->outcomes[2000], HOLDBACK_BEFORE_FIRST);
  assert_int_equal(f->sequences[2000], -5);
  stop_server(f);
  assert_string_equal(f->model.stream, "orders");
  assert_int_equal(f->model.calls, 1);
}

/* A call that ends between two answers: what is unanswered goes again in order, is counted once,
 * and the incarnation of the first answer goes with it. */
static void a_lost_call_is_taken_up(void **state) {
  struct fixture *f = *state;
  f->model.drop_after = 3;
  f->model.drop_status = HOLDBACK_UNAVAILABLE;
  start(f, 10, 0);
  for (int64_t i = 0; i < 100; i++) assert_int_equal(append(f, i + 1, (uint64_t)i), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  assert_int_equal(progress(f).stored, 100);
  for (size_t i = 0; i < 100; i++) assert_int_equal(f->told[i], 1);
  stop_server(f);
  assert_int_equal(f->model.calls, 2);
  assert_string_equal(f->model.incarnation, "inc1");
  assert_int_equal(f->model.order_count, 100);
  for (size_t i = 0; i < 100; i++) assert_int_equal(f->model.order[i], i + 1);
}

/* A server that is gone for a while: the same appender goes on with its successor. */
static void a_restart_is_survived(void **state) {
  struct fixture *f = *state;
  start(f, 10, 0);
  for (int64_t i = 0; i < 30; i++) assert_int_equal(append(f, i + 1, (uint64_t)i), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  stop_server(f);
  for (int64_t i = 30; i < 50; i++) assert_int_equal(append(f, i + 1, (uint64_t)i), 0);
  f->server = fake_server_start(f->path, handle, &f->model);
  for (int64_t i = 50; i < 60; i++) assert_int_equal(append(f, i + 1, (uint64_t)i), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  assert_int_equal(progress(f).stored, 60);
}

/* A status that sending again can't help breaks the appender, with the server's words. */
static void a_refusal_is_final(void **state) {
  struct fixture *f = *state;
  f->model.drop_after = 2;
  f->model.drop_status = HOLDBACK_INVALID_ARGUMENT;
  f->model.drop_reason = "EVENT_TOO_LARGE";
  start(f, 10, 0);
  int status = 0;
  for (int64_t i = 0; i < 100 && !status; i++) status = append(f, i + 1, (uint64_t)i);
  struct holdback_error error;
  assert_int_equal(holdback_appender_flush(f->appender, &error), HOLDBACK_INVALID_ARGUMENT);
  assert_string_equal(error.reason, "EVENT_TOO_LARGE");
  assert_string_equal(error.message, "dropped");
  assert_int_equal(progress(f).stored, 10);
  assert_int_equal(holdback_appender_push(f->appender, NULL), HOLDBACK_INVALID_ARGUMENT);
  assert_int_equal(append(f, 200, 200), HOLDBACK_INVALID_ARGUMENT);
}

/* Without a server the appender gives up in time, and says so. */
static void no_server(void **state) {
  struct fixture *f = *state;
  start(f, 10, 300);
  stop_server(f);
  assert_int_equal(append(f, 1, 0), 0);
  struct holdback_error error;
  assert_int_equal(holdback_appender_flush(f->appender, &error), HOLDBACK_UNAVAILABLE);
  assert_non_null(strstr(error.message, f->path));
}

/* An answer to nothing that was sent, or one whose runs don't cover the batch, is not believed. */
static void wrong_answers_are_refused(void **state) {
  struct fixture *f = *state;
  f->model.wrong_ordinal = true;
  start(f, 10, 0);
  assert_int_equal(append(f, 1, 0), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), HOLDBACK_INTERNAL);
  assert_int_equal(progress(f).stored, 0);
}

static void wrong_runs_are_refused(void **state) {
  struct fixture *f = *state;
  f->model.wrong_runs = true;
  start(f, 10, 0);
  assert_int_equal(append(f, 1, 0), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), HOLDBACK_INTERNAL);
  assert_int_equal(progress(f).stored, 0);
  assert_int_equal(f->told[0], 0);
}

/* Refused events wait while later input goes on, and go again lowest first once complete_to moves:
 * here the numbers come backwards, and the window takes five. */
static void refused_events_go_again(void **state) {
  struct fixture *f = *state;
  f->model.ahead_max = 5;
  start(f, 3, 0);
  for (int64_t i = 0; i < 60; i++) assert_int_equal(append(f, 60 - i, (uint64_t)i), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  struct holdback_append_progress p = progress(f);
  assert_int_equal(p.sent, 60);
  assert_int_equal(p.stored, 60);
  assert_int_equal(p.window_full, 0);
  assert_int_equal(p.frontier, 61);
  for (size_t i = 0; i < 60; i++) {
    assert_int_equal(f->told[i], 1);
    if (f->sequences[i]) assert_int_equal(f->sequences[i], 60 - i);
  }
}

/* Nothing else to send: the stream is asked, and a raised limit lets the rest in. */
static void polling_sees_a_raised_limit(void **state) {
  struct fixture *f = *state;
  f->model.ahead_max = 5;
  f->model.polls_until_open = 1;
  start(f, 10, 0);
  assert_int_equal(append(f, 100, 0), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  assert_int_equal(progress(f).stored, 1);
}

/* complete_to stands still: the appender gives up, tells each event, and names what is missing. */
static void a_full_window_ends(void **state) {
  struct fixture *f = *state;
  f->model.ahead_max = 5;
  start(f, 10, 200);
  assert_int_equal(append(f, 1, 0), 0);
  assert_int_equal(append(f, 3, 1), 0);
  assert_int_equal(append(f, 100, 2), 0);
  assert_int_equal(append(f, 90, 3), 0);
  struct holdback_error error;
  assert_int_equal(holdback_appender_flush(f->appender, &error), HOLDBACK_RESOURCE_EXHAUSTED);
  assert_string_equal(error.reason, "WINDOW_FULL");
  assert_non_null(strstr(error.message, "[2, "));
  assert_non_null(strstr(error.message, "lowest is 90"));
  struct holdback_append_progress p = progress(f);
  assert_int_equal(p.stored, 2);
  assert_int_equal(p.window_full, 2);
  assert_int_equal(f->outcomes[2], HOLDBACK_WINDOW_FULL);
  assert_int_equal(f->outcomes[3], HOLDBACK_WINDOW_FULL);
}

/* A server that is gone while refused events wait: its absence ends the appender, and is what is
 * said; a full window is not. */
static void a_server_lost_while_waiting(void **state) {
  struct fixture *f = *state;
  f->model.ahead_max = 5;
  start(f, 10, 1500);
  assert_int_equal(append(f, 100, 0), 0);
  while (holdback_appender_push(f->appender, NULL) == 0 && !progress(f).has_frontier) sched_yield();
  stop_server(f);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), HOLDBACK_UNAVAILABLE);
  assert_int_equal(progress(f).window_full, 0);
}

/* An event that no stream takes is refused at once, and the appender goes on. */
static void a_bad_event_breaks_nothing(void **state) {
  struct fixture *f = *state;
  static char big[70000];
  start(f, 10, 0);
  struct holdback_event event = {.sequence = 1, .key = {big, sizeof big}};
  assert_int_equal(holdback_append(f->appender, 0, &event, NULL), HOLDBACK_INVALID_ARGUMENT);
  assert_int_equal(append(f, 1, 0), 0);
  assert_int_equal(holdback_appender_flush(f->appender, NULL), 0);
  assert_int_equal(progress(f).sent, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(everything_is_answered),
      TEST(a_lost_call_is_taken_up),
      TEST(a_restart_is_survived),
      TEST(a_refusal_is_final),
      TEST(no_server),
      TEST(wrong_answers_are_refused),
      TEST(wrong_runs_are_refused),
      TEST(refused_events_go_again),
      TEST(polling_sees_a_raised_limit),
      TEST(a_full_window_ends),
      TEST(a_server_lost_while_waiting),
      TEST(a_bad_event_breaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
