/* Decides the outcome of each event.
 *
 * Pass 1 knows no limits: events below first_sequence and at INT64_MAX, events at covered
 * sequences by their verdict, and of all others who came first. The release walk then stores what
 * it can write to the log. Pass 2 tests the other first copies in ascending order, each against
 * what the stream would be with it: held bytes, events and gaps after this commit, and complete_to
 * as it is when everything below the event has been settled, so the order of arrival within a
 * commit never decides whether an event fits. Where several limits refuse, the first of
 * DISK_RESERVE, AHEAD, GAPS, HELD_EVENTS, HELD_BYTES, SERVER_MEMORY is told. Copies share the fate
 * of the first. Sorting by sequence is stable, so arrival order decides within a sequence. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

/* What one more run can cost at most: a page in each of the two indexes, and some of their tops. */
enum { INDEX_STEP = 4 * (HB_PAGE_SPANS * sizeof(struct hb_span) + sizeof(struct hb_page)) };

static struct hb_decision *decision_of(const struct hb_round *round, const struct hb_item *item) {
  return &round->batches[item->batch]->decisions[item->index];
}

void hb_admit_decide(struct hb_decision *decision, enum hb_outcome outcome, enum hb_reason reason) {
  decision->outcome = (uint8_t)outcome;
  decision->reason = (uint8_t)reason;
}

/* ---- refusals that are kept aside, and events that came before */

void hb_admit_refuse(struct hb_ordering *core, struct hb_core_stream *stream,
                     const struct hb_item *item, enum hb_outcome outcome, enum hb_reason reason) {
  const struct hb_batch *batch = core->round.batches[item->batch];
  bool kept = hb_keep(core, stream, outcome, &batch->events[item->index], batch->receipt);
  hb_admit_decide(&batch->decisions[item->index], outcome, kept ? reason : HB_REASON_QUOTA);
  if (outcome == HB_OUTCOME_CONFLICT) {
    stream->record.counters.conflict++;
  } else {
    stream->record.counters.before_first++;
  }
}

static void duplicate(struct hb_core_stream *stream, struct hb_decision *decision,
                      enum hb_reason reason) {
  hb_admit_decide(decision, HB_OUTCOME_DUPLICATE, reason);
  stream->record.counters.duplicate++;
}

