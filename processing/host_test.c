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
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "processing/builtin.h"
#include "processing/host.h"

/* ---- a store in memory: states and timers as committed */

struct row {
  struct hb_buf key;
  struct hb_buf name;
  struct hb_buf value;
};
struct timer {
  struct hb_time time;
  struct hb_buf key;
  struct hb_buf name;
  uint64_t creation;
};
struct store {
  struct row *rows;
  size_t rows_count;
  size_t rows_cap;
  struct timer *timers;
  size_t timers_count;
  size_t timers_cap;
  struct hb_processor_place place;
  struct hb_buf end_key;
  struct hb_buf frames; /* results, concatenated */
  int64_t results;
  size_t failures;
  size_t commits;
  struct hb_buf last_explanation;
};

static struct hb_slice view(const struct hb_buf *buf) { return hb_buf_view(buf); }

static struct hb_buf copy(struct hb_slice bytes) {
  struct hb_buf buf = {0};
  hb_buf_append(&buf, bytes.data, bytes.size);
  return buf;
}

static struct row *find_row(struct store *store, struct hb_slice key, struct hb_slice name) {
  for (size_t i = 0; i < store->rows_count; i++) {
    struct row *row = &store->rows[i];
    if (hb_slice_equal(view(&row->key), key) && hb_slice_equal(view(&row->name), name)) return row;
  }
  return NULL;
}

static enum hb_code store_get(void *context, struct hb_slice key, struct hb_slice name,
                              bool *out_found, struct hb_buf *out, struct hb_err *err) {
  (void)err;
  struct row *row = find_row(context, key, name);
  *out_found = row != NULL;
  if (row) hb_buf_append(out, row->value.data, row->value.size);
  return HB_OK;
}

static enum hb_code store_next_key(void *context, bool has_after, struct hb_slice after,
                                   bool *out_found, struct hb_buf *out, struct hb_err *err) {
  (void)err;
  struct store *store = context;
  const struct row *best = NULL;
  for (size_t i = 0; i < store->rows_count; i++) {
    const struct row *row = &store->rows[i];
    if (has_after && hb_slice_compare(view(&row->key), after) <= 0) continue;
    if (!best || hb_slice_compare(view(&row->key), view(&best->key)) < 0) best = row;
  }
  *out_found = best != NULL;
  if (best) hb_buf_append(out, best->key.data, best->key.size);
  return HB_OK;
}

static void remove_row(struct store *store, struct row *row) {
  hb_buf_done(&row->key);
  hb_buf_done(&row->name);
  hb_buf_done(&row->value);
  *row = store->rows[--store->rows_count];
}

static void put_state(struct store *store, const struct hb_state_row *put) {
  struct row *row = find_row(store, put->key, put->name);
  if (row) remove_row(store, row);
  if (!put->present) return;
  hb_reserve((void **)&store->rows, &store->rows_cap, store->rows_count + 1, sizeof *store->rows);
  store->rows[store->rows_count++] =
      (struct row){.key = copy(put->key), .name = copy(put->name), .value = copy(put->value)};
}

static void remove_timer(struct store *store, const struct hb_timer_row *gone) {
  for (size_t i = 0; i < store->timers_count; i++) {
    struct timer *timer = &store->timers[i];
    if (timer->creation != gone->creation || hb_time_compare(timer->time, gone->time) ||
        !hb_slice_equal(view(&timer->key), gone->key)) {
      continue;
    }
    hb_buf_done(&timer->key);
    hb_buf_done(&timer->name);
    *timer = store->timers[--store->timers_count];
    return;
  }
  fail_msg("a timer is removed that the store does not have");
}

static void put_timer(struct store *store, const struct hb_timer_row *put) {
  hb_reserve((void **)&store->timers, &store->timers_cap, store->timers_count + 1,
             sizeof *store->timers);
  store->timers[store->timers_count++] = (struct timer){
      .time = put->time, .key = copy(put->key), .name = copy(put->name), .creation = put->creation};
}

