/* Decides what a row of a table must lead to, and whether it did. See runner.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>

#include "base/clock.h"
#include "tests/conformance/runner.h"

enum { WAIT_MS = 20000, RESULTS_MAX = 400 };

static const char *holdbackd;
static char processors[512];

void hbt_must(int status, const struct holdback_error *error) {
  if (status != HOLDBACK_OK) fail_msg("%s", error->message);
}

struct holdback_bytes hbt_text(const char *text) {
  return (struct holdback_bytes){text, strlen(text)};
}

/* ---- the server */

bool hbt_conformance_arguments(int argc, char **argv) {
  if (argc < 3) return false;
  holdbackd = argv[1];
  (void)snprintf(processors, sizeof processors, "%s", argv[2]);
  *strrchr(processors, '/') = '\0';
  return true;
}

static void connect_client(struct hbt_conformance *world) {
  struct holdback_options options = {.server = world->server.listen};
  struct holdback_error error;
  hbt_must(holdback_client_create(&options, &world->client, &error), &error);
}

int hbt_conformance_setup(void **state) {
  struct hbt_conformance *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "conformance");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->server.flags[0] = "--processor-dir";
  world->server.flags[1] = processors;
  world->rng = hbt_rng_start("conformance");
  *state = world;
  if (!hbt_server_start(&world->server)) return -1;
  connect_client(world);
  return 0;
}

