/* Decides what of a PER_KEY stream is released: keys in turn, of each as far as its sequence goes
 * without gap, from what is held and what is new. Each event gets the next position.
 *
 * The slice is the stream's, as in GLOBAL mode. A key at which it ended goes behind the others, so
 * one with a long release keeps nobody waiting. A new event that the walk takes is stored whatever
 * is full. A key whose next event is on disk only waits for its bundle. Keeps I3 (positions and,
 * per key, sequences ascend), I4 and I5. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

void hb_per_key_make_ready(struct hb_ordering *core, struct hb_key_state *key) {
  struct hb_per_key *per_key = key->owner;
  if (key->flags & (HB_KEY_READY | HB_KEY_WAITS)) return;
  hb_key_use(core, key);
  key->flags |= HB_KEY_READY;
  key->ready_next = NULL;
  if (per_key->ready_last) {
    per_key->ready_last->ready_next = key;
  } else {
    per_key->ready_first = key;
  }
  per_key->ready_last = key;
  hb_release_enqueue(core, per_key->stream);
}

static struct hb_key_state *pop_ready(struct hb_per_key *per_key) {
  struct hb_key_state *key = per_key->ready_first;
  if (!key) return NULL;
  per_key->ready_first = key->ready_next;
  if (!per_key->ready_first) per_key->ready_last = NULL;
  key->ready_next = NULL;
  key->flags &= ~(uint32_t)HB_KEY_READY;
  return key;
}

bool hb_per_key_is_releasing(const struct hb_per_key *per_key) {
  return per_key->ready_first != NULL || per_key->rewrite_ready;
}

/* ---- one event */

/* It was given the position before walk->at. */
static void note_released(struct hb_walk *walk, struct hb_key_state *key, uint32_t flags) {
  struct hb_key_record *record = &key->record;
  int64_t position = walk->at - 1;
  if (record->next == record->first) record->first_position = position;
  record->last_position = position;
  if (flags & HB_EVENT_LAST && !record->complete) {
    record->complete = true;
    record->last = record->next;
  }
  record->next++;
  hb_per_key_change(walk->core, key);
}

static bool take_held(struct hb_walk *walk, struct hb_key_state *key,
                      const struct hb_keyed_entry *front) {
  struct hb_per_key *per_key = key->owner;
  if (!hb_key_bundle_is_resident(per_key, front->slot)) return false;
  struct hb_slice frame = hb_key_bundle_frame(per_key, front);
  struct hb_event event;
  enum hb_code code = hb_scan_frame(frame, &event, NULL);
  HB_ASSERT(code == HB_OK); /* it was scanned before it was stored, and the block is checked */
  struct hb_block_entry entry = {.sequence = walk->at,
                                 .frame = frame.data,
                                 .frame_size = (uint32_t)frame.size,
                                 .receipt = hb_key_bundle_receipt(per_key, front)};
  if (!hb_walk_take(walk, entry, event.time)) return false;
  hb_key_bundle_take(per_key, front->slot);
  hb_key_list_pop(&key->held, 1, &walk->core->index_bytes);
  per_key->held_events--;
  note_released(walk, key, event.flags);
  return true;
}

static bool take_first(struct hb_walk *walk, struct hb_key_state *key, struct hb_key_group *group,
                       const struct hb_first *first) {
  struct hb_block_entry entry = {.sequence = walk->at,
                                 .frame = first->event->frame,
                                 .frame_size = first->event->frame_size,
                                 .receipt = first->batch->receipt};
  if (!hb_walk_take(walk, entry, first->event->time)) return false;
  group->released++;
  hb_admit_decide(first->decision, HB_OUTCOME_STORED, HB_REASON_NONE);
  walk->stream->record.counters.stored++;
  note_released(walk, key, first->event->flags);
  const struct hb_keyed_entry *front = hb_key_list_front(&key->held);
  if (front && front->sequence == key->record.next) { /* the gap below it is filled */
    key->gaps--;
    key->owner->gaps--;
  }
  return true;
}

/* ---- one key */

static const struct hb_first *next_first(const struct hb_walk *walk,
                                         const struct hb_key_group *group) {
  if (!group || group->firsts_from + group->released == group->firsts_to) return NULL;
  return &walk->core->round.firsts[group->firsts_from + group->released];
}

/* False: nothing more of this key, or it is on disk only, or the slice is used up. */
static bool step(struct hb_walk *walk, struct hb_key_state *key) {
  struct hb_per_key *per_key = key->owner;
  struct hb_key_group *group = key->group ? &per_key->groups[key->group - 1] : NULL;
  const struct hb_keyed_entry *front = hb_key_list_front(&key->held);
  if (front && front->sequence == key->record.next) return take_held(walk, key, front);
  const struct hb_first *first = next_first(walk, group);
  return first && first->sequence == key->record.next && take_first(walk, key, group, first);
}

static void walk_key(struct hb_walk *walk, struct hb_key_state *key) {
  int64_t before = key->record.next;
  while (step(walk, key)) continue;
  if (key->record.next != before || !walk->cut) hb_key_memory_unpin(walk->core, key);
  const struct hb_keyed_entry *front = hb_key_list_front(&key->held);
  if (!front || front->sequence != key->record.next) return;
  if (hb_key_bundle_is_resident(key->owner, front->slot)) {
    hb_per_key_make_ready(walk->core, key);
  } else {
    hb_key_memory_wait(walk->core, key, front->slot);
  }
}

void hb_per_key_walk(struct hb_walk *walk) {
  struct hb_core_stream *stream = walk->stream;
  struct hb_per_key *per_key = stream->per_key;
  struct hb_key_state *key;
  while (!walk->cut && (key = pop_ready(per_key)) != NULL) {
    walk_key(walk, key);
    hb_key_settle(walk->core, key);
  }
  hb_walk_close_block(walk);
  hb_key_bundle_drop_drained(walk->core, per_key);
  if (per_key->rewrite_ready) hb_outbox_touch(walk->core, stream);
  if (walk->at == stream->record.frontier) return;
  stream->record.frontier = walk->at;
  stream->record.highest = walk->at - 1;
  stream->record.any = true;
  stream->covered.base = walk->at;
}