/* Results go on where they ended, and every frame is one. */
static void put_results(struct store *store, const struct hb_result_block *put) {
  struct hb_block block;
  struct hb_err err;
  assert_int_equal(hb_block_decode(hb_bytes_view(put->block), &block, &err), HB_OK);
  assert_int_equal(block.from, store->results);
  for (uint32_t i = 0; i < block.count; i++) {
    struct hb_event event;
    assert_int_equal(hb_scan_frame(hb_block_frame(&block, i), &event, &err), HB_OK);
    assert_int_equal(event.sequence, store->results + i);
  }
  store->results += block.count;
  assert_int_equal(block.to, store->results);
  hb_buf_append(&store->frames, block.frames.data, block.frames.size);
}

static int compare_rows(const struct hb_state_row *a, const struct hb_state_row *b) {
  int order = hb_slice_compare(a->key, b->key);
  return order ? order : hb_slice_compare(a->name, b->name);
}

static void commit(struct store *store, struct hb_host *host) {
  if (!hb_host_has_bundle(host)) return;
  const struct hb_bundle *bundle = hb_host_take(host);
  for (size_t i = 1; i < bundle->states_count; i++) {
    assert_true(compare_rows(&bundle->states[i - 1], &bundle->states[i]) < 0);
  }
  for (size_t i = 0; i < bundle->states_count; i++) put_state(store, &bundle->states[i]);
  for (size_t i = 0; i < bundle->gone_count; i++) remove_timer(store, &bundle->gone[i]);
  for (size_t i = 0; i < bundle->timers_count; i++) put_timer(store, &bundle->timers[i]);
  for (size_t i = 0; i < bundle->results_count; i++) put_results(store, &bundle->results[i]);
  for (size_t i = 0; i < bundle->failures_count; i++) {
    store->failures++;
    hb_buf_clear(&store->last_explanation);
    hb_buf_append(&store->last_explanation, bundle->failures[i].explanation.data,
                  bundle->failures[i].explanation.size);
  }
  store->place = bundle->place;
  hb_buf_clear(&store->end_key);
  hb_buf_append(&store->end_key, bundle->place.end_key.data, bundle->place.end_key.size);
  store->place.end_key = view(&store->end_key);
  store->commits++;
  hb_host_committed(host);
}

static void store_done(struct store *store) {
  while (store->rows_count) remove_row(store, &store->rows[0]);
  free(store->rows);
  for (size_t i = 0; i < store->timers_count; i++) {
    hb_buf_done(&store->timers[i].key);
    hb_buf_done(&store->timers[i].name);
  }
  free(store->timers);
  hb_buf_done(&store->end_key);
  hb_buf_done(&store->frames);
  hb_buf_done(&store->last_explanation);
}

/* ---- events and running */

struct ev {
  const char *key;
  const char *payload;
  int64_t seconds; /* 0: no time */
};

static void make_event(struct hb_buf *out, int64_t sequence, const struct ev *ev) {
  struct hb_buf body = {0};
  if (sequence) hb_wire_append_varint(&body, 1, (uint64_t)sequence);
  hb_wire_append_bytes(&body, 2, hb_slice_text(ev->key));
  if (ev->seconds) {
    struct hb_buf time = {0};
    hb_wire_append_varint(&time, 1, (uint64_t)ev->seconds);
    hb_wire_append_bytes(&body, 3, view(&time));
    hb_buf_done(&time);
  }
  hb_wire_append_bytes(&body, 5, hb_slice_text(ev->payload));
  hb_buf_clear(out);
  hb_wire_append_bytes(out, 1, view(&body));
  hb_buf_done(&body);
}

struct run {
  struct store *store;
  const struct hbp_processor *processor;
  const struct hbp_parameter *parameters;
  size_t parameters_count;
  struct hb_host_budget budget;
  bool stop_on_failure;
  unsigned restart_one_in; /* 0: never */
  unsigned seed;
  struct hb_host *host;
  void *self;
};

static unsigned next_random(unsigned *seed) {
  *seed = *seed * 1103515245u + 12345u;
  return *seed >> 16 & 0x7fff;
}

