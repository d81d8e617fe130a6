/* holdback_verify against a server that answers what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/holdback.h"
#include "client/testing/fake_server.h"
#include "holdback/v1/server.pb-c.h"

enum how { FINISHES, FAILS, ENDS_EARLY, MALFORMED };

struct rig {
  char *path;
  struct fake_server *server;
  struct holdback_client *client;
  enum how how;
  char stream[32]; /* asked for */
  /* told */
  int findings;
  int progresses;
  bool in_step;   /* what progress says was told by then */
  int stop_after; /* findings; 0 = never */
  struct holdback_finding last;
  char last_text[64];
};

static void send_answer(struct fake_call *call, uint64_t findings, bool finished) {
  Holdback__V1__VerifyFinding parts[2];
  Holdback__V1__VerifyFinding *list[2] = {&parts[0], &parts[1]};
  Holdback__V1__SequenceRange range = HOLDBACK__V1__SEQUENCE_RANGE__INIT;
  Holdback__V1__VerifyProgress progress = HOLDBACK__V1__VERIFY_PROGRESS__INIT;
  Holdback__V1__VerifyStoreResponse response = HOLDBACK__V1__VERIFY_STORE_RESPONSE__INIT;
  range.start = -5;
  range.end = 7;
  for (int i = 0; i < 2; i++) {
    holdback__v1__verify_finding__init(&parts[i]);
    parts[i].stream_id = 3;
    parts[i].stream = (char *)(uintptr_t) "orders";
    parts[i].family = (char *)(uintptr_t) "log";
    parts[i].text = (char *)(uintptr_t) "wrong";
  }
  parts[1].range = &range;
  progress.findings = findings;
  progress.events = 10 * findings;
  response.n_findings = 2;
  response.findings = list;
  response.progress = &progress;
  response.finished = finished;
  fake_call_send(call, &response.base);
}

static void verify(struct rig *rig, struct fake_call *call) {
  send_answer(call, 2, false);
  switch (rig->how) {
    case FINISHES:
      send_answer(call, 4, false);
      send_answer(call, 6, true);
      break;
    case MALFORMED:
      fake_call_send_bytes(call, hb_slice_text("\xFF\xFF"));
      break;
    case FAILS:
      fake_call_finish(call, HOLDBACK_RESOURCE_EXHAUSTED, "VERIFICATION_RUNS", "one at a time");
      return;
    case ENDS_EARLY:
      break;
  }
  fake_call_finish(call, HOLDBACK_OK, NULL, "");
}

static void handle(void *context, struct fake_call *call, struct hb_slice message, bool at_end) {
  struct rig *rig = context;
  if (at_end) return;
  if (strcmp(fake_call_method(call), "GetServer") == 0) {
    Holdback__V1__GetServerResponse response = HOLDBACK__V1__GET_SERVER_RESPONSE__INIT;
    fake_call_send(call, &response.base);
    fake_call_finish(call, HOLDBACK_OK, NULL, "");
    return;
  }
  Holdback__V1__VerifyStoreRequest *request =
      holdback__v1__verify_store_request__unpack(NULL, message.size, message.data);
  assert_non_null(request);
  (void)snprintf(rig->stream, sizeof rig->stream, "%s", request->stream);
  holdback__v1__verify_store_request__free_unpacked(request, NULL);
  verify(rig, call);
}

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig->path = fake_path_create();
  rig->server = fake_server_start(rig->path, handle, rig);
  struct holdback_options options = {.server = rig->path};
  *state = rig;
  return holdback_client_create(&options, &rig->client, NULL);
}

static int teardown(void **state) {
  struct rig *rig = *state;
  holdback_client_destroy(rig->client);
  fake_server_stop(rig->server);
  fake_path_destroy(rig->path);
  free(rig);
  return 0;
}

static bool on_finding(void *context, const struct holdback_finding *finding) {
  struct rig *rig = context;
  rig->findings++;
  rig->last = *finding;
  (void)snprintf(rig->last_text, sizeof rig->last_text, "%s %s %s", finding->stream,
                 finding->family, finding->text);
  return rig->stop_after != rig->findings;
}