void hb_admit_verdict(struct hb_ordering *core, struct hb_core_stream *stream,
                      const struct hb_item *item) {
  struct hb_decision *decision = decision_of(&core->round, item);
  switch ((enum hb_verdict)decision->verdict) {
    case HB_VERDICT_EQUAL:
      duplicate(stream, decision, HB_REASON_NONE);
      return;
    case HB_VERDICT_TRUNCATED:
      duplicate(stream, decision, HB_REASON_UNVERIFIED);
      return;
    case HB_VERDICT_DIFFERENT:
      hb_admit_refuse(core, stream, item, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
      return;
    case HB_VERDICT_CHAIN:
      hb_admit_refuse(core, stream, item, HB_OUTCOME_CONFLICT, HB_REASON_CHAIN_CONFLICT);
      return;
    case HB_VERDICT_VOID:
      hb_admit_decide(decision, HB_OUTCOME_LATE, HB_REASON_NONE);
      stream->record.counters.late++;
      return;
    case HB_VERDICT_NONE:
    case HB_VERDICT_MOVED:
      break;
  }
  HB_UNREACHABLE();
}

/* ---- pass 1 */

/* The lowest valid sequence of the first batch that has one. */
static void freeze_from_first_seen(struct hb_ordering *core, struct hb_core_stream *stream) {
  for (size_t i = 0; i < core->round.count; i++) {
    const struct hb_batch *batch = core->round.batches[i];
    if (!batch || batch->stream != stream->id) continue;
    int64_t lowest = INT64_MAX;
    for (uint32_t k = 0; k < batch->count; k++) {
      if (batch->events[k].sequence < lowest) lowest = batch->events[k].sequence;
    }
    if (lowest == INT64_MAX) continue;
    hb_core_freeze(stream, lowest);
    hb_outbox_touch(core, stream);
    return;
  }
}

void hb_admit_add_first(struct hb_ordering *core, size_t from, size_t to) {
  struct hb_round *round = &core->round;
  const struct hb_item *item = &round->items[from];
  const struct hb_batch *batch = round->batches[item->batch];
  round->firsts[round->firsts_count++] = (struct hb_first){
      .sequence = item->sequence,
      .event = &batch->events[item->index],
      .decision = &batch->decisions[item->index],
      .batch = batch,
      .items_from = from,
      .items_to = to,
  };
}

/* Items [from, to) have one sequence. */
static void sort_out(struct hb_ordering *core, struct hb_core_stream *stream, size_t from,
                     size_t to) {
  const struct hb_round *round = &core->round;
  int64_t sequence = round->items[from].sequence;
  bool is_beyond = stream->record.sealed && sequence >= stream->record.seal_end;
  if (sequence == INT64_MAX || is_beyond) {
    enum hb_reason reason = sequence == INT64_MAX ? HB_REASON_NONE : HB_REASON_SEALED;
    for (size_t i = from; i < to; i++) {
      hb_admit_decide(decision_of(round, &round->items[i]), HB_OUTCOME_OUT_OF_RANGE, reason);
    }
  } else if (sequence < stream->record.first_sequence) {
    for (size_t i = from; i < to; i++) {
      hb_admit_refuse(core, stream, &round->items[i], HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE);
    }
  } else if (decision_of(round, &round->items[from])->verdict != HB_VERDICT_NONE) {
    for (size_t i = from; i < to; i++) hb_admit_verdict(core, stream, &round->items[i]);
  } else {
    hb_admit_add_first(core, from, to);
  }
}

void hb_admit_first_copies(struct hb_ordering *core, struct hb_share *share) {
  struct hb_round *round = &core->round;
  struct hb_core_stream *stream = share->stream;
  if (!stream->record.frozen) freeze_from_first_seen(core, stream);
  hb_reserve((void **)&round->firsts, &round->firsts_cap, round->items_count,
             sizeof *round->firsts);
  share->firsts_from = round->firsts_count;
  if (stream->per_key) {
    hb_per_key_admit(core, share);
    share->firsts_to = round->firsts_count;
    return;
  }
  for (size_t from = share->items_from; from < share->items_to;) {
    size_t to = from + 1;
    while (to < share->items_to && round->items[to].sequence == round->items[from].sequence) to++;
    sort_out(core, stream, from, to);
    from = to;
  }
  share->firsts_to = round->firsts_count;
}

/* ---- pass 2 */

static bool is_ahead(const struct hb_hold *hold, int64_t sequence) {
  const struct hb_core_stream *stream = hold->stream;
  int64_t complete_to = stream->covered.base;
  if (hold->run.length && hold->run.start == complete_to) complete_to += hold->run.length;
  return (uint64_t)sequence - (uint64_t)complete_to >= stream->config.limits.ahead_max;
}

static bool continues_run(const struct hb_hold *hold, int64_t sequence) {
  return hold->run.length && hold->run.start + (int64_t)hold->run.length == sequence;
}

static enum hb_reason reason_to_refuse(struct hb_hold *hold, const struct hb_first *first) {
  const struct hb_ordering *core = hold->core;
  struct hb_core_stream *stream = hold->stream;
  const struct hb_stream_limits *limits = &stream->config.limits;
  if (core->disk_reserve) return HB_REASON_DISK_RESERVE;
  bool continues = continues_run(hold, first->sequence);
  if (!continues) hb_hold_flush_run(hold); /* complete_to and gaps are up to date */
  if (is_ahead(hold, first->sequence)) return HB_REASON_AHEAD;
  if (!continues) {
    bool full = hb_intervals_gaps(&stream->covered) >= limits->gaps_max;
    if (full && hb_intervals_splits(&stream->covered, first->sequence, first->sequence + 1)) {
      return HB_REASON_GAPS;
    }
  }
  if (stream->held.events + hold->run.length >= limits->held_events_max) {
    return HB_REASON_HELD_EVENTS;
  }
  if (hb_hold_bytes_with(hold, first->event->frame_size) > limits->held_bytes_max) {
    return HB_REASON_HELD_BYTES;
  }
  if (!continues && core->index_bytes + INDEX_STEP > core->options.limits.held_index_max) {
    return HB_REASON_SERVER_MEMORY;
  }
  return HB_REASON_NONE;
}

static void hold_first(struct hb_hold *hold, const struct hb_first *first) {
  struct hb_block_entry entry = {.sequence = first->sequence,
                                 .frame = first->event->frame,
                                 .frame_size = first->event->frame_size,
                                 .receipt = first->batch->receipt};
  hb_hold_add(hold, &entry, first->event->time.present);
  struct hb_frontier *record = &hold->stream->record;
  record->counters.stored++;
  record->counters.held++;
  if (!record->any || first->sequence > record->highest) record->highest = first->sequence;
  record->any = true;
  hb_admit_decide(first->decision, HB_OUTCOME_STORED, HB_REASON_NONE);
}

/* Memory that the next events need, asked for early: index and intervals of a wide disorder are
 * larger than any cache, and the events themselves lie in the order in which they came. */
struct ahead {
  size_t covered[2];
  size_t held[2];
};
enum { AHEAD_SPANS = 6, AHEAD_PAGE = 12 };

static void look_ahead(const struct hb_core_stream *stream, const struct hb_first *at,
                       const struct hb_first *end, struct ahead *ahead) {
  if (end - at <= AHEAD_PAGE) return;
  int64_t sooner = at[AHEAD_SPANS].sequence;
  int64_t later = at[AHEAD_PAGE].sequence;
  hb_intervals_expect(&stream->covered, sooner, later, ahead->covered);
  hb_held_expect(&stream->held, sooner, later, ahead->held);
  __builtin_prefetch(at[AHEAD_PAGE].event);
}

void hb_admit_held(struct hb_ordering *core, struct hb_share *share) {
  if (share->stream->per_key) return; /* hb_per_key_hold */
  size_t at = share->firsts_from + share->released;
  if (at == share->firsts_to) return;
  struct hb_hold hold = hb_hold_begin(core, share->stream, true);
  bool held = false;
  struct ahead ahead = {0};
  const struct hb_first *end = core->round.firsts + share->firsts_to;
  for (; at < share->firsts_to; at++) {
    const struct hb_first *first = &core->round.firsts[at];
    look_ahead(share->stream, first, end, &ahead);
    enum hb_reason reason = reason_to_refuse(&hold, first);
    if (reason) {
      hb_admit_decide(first->decision, HB_OUTCOME_WINDOW_FULL, reason);
    } else {
      hold_first(&hold, first);
      held = true;
    }
  }
  hb_hold_end(&hold);
  if (held) hb_outbox_touch(core, share->stream);
}

/* ---- copies */

static void settle_copy(struct hb_ordering *core, struct hb_core_stream *stream,
                        const struct hb_first *first, const struct hb_item *item) {
  struct hb_decision *decision = decision_of(&core->round, item);
  const struct hb_event *event = &core->round.batches[item->batch]->events[item->index];
  if (first->decision->outcome == HB_OUTCOME_WINDOW_FULL) {
    hb_admit_decide(decision, HB_OUTCOME_WINDOW_FULL, (enum hb_reason)first->decision->reason);
  } else if (hb_event_same(first->event, event)) {
    duplicate(stream, decision, HB_REASON_NONE);
  } else {
    hb_admit_refuse(core, stream, item, HB_OUTCOME_CONFLICT, HB_REASON_NONE);
  }
}

void hb_admit_copies(struct hb_ordering *core, const struct hb_share *share) {
  const struct hb_round *round = &core->round;
  for (size_t i = share->firsts_from; i < share->firsts_to; i++) {
    const struct hb_first *first = &round->firsts[i];
    for (size_t k = first->items_from + 1; k < first->items_to; k++) {
      settle_copy(core, share->stream, first, &round->items[k]);
    }
  }
}