static void open_host(struct run *run) {
  char error[200] = "";
  if (run->processor->create(run->parameters, run->parameters_count, &run->self, error,
                             sizeof error)) {
    fail_msg("%s", error);
  }
  struct hb_host_options options = {
      .processor = run->processor,
      .self = run->self,
      .source = {.context = run->store, .get = store_get, .next_key = store_next_key},
      .budget = run->budget,
      .on_error = run->stop_on_failure ? HB_ON_ERROR_SUSPEND : HB_ON_ERROR_CONTINUE};
  run->host = hb_host_create(&options);
  hb_host_restore(run->host, &run->store->place);
  for (size_t i = 0; i < run->store->timers_count; i++) {
    const struct timer *timer = &run->store->timers[i];
    struct hb_timer_row row = {.time = timer->time,
                               .key = view(&timer->key),
                               .creation = timer->creation,
                               .name = view(&timer->name)};
    hb_host_restore_timer(run->host, &row);
  }
}

static void close_host(struct run *run) {
  hb_host_destroy(run->host);
  if (run->processor->destroy) run->processor->destroy(run->self);
  run->host = NULL;
}

/* Sometimes the process dies here: what was not committed is lost. */
static bool crash(struct run *run) {
  if (!run->restart_one_in || next_random(&run->seed) % run->restart_one_in) return false;
  close_host(run);
  open_host(run);
  return true;
}

/* All events from the committed place on, then the end where `seal`. */
static enum hb_host_result feed(struct run *run, const struct ev *events, size_t count, bool seal) {
  struct hb_buf frame = {0};
  struct hb_err err;
  enum hb_host_result result = HB_HOST_DONE;
  open_host(run);
  while (result == HB_HOST_DONE || result == HB_HOST_FULL) {
    int64_t at = hb_host_place(run->host)->position;
    if ((size_t)at < count) {
      make_event(&frame, at, &events[at]);
      struct hb_event event;
      assert_int_equal(hb_scan_frame(view(&frame), &event, &err), HB_OK);
      result = hb_host_event(run->host, &event, at, &err);
    } else if (seal) {
      result = hb_host_end(run->host, (int64_t)count, &err);
      if (result == HB_HOST_DONE) break;
    } else {
      break;
    }
    if (result == HB_HOST_FULL && !crash(run)) commit(run->store, run->host);
    if (result == HB_HOST_DONE) (void)crash(run);
  }
  hb_buf_done(&frame);
  commit(run->store, run->host);
  close_host(run);
  return result;
}

/* "key=payload key=payload ..." of all results. */
static void told(const struct store *store, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  struct hb_slice rest = view(&store->frames);
  while (rest.size) {
    struct hb_event event;
    struct hb_err err;
    assert_int_equal(hb_scan_frame(rest, &event, &err), HB_OK);
    struct hb_slice key = hb_event_key(&event);
    struct hb_slice payload = hb_event_payload(&event);
    used += (size_t)snprintf(out + used, size - used, "%s%.*s=%.*s", used ? " " : "", (int)key.size,
                             (const char *)key.data, (int)payload.size, (const char *)payload.data);
    assert_true(used < size);
    rest = hb_slice_of(rest.data + event.frame_size, rest.size - event.frame_size);
  }
}

