/* Decides what a scenario mixes: streams with first sequences at the ends of the numbers, batches
 * of several calls in any order, copies and conflicts, limits, slow and moved NEEDs and FETCHes,
 * writes that fail with and without effect, restarts, removed streams. Tiny sizes make every path
 * common. */
#include "tests/model/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "tests/model/driver.h"
#include "tests/model/naive_model.h"

enum { STREAMS = 3, CALLS = 6, OUT_MAX = 64, PENDING_MAX = 4096, SETTLED_AFTER = 20000 };

struct scenario {
  uint64_t random;
  bool tell;
  struct hb_scenario_tally *tally;
  struct hb_driver driver;
  struct naive_stream models[STREAMS];
  uint64_t ids[STREAMS];
  uint64_t next_id;
  int64_t window;
  bool disk_reserve;
  bool calm;                                  /* the end: nothing fails and nothing new is sent */
  struct hb_test_batch *pending[PENDING_MAX]; /* submitted, by number */
  uint64_t submitted;
  struct hb_need *needs[OUT_MAX];
  size_t needs_count;
  struct hb_bundle_id fetches[OUT_MAX];
  size_t fetches_count;
};

static uint64_t random_of(struct scenario *s) {
  s->random += 0x9E3779B97F4A7C15u;
  uint64_t z = s->random;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint64_t below(struct scenario *s, uint64_t end) { return random_of(s) % end; }
static bool chance(struct scenario *s, unsigned percent) { return below(s, 100) < percent; }

static void say(const struct scenario *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct scenario *s, const char *format, ...) {
  if (!s->tell) return;
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
}

/* ---- what is sent */

static const int64_t FIRSTS[] = {
    0, 1, -50, INT64_MIN, INT64_C(1) << 62, INT64_MAX - 220, -(INT64_C(1) << 62), 1000000};

static void add_stream(struct scenario *s, int at) {
  struct hb_stream_config config =
      hb_driver_config(FIRSTS[below(s, sizeof FIRSTS / sizeof *FIRSTS)]);
  config.first_seen = chance(s, 25);
  config.ack = chance(s, 30) ? HB_ACK_ASYNC : HB_ACK_DURABLE;
  if (chance(s, 25)) config.limits.ahead_max = 1 + below(s, 60);
  if (chance(s, 25)) config.limits.held_events_max = 1 + below(s, 40);
  if (chance(s, 25)) config.limits.gaps_max = 1 + below(s, 10);
  if (chance(s, 25)) config.limits.held_bytes_max = 200 + below(s, 8000);
  s->ids[at] = ++s->next_id;
  naive_done(&s->models[at]);
  hb_driver_add(&s->driver, s->ids[at], &config);
  struct hb_frontier record = hb_ordering_new_record(&config);
  s->models[at].frozen = record.frozen;
  s->models[at].first = record.first_sequence;
  say(s,
      "  stream %" PRIu64 ": first %" PRId64 "%s, ahead %" PRIu64 ", events %" PRIu64
      ", gaps %" PRIu64 ", bytes %" PRIu64 "\n",
      s->ids[at], config.first_sequence, config.first_seen ? " or lowest seen" : "",
      (uint64_t)config.limits.ahead_max, (uint64_t)config.limits.held_events_max,
      (uint64_t)config.limits.gaps_max, (uint64_t)config.limits.held_bytes_max);
}

static int64_t pick_sequence(struct scenario *s, const struct naive_stream *model) {
  if (chance(s, 1)) return INT64_MAX;
  if (chance(s, 1)) return INT64_MIN;
  int64_t base = model->frozen ? model->first : 500;
  int64_t to = 0;
  if (chance(s, 40)) base = model->frozen ? naive_complete_to(model) : base;
  int64_t by = (int64_t)below(s, (uint64_t)s->window) - (chance(s, 10) ? 5 : 0);
  return __builtin_add_overflow(base, by, &to) ? INT64_MAX - 1 : to;
}

static struct hb_test_event event_of(int64_t sequence, uint64_t content) {
  return (struct hb_test_event){.sequence = sequence,
                                .content = (uint32_t)content,
                                .size = 4 + (uint32_t)(content * 37 % 120)};
}

static void say_batch(const struct scenario *s, const struct hb_test_batch *batch) {
  say(s, "  batch %" PRIu64 ": stream %" PRIu64 ", call %" PRIu64 ":", batch->number,
      batch->batch.stream, batch->batch.call);
  for (uint32_t i = 0; i < batch->batch.count; i++) {
    const struct hb_event *event = &batch->batch.events[i];
    say(s, " %" PRId64 "=%" PRIu32, event->sequence, hb_test_content(event));
  }
  say(s, "\n");
}

static void submit_one(struct scenario *s) {
  struct hb_test_event events[40];
  int at = (int)below(s, STREAMS);
  size_t count = 1 + below(s, chance(s, 30) ? 40 : 8);
  int64_t run = pick_sequence(s, &s->models[at]);
  bool in_order = chance(s, 40);
  for (size_t i = 0; i < count; i++) {
    int64_t sequence = in_order ? run : pick_sequence(s, &s->models[at]);
    if (run < INT64_MAX) run++;
    uint64_t content = (uint64_t)sequence % 1000;
    if (chance(s, 4)) content += 1000 + below(s, 3);
    events[i] = event_of(sequence, content);
    if (chance(s, 50)) events[i].seconds = 1 + (int64_t)content;
  }
  if (s->submitted == PENDING_MAX) return;
  struct hb_test_batch *batch =
      hb_test_batch_create(s->ids[at], 10 * s->ids[at] + below(s, CALLS / STREAMS), events, count);
  batch->number = s->submitted;
  s->pending[s->submitted++] = batch;
  say_batch(s, batch);
  hb_ordering_submit(s->driver.core, &batch->batch);
}

/* ---- readers, slow ones */

static void take_questions(struct scenario *s) {
  while (s->needs_count < OUT_MAX) {
    struct hb_need *need = hb_ordering_take_need(s->driver.core);
    if (!need) break;
    s->needs[s->needs_count++] = need;
    s->tally->needs++;
  }
  while (s->fetches_count < OUT_MAX &&
         hb_ordering_take_fetch(s->driver.core, &s->fetches[s->fetches_count])) {
    s->fetches_count++;
    s->tally->fetches++;
  }
}

static void answer_one(struct scenario *s) {
  if (s->needs_count && chance(s, 60)) {
    size_t at = below(s, s->needs_count);
    struct hb_need *need = s->needs[at];
    s->needs[at] = s->needs[--s->needs_count];
    hb_fake_answer(&s->driver.store, need);
    say(s, "  NEED of batch %" PRIu64 " answered\n",
        ((const struct hb_test_batch *)need->batch)->number);
    if (chance(s, 10)) {
      need->items[below(s, need->count)].verdict = HB_VERDICT_MOVED;
      s->tally->moved++;
    }
    hb_ordering_answer_need(s->driver.core, need);
  } else if (s->fetches_count) {
    size_t at = below(s, s->fetches_count);
    struct hb_bundle_id id = s->fetches[at];
    s->fetches[at] = s->fetches[--s->fetches_count];
    struct hb_bytes *block = hb_fake_fetch(&s->driver.store, id);
    bool readable = s->calm || !chance(s, 5);
    s->tally->unreadable += !readable;
    say(s, "  FETCH of bundle %" PRIu64 "/%" PRIu64 "/%" PRIu32 "%s\n", id.stream, id.commit,
        id.part, readable ? "" : " fails");
    hb_ordering_fetched(s->driver.core, id, readable ? block : NULL);
  }
}

/* A reader that looked before a commit and answers after it. */
static void look_before_the_commit(struct scenario *s) {
  for (size_t i = 0; i < s->needs_count; i++) {
    if (!chance(s, 30)) continue;
    struct hb_need *need = s->needs[i];
    hb_fake_answer(&s->driver.store, need);
    hb_ordering_answer_need(s->driver.core, need);
    s->needs[i--] = s->needs[--s->needs_count];
  }
}

/* ---- commits */

static void forget(struct scenario *s, struct hb_test_batch *batch) {
  assert_ptr_equal(s->pending[batch->number], batch);
  s->pending[batch->number] = NULL;
  hb_test_batch_destroy(batch);
}

/* Order within a call: nothing sent before it may still be pending. */
static void check_call_order(struct scenario *s, const struct hb_test_batch *batch) {
  for (uint64_t i = 0; i < batch->number; i++) {
    if (s->pending[i]) assert_true(s->pending[i]->batch.call != batch->batch.call);
  }
}

static int stream_at(const struct scenario *s, uint64_t id) {
  for (int i = 0; i < STREAMS; i++) {
    if (s->ids[i] == id) return i;
  }
  return -1;
}

struct answered {
  struct hb_test_batch *items[PENDING_MAX];
  size_t count;
};

static void take_answers(struct scenario *s, struct answered *answered) {
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(s->driver.core))) {
    struct hb_test_batch *test = (struct hb_test_batch *)batch;
    if (batch->error.code == HB_OK) {
      if (answered->count) assert_true(answered->items[answered->count - 1]->number < test->number);
      answered->items[answered->count++] = test;
    } else {
      assert_int_equal(batch->error.code, HB_NOT_FOUND);
      assert_int_equal(stream_at(s, batch->stream), -1);
      forget(s, test);
    }
  }
}

