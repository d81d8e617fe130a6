/* PER_KEY mode against a model that knows only which event of which key was stored, in random
 * scenarios: copies, conflicts, limits, slow readers, failing ones, memory for next to nothing,
 * writes that fail with and without effect, restarts.
 *
 *   HB_SEED=n   this scenario only, told in words         HB_SEEDS=n   that many, from 1 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/per_key_rig.h"

enum { SEEDS = 400, STEPS = 400, KEYS = 6, CALLS = 4, PENDING = 2048, OUT = 32, STORED_MAX = 8192 };

static const char *const NAMES[KEYS] = {"", "a", "b", "cc", "ddd", "e"};

struct stored {
  int64_t sequence;
  uint32_t content;
};

struct model_key {
  bool begun;
  int64_t first;
  struct stored events[STORED_MAX];
  size_t count;
};

static struct scenario {
  uint64_t random;
  bool tell;
  struct hb_per_key_rig rig;
  struct model_key keys[KEYS];
  struct hb_test_batch *pending[PENDING];
  uint64_t submitted;
  struct hb_need *needs[OUT];
  size_t needs_count;
  struct hb_bundle_id fetches[OUT]; /* out */
  size_t fetches_count;
  int64_t window;
  bool disk_reserve;
} s;

static struct {
  unsigned refused[HB_REASON_HELD_EVENTS + 1];
  unsigned outcomes[HB_OUTCOME_WINDOW_FULL + 1];
  unsigned failed, records, contents, held, fetches, unreadable, rewrites, moved_aside, completed;
} tally;

static uint64_t random_of(void) {
  s.random += 0x9E3779B97F4A7C15u;
  uint64_t z = s.random;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static uint64_t below(uint64_t end) { return random_of() % end; }
static bool chance(unsigned percent) { return below(100) < percent; }

#define SAY(...)                     \
  do {                               \
    if (s.tell) printf(__VA_ARGS__); \
  } while (0)

static int key_index(struct hb_slice key) {
  for (int i = 0; i < KEYS; i++) {
    if (hb_slice_equal(key, hb_slice_text(NAMES[i]))) return i;
  }
  fail_msg("a key that nobody sent");
  return -1;
}

/* ---- the model */

static struct stored *model_find(struct model_key *key, int64_t sequence) {
  for (size_t i = 0; i < key->count; i++) {
    if (key->events[i].sequence == sequence) return &key->events[i];
  }
  return NULL;
}

static int64_t model_complete_to(struct model_key *key) {
  int64_t at = key->first;
  while (model_find(key, at)) at++;
  return at;
}

/* Where the key begins with this commit: the lowest initial event that is, or is like, the first
 * copy of its number. */
static void model_begin(struct model_key *key, int index, struct hb_test_batch **batches,
                        size_t count) {
  if (key->begun) return;
  bool found = false;
  int64_t lowest = 0;
  for (size_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < batches[i]->batch.count; k++) {
      const struct hb_event *event = &batches[i]->batch.events[k];
      if (!(event->flags & HB_EVENT_INITIAL) || event->sequence == INT64_MAX) continue;
      if (key_index(hb_event_key(event)) != index) continue;
      const struct stored *first = model_find(key, event->sequence);
      uint32_t content = first ? first->content : 0;
      for (size_t n = 0; !first && n <= i; n++) { /* the first copy of the commit */
        for (uint32_t m = 0; m < batches[n]->batch.count; m++) {
          const struct hb_event *other = &batches[n]->batch.events[m];
          if (other->sequence != event->sequence || key_index(hb_event_key(other)) != index) {
            continue;
          }
          content = hb_test_content(other);
          n = i;
          break;
        }
      }
      if (content != hb_test_content(event)) continue;
      if (!found || event->sequence < lowest) lowest = event->sequence;
      found = true;
    }
  }
  if (!found) return;
  key->begun = true;
  key->first = lowest;
  size_t kept = 0;
  for (size_t i = 0; i < key->count; i++) {
    if (key->events[i].sequence >= lowest) key->events[kept++] = key->events[i];
  }
  tally.moved_aside += (unsigned)(key->count - kept);
  key->count = kept;
}

struct refused {
  int key;
  int64_t sequence;
  int reason;
};