static void check(const struct hbp_processor *processor, const struct hbp_parameter *parameters,
                  size_t parameters_count, const struct ev *events, size_t count, bool seal,
                  const char *expected) {
  struct store store = {0};
  struct run run = {.store = &store,
                    .processor = processor,
                    .parameters = parameters,
                    .parameters_count = parameters_count};
  assert_int_equal(feed(&run, events, count, seal), HB_HOST_DONE);
  char out[2000];
  told(&store, out, sizeof out);
  assert_string_equal(out, expected);
  store_done(&store);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BYTES(text) \
  { text, sizeof(text) - 1 }

/* ---- the built-ins */

/* Each built-in gives its documented results, per key, in order. */
static void test_builtins(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {
      {"a", "3", 0}, {"b", "10", 0}, {"a", "-1.5", 0}, {"a", "3", 0}, {"b", "0.000000001", 0}};
  static const struct hbp_parameter EVERY_2[] = {{"every", BYTES("2")}};
  static const struct hbp_parameter AT_END[] = {{"emit", BYTES("end")}};
  static const struct hbp_parameter COMMA[] = {{"separator", BYTES(",")}};
  static const struct {
    const char *name;
    const struct hbp_parameter *parameters;
    size_t parameters_count;
    const char *expected;
  } CASES[] = {
      {"passthrough", NULL, 0, "a=3 b=10 a=-1.5 a=3 b=0.000000001"},
      {"passthrough", EVERY_2, 1, "a=3 b=10 a=3"},
      {"count", NULL, 0, "a=1 b=1 a=2 a=3 b=2"},
      {"count", EVERY_2, 1, "a=1 b=1 a=3"},
      {"count", AT_END, 1, "a=3 b=2"},
      {"sum", NULL, 0, "a=3 b=10 a=1.5 a=4.5 b=10.000000001"},
      {"min", NULL, 0, "a=3 b=10 a=-1.5 a=-1.5 b=0.000000001"},
      {"max", NULL, 0, "a=3 b=10 a=3 a=3 b=10"},
      {"mean", NULL, 0, "a=3 b=10 a=0.75 a=1.5 b=5.000000001"},
      {"mean", AT_END, 1, "a=1.5 b=5.000000001"},
      {"last", AT_END, 1, "a=3 b=0.000000001"},
      {"distinct", NULL, 0, "a=3 b=10 a=-1.5 b=0.000000001"},
      {"concat", NULL, 0, "a=3 b=10 a=3-1.5 a=3-1.53 b=100.000000001"},
      {"concat", COMMA, 1, "a=3 b=10 a=3,-1.5 a=3,-1.5,3 b=10,0.000000001"},
  };
  for (size_t i = 0; i < COUNT(CASES); i++) {
    check(hb_builtin_find(CASES[i].name), CASES[i].parameters, CASES[i].parameters_count, EVENTS,
          COUNT(EVENTS), true, CASES[i].expected);
  }
}

/* A parameter that a processor does not know, or a value that it can't take, is refused by name. */
static void test_parameters(void **state) {
  (void)state;
  static const struct {
    const char *processor;
    struct hbp_parameter parameter;
    const char *error;
  } CASES[] = {
      {"count", {"each", BYTES("1")}, "parameter 'each' is not known to this processor"},
      {"count", {"every", BYTES("0")}, "parameter 'every' must be a number from 1 to 999999999"},
      {"count", {"every", BYTES("1x")}, "parameter 'every' must be a number from 1 to 999999999"},
      {"last", {"emit", BYTES("never")}, "parameter 'emit' must be 'each' or 'end'"},
      {"distinct", {"every", BYTES("2")}, "parameter 'every' is not known to this processor"},
  };
  for (size_t i = 0; i < COUNT(CASES); i++) {
    char error[200];
    void *self = NULL;
    const struct hbp_processor *processor = hb_builtin_find(CASES[i].processor);
    assert_int_equal(processor->create(&CASES[i].parameter, 1, &self, error, sizeof error),
                     HBP_FAILED);
    assert_string_equal(error, CASES[i].error);
  }
  assert_null(hb_builtin_find("nothing"));
}

/* What is no number fails the event with a reason that shows it; the key goes on. */
static void test_bad_number(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {{"a", "1", 0}, {"a", "x", 0}, {"a", "2", 0}, {"a", "1e3", 0}};
  struct store store = {0};
  struct run run = {.store = &store, .processor = hb_builtin_find("sum")};
  assert_int_equal(feed(&run, EVENTS, COUNT(EVENTS), false), HB_HOST_DONE);
  char out[200];
  told(&store, out, sizeof out);
  assert_string_equal(out, "a=1 a=3");
  assert_int_equal(store.failures, 2);
  assert_int_equal(store.place.failed, 2);
  assert_int_equal(store.place.events, 4);
  assert_memory_equal(store.last_explanation.data, "payload '1e3' is no number", 26);
  store_done(&store);
}

/* ---- a processor that does everything, as its payload says: r = a result, s = count in a state,
 * c = clear it, t<digit> = a timer so many seconds after the event, f = fail, x = that of key "x"
 */

static int chaos_create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                        char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  return HBP_OK;
}