static bool on_progress(void *context, const struct holdback_verify_progress *progress) {
  struct rig *rig = context;
  rig->progresses++;
  rig->in_step = rig->in_step && progress->findings == (uint64_t)rig->findings;
  return true;
}

static int run(struct rig *rig, const char *stream, struct holdback_verify_progress *out,
               struct holdback_error *error) {
  struct holdback_verify_options options = {
      .stream = stream, .on_finding = on_finding, .on_progress = on_progress, .context = rig};
  *error = (struct holdback_error){0};
  rig->findings = rig->progresses = 0;
  rig->in_step = true;
  return holdback_verify(rig->client, &options, out, error);
}

/* Findings and progress come in the order of the answers; the last numbers are the result. */
static void everything_is_told(void **state) {
  struct rig *rig = *state;
  struct holdback_verify_progress progress;
  struct holdback_error error;
  assert_int_equal(run(rig, "orders", &progress, &error), HOLDBACK_OK);
  assert_string_equal(rig->stream, "orders");
  assert_int_equal(rig->findings, 6);
  assert_int_equal(rig->progresses, 3);
  assert_true(rig->in_step);
  assert_int_equal(progress.findings, 6);
  assert_int_equal(progress.events, 60);
  assert_string_equal(rig->last_text, "orders log wrong");
  assert_true(rig->last.has_range && rig->last.start == -5 && rig->last.end == 7);
  assert_int_equal(rig->last.stream_id, 3);
  assert_int_equal(run(rig, NULL, NULL, &error), HOLDBACK_OK); /* and again */
  assert_string_equal(rig->stream, "");
}

/* A callback that has seen enough ends it; the client is as good as before. */
static void a_callback_stops_it(void **state) {
  struct rig *rig = *state;
  struct holdback_verify_progress progress = {.events = 1};
  struct holdback_error error;
  rig->stop_after = 3;
  assert_int_equal(run(rig, NULL, &progress, &error), HOLDBACK_CANCELLED);
  assert_int_equal(rig->findings, 3);
  assert_int_equal(progress.events, 1);
  rig->stop_after = 0;
  assert_int_equal(run(rig, NULL, &progress, &error), HOLDBACK_OK);
}

/* A status is given back as it came, after what was told before it. */
static void a_failure_is_told(void **state) {
  struct rig *rig = *state;
  struct holdback_error error;
  rig->how = FAILS;
  assert_int_equal(run(rig, NULL, NULL, &error), HOLDBACK_RESOURCE_EXHAUSTED);
  assert_string_equal(error.reason, "VERIFICATION_RUNS");
  assert_int_equal(rig->findings, 2);
}

/* An end before everything was looked at is no success, and neither is an answer that is none. */
static void an_end_too_early_is_a_failure(void **state) {
  struct rig *rig = *state;
  struct holdback_error error;
  rig->how = ENDS_EARLY;
  assert_int_equal(run(rig, NULL, NULL, &error), HOLDBACK_INTERNAL);
  assert_non_null(strstr(error.message, "before everything was looked at"));
  rig->how = MALFORMED;
  assert_int_equal(run(rig, NULL, NULL, &error), HOLDBACK_INTERNAL);
  assert_non_null(strstr(error.message, "malformed"));
}

/* Nobody there: told at once. */
static void no_server_is_told(void **state) {
  struct rig *rig = *state;
  struct holdback_error error;
  fake_server_stop(rig->server);
  rig->server = NULL;
  assert_int_equal(run(rig, NULL, NULL, &error), HOLDBACK_UNAVAILABLE);
  rig->server = fake_server_start(rig->path, handle, rig);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(everything_is_told), TEST(a_callback_stops_it),
      TEST(a_failure_is_told),  TEST(an_end_too_early_is_a_failure),
      TEST(no_server_is_told),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
