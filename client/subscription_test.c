/* The subscription against a server that misbehaves on cue, and messages read one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>
#include <stdio.h>

#include "client/holdback.h"
#include "client/subscription.h"
#include "client/testing/fake_server.h"
#include "holdback/v1/delivery.pb-c.h"

enum { BATCH = 10, CALLS_MAX = 8 };

/* Events 1 .. total, ten a message; what each call asked for is written down. */
struct model {
  int64_t total;
  int64_t drop_at; /* the first call ends before this one; 0 = never */
  int drop_status;
  const char *drop_reason;
  size_t payload_size;
  bool seal;
  bool malformed;
  unsigned calls;
  struct {
    int start_case;
    int64_t position;
    char incarnation[32];
    size_t keys;
    size_t prefixes;
  } asked[CALLS_MAX];
};

static void send_progress(const struct model *model, struct fake_call *call, int64_t next,
                          bool caught_up) {
  Holdback__V1__Progress progress = HOLDBACK__V1__PROGRESS__INIT;
  progress.frontier_presence_case = HOLDBACK__V1__PROGRESS__FRONTIER_PRESENCE_FRONTIER;
  progress.frontier = model->total + 1;
  progress.next_position_presence_case =
      HOLDBACK__V1__PROGRESS__NEXT_POSITION_PRESENCE_NEXT_POSITION;
  progress.next_position = next;
  progress.caught_up = caught_up;
  progress.incarnation = (ProtobufCBinaryData){4, (uint8_t *)"inc1"};
  Holdback__V1__SubscribeResponse response = HOLDBACK__V1__SUBSCRIBE_RESPONSE__INIT;
  response.message_case = HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_PROGRESS;
  response.progress = &progress;
  fake_call_send(call, &response.base);
}

static void send_batch(const struct model *model, struct fake_call *call, int64_t first) {
  Holdback__V1__Event events[BATCH];
  Holdback__V1__Event *pointers[BATCH];
  uint8_t *payload = calloc(1, model->payload_size + 1);
  Holdback__V1__Batch batch = HOLDBACK__V1__BATCH__INIT;
  batch.events = pointers;
  for (int64_t i = 0; i < BATCH && first + i <= model->total; i++) {
    holdback__v1__event__init(&events[i]);
    events[i].sequence = first + i;
    events[i].payload = (ProtobufCBinaryData){model->payload_size, payload};
    pointers[batch.n_events++] = &events[i];
  }
  batch.first_position = first;
  batch.next_position = first + (int64_t)batch.n_events;
  Holdback__V1__SubscribeResponse response = HOLDBACK__V1__SUBSCRIBE_RESPONSE__INIT;
  response.message_case = HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_BATCH;
  response.batch = &batch;
  fake_call_send(call, &response.base);
  free(payload);
}

static int64_t note(struct model *model, struct hb_slice message) {
  Holdback__V1__SubscribeRequest *request =
      holdback__v1__subscribe_request__unpack(NULL, message.size, message.data);
  unsigned i = model->calls++;
  model->asked[i].start_case = (int)request->start_case;
  model->asked[i].position = request->position;
  (void)snprintf(model->asked[i].incarnation, sizeof model->asked[i].incarnation, "%.*s",
                 (int)request->incarnation.len, (char *)request->incarnation.data);
  model->asked[i].keys = request->filter ? request->filter->n_keys : 0;
  model->asked[i].prefixes = request->filter ? request->filter->n_key_prefixes : 0;
  int64_t start = request->start_case == HOLDBACK__V1__SUBSCRIBE_REQUEST__START_POSITION
                      ? request->position
                      : 1;
  holdback__v1__subscribe_request__free_unpacked(request, NULL);
  return start;
}