int hbt_conformance_teardown(void **state) {
  struct hbt_conformance *world = *state;
  holdback_client_destroy(world->client);
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

void hbt_conformance_kill_and_start(struct hbt_conformance *world) {
  holdback_client_destroy(world->client);
  world->client = NULL;
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  connect_client(world);
}

/* ---- one stream */

const char *hbt_name(int number, char out[32]) {
  (void)snprintf(out, 32, "case-%d", number);
  return out;
}

const char *hbt_name_next(struct hbt_conformance *world, char out[32]) {
  return hbt_name(++world->streams, out);
}

void hbt_attach(struct hbt_conformance *world, const char *stream, enum hbt_mode mode,
                int64_t first, const char *every, int key_status) {
  struct holdback_error error;
  bool seen = mode == HBT_PER_KEY_SEEN;
  struct holdback_stream_config config = {
      .name = stream,
      .mode = mode == HBT_GLOBAL ? HOLDBACK_MODE_GLOBAL : HOLDBACK_MODE_PER_KEY,
      .first_seen = seen,
      .first_sequence = seen ? 0 : first};
  hbt_must(holdback_stream_create(world->client, &config, &error), &error);
  struct holdback_parameter parameter = {.name = "every", .value = hbt_text(every)};
  struct holdback_processor_config processor = {.name = "p",
                                                .processor = "ordered",
                                                .parameters = &parameter,
                                                .parameters_count = 1,
                                                .key_status = key_status};
  hbt_must(holdback_processor_attach(world->client, stream, &processor, false, &error), &error);
}

static void take_outcome(void *context, const struct holdback_result *result) {
  *(int *)context = result->outcome;
}

int hbt_send(struct hbt_conformance *world, const char *stream, enum hbt_mode mode,
             const struct hbt_sent *event, bool initial) {
  int outcome = 0;
  struct holdback_error error;
  struct holdback_appender *appender;
  struct holdback_appender_options options = {
      .stream = stream, .on_result = take_outcome, .context = &outcome};
  hbt_must(holdback_appender_create(world->client, &options, &appender, &error), &error);
  struct holdback_event encoded = {.sequence = event->sequence,
                                   .key = hbt_text(event->key),
                                   .payload = hbt_text(event->payload),
                                   .initial = initial,
                                   .last = mode != HBT_GLOBAL && strcmp(event->payload, "z") == 0};
  hbt_must(holdback_append(appender, 0, &encoded, &error), &error);
  hbt_must(holdback_appender_flush(appender, &error), &error);
  holdback_appender_destroy(appender);
  return outcome;
}

/* ---- results */

struct one {
  char *text; /* owned: "key payload" */
  size_t key_size;
  size_t index;
};

struct results {
  struct one items[RESULTS_MAX];
  size_t count;
};

static void add_result(struct results *out, const struct holdback_processor_result *result) {
  assert_true(out->count < RESULTS_MAX);
  assert_int_equal(result->position, out->count);
  size_t size = result->key.size + result->payload.size + 2;
  struct one one = {.text = malloc(size), .key_size = result->key.size, .index = out->count};
  (void)snprintf(one.text, size, "%.*s %.*s", (int)result->key.size, (const char *)result->key.data,
                 (int)result->payload.size, (const char *)result->payload.data);
  out->items[out->count++] = one;
}

/* Until `count` results came, then until it is caught up: none must follow. */
static void read_results(struct hbt_conformance *world, const char *stream, size_t count,
                         struct results *out) {
  struct holdback_error error;
  struct holdback_subscription *subscription;
  struct holdback_subscribe_options options = {.stream = stream,
                                               .processor = "p",
                                               .start = HOLDBACK_START_EARLIEST,
                                               .progress_interval_ms = 20};
  hbt_must(holdback_subscribe(world->client, &options, &subscription, &error), &error);
  out->count = 0;
  for (bool caught_up = false; out->count < count || !caught_up;) {
    const struct holdback_message *message;
    hbt_must(holdback_next(subscription, WAIT_MS, &message, &error), &error);
    if (!message) fail_msg("%zu of %zu results", out->count, count);
    size_t cursor = 0;
    struct holdback_processor_result result;
    while (holdback_message_result(message, &cursor, &result)) add_result(out, &result);
    struct holdback_progress progress;
    if (holdback_message_progress(message, &progress)) caught_up = progress.caught_up;
  }
  holdback_subscription_destroy(subscription);
}

/* By key, then as they came. The keys of the tables are of one size. */
static int compare(const void *left, const void *right) {
  const struct one *a = left;
  const struct one *b = right;
  int order = memcmp(a->text, b->text, a->key_size);
  return order ? order : (a->index > b->index) - (a->index < b->index);
}

static char *join(const struct results *results) {
  size_t size = 1;
  for (size_t i = 0; i < results->count; i++) size += strlen(results->items[i].text) + 1;
  char *text = malloc(size);
  char *at = text;
  *at = '\0';
  for (size_t i = 0; i < results->count; i++) {
    at += sprintf(at, "%s%s", i ? " " : "", results->items[i].text);
  }
  return text;
}

static size_t count_results(const char *results) {
  size_t words = *results ? 1 : 0;
  for (const char *at = results; *at; at++) words += *at == ' ';
  return words / 2;
}

void hbt_check_results(struct hbt_conformance *world, const char *id, const char *stream,
                       enum hbt_mode mode, const char *results) {
  struct results are;
  read_results(world, stream, count_results(results), &are);
  if (mode != HBT_GLOBAL) qsort(are.items, are.count, sizeof *are.items, compare);
  char *text = join(&are);
  if (strcmp(text, results) != 0) fail_msg("%s: '%s', should be '%s'", id, text, results);
  free(text);
  for (size_t i = 0; i < are.count; i++) free(are.items[i].text);
}

void hbt_check_dots(struct hbt_conformance *world, const char *id, const char *stream, int count) {
  enum { DOT_MAX = HBT_DOTS + 4 };
  char *results = malloc((size_t)count * DOT_MAX + 1);
  char *at = results;
  for (int i = 1; i <= count; i++) {
    at += sprintf(at, "%sk1 ", i > 1 ? " " : "");
    memset(at, '.', (size_t)i);
    at += i;
  }
  *at = '\0';
  hbt_check_results(world, id, stream, HBT_GLOBAL, results);
  free(results);
}

/* ---- statuses */

static bool is_standing(const struct holdback_key_status *is, const struct hbt_standing *wanted) {
  bool waits = wanted->waiting > 0;
  return is->has_last_processed == (wanted->last != HBT_NONE) &&
         (wanted->last == HBT_NONE || is->last_processed == wanted->last) && is->has_waiting &&
         is->waiting == wanted->waiting && (!waits || is->earliest_waiting == wanted->earliest) &&
         (!waits || is->latest_waiting == wanted->latest) && is->received == wanted->received &&
         is->results == wanted->results && is->duplicates == wanted->duplicates &&
         is->failed == wanted->failed && is->rejected == wanted->rejected &&
         is->last_received == wanted->last_received;
}

void hbt_check_standing(struct hbt_conformance *world, const char *id, const char *stream,
                        const struct hbt_standing *wanted) {
  struct holdback_key_status is;
  struct holdback_error error;
  uint64_t until_ms = hb_clock_mono_ms() + WAIT_MS;
  do {
    hbt_must(holdback_key_status(world->client, stream, "p", hbt_text(wanted->key), &is, &error),
             &error);
    if (is_standing(&is, wanted)) return;
    (void)poll(NULL, 0, 2);
  } while (hb_clock_mono_ms() < until_ms);
  fail_msg("%s, %s: (%" PRId64 ", %" PRIu64 ", %" PRId64 ", %" PRId64 ", %" PRIu64 ", %" PRIu64
           ", %" PRIu64 ", %d), failed %" PRIu64 ", rejected %" PRIu64,
           id, wanted->key, is.last_processed, is.waiting, is.earliest_waiting, is.latest_waiting,
           is.received, is.results, is.duplicates, is.last_received, is.failed, is.rejected);
}

static bool is_told(const struct holdback_key_status *is, const struct hbt_standing *wanted) {
  struct holdback_bytes key = hbt_text(wanted->key);
  return is->key.size == key.size && memcmp(is->key.data, key.data, key.size) == 0 &&
         is->has_last_processed == (wanted->last != HBT_NONE) &&
         (wanted->last == HBT_NONE || is->last_processed == wanted->last) && !is->has_waiting &&
         is->results == wanted->results && is->duplicates == wanted->duplicates &&
         is->failed == wanted->failed && is->rejected == wanted->rejected &&
         is->last_received == wanted->last_received;
}

static void check_told(const struct holdback_key_status *is, const char *id, size_t index,
                       const struct hbt_standing *wanted) {
  if (is->position == (int64_t)index && is_told(is, wanted)) return;
  fail_msg("%s: status %zu is at %" PRId64 ", %.*s: last %" PRId64 ", results %" PRIu64
           ", duplicates %" PRIu64 ", failed %" PRIu64 ", rejected %" PRIu64 ", last received %d",
           id, index, is->position, (int)is->key.size, (const char *)is->key.data,
           is->last_processed, is->results, is->duplicates, is->failed, is->rejected,
           is->last_received);
}

void hbt_check_told(struct hbt_conformance *world, const char *id, const char *stream,
                    const struct hbt_standing *wanted, size_t count) {
  struct holdback_error error;
  struct holdback_subscription *subscription;
  struct holdback_subscribe_options options = {.stream = stream,
                                               .processor = "p",
                                               .key_statuses = true,
                                               .start = HOLDBACK_START_EARLIEST,
                                               .progress_interval_ms = 20};
  hbt_must(holdback_subscribe(world->client, &options, &subscription, &error), &error);
  size_t seen = 0;
  for (bool caught_up = false; seen < count || !caught_up;) {
    const struct holdback_message *message;
    hbt_must(holdback_next(subscription, WAIT_MS, &message, &error), &error);
    if (!message) fail_msg("%s: %zu of %zu statuses", id, seen, count);
    size_t cursor = 0;
    struct holdback_key_status is;
    while (holdback_message_status(message, &cursor, &is)) {
      if (seen == count) fail_msg("%s: more than %zu statuses", id, count);
      check_told(&is, id, seen, &wanted[seen]);
      seen++;
    }
    struct holdback_progress progress;
    if (holdback_message_progress(message, &progress)) caught_up = progress.caught_up;
  }
  holdback_subscription_destroy(subscription);
}

/* ---- rows */

void hbt_check_case(struct hbt_conformance *world, const struct hbt_case *row, enum hbt_mode mode,
                    const char *stream) {
  hbt_check_results(world, row->id, stream, mode, row->results);
  struct holdback_error error;
  struct holdback_stream_status status;
  hbt_must(holdback_stream_get(world->client, stream, NULL, &status, &error), &error);
  if (mode == HBT_GLOBAL) assert_int_equal(status.first_sequence, row->first);
  assert_int_equal(status.complete_to, row->complete_to);
  for (const struct hbt_standing *wanted = row->standings; wanted->key; wanted++) {
    hbt_check_standing(world, row->id, stream, wanted);
  }
}

static void shuffle(struct hbt_rng *rng, struct hbt_sent *events, size_t count) {
  for (size_t i = count; i > 1; i--) {
    size_t other = (size_t)hbt_rng_below(rng, i);
    struct hbt_sent kept = events[i - 1];
    events[i - 1] = events[other];
    events[other] = kept;
  }
}

static bool is_initial(const struct hbt_case *row, enum hbt_mode mode,
                       const struct hbt_sent *event) {
  return mode == HBT_PER_KEY_SEEN && event->sequence == row->first;
}

/* Which outcome it must have after those that were sent before it. */
static int expected_outcome(const struct hbt_case *row, enum hbt_mode mode,
                            const struct hbt_sent *events, size_t index) {
  const struct hbt_sent *event = &events[index];
  bool begun = mode != HBT_PER_KEY_SEEN;
  const struct hbt_sent *copy = NULL;
  for (size_t i = 0; i < index; i++) {
    bool same = mode == HBT_GLOBAL || strcmp(events[i].key, event->key) == 0;
    if (!copy && same && events[i].sequence == event->sequence) copy = &events[i];
    begun = begun || (same && is_initial(row, mode, &events[i]));
  }
  if (event->sequence == INT64_MAX) return HOLDBACK_OUT_OF_RANGE_EVENT;
  if (begun && event->sequence < row->first) return HOLDBACK_BEFORE_FIRST;
  if (!copy) return HOLDBACK_STORED;
  return strcmp(copy->payload, event->payload) ? HOLDBACK_CONFLICT : HOLDBACK_DUPLICATE;
}

void hbt_run_case(struct hbt_conformance *world, const struct hbt_case *row, enum hbt_mode mode,
                  bool shuffled) {
  char stream[32];
  struct hbt_sent events[HBT_EVENTS_MAX];
  size_t count = 0;
  while (count < HBT_EVENTS_MAX && row->events[count].key) count++;
  memcpy(events, row->events, sizeof events);
  if (shuffled) shuffle(&world->rng, events, count);
  hbt_name_next(world, stream);
  hbt_attach(world, stream, mode, row->first, row->every, HOLDBACK_KEY_STATUS_KEPT);
  for (size_t i = 0; i < count; i++) {
    int outcome = hbt_send(world, stream, mode, &events[i], is_initial(row, mode, &events[i]));
    if (outcome != expected_outcome(row, mode, events, i)) {
      fail_msg("%s: event %zu, %" PRId64 ": %s", row->id, i, events[i].sequence,
               holdback_outcome_name(outcome));
    }
  }
  hbt_check_case(world, row, mode, stream);
}

void hbt_run_cases(struct hbt_conformance *world, const struct hbt_case *rows, size_t count,
                   enum hbt_mode mode) {
  for (size_t i = 0; i < count; i++) {
    for (int run = 0; run <= HBT_SHUFFLED; run++) hbt_run_case(world, &rows[i], mode, run > 0);
  }
}

void hbt_run_killed(struct hbt_conformance *world, const struct hbt_case *rows, size_t count,
                    enum hbt_mode mode) {
  for (size_t i = 0; i < count; i++) hbt_run_case(world, &rows[i], mode, true);
  hbt_conformance_kill_and_start(world);
  for (size_t i = 0; i < count; i++) {
    char stream[32];
    hbt_check_case(world, &rows[i], mode, hbt_name((int)i + 1, stream));
  }
}