static void model_event(const struct hb_event *event, const struct hb_decision *decision,
                        struct refused *refused, size_t *refused_count) {
  int index = key_index(hb_event_key(event));
  struct model_key *key = &s.keys[index];
  tally.outcomes[decision->outcome]++;
  if (event->sequence == INT64_MAX) {
    assert_int_equal(decision->outcome, HB_OUTCOME_OUT_OF_RANGE);
    return;
  }
  if (key->begun && event->sequence < key->first) {
    assert_int_equal(decision->outcome, HB_OUTCOME_BEFORE_FIRST);
    return;
  }
  const struct stored *there = model_find(key, event->sequence);
  if (there) {
    bool same = there->content == hb_test_content(event);
    assert_int_equal(decision->outcome, same ? HB_OUTCOME_DUPLICATE : HB_OUTCOME_CONFLICT);
    return;
  }
  for (size_t i = 0; i < *refused_count; i++) { /* a copy shares the fate */
    if (refused[i].key != index || refused[i].sequence != event->sequence) continue;
    assert_int_equal(decision->outcome, HB_OUTCOME_WINDOW_FULL);
    assert_int_equal(decision->reason, refused[i].reason);
    return;
  }
  if (decision->outcome == HB_OUTCOME_WINDOW_FULL) {
    assert_true(*refused_count < 4096);
    refused[(*refused_count)++] = (struct refused){index, event->sequence, decision->reason};
    tally.refused[decision->reason]++;
    return;
  }
  assert_int_equal(decision->outcome, HB_OUTCOME_STORED);
  assert_true(key->count < STORED_MAX);
  key->events[key->count++] = (struct stored){event->sequence, hb_test_content(event)};
}

/* A refusal must have its reason in the end state of the commit. */
static void check_refusal(const struct refused *refused, const struct hb_stream_status *status) {
  struct model_key *key = &s.keys[refused->key];
  const struct hb_stream_limits *limits = &s.rig.config.limits;
  if (key->begun && refused->sequence == model_complete_to(key)) {
    /* It could have been released but for the slice, or for what is on disk before it. */
    const struct hb_key_record *row = hb_rig_row(&s.rig, NAMES[refused->key]);
    bool cut = s.rig.block_bytes * 2 + 200 > s.rig.options.release_stream_bytes;
    assert_true(cut || (row ? row->next : key->first) < refused->sequence);
  }
  switch (refused->reason) {
    case HB_REASON_AHEAD:
      assert_true(key->begun);
      assert_true((uint64_t)refused->sequence - (uint64_t)model_complete_to(key) >=
                  limits->ahead_max);
      return;
    case HB_REASON_HELD_EVENTS:
      assert_true(status->held_events >= limits->held_events_max);
      return;
    case HB_REASON_GAPS:
    case HB_REASON_HELD_BYTES:
      assert_true(limits->gaps_max < 100 || limits->held_bytes_max < 100000);
      return;
    case HB_REASON_SERVER_MEMORY:
      assert_true(s.rig.options.limits.held_index_max < 100000);
      return;
    default:
      assert_int_equal(refused->reason, HB_REASON_DISK_RESERVE);
      assert_true(s.disk_reserve);
  }
}