static struct hbp_bytes text(const char *bytes) { return (struct hbp_bytes){bytes, strlen(bytes)}; }

static int chaos_count(const struct hbp_host *host) {
  struct hbp_bytes value;
  int found;
  if (host->state_get(host, text("n"), &value, &found)) return HBP_FAILED;
  char number[24];
  int n = found ? (int)strtol((const char *)value.data, NULL, 10) : 0;
  snprintf(number, sizeof number, "%d", n + 1);
  if (host->state_put(host, text("n"), (struct hbp_bytes){number, strlen(number) + 1})) {
    return HBP_FAILED;
  }
  return host->emit(host, text(number));
}

static int chaos_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  const char *at = event->payload.data;
  const char *end = at + event->payload.size;
  for (; at < end; at++) {
    if (*at == 'r' && host->emit(host, event->payload)) return HBP_FAILED;
    if (*at == 's' && chaos_count(host)) return HBP_FAILED;
    if (*at == 'c' && host->state_clear(host, text("n"))) return HBP_FAILED;
    if (*at == 'x' && host->emit_with_key(host, text("x"), text("other"))) return HBP_FAILED;
    if (*at == 'f') return host->give_up(host, "told to");
    if (*at != 't') continue;
    struct hbp_time time = event->time;
    time.present = 1;
    time.seconds += *++at - '0';
    struct hbp_bytes name = {at, 1};
    if (host->timer_set(host, name, time)) return HBP_FAILED;
  }
  return HBP_OK;
}

/* Two results, one with the watermark; a timer named 9 sets one more. */
static int chaos_timer(void *self, const struct hbp_host *host, const struct hbp_timer *timer) {
  (void)self;
  char line[80];
  snprintf(line, sizeof line, "t%.*s@%lld<%lld", (int)timer->name.size,
           (const char *)timer->name.data, (long long)timer->time.seconds,
           (long long)timer->watermark.seconds);
  if (host->emit(host, text(line)) || chaos_count(host)) return HBP_FAILED;
  if (timer->name.size != 1 || *(const char *)timer->name.data != '9') return HBP_OK;
  struct hbp_time time = timer->time;
  time.seconds++;
  return host->timer_set(host, text("more"), time);
}

static int chaos_end(void *self, const struct hbp_host *host, const struct hbp_end *end) {
  (void)self;
  (void)end;
  return host->emit(host, text("end")) || chaos_count(host) ? HBP_FAILED : HBP_OK;
}

static const struct hbp_processor CHAOS = {.abi_version = HBP_ABI,
                                           .size = sizeof CHAOS,
                                           .name = "chaos",
                                           .create = chaos_create,
                                           .on_event = chaos_event,
                                           .on_timer = chaos_timer,
                                           .on_end = chaos_end};

/* Timers fire by time, then key, then order of setting, just before the first event whose time is
 * not before them, whatever its key; an event without a time fires none. */
static void test_timer_order(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {{"b", "t5", 10}, {"a", "t5", 10}, {"a", "t7t6", 9},
                                     {"c", "r", 0},   {"c", "r", 14},  {"c", "r", 15},
                                     {"c", "r", 99}};
  check(&CHAOS, NULL, 0, EVENTS, COUNT(EVENTS), false,
        "c=r c=r a=t5@15<14 a=1 a=t6@15<14 a=2 b=t5@15<14 b=1 c=r a=t7@16<15 a=3 c=r");
}

/* A timer of the same name takes the other's place; one that a timer sets fires in its turn. */
static void test_timer_again(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {
      {"a", "t3", 10}, {"a", "t3", 11}, {"a", "t9", 10}, {"b", "r", 13}, {"b", "r", 30}};
  check(&CHAOS, NULL, 0, EVENTS, COUNT(EVENTS), false,
        "b=r a=t3@14<13 a=1 a=t9@19<13 a=2 a=tmore@20<13 a=3 b=r");
}