static void judge(struct scenario *s, struct answered *answered, const int64_t *frontiers) {
  for (int i = 0; i < STREAMS; i++) {
    struct hb_test_batch *mine[PENDING_MAX];
    size_t count = 0;
    for (size_t k = 0; k < answered->count; k++) {
      if (answered->items[k]->batch.stream == s->ids[i]) mine[count++] = answered->items[k];
    }
    struct hb_fake_stream *stored = hb_fake_find(&s->driver.store, s->ids[i]);
    naive_commit(&s->models[i], mine, count, stored, frontiers[i], s->disk_reserve,
                 s->driver.now.served_ms);
    struct hb_stream_status status = hb_driver_status(&s->driver, s->ids[i]);
    naive_check(&s->models[i], stored, &status);
    if (chance(s, 10)) naive_check_stored(&s->models[i], stored);
  }
  for (size_t k = 0; k < answered->count; k++) {
    const struct hb_batch *batch = &answered->items[k]->batch;
    for (uint32_t n = 0; n < batch->count; n++) s->tally->refused[batch->decisions[n].reason]++;
    check_call_order(s, answered->items[k]);
    forget(s, answered->items[k]);
  }
}

static void check_commit(const struct scenario *s, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->bundles_count; i++) {
    /* An old sequence in a new bundle. */
    struct hb_block block;
    assert_int_equal(hb_block_decode(hb_bytes_view(commit->bundles[i].block), &block, NULL), HB_OK);
    int at = stream_at(s, commit->bundles[i].id.stream);
    s->tally->rewrites += naive_has(&s->models[at], hb_block_sequence(&block, 0));
  }
  s->tally->gap_rows += (unsigned)commit->gaps_count;
  s->tally->gone_rows += (unsigned)commit->gone_gaps_count;
  for (size_t i = 0; i < commit->gaps_count; i++) {
    const struct hb_gap *gap = &commit->gaps[i].gap;
    assert_true(gap->first_seen_served_ms + 10000 <= s->driver.now.served_ms);
  }
}

