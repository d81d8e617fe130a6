/* Decides the outcomes of a PER_KEY stream's events.
 *
 * As in GLOBAL mode, key by key: pass 1 knows no limits and finds the first copies, the walk
 * releases, pass 2 tests the other first copies in ascending order against ahead_max above their
 * key's complete_to, and against what the stream holds over all keys.
 *
 * A key begins at the stream's first_sequence. Where none is stated it begins at the lowest event
 * flagged `initial` of the first commit that has one; until then its events wait. What was held
 * below is then kept aside as BEFORE_FIRST, by a rewrite of its bundle (per_key_rewrite.c): it was
 * stored, so no quota applies. Once a key has begun, `initial` means nothing any more. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

static struct hb_decision *decision_of(const struct hb_round *round, const struct hb_item *item) {
  return &round->batches[item->batch]->decisions[item->index];
}

static const struct hb_event *event_of(const struct hb_round *round, const struct hb_item *item) {
  return &round->batches[item->batch]->events[item->index];
}

/* ---- the events of a commit by key: keys by arrival, then by sequence, then by arrival */

static struct hb_key_group *group_of(struct hb_ordering *core, struct hb_per_key *per_key,
                                     struct hb_key_state *key) {
  if (key->group) return &per_key->groups[key->group - 1];
  hb_key_use(core, key);
  hb_reserve((void **)&per_key->groups, &per_key->groups_cap, per_key->groups_count + 1,
             sizeof *per_key->groups);
  per_key->groups[per_key->groups_count] = (struct hb_key_group){.key = key};
  key->group = ++per_key->groups_count;
  return &per_key->groups[key->group - 1];
}

/* Counts per group; what can't be a sequence is decided and leaves. */
static void count_items(struct hb_ordering *core, struct hb_share *share) {
  struct hb_round *round = &core->round;
  struct hb_per_key *per_key = share->stream->per_key;
  size_t kept = share->items_from;
  hb_reserve((void **)&per_key->groups_of_items, &per_key->groups_of_items_cap,
             share->items_to - share->items_from, sizeof *per_key->groups_of_items);
  for (size_t i = share->items_from; i < share->items_to; i++) {
    struct hb_item item = round->items[i];
    if (item.sequence == INT64_MAX) {
      hb_admit_decide(decision_of(round, &item), HB_OUTCOME_OUT_OF_RANGE, HB_REASON_NONE);
      continue;
    }
    struct hb_key_state *key = hb_key_find(per_key, hb_event_key(event_of(round, &item)));
    HB_ASSERT(key && key->flags & HB_KEY_KNOWN);
    group_of(core, per_key, key)->items_to++;
    per_key->groups_of_items[kept - share->items_from] = (uint32_t)(key->group - 1);
    round->items[kept++] = item;
  }
  share->items_to = kept;
}

static void sort_items(struct hb_ordering *core, const struct hb_share *share) {
  struct hb_round *round = &core->round;
  struct hb_per_key *per_key = share->stream->per_key;
  size_t from = share->items_from;
  for (size_t i = 0; i < per_key->groups_count; i++) {
    struct hb_key_group *group = &per_key->groups[i];
    size_t count = group->items_to;
    group->items_from = group->items_to = from;
    from += count;
  }
  for (size_t i = share->items_from; i < share->items_to; i++) {
    uint32_t group = per_key->groups_of_items[i - share->items_from];
    round->spare[per_key->groups[group].items_to++] = round->items[i];
  }
  for (size_t i = share->items_from; i < share->items_to; i++) round->items[i] = round->spare[i];
  for (size_t i = 0; i < per_key->groups_count; i++) {
    const struct hb_key_group *group = &per_key->groups[i];
    hb_sort_items(round->items + group->items_from, round->spare,
                  group->items_to - group->items_from);
  }
}

static size_t end_of_copies(const struct hb_round *round, size_t from, size_t end) {
  size_t to = from + 1;
  while (to < end && round->items[to].sequence == round->items[from].sequence) to++;
  return to;
}

/* ---- where a key begins */

/* Whether one of the copies [from, to) that is stored, or will be, says that it is the first. */
static bool says_initial(const struct hb_ordering *core, const struct hb_key_state *key,
                         size_t from, size_t to) {
  const struct hb_round *round = &core->round;
  const struct hb_event *first = event_of(round, &round->items[from]);
  const struct hb_keyed_entry *held = hb_key_list_find(&key->held, first->sequence);
  for (size_t i = from; i < to; i++) {
    const struct hb_event *event = event_of(round, &round->items[i]);
    if (!(event->flags & HB_EVENT_INITIAL)) continue;
    bool same = held ? decision_of(round, &round->items[i])->verdict == HB_VERDICT_EQUAL
                     : hb_event_same(first, event);
    if (same) return true;
  }
  return false;
}