/* When the stream ends, timers that are left fire, then each key with state has its end. */
static void test_end(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {{"b", "t9", 10}, {"a", "s", 10}, {"c", "sc", 10}};
  check(&CHAOS, NULL, 0, EVENTS, COUNT(EVENTS), true, "a=1 c=1 b=t9@19<10 b=1 a=end a=2 b=end b=2");
}

/* An event that fails leaves nothing behind, also what the same bundle did before stands. */
static void test_failure_is_undone(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {
      {"a", "s", 10}, {"a", "ssrt1cf", 10}, {"b", "ssf", 10}, {"a", "s", 30}, {"b", "s", 31}};
  check(&CHAOS, NULL, 0, EVENTS, COUNT(EVENTS), false, "a=1 a=2 b=1");
}

/* With stop_on_failure the failed event is not passed, and the place stays before it. */
static void test_stop_on_failure(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {{"a", "s", 10}, {"a", "rf", 10}, {"a", "s", 30}};
  struct store store = {0};
  struct run run = {.store = &store, .processor = &CHAOS, .stop_on_failure = true};
  assert_int_equal(feed(&run, EVENTS, COUNT(EVENTS), false), HB_HOST_FAILED);
  assert_int_equal(store.place.position, 1);
  assert_int_equal(store.results, 1);
  store_done(&store);
}

/* An event with more results than a bundle holds is cut, and goes on at the next result. */
static void test_split(void **state) {
  (void)state;
  static const struct ev EVENTS[] = {{"a", "s", 0}, {"a", "ssssssss", 0}, {"b", "s", 0}};
  struct store store = {0};
  struct run run = {.store = &store, .processor = &CHAOS, .budget = {.results = 3}};
  assert_int_equal(feed(&run, EVENTS, COUNT(EVENTS), false), HB_HOST_DONE);
  char out[200];
  told(&store, out, sizeof out);
  assert_string_equal(out, "a=1 a=2 a=3 a=4 a=5 a=6 a=7 a=8 a=9 b=1");
  assert_int_equal(store.commits, 4);
  store_done(&store);
}

/* ---- the same results, whatever happens */

enum { MANY = 400 };
static char payloads[MANY][12];
static char keys[MANY][4];

static void make_many(struct ev *events, unsigned seed) {
  static const char *const WORDS[] = {"s",    "sr", "rrrr", "t1",  "t9",
                                      "st3s", "sf", "c",    "sxs", "t5t6s"};
  for (int i = 0; i < MANY; i++) {
    snprintf(keys[i], sizeof keys[i], "k%u", next_random(&seed) % 7);
    snprintf(payloads[i], sizeof payloads[i], "%s", WORDS[next_random(&seed) % COUNT(WORDS)]);
    events[i] = (struct ev){keys[i], payloads[i], 100 + i / 3 - (int)(next_random(&seed) % 5)};
  }
}

/* However results are cut into bundles, however small the cache is, and wherever the process dies,
 * the concatenated result frames are those of an undisturbed run. */
static void test_exactly_once(void **state) {
  (void)state;
  struct ev events[MANY];
  for (unsigned seed = 1; seed <= 12; seed++) {
    make_many(events, seed);
    struct store calm = {0};
    struct run undisturbed = {.store = &calm, .processor = &CHAOS};
    assert_int_equal(feed(&undisturbed, events, MANY, true), HB_HOST_DONE);
    struct store rough = {0};
    struct run disturbed = {.store = &rough,
                            .processor = &CHAOS,
                            .seed = seed,
                            .restart_one_in = 20,
                            .budget = {.results = 1 + seed % 5,
                                       .events = 1 + seed % 7,
                                       .cache_bytes = 1 + seed * 100,
                                       .block_bytes = 64}};
    assert_int_equal(feed(&disturbed, events, MANY, true), HB_HOST_DONE);
    if (!hb_slice_equal(view(&calm.frames), view(&rough.frames))) fail_msg("seed %u", seed);
    assert_true(calm.results > MANY / 2);
    assert_true(rough.commits > calm.commits + 50);
    assert_int_equal(calm.rows_count, rough.rows_count);
    for (size_t i = 0; i < calm.rows_count; i++) {
      struct row *row = find_row(&rough, view(&calm.rows[i].key), view(&calm.rows[i].name));
      assert_non_null(row);
      assert_true(hb_slice_equal(view(&row->value), view(&calm.rows[i].value)));
    }
    assert_int_equal(calm.place.failed, rough.place.failed);
    assert_int_equal(calm.place.phase, HB_PHASE_ENDED);
    store_done(&calm);
    store_done(&rough);
  }
}