/* Everything in the core comes back unavailable; the core is built again from the store. */
static void rebuild(struct scenario *s) {
  say(s, "  the core is built anew\n");
  hb_ordering_fail(s->driver.core);
  for (size_t i = 0; i < s->needs_count; i++) {
    hb_ordering_answer_need(s->driver.core, s->needs[i]);
  }
  s->needs_count = s->fetches_count = 0;
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(s->driver.core))) {
    assert_true(batch->error.code == HB_UNAVAILABLE || batch->error.code == HB_NOT_FOUND);
    forget(s, (struct hb_test_batch *)batch);
  }
  for (uint64_t i = 0; i < s->submitted; i++) assert_null(s->pending[i]);
  hb_driver_restart(&s->driver);
  hb_ordering_set_disk_reserve(s->driver.core, s->disk_reserve);
  for (int i = 0; i < STREAMS; i++) {
    struct hb_fake_stream *stored = hb_fake_find(&s->driver.store, s->ids[i]);
    naive_reload(&s->models[i], stored, s->driver.now.served_ms);
    struct hb_stream_status status = hb_driver_status(&s->driver, s->ids[i]);
    naive_check(&s->models[i], stored, &status);
    naive_check_stored(&s->models[i], stored);
  }
}

static bool commit_once(struct scenario *s) {
  int64_t frontiers[STREAMS];
  static struct answered answered;
  answered.count = 0;
  take_answers(s, &answered); /* batches of removed streams */
  assert_int_equal(answered.count, 0);
  for (int i = 0; i < STREAMS; i++) {
    frontiers[i] = hb_fake_find(&s->driver.store, s->ids[i])->record.frontier;
  }
  const struct hb_commit *commit = hb_ordering_decide(s->driver.core, s->driver.now);
  if (!commit) return false;
  check_commit(s, commit);
  say(s, "  commit %" PRIu64 ": %zu blocks, %zu bundles, %zu drained\n", commit->number,
      commit->blocks_count, commit->bundles_count, commit->drained_count);
  while (!s->calm && chance(s, 30)) submit_one(s);
  if (chance(s, 20)) look_before_the_commit(s);
  if (chance(s, 30)) answer_one(s);
  if (!s->calm && chance(s, 3)) {
    bool stored = chance(s, 50);
    say(s, "  the write fails%s\n", stored ? ", but is there" : "");
    if (stored) hb_fake_apply(&s->driver.store, commit);
    s->tally->failed_writes++;
    rebuild(s);
    return true;
  }
  hb_fake_apply(&s->driver.store, commit);
  hb_ordering_committed(s->driver.core, commit);
  take_answers(s, &answered);
  judge(s, &answered, frontiers);
  return true;
}