static void begin_at(struct hb_ordering *core, struct hb_key_state *key, int64_t first) {
  struct hb_per_key *per_key = key->owner;
  key->record.begun = true;
  key->record.first = key->record.next = first;
  size_t below = 0;
  for (size_t i = key->held.from; i < key->held.to; i++, below++) {
    const struct hb_keyed_entry *entry = &key->held.entries[i];
    if (entry->sequence >= first) break;
    per_key->bundles[entry->slot].asides++;
    key->asides++;
    per_key->asides++;
    hb_key_bundle_consider(core, per_key, entry->slot);
  }
  hb_key_list_pop(&key->held, below, &core->index_bytes);
  per_key->gaps -= key->gaps;
  key->gaps = hb_key_list_gaps(&key->held, true, first);
  per_key->gaps += key->gaps;
  hb_per_key_change(core, key);
}

static void begin(struct hb_ordering *core, const struct hb_key_group *group) {
  const struct hb_round *round = &core->round;
  if (group->key->record.begun) return;
  for (size_t from = group->items_from; from < group->items_to;) {
    size_t to = end_of_copies(round, from, group->items_to);
    if (says_initial(core, group->key, from, to)) {
      begin_at(core, group->key, round->items[from].sequence);
      return;
    }
    from = to;
  }
}

/* ---- pass 1 */

static void sort_out(struct hb_ordering *core, const struct hb_key_group *group, size_t from,
                     size_t to) {
  struct hb_round *round = &core->round;
  struct hb_key_state *key = group->key;
  struct hb_core_stream *stream = key->owner->stream;
  int64_t sequence = round->items[from].sequence;
  if (key->record.begun && sequence < key->record.first) {
    for (size_t i = from; i < to; i++) {
      hb_admit_refuse(core, stream, &round->items[i], HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE);
    }
    return;
  }
  const struct hb_keyed_entry *held = hb_key_list_find(&key->held, sequence);
  bool released = key->record.begun && sequence < key->record.next;
  if (!held && !released) {
    hb_admit_add_first(core, from, to);
    return;
  }
  for (size_t i = from; i < to; i++) {
    const struct hb_item *item = &round->items[i];
    hb_admit_verdict(core, stream, item);
  }
}

void hb_per_key_admit(struct hb_ordering *core, struct hb_share *share) {
  struct hb_per_key *per_key = share->stream->per_key;
  count_items(core, share);
  sort_items(core, share);
  for (size_t i = 0; i < per_key->groups_count; i++) {
    struct hb_key_group *group = &per_key->groups[i];
    begin(core, group);
    group->firsts_from = core->round.firsts_count;
    for (size_t from = group->items_from; from < group->items_to;) {
      size_t to = end_of_copies(&core->round, from, group->items_to);
      sort_out(core, group, from, to);
      from = to;
    }
    group->firsts_to = core->round.firsts_count;
    bool next_is_new = group->firsts_from < group->firsts_to && group->key->record.begun &&
                       core->round.firsts[group->firsts_from].sequence == group->key->record.next;
    const struct hb_keyed_entry *front = hb_key_list_front(&group->key->held);
    bool next_is_held =
        front && group->key->record.begun && front->sequence == group->key->record.next;
    if (next_is_new || next_is_held) hb_per_key_make_ready(core, group->key);
  }
}

/* ---- pass 2 */

int64_t hb_per_key_complete_to(const struct hb_key_state *key) {
  return hb_key_list_run_end(&key->held, key->record.next);
}

/* What becomes of one key when more of it is held. */
struct adding {
  struct hb_ordering *core;
  struct hb_per_key *per_key;
  struct hb_key_state *key;
  int64_t complete_to; /* valid where the key has begun */
};

static bool is_ahead(const struct adding *adding, int64_t sequence) {
  if (!adding->key->record.begun) return false;
  uint64_t above = (uint64_t)sequence - (uint64_t)adding->complete_to;
  return above >= adding->per_key->stream->config.limits.ahead_max;
}

