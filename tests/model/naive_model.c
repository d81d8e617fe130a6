/* Decides outcomes and releases again, from the rules alone and as slowly as it likes. */
#include "tests/model/naive_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"

void naive_done(struct naive_stream *model) {
  free(model->events);
  free(model->sights);
  memset(model, 0, sizeof *model);
}

static size_t place_of(const struct naive_stream *model, int64_t sequence) {
  size_t at = 0;
  size_t high = model->events_count;
  while (at < high) {
    size_t middle = (at + high) / 2;
    if (model->events[middle].sequence < sequence) {
      at = middle + 1;
    } else {
      high = middle;
    }
  }
  return at;
}

static const struct naive_event *find(const struct naive_stream *model, int64_t sequence) {
  size_t at = place_of(model, sequence);
  bool there = at < model->events_count && model->events[at].sequence == sequence;
  return there ? &model->events[at] : NULL;
}

bool naive_has(const struct naive_stream *model, int64_t sequence) {
  return find(model, sequence) != NULL;
}

static void insert(struct naive_stream *model, int64_t sequence, uint32_t content) {
  hb_reserve((void **)&model->events, &model->events_cap, model->events_count + 1,
             sizeof *model->events);
  size_t at = place_of(model, sequence);
  memmove(model->events + at + 1, model->events + at,
          (model->events_count - at) * sizeof *model->events);
  model->events[at] = (struct naive_event){sequence, content};
  model->events_count++;
}

static void erase(struct naive_stream *model, int64_t sequence) {
  size_t at = place_of(model, sequence);
  memmove(model->events + at, model->events + at + 1,
          (model->events_count - at - 1) * sizeof *model->events);
  model->events_count--;
}

int64_t naive_complete_to(const struct naive_stream *model) {
  int64_t at = model->first;
  for (size_t i = 0; i < model->events_count && model->events[i].sequence == at; i++) at++;
  return at;
}

static size_t gaps(const struct naive_stream *model) {
  size_t count = 0;
  int64_t at = model->first;
  for (size_t i = 0; i < model->events_count; i++) {
    count += model->events[i].sequence != at;
    at = model->events[i].sequence + 1;
  }
  return count;
}

/* ---- when a gap was first seen */

static void add_sight(struct naive_stream *model, int64_t from, int64_t to, uint64_t at_ms) {
  if (from >= to) return;
  hb_reserve((void **)&model->sights, &model->sights_cap, model->sights_count + 1,
             sizeof *model->sights);
  model->sights[model->sights_count++] = (struct naive_sight){from, to, at_ms};
}

static uint64_t first_seen(const struct naive_stream *model, int64_t sequence) {
  for (size_t i = 0; i < model->sights_count; i++) {
    const struct naive_sight *sight = &model->sights[i];
    if (sight->from <= sequence && sequence < sight->to) return sight->at_ms;
  }
  fail_msg("a gap that was never seen");
  return 0;
}

static void note_sights(struct naive_stream *model, int64_t before, uint64_t now_ms) {
  if (!model->events_count) return;
  add_sight(model, before, model->events[model->events_count - 1].sequence, now_ms);
}

/* ---- one commit */

/* An event of the commit, with what became of it. */
struct candidate {
  const struct hb_event *event;
  const struct hb_decision *decision;
};

struct commit_view {
  struct candidate *items;
  size_t items_count, items_cap;
};

static void add_candidate(struct commit_view *view, const struct hb_event *event,
                          const struct hb_decision *decision) {
  hb_reserve((void **)&view->items, &view->items_cap, view->items_count + 1, sizeof *view->items);
  view->items[view->items_count++] = (struct candidate){event, decision};
}

static void freeze(struct naive_stream *model, struct hb_test_batch **batches, size_t count) {
  for (size_t i = 0; i < count && !model->frozen; i++) {
    const struct hb_batch *batch = &batches[i]->batch;
    for (uint32_t k = 0; k < batch->count; k++) {
      int64_t sequence = batch->events[k].sequence;
      if (sequence == INT64_MAX || (model->frozen && sequence >= model->first)) continue;
      model->frozen = true;
      model->first = sequence;
    }
  }
}

static void expect(const struct hb_decision *decision, enum hb_outcome outcome,
                   enum hb_reason reason) {
  if (decision->outcome == outcome && decision->reason == reason) return;
  fail_msg("outcome %d reason %d, the model says outcome %d reason %d", decision->outcome,
           decision->reason, outcome, reason);
}

static const struct candidate *find_candidate(const struct commit_view *view, int64_t sequence) {
  for (size_t i = 0; i < view->items_count; i++) {
    if (view->items[i].event->sequence == sequence) return &view->items[i];
  }
  return NULL;
}