/* The cache keeps to its budget once what it holds is committed. */
static void test_cache_budget(void **state) {
  (void)state;
  struct store store = {0};
  struct run run = {.store = &store,
                    .processor = hb_builtin_find("count"),
                    .budget = {.cache_bytes = 2000, .events = 10}};
  open_host(&run);
  struct hb_buf frame = {0};
  struct hb_err err;
  for (int64_t i = 0; i < 300; i++) {
    char key[16];
    snprintf(key, sizeof key, "key %lld", (long long)(i % 100));
    struct ev ev = {key, "x", 0};
    make_event(&frame, i, &ev);
    struct hb_event event;
    assert_int_equal(hb_scan_frame(view(&frame), &event, &err), HB_OK);
    while (hb_host_event(run.host, &event, i, &err) == HB_HOST_FULL) {
      commit(&store, run.host);
      assert_true(hb_host_stats(run.host).cache_bytes <= 2000);
    }
  }
  commit(&store, run.host);
  assert_true(hb_host_stats(run.host).cache_misses > 250);
  struct row *row = find_row(&store, hb_slice_text("key 7"), (struct hb_slice){0});
  assert_int_equal(row->value.data[0], 3);
  hb_buf_done(&frame);
  close_host(&run);
  store_done(&store);
}

/* Events of `keys` keys in turn until the first bundle is full. */
static int64_t events_until_full(const struct hb_host_budget *budget, bool behind, int keys_count) {
  struct store store = {0};
  struct run run = {.store = &store, .processor = hb_builtin_find("count"), .budget = *budget};
  open_host(&run);
  hb_host_set_behind(run.host, behind);
  struct hb_buf frame = {0};
  struct hb_err err;
  int64_t i = 0;
  for (enum hb_host_result result = HB_HOST_DONE; result != HB_HOST_FULL && i < 1000; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", (int)(i % keys_count));
    struct ev ev = {key, "x", 0};
    make_event(&frame, i, &ev);
    struct hb_event event;
    assert_int_equal(hb_scan_frame(view(&frame), &event, &err), HB_OK);
    result = hb_host_event(run.host, &event, i, &err);
  }
  hb_buf_done(&frame);
  close_host(&run);
  store_done(&store);
  return i - 1;
}

/* Behind, a bundle holds more events and results, but not more states that changed. */
static void test_behind(void **state) {
  (void)state;
  static const struct {
    uint32_t results;
    uint32_t events;
    bool behind;
    int keys;
    int64_t full;
  } CASES[] = {{7, 100, false, 1, 7},  {7, 100, true, 1, 140}, {900, 6, false, 1, 6},
               {900, 6, true, 1, 24},  {900, 6, false, 50, 6}, {900, 6, true, 50, 6},
               {900, 20, true, 3, 80}, {900, 20, true, 25, 20}};
  for (size_t i = 0; i < COUNT(CASES); i++) {
    struct hb_host_budget budget = {.results = CASES[i].results, .events = CASES[i].events};
    int64_t full = events_until_full(&budget, CASES[i].behind, CASES[i].keys);
    if (full != CASES[i].full) fail_msg("case %zu: %lld", i, (long long)full);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_builtins),
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_bad_number),
      cmocka_unit_test(test_timer_order),
      cmocka_unit_test(test_timer_again),
      cmocka_unit_test(test_end),
      cmocka_unit_test(test_failure_is_undone),
      cmocka_unit_test(test_stop_on_failure),
      cmocka_unit_test(test_split),
      cmocka_unit_test(test_exactly_once),
      cmocka_unit_test(test_cache_budget),
      cmocka_unit_test(test_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