static int by_place(const void *a, const void *b) {
  const struct hb_rig_event *x = a;
  const struct hb_rig_event *y = b;
  int keys = strcmp(x->key, y->key);
  return keys ? keys : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Everything stored, and nothing else, is in log or bundles, once, with its content. */
static void check_stored(void) {
  size_t count;
  struct hb_rig_event *events = hb_rig_events(&s.rig, &count);
  size_t expected = 0;
  size_t asides = 0;
  for (int i = 0; i < KEYS; i++) expected += s.keys[i].count;
  for (size_t i = 0; i < count; i++) asides += events[i].aside;
  assert_int_equal(count, expected + asides);
  if (count) qsort(events, count, sizeof *events, by_place);
  for (size_t i = 0; i < count; i++) {
    if (events[i].aside) continue;
    if (i > 0) assert_true(by_place(&events[i - 1], &events[i]) < 0);
    struct model_key *key = &s.keys[key_index(hb_slice_text(events[i].key))];
    const struct stored *there = model_find(key, events[i].sequence);
    assert_non_null(there);
    assert_int_equal(there->content, events[i].content);
  }
  free(events);
}

static void model_reload(void) {
  size_t count;
  struct hb_rig_event *events = hb_rig_events(&s.rig, &count);
  for (int i = 0; i < KEYS; i++) {
    s.keys[i].count = 0;
    const struct hb_key_record *row = hb_rig_row(&s.rig, NAMES[i]);
    s.keys[i].begun = row || !s.rig.config.first_seen;
    s.keys[i].first = row ? row->first : s.rig.config.first_sequence;
  }
  for (size_t i = 0; i < count; i++) {
    if (events[i].aside) continue;
    struct model_key *key = &s.keys[key_index(hb_slice_text(events[i].key))];
    key->events[key->count++] = (struct stored){events[i].sequence, events[i].content};
  }
  free(events);
}

/* ---- steps */

static void submit(void) {
  struct hb_test_event events[40];
  size_t count = 1 + below(chance(30) ? 40 : 6);
  int run_key = (int)below(KEYS);
  int64_t base = s.rig.config.first_seen ? 100 : s.rig.config.first_sequence;
  bool in_order = chance(40);
  int64_t run = s.keys[run_key].begun && chance(70) ? model_complete_to(&s.keys[run_key]) : base;
  for (size_t i = 0; i < count; i++) {
    int index = in_order && chance(80) ? run_key : (int)below(KEYS);
    int64_t from = s.keys[index].begun ? model_complete_to(&s.keys[index]) : base;
    int64_t sequence = in_order && index == run_key
                           ? run++
                           : from + (int64_t)below((uint64_t)s.window) - (chance(20) ? 6 : 0);
    if (chance(1)) sequence = INT64_MAX;
    uint32_t content = (uint32_t)((uint64_t)sequence * 7 + (uint64_t)index) % 1000;
    if (chance(4)) content += 1000 + (uint32_t)below(3);
    events[i] = (struct hb_test_event){.sequence = sequence,
                                       .content = content,
                                       .key = NAMES[index],
                                       .size = 4 + content * 37 % 120};
    if (chance(30)) events[i].seconds = 1 + (int64_t)content;
    if (chance(6)) events[i].flags |= HB_EVENT_INITIAL;
    if (chance(2)) events[i].flags |= HB_EVENT_LAST;
  }
  if (s.submitted == PENDING) return;
  struct hb_test_batch *batch = hb_test_batch_create(HB_RIG_STREAM, below(CALLS), events, count);
  batch->number = s.submitted;
  s.pending[s.submitted++] = batch;
  SAY("  batch %" PRIu64 " call %" PRIu64 ":", batch->number, batch->batch.call);
  for (size_t i = 0; i < count; i++) {
    SAY(" %s%" PRId64 "=%" PRIu32 "%s", events[i].key, events[i].sequence, events[i].content,
        events[i].flags & HB_EVENT_INITIAL ? "i" : "");
  }
  SAY("\n");
  hb_ordering_submit(s.rig.core, &batch->batch);
}

static void take_questions(void) {
  while (s.needs_count < OUT) {
    struct hb_need *need = hb_ordering_take_need(s.rig.core);
    if (!need) return;
    s.needs[s.needs_count++] = need;
  }
}

static void answer_one(void) {
  if (!s.needs_count) return;
  size_t at = below(s.needs_count);
  struct hb_need *need = s.needs[at];
  s.needs[at] = s.needs[--s.needs_count];
  hb_rig_answer(&s.rig, need);
  SAY("  NEED of batch %" PRIu64 "\n", ((const struct hb_test_batch *)need->batch)->number);
  hb_ordering_answer_need(s.rig.core, need);
}

static void fetch_one(bool calm) {
  struct hb_bundle_id id;
  while (s.fetches_count < OUT && hb_ordering_take_fetch(s.rig.core, &id)) {
    s.fetches[s.fetches_count++] = id;
  }
  if (!s.fetches_count) return;
  size_t at = below(s.fetches_count);
  id = s.fetches[at];
  s.fetches[at] = s.fetches[--s.fetches_count];
  bool fails = !calm && chance(10);
  SAY("  FETCH of %" PRIu64 "/%" PRIu32 "%s\n", id.commit, id.part, fails ? ", fails" : "");
  struct hb_bytes *block = hb_rig_bundle(&s.rig, id);
  assert_non_null(block); /* it does not go before it was fetched */
  hb_ordering_fetched(s.rig.core, id, fails ? NULL : block);
  tally.fetches++;
  tally.unreadable += fails;
}

/* I8; but one bundle for a release, and one for a rewrite, may always be there. */
static void check_memory(void) {
  size_t largest;
  size_t bytes = hb_rig_resident_bytes(&s.rig, &largest);
  size_t max = (size_t)s.rig.options.limits.key_held_memory_max;
  assert_true(bytes <= max || bytes <= 2 * largest);
}

/* Readers that looked before a commit, and answer after it: records may be old by then. */
static struct hb_need *early[OUT];
static size_t early_count;

static void read_early(void) {
  early_count = 0;
  for (size_t i = 0; i < s.needs_count; i++) {
    if (!chance(30)) continue;
    hb_rig_answer(&s.rig, s.needs[i]);
    early[early_count++] = s.needs[i];
    s.needs[i--] = s.needs[--s.needs_count];
  }
}

static void answer_early(void) {
  while (early_count) hb_ordering_answer_need(s.rig.core, early[--early_count]);
}

static void forget(struct hb_test_batch *batch) {
  s.pending[batch->number] = NULL;
  hb_test_batch_destroy(batch);
}

static void judge(struct hb_test_batch **batches, size_t count) {
  static struct refused refused[4096];
  size_t refused_count = 0;
  for (int i = 0; i < KEYS; i++) model_begin(&s.keys[i], i, batches, count);
  for (size_t i = 0; i < count; i++) {
    for (uint64_t n = 0; n < batches[i]->number; n++) { /* order within a call */
      if (!s.pending[n]) continue;
      bool in_this_commit = false;
      for (size_t k = 0; k < i; k++) in_this_commit |= batches[k] == s.pending[n];
      assert_true(in_this_commit || s.pending[n]->batch.call != batches[i]->batch.call);
    }
    for (uint32_t k = 0; k < batches[i]->batch.count; k++) {
      model_event(&batches[i]->batch.events[k], &batches[i]->batch.decisions[k], refused,
                  &refused_count);
    }
  }
  struct hb_stream_status status;
  assert_true(hb_ordering_status(s.rig.core, HB_RIG_STREAM, s.rig.now, &status));
  for (size_t i = 0; i < refused_count; i++) check_refusal(&refused[i], &status);
  for (size_t i = 0; i < count; i++) forget(batches[i]);
  hb_rig_check(&s.rig);
  if (chance(20)) check_stored();
}

static void rebuild(void) {
  SAY("  restart\n");
  hb_ordering_fail(s.rig.core);
  for (size_t i = 0; i < s.needs_count; i++) hb_ordering_answer_need(s.rig.core, s.needs[i]);
  s.needs_count = 0;
  s.fetches_count = 0;
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(s.rig.core))) {
    assert_int_equal(batch->error.code, HB_UNAVAILABLE);
    forget((struct hb_test_batch *)batch);
  }
  for (uint64_t i = 0; i < s.submitted; i++) assert_null(s.pending[i]);
  hb_rig_recover(&s.rig);
  hb_ordering_set_disk_reserve(s.rig.core, s.disk_reserve);
  model_reload();
  hb_rig_check(&s.rig);
}