/* How many gaps more, or fewer, with this one. */
static int gap_change(const struct adding *adding, int64_t sequence) {
  const struct hb_per_key *per_key = adding->per_key;
  const struct hb_key_record *record = &adding->key->record;
  const struct hb_keyed_entry *added =
      per_key->adding_count ? &per_key->adding[per_key->adding_count - 1] : NULL;
  bool follows = (record->begun && sequence == record->next) ||
                 (added && added->sequence == sequence - 1) ||
                 (sequence > INT64_MIN && hb_key_list_find(&adding->key->held, sequence - 1));
  bool precedes = hb_key_list_find(&adding->key->held, sequence + 1) != NULL;
  return 1 - (int)follows - (int)precedes;
}

static enum hb_reason reason_to_refuse(const struct adding *adding, const struct hb_first *first) {
  const struct hb_ordering *core = adding->core;
  const struct hb_per_key *per_key = adding->per_key;
  const struct hb_stream_limits *limits = &per_key->stream->config.limits;
  uint64_t bytes = hb_per_key_hold_bytes(core, per_key, first->event->frame_size);
  if (core->disk_reserve) return HB_REASON_DISK_RESERVE;
  if (is_ahead(adding, first->sequence)) return HB_REASON_AHEAD;
  if (per_key->gaps >= limits->gaps_max && gap_change(adding, first->sequence) > 0) {
    return HB_REASON_GAPS;
  }
  if (per_key->held_events - per_key->asides >= limits->held_events_max)
    return HB_REASON_HELD_EVENTS;
  if (per_key->held_bytes + bytes > limits->held_bytes_max) return HB_REASON_HELD_BYTES;
  size_t entries = (per_key->adding_count + 1) * 2 * sizeof *per_key->adding;
  if (core->index_bytes + entries > core->options.limits.held_index_max) {
    return HB_REASON_SERVER_MEMORY;
  }
  return HB_REASON_NONE;
}

static void hold_first(struct adding *adding, const struct hb_first *first) {
  struct hb_per_key *per_key = adding->per_key;
  int64_t sequence = first->sequence;
  int change = gap_change(adding, sequence);
  adding->key->gaps += (uint64_t)change;
  per_key->gaps += (uint64_t)change;
  struct hb_block_entry entry = {.frame = first->event->frame,
                                 .frame_size = first->event->frame_size,
                                 .receipt = first->batch->receipt};
  hb_reserve((void **)&per_key->adding, &per_key->adding_cap, per_key->adding_count + 1,
             sizeof *per_key->adding);
  per_key->adding[per_key->adding_count++] =
      hb_per_key_hold_add(adding->core, per_key, sequence, entry);
  if (adding->key->record.begun && sequence == adding->complete_to) {
    adding->complete_to = hb_key_list_run_end(&adding->key->held, sequence + 1);
  }
  per_key->held_events++;
  per_key->stream->record.counters.stored++;
  per_key->stream->record.counters.held++;
  hb_admit_decide(first->decision, HB_OUTCOME_STORED, HB_REASON_NONE);
}

static void hold_group(struct hb_ordering *core, struct hb_per_key *per_key,
                       const struct hb_key_group *group) {
  if (group->firsts_from + group->released == group->firsts_to) return;
  struct hb_key_state *key = group->key;
  struct adding adding = {.core = core, .per_key = per_key, .key = key};
  if (key->record.begun) adding.complete_to = hb_per_key_complete_to(key);
  per_key->adding_count = 0;
  for (size_t i = group->firsts_from + group->released; i < group->firsts_to; i++) {
    const struct hb_first *first = &core->round.firsts[i];
    enum hb_reason reason = reason_to_refuse(&adding, first);
    if (reason) {
      hb_admit_decide(first->decision, HB_OUTCOME_WINDOW_FULL, reason);
    } else {
      hold_first(&adding, first);
    }
  }
  if (!per_key->adding_count) return;
  hb_key_list_merge(&key->held, per_key->adding, per_key->adding_count, &core->index_bytes);
  per_key->adding_count = 0;
  hb_outbox_touch(core, per_key->stream);
  bool next_is_held =
      key->record.begun && hb_key_list_front(&key->held)->sequence == key->record.next;
  if (next_is_held) hb_per_key_make_ready(core, key);
}

void hb_per_key_hold(struct hb_ordering *core) {
  for (size_t i = 0; i < core->round.shares_count; i++) {
    struct hb_per_key *per_key = core->round.shares[i].stream->per_key;
    if (!per_key) continue;
    for (size_t k = 0; k < per_key->groups_count; k++) {
      hold_group(core, per_key, &per_key->groups[k]);
    }
    hb_per_key_hold_end(core, per_key);
  }
}