/* A copy of something: the same content is a duplicate, other content a conflict. */
static void expect_copy(struct naive_stream *model, const struct hb_decision *decision, bool same) {
  expect(decision, same ? HB_OUTCOME_DUPLICATE : HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  if (same) {
    model->counters.duplicate++;
  } else {
    model->counters.conflict++;
  }
}

static void judge_known(struct naive_stream *model, const struct hb_event *event,
                        const struct hb_decision *decision, struct commit_view *firsts,
                        struct commit_view *copies) {
  const struct naive_event *there = find(model, event->sequence);
  if (event->sequence == INT64_MAX) {
    expect(decision, HB_OUTCOME_OUT_OF_RANGE, HB_REASON_NONE);
  } else if (event->sequence < model->first) {
    expect(decision, HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE);
    model->counters.before_first++;
  } else if (there) {
    expect_copy(model, decision, there->content == hb_test_content(event));
  } else if (find_candidate(firsts, event->sequence)) {
    add_candidate(copies, event, decision);
  } else {
    add_candidate(firsts, event, decision);
  }
}

static int by_sequence(const void *a, const void *b) {
  int64_t x = ((const struct candidate *)a)->event->sequence;
  int64_t y = ((const struct candidate *)b)->event->sequence;
  return (x > y) - (x < y);
}

static size_t held_events(const struct naive_stream *model, int64_t frontier) {
  return model->events_count - place_of(model, frontier);
}

/* What must be said of a new event that the walk did not take; the model already contains it. */
static enum hb_reason refusal(const struct naive_stream *model, const struct hb_event *event,
                              const struct hb_fake_stream *stored, bool disk_reserve,
                              int64_t complete_to, size_t gaps_before) {
  const struct hb_stream_limits *limits = &stored->config.limits;
  size_t gaps_now = gaps(model);
  if (disk_reserve) return HB_REASON_DISK_RESERVE;
  if ((uint64_t)event->sequence - (uint64_t)complete_to >= limits->ahead_max) {
    return HB_REASON_AHEAD;
  }
  if (gaps_now > gaps_before && gaps_now > limits->gaps_max) return HB_REASON_GAPS;
  if (held_events(model, stored->record.frontier) > limits->held_events_max) {
    return HB_REASON_HELD_EVENTS;
  }
  return HB_REASON_NONE;
}

/* A refusal for bytes must be near the limit: the codec's bound on what an event costs counts, and
 * bundles that the same commit rewrites afterwards. */
static void check_held_bytes(const struct naive_stream *model, const struct hb_fake_stream *stored,
                             const struct hb_event *event, size_t slack) {
  assert_true(model->held_bytes + hb_fake_held_bytes(stored) + event->frame_size + slack >
              stored->config.limits.held_bytes_max);
}

static void judge_firsts(struct naive_stream *model, struct commit_view *firsts,
                         const struct hb_fake_stream *stored, int64_t frontier_before,
                         bool disk_reserve) {
  if (firsts->items_count) {
    qsort(firsts->items, firsts->items_count, sizeof *firsts->items, by_sequence);
  }
  for (size_t i = 0; i < firsts->items_count; i++) {
    const struct candidate *item = &firsts->items[i];
    int64_t sequence = item->event->sequence;
    int64_t complete_to = naive_complete_to(model);
    size_t gaps_before = gaps(model);
    insert(model, sequence, hb_test_content(item->event));
    bool walked = sequence >= frontier_before && sequence < stored->record.frontier;
    enum hb_reason reason = HB_REASON_NONE;
    if (!walked) {
      reason = refusal(model, item->event, stored, disk_reserve, complete_to, gaps_before);
    }
    if (!reason && !walked && item->decision->reason == HB_REASON_HELD_BYTES) {
      check_held_bytes(model, stored, item->event, 200 + 40 * firsts->items_count);
      reason = HB_REASON_HELD_BYTES;
    }
    if (reason) {
      expect(item->decision, HB_OUTCOME_WINDOW_FULL, reason);
      erase(model, sequence);
    } else {
      expect(item->decision, HB_OUTCOME_STORED, HB_REASON_NONE);
      model->counters.stored++;
      model->counters.held += !walked;
    }
  }
}

static void judge_copies(struct naive_stream *model, const struct commit_view *firsts,
                         const struct commit_view *copies) {
  for (size_t i = 0; i < copies->items_count; i++) {
    const struct candidate *copy = &copies->items[i];
    const struct candidate *first = find_candidate(firsts, copy->event->sequence);
    HB_ASSERT(first);
    if (first->decision->outcome == HB_OUTCOME_WINDOW_FULL) {
      expect(copy->decision, HB_OUTCOME_WINDOW_FULL, (enum hb_reason)first->decision->reason);
    } else {
      expect_copy(model, copy->decision,
                  hb_test_content(copy->event) == hb_test_content(first->event));
    }
  }
}

void naive_commit(struct naive_stream *model, struct hb_test_batch **batches, size_t count,
                  const struct hb_fake_stream *stored, int64_t frontier_before, bool disk_reserve,
                  uint64_t now_ms) {
  if (!model->frozen) {
    freeze(model, batches, count);
    frontier_before = model->first;
  }
  struct commit_view firsts = {0};
  struct commit_view copies = {0};
  int64_t highest_before =
      model->events_count ? model->events[model->events_count - 1].sequence : model->first;
  for (size_t i = 0; i < count; i++) {
    const struct hb_batch *batch = &batches[i]->batch;
    for (uint32_t k = 0; k < batch->count; k++) {
      judge_known(model, &batch->events[k], &batch->decisions[k], &firsts, &copies);
    }
  }
  judge_firsts(model, &firsts, stored, frontier_before, disk_reserve);
  judge_copies(model, &firsts, &copies);
  model->held_bytes = hb_fake_held_bytes(stored);
  note_sights(model, highest_before, now_ms);
  free(firsts.items);
  free(copies.items);
}

/* ---- the whole */

struct visit {
  const struct naive_stream *model;
  size_t count;
};

static void check_stored(void *context, int64_t sequence, struct hb_slice frame) {
  struct visit *visit = context;
  const struct naive_event *event = find(visit->model, sequence);
  HB_ASSERT(event);
  assert_int_equal(event->content, hb_test_frame_content(frame));
  visit->count++;
}

static void check_gaps(const struct naive_stream *model, const struct hb_stream_status *status) {
  assert_int_equal(status->gaps_total, gaps(model));
  uint32_t at = 0;
  int64_t covered = model->first;
  for (size_t i = 0; i < model->events_count && at < status->gaps_count; i++) {
    int64_t sequence = model->events[i].sequence;
    if (sequence != covered) {
      assert_int_equal(status->gaps[at].start, covered);
      assert_int_equal(status->gaps[at].end, sequence);
      assert_int_equal(status->gaps[at].first_seen_served_ms, first_seen(model, covered));
      at++;
    }
    covered = sequence + 1;
  }
  assert_int_equal(at, status->gaps_count);
}

static void check_counters(const struct hb_stream_counters *a, const struct hb_stream_counters *b) {
  assert_int_equal(a->stored, b->stored);
  assert_int_equal(a->duplicate, b->duplicate);
  assert_int_equal(a->conflict, b->conflict);
  assert_int_equal(a->before_first, b->before_first);
  assert_int_equal(a->held, b->held);
  assert_int_equal(a->late, 0);
}

void naive_check(const struct naive_stream *model, const struct hb_fake_stream *stored,
                 const struct hb_stream_status *status) {
  const struct hb_frontier *record = &status->record;
  check_counters(&record->counters, &model->counters);
  assert_int_equal(record->frozen, model->frozen);
  assert_int_equal(record->any, model->events_count > 0);
  if (!model->frozen) return;
  assert_int_equal(record->first_sequence, model->first);
  assert_int_equal(record->complete_to, naive_complete_to(model));
  if (record->any) {
    assert_int_equal(record->highest, model->events[model->events_count - 1].sequence);
  }
  assert_int_equal(status->held_events, held_events(model, record->frontier));
  assert_int_equal(status->held_bytes, hb_fake_held_bytes(stored));
  assert_true(status->held_bytes <= stored->config.limits.held_bytes_max);
  check_gaps(model, status);
}

void naive_check_stored(const struct naive_stream *model, const struct hb_fake_stream *stored) {
  hb_fake_check(stored);
  struct visit visit = {.model = model};
  hb_fake_each(stored, check_stored, &visit);
  assert_int_equal(visit.count, model->events_count);
}

static void load_event(void *context, int64_t sequence, struct hb_slice frame) {
  insert(context, sequence, hb_test_frame_content(frame));
}

/* Each gap takes the oldest row that overlaps it, else it is seen now. */
static void reload_sights(struct naive_stream *model, const struct hb_fake_stream *stored,
                          uint64_t now_ms) {
  model->sights_count = 0;
  int64_t covered = model->first;
  for (size_t i = 0; i < model->events_count; i++) {
    int64_t sequence = model->events[i].sequence;
    uint64_t at_ms = now_ms;
    for (size_t k = 0; k < stored->gaps_count; k++) {
      const struct hb_gap *row = &stored->gaps[k];
      bool overlaps = row->start < sequence && covered < row->end;
      if (overlaps && row->first_seen_served_ms < at_ms) at_ms = row->first_seen_served_ms;
    }
    add_sight(model, covered, sequence, at_ms);
    covered = sequence + 1;
  }
}

void naive_reload(struct naive_stream *model, const struct hb_fake_stream *stored,
                  uint64_t now_ms) {
  model->events_count = 0;
  model->frozen = stored->record.frozen;
  model->first = stored->record.first_sequence;
  model->counters = stored->record.counters;
  hb_fake_each(stored, load_event, model);
  model->held_bytes = hb_fake_held_bytes(stored);
  reload_sights(model, stored, now_ms);
}