static bool commit_once(bool calm) {
  const struct hb_commit *commit = hb_ordering_decide(s.rig.core, s.rig.now);
  if (!commit) return false;
  SAY("  commit %" PRIu64 ": %zu blocks, %zu bundles, %zu drained, %zu keys\n", commit->number,
      commit->blocks_count, commit->bundles_count, commit->drained_count, commit->keys_count);
  if (!calm && chance(30)) submit();
  read_early();
  if (chance(30)) answer_one();
  while (s.fetches_count && chance(30)) fetch_one(calm);
  if (!calm && chance(4)) {
    bool stored = chance(50);
    if (stored) hb_rig_apply(&s.rig, commit);
    tally.failed++;
    answer_early();
    rebuild();
    return true;
  }
  hb_rig_apply(&s.rig, commit);
  if (chance(50)) answer_early();
  hb_ordering_committed(s.rig.core, commit);
  check_memory();
  answer_early();
  static struct hb_test_batch *batches[PENDING];
  size_t count = 0;
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(s.rig.core))) {
    assert_int_equal(batch->error.code, HB_OK);
    batches[count++] = (struct hb_test_batch *)batch;
  }
  judge(batches, count);
  return true;
}

static void settle(void) {
  for (int idle = 0; idle < 3; idle++) {
    take_questions();
    if (s.needs_count) idle = 0;
    while (s.needs_count) answer_one();
    unsigned fetches = tally.fetches;
    fetch_one(true);
    check_memory();
    if (tally.fetches != fetches) idle = 0;
    while (hb_ordering_has_work(s.rig.core) && commit_once(true)) idle = 0;
  }
}

/* What is complete is released, and nothing else (I11). */
static void check_end(void) {
  rebuild();
  settle();
  check_stored();
  check_memory();
  size_t count;
  struct hb_rig_event *events = hb_rig_events(&s.rig, &count);
  for (size_t i = 0; i < count; i++) assert_false(events[i].aside);
  free(events);
  for (int i = 0; i < KEYS; i++) {
    const struct hb_key_record *row = hb_rig_row(&s.rig, NAMES[i]);
    if (!s.keys[i].begun) {
      assert_null(row);
      continue;
    }
    int64_t end = model_complete_to(&s.keys[i]);
    assert_int_equal(row ? row->next : s.rig.config.first_sequence, end);
    tally.completed += row && row->complete;
  }
}