/* ---- the scenario */

static void replace_stream(struct scenario *s) {
  int at = (int)below(s, STREAMS);
  hb_ordering_remove_stream(s->driver.core, s->ids[at]);
  hb_fake_remove_stream(&s->driver.store, s->ids[at]);
  say(s, "  stream %" PRIu64 " is removed\n", s->ids[at]);
  add_stream(s, at);
}

static void change_limits(struct scenario *s) {
  struct hb_fake_stream *stored = hb_fake_find(&s->driver.store, s->ids[below(s, STREAMS)]);
  stored->config.limits.ahead_max = 1 + below(s, 300);
  stored->config.limits.gaps_max = 1 + below(s, 30);
  stored->config.limits.held_events_max = 1 + below(s, 200);
  say(s, "  stream %" PRIu64 ": ahead %" PRIu64 ", events %" PRIu64 ", gaps %" PRIu64 "\n",
      stored->id, (uint64_t)stored->config.limits.ahead_max,
      (uint64_t)stored->config.limits.held_events_max, (uint64_t)stored->config.limits.gaps_max);
  hb_ordering_update_stream(s->driver.core, stored->id, &stored->config);
}

static void step(struct scenario *s) {
  uint64_t what = below(s, 100);
  s->driver.now.served_ms += below(s, 900);
  s->driver.now.wall_ms += below(s, 900);
  if (what < 40) {
    submit_one(s);
  } else if (what < 55) {
    take_questions(s);
  } else if (what < 68) {
    answer_one(s);
  } else if (what < 96) {
    (void)commit_once(s);
  } else if (what < 97) {
    rebuild(s);
  } else if (what < 98) {
    if (chance(s, 50)) {
      replace_stream(s);
    } else {
      change_limits(s);
    }
  } else {
    s->disk_reserve = chance(s, 30);
    say(s, "  disk reserve %s\n", s->disk_reserve ? "reached" : "free");
    hb_ordering_set_disk_reserve(s->driver.core, s->disk_reserve);
  }
}

static void settle(struct scenario *s) {
  size_t commits = 0;
  for (int idle = 0; idle < 3; idle++) {
    take_questions(s);
    if (s->needs_count + s->fetches_count > 0) idle = 0;
    while (s->needs_count + s->fetches_count > 0) answer_one(s);
    while (hb_ordering_has_work(s->driver.core) && commit_once(s)) {
      idle = 0;
      assert_true(++commits < SETTLED_AFTER); /* work that makes more work never ends */
    }
  }
}