static void handle(void *context, struct fake_call *call, struct hb_slice message, bool at_end) {
  struct model *model = context;
  if (at_end) return; /* the answers go on */
  int64_t next = note(model, message);
  send_progress(model, call, next, false);
  if (model->malformed) fake_call_send_bytes(call, hb_slice_of("\x0a\x05\x0a\x03\x08", 5));
  while (next <= model->total) {
    if (model->drop_at && fake_call_number(call) == 0 && next >= model->drop_at) {
      fake_call_finish(call, model->drop_status, model->drop_reason, "dropped");
      return;
    }
    send_batch(model, call, next);
    next += BATCH;
  }
  if (next > model->total + 1) next = model->total + 1;
  send_progress(model, call, next, true);
  if (!model->seal) return;
  Holdback__V1__End end = HOLDBACK__V1__END__INIT;
  Holdback__V1__SubscribeResponse response = HOLDBACK__V1__SUBSCRIBE_RESPONSE__INIT;
  response.message_case = HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_END;
  response.end = &end;
  fake_call_send(call, &response.base);
  fake_call_finish(call, 0, NULL, "");
}

struct fixture {
  struct model model;
  char *path;
  struct fake_server *server;
  struct holdback_client *client;
  struct holdback_subscription *subscription;
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  f->model.total = 95;
  f->model.payload_size = 8;
  f->path = fake_path_create();
  *state = f;
  return 0;
}

static void subscribe(struct fixture *f, const struct holdback_subscribe_options *options) {
  f->server = fake_server_start(f->path, handle, &f->model);
  struct holdback_options wanted = {.server = f->path};
  assert_int_equal(holdback_client_create(&wanted, &f->client, NULL), 0);
  assert_int_equal(holdback_subscribe(f->client, options, &f->subscription, NULL), 0);
}

static void stop_server(struct fixture *f) {
  if (f->server) fake_server_stop(f->server);
  f->server = NULL;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  holdback_client_destroy(f->client);
  stop_server(f);
  fake_path_destroy(f->path);
  free(f);
  return 0;
}

static const struct holdback_subscribe_options from_start = {.stream = "orders",
                                                             .start = HOLDBACK_START_EARLIEST};

/* Read to the caught-up Progress: events must be first .. last, each once, in order. */
static void read_all(struct fixture *f, int64_t first, int64_t last) {
  int64_t expected = first;
  for (;;) {
    const struct holdback_message *message;
    assert_int_equal(holdback_next(f->subscription, 10000, &message, NULL), 0);
    assert_non_null(message);
    struct holdback_progress progress;
    if (holdback_message_progress(message, &progress) && progress.caught_up) break;
    size_t cursor = 0;
    struct holdback_event event;
    int64_t position;
    while (holdback_message_event(message, &cursor, &event, &position)) {
      assert_int_equal(event.sequence, expected);
      assert_int_equal(position, expected);
      expected++;
    }
  }
  assert_int_equal(expected, last + 1);
}

/* Everything comes, in order, up to the word that it was everything. */
static void in_order(void **state) {
  struct fixture *f = *state;
  subscribe(f, &from_start);
  read_all(f, 1, 95);
  const struct holdback_message *message;
  assert_int_equal(holdback_next(f->subscription, 0, &message, NULL), 0);
  assert_null(message);
}

/* Start, filter and position are asked for as given. */
static void what_is_asked(void **state) {
  struct fixture *f = *state;
  static const struct holdback_bytes keys[] = {{"a", 1}, {"", 0}};
  static const struct holdback_bytes prefixes[] = {{"eu/", 3}};
  struct holdback_subscribe_options options = {.stream = "orders",
                                               .start = HOLDBACK_START_POSITION,
                                               .position = 41,
                                               .keys = keys,
                                               .keys_count = 2,
                                               .key_prefixes = prefixes,
                                               .key_prefixes_count = 1};
  subscribe(f, &options);
  read_all(f, 41, 95);
  stop_server(f);
  assert_int_equal(f->model.asked[0].position, 41);
  assert_int_equal(f->model.asked[0].keys, 2);
  assert_int_equal(f->model.asked[0].prefixes, 1);
  assert_string_equal(f->model.asked[0].incarnation, "");
}