static void step(void) {
  uint64_t what = below(100);
  s.rig.now.served_ms += below(900);
  if (what < 40) {
    submit();
  } else if (what < 55) {
    take_questions();
  } else if (what < 66) {
    answer_one();
  } else if (what < 72) {
    fetch_one(false);
    check_memory();
  } else if (what < 96) {
    (void)commit_once(false);
  } else if (what < 98) {
    rebuild();
  } else {
    s.disk_reserve = chance(30);
    hb_ordering_set_disk_reserve(s.rig.core, s.disk_reserve);
  }
}

static void run(uint64_t seed, bool tell) {
  static const int64_t FIRSTS[] = {0, 1, -50, INT64_MIN + 6, INT64_C(1) << 62, INT64_MAX - 5000};
  memset(&s, 0, sizeof s);
  s.tell = tell;
  s.random = seed * 7919;
  s.window = 5 + (int64_t)below(60);
  struct hb_stream_config config = hb_rig_config(FIRSTS[below(sizeof FIRSTS / sizeof *FIRSTS)]);
  config.first_seen = chance(40);
  if (chance(25)) config.limits.ahead_max = 1 + below(40);
  if (chance(25)) config.limits.held_events_max = 1 + below(60);
  if (chance(25)) config.limits.gaps_max = 1 + below(10);
  if (chance(25)) config.limits.held_bytes_max = 300 + below(8000);
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.commit_bytes = 300 + below(6000);
  options.release_stream_bytes = 200 + below(3000);
  options.release_bytes = options.release_stream_bytes + below(4000);
  options.block_bytes = 60 + below(900);
  options.bundle_bytes = 100 + below(2000);
  if (chance(40)) options.limits.key_cache_max = 1 + below(2000);
  if (chance(20)) options.limits.held_index_max = 1500 + below(9000);
  if (chance(90)) options.limits.key_held_memory_max = 1 + below(chance(50) ? 1000 : 8000);
  hb_rig_start(&s.rig, &config, &options);
  model_reload();
  for (int i = 0; i < STEPS; i++) step();
  check_end();
  tally.records += s.rig.record_needs;
  tally.contents += s.rig.content_needs;
  tally.held += s.rig.held_needs;
  tally.rewrites += s.rig.rewrites;
  rebuild();
  hb_rig_stop(&s.rig);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_tally(void) {
  printf(
      "failed %u, records %u, contents %u, held %u, fetches %u (%u failed), rewrites %u, aside %u, "
      "complete %u; refused a %u b %u "
      "g %u m %u r %u e %u\n",
      tally.failed, tally.records, tally.contents, tally.held, tally.fetches, tally.unreadable,
      tally.rewrites, tally.moved_aside, tally.completed, tally.refused[HB_REASON_AHEAD],
      tally.refused[HB_REASON_HELD_BYTES], tally.refused[HB_REASON_GAPS],
      tally.refused[HB_REASON_SERVER_MEMORY], tally.refused[HB_REASON_DISK_RESERVE],
      tally.refused[HB_REASON_HELD_EVENTS]);
  assert_true(tally.failed && tally.records && tally.contents && tally.rewrites);
  assert_true(tally.held && tally.fetches && tally.unreadable);
  assert_true(tally.moved_aside && tally.completed);
  assert_true(tally.refused[HB_REASON_AHEAD] && tally.refused[HB_REASON_HELD_BYTES]);
  assert_true(tally.refused[HB_REASON_GAPS] && tally.refused[HB_REASON_SERVER_MEMORY]);
  assert_true(tally.refused[HB_REASON_DISK_RESERVE] && tally.refused[HB_REASON_HELD_EVENTS]);
  for (int i = HB_OUTCOME_STORED; i <= HB_OUTCOME_WINDOW_FULL; i++) {
    if (i != HB_OUTCOME_LATE) assert_true(tally.outcomes[i] > 0);
  }
}

/* Whatever happens in whatever order, the core does what the model says. */
static void agrees_with_the_model(void **state) {
  (void)state;
  uint64_t one = number_from("HB_SEED", 0);
  uint64_t last = one ? one : number_from("HB_SEEDS", SEEDS);
  for (uint64_t seed = one ? one : 1; seed <= last; seed++) {
    printf("HB_SEED=%" PRIu64 "\n", seed);
    run(seed, one != 0);
  }
  if (!one && last >= 100) check_tally();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_model)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