/* Fill every gap: what is released then is everything, in order (I11). */
static void fill_gaps(struct scenario *s, int at) {
  for (int round = 0; round < 4000; round++) {
    struct hb_stream_status status = hb_driver_status(&s->driver, s->ids[at]);
    if (!status.gaps_total) return;
    struct hb_test_event events[HB_STATUS_GAPS_MAX];
    for (uint32_t i = 0; i < status.gaps_count; i++) {
      int64_t missing = status.gaps[i].start;
      events[i] = event_of(missing, (uint64_t)missing % 1000);
    }
    if (s->submitted == PENDING_MAX) return;
    struct hb_test_batch *batch = hb_test_batch_create(s->ids[at], 99, events, status.gaps_count);
    batch->number = s->submitted;
    s->pending[s->submitted++] = batch;
    hb_ordering_submit(s->driver.core, &batch->batch);
    take_questions(s);
    while (s->needs_count + s->fetches_count > 0) answer_one(s);
    while (hb_ordering_has_work(s->driver.core) && commit_once(s)) take_questions(s);
  }
}

static void check_filled(struct scenario *s, int at) {
  struct hb_stream_status status = hb_driver_status(&s->driver, s->ids[at]);
  if (status.gaps_total || status.record.frontier < status.record.complete_to) return;
  const struct naive_stream *model = &s->models[at];
  assert_int_equal((uint64_t)status.record.frontier - (uint64_t)model->first, model->events_count);
  assert_int_equal(status.held_events, 0);
  assert_int_equal(status.held_bytes, 0);
  s->tally->filled++;
}

static void check_end(struct scenario *s) {
  rebuild(s); /* what could not be read is asked for anew */
  s->calm = true;
  s->disk_reserve = false;
  hb_ordering_set_disk_reserve(s->driver.core, false);
  settle(s);
  for (int i = 0; i < STREAMS; i++) {
    if (s->models[i].frozen) fill_gaps(s, i);
  }
  settle(s);
  for (int i = 0; i < STREAMS; i++) check_filled(s, i);
}

static struct hb_ordering_options small_sizes(struct scenario *s) {
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.commit_bytes = 300 + below(s, 6000);
  options.release_stream_bytes = 200 + below(s, 3000);
  options.release_bytes = options.release_stream_bytes + below(s, 4000);
  options.block_bytes = 60 + below(s, 900);
  options.bundle_bytes = 100 + below(s, 2000);
  options.fetch_ahead_bytes = 200 + below(s, 4000);
  options.limits.held_memory_max = chance(s, 60) ? 300 + below(s, 9000) : 1 << 24;
  return options;
}

/* What a step draws depends on the seed and its number, not on the steps before it. */
static void begin_step(struct scenario *s, uint64_t seed, uint64_t number) {
  s->random = seed * 7919 + (number << 32);
  (void)random_of(s);
}

void hb_scenario_run(uint64_t seed, const bool *keep, bool tell, struct hb_scenario_tally *tally) {
  static struct scenario s;
  memset(&s, 0, sizeof s);
  s.tell = tell;
  s.tally = tally;
  begin_step(&s, seed, HB_SCENARIO_STEPS);
  struct hb_ordering_options options = small_sizes(&s);
  s.window = 20 + (int64_t)below(&s, 300);
  hb_driver_start(&s.driver, &options);
  for (int i = 0; i < STREAMS; i++) add_stream(&s, i);
  for (uint64_t i = 0; i < HB_SCENARIO_STEPS; i++) {
    if (!keep[i]) continue;
    say(&s, "step %" PRIu64 "\n", i);
    begin_step(&s, seed, i);
    step(&s);
  }
  say(&s, "the end\n");
  begin_step(&s, seed, HB_SCENARIO_STEPS + 1);
  check_end(&s);
  rebuild(&s);
  hb_driver_stop(&s.driver);
  for (int i = 0; i < STREAMS; i++) naive_done(&s.models[i]);
}