/* A lost call resumes behind the last message received, with the incarnation: nothing is missing
 * and nothing comes twice. */
static void a_lost_call_is_resumed(void **state) {
  struct fixture *f = *state;
  f->model.drop_at = 51;
  f->model.drop_status = HOLDBACK_UNAVAILABLE;
  subscribe(f, &from_start);
  read_all(f, 1, 95);
  stop_server(f);
  assert_int_equal(f->model.calls, 2);
  assert_int_equal(f->model.asked[0].start_case, HOLDBACK__V1__SUBSCRIBE_REQUEST__START_AT);
  assert_int_equal(f->model.asked[1].position, 51);
  assert_string_equal(f->model.asked[1].incarnation, "inc1");
}

/* A final status comes after the messages that were before it. */
static void an_error_comes_last(void **state) {
  struct fixture *f = *state;
  f->model.drop_at = 51;
  f->model.drop_status = HOLDBACK_NOT_FOUND;
  f->model.drop_reason = "STREAM_NOT_FOUND";
  subscribe(f, &from_start);
  struct holdback_error error = {0};
  const struct holdback_message *message;
  int64_t next = 0;
  int status;
  while (!(status = holdback_next(f->subscription, 10000, &message, &error)))
    next = holdback_message_next_position(message);
  assert_int_equal(status, HOLDBACK_NOT_FOUND);
  assert_string_equal(error.reason, "STREAM_NOT_FOUND");
  assert_int_equal(next, 51);
  assert_int_equal(holdback_next(f->subscription, 0, &message, &error), HOLDBACK_NOT_FOUND);
}

/* After END there is nothing more, and no attempt to connect again. */
static void a_sealed_stream_ends(void **state) {
  struct fixture *f = *state;
  f->model.seal = true;
  subscribe(f, &from_start);
  read_all(f, 1, 95);
  const struct holdback_message *message;
  assert_int_equal(holdback_next(f->subscription, 10000, &message, NULL), 0);
  assert_int_equal(holdback_message_kind(message), HOLDBACK_MESSAGE_END);
  struct holdback_error error;
  assert_int_equal(holdback_next(f->subscription, 10000, &message, &error), HOLDBACK_OUT_OF_RANGE);
  assert_string_equal(error.reason, "ENDED");
  stop_server(f);
  assert_int_equal(f->model.calls, 1);
}

/* A message that is cut short is an error, never a guess. */
static void a_malformed_message_ends_it(void **state) {
  struct fixture *f = *state;
  f->model.malformed = true;
  subscribe(f, &from_start);
  const struct holdback_message *message;
  int status;
  while (!(status = holdback_next(f->subscription, 10000, &message, NULL))) {
    size_t cursor = 0;
    struct holdback_event event;
    assert_int_not_equal(holdback_message_kind(message), HOLDBACK_MESSAGE_END);
    assert_false(holdback_message_event(message, &cursor, &event, NULL));
  }
  assert_int_equal(status, HOLDBACK_INTERNAL);
}

/* A reader that stands still makes the client stop asking: at most the bound and one message. */
static void reading_ahead_is_bounded(void **state) {
  struct fixture *f = *state;
  f->model.total = 300;
  f->model.payload_size = 40000; /* 400 KB a message, 12 MB in all */
  subscribe(f, &from_start);
  struct holdback_subscription *s = f->subscription;
  pthread_mutex_lock(&s->mutex);
  while (!s->paused) pthread_cond_wait(&s->changed, &s->mutex);
  size_t queued = s->queued_bytes;
  pthread_mutex_unlock(&s->mutex);
  assert_in_range(queued, HBC_PREFETCH_MAX, HBC_PREFETCH_MAX + 500000);
  read_all(f, 1, 300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(in_order),
      TEST(what_is_asked),
      TEST(a_lost_call_is_resumed),
      TEST(an_error_comes_last),
      TEST(a_sealed_stream_ends),
      TEST(a_malformed_message_ends_it),
      TEST(reading_ahead_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
