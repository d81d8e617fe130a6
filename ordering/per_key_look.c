/* Decides what must be read before a batch of a PER_KEY stream can be decided: the records of its
 * keys that memory does not have, and the contents of events that were released before, or are held
 * and on disk only. What is held and in memory is compared here.
 *
 * A batch that asked for a record keeps the key in memory until it is handed back, however small
 * the budget is: otherwise it could ask for ever. The answer to a question that somebody else's
 * answer settled meanwhile is dropped: since then commits may have changed the record. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

enum { DECISION_PINNED = 1 };

static void want(struct hb_ordering *core, const struct hb_item *item, enum hb_place_kind place) {
  hb_reserve((void **)&core->wanted, &core->wanted_cap, core->wanted_count + 1,
             sizeof *core->wanted);
  core->wanted[core->wanted_count++] = (struct hb_wanted){
      .batch = item->batch,
      .item = {.index = item->index, .sequence = item->sequence, .place = place}};
}

static bool is_released(const struct hb_key_record *record, int64_t sequence) {
  return record->begun && sequence >= record->first && sequence < record->next;
}

static enum hb_verdict compare_held(const struct hb_per_key *per_key,
                                    const struct hb_keyed_entry *entry,
                                    const struct hb_event *event) {
  struct hb_event held;
  enum hb_code code = hb_scan_frame(hb_key_bundle_frame(per_key, entry), &held, NULL);
  HB_ASSERT(code == HB_OK); /* it was scanned before it was stored, and the block is checked */
  return hb_event_same(&held, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
}

/* The key is known, and the event has no verdict yet. */
static void look_at_copy(struct hb_ordering *core, const struct hb_item *item,
                         const struct hb_key_state *key) {
  const struct hb_batch *batch = core->round.batches[item->batch];
  if (is_released(&key->record, item->sequence)) {
    want(core, item, HB_PLACE_KEY_CONTENT);
    return;
  }
  const struct hb_keyed_entry *held = hb_key_list_find(&key->held, item->sequence);
  if (!held) return;
  if (hb_key_bundle_is_resident(key->owner, held->slot)) {
    batch->decisions[item->index].verdict =
        (uint8_t)compare_held(key->owner, held, &batch->events[item->index]);
  } else {
    want(core, item, HB_PLACE_KEY_HELD);
  }
}

void hb_per_key_look_up(struct hb_ordering *core, const struct hb_share *share) {
  const struct hb_per_key *per_key = share->stream->per_key;
  for (size_t i = share->items_from; i < share->items_to; i++) {
    const struct hb_item *item = &core->round.items[i];
    if (item->sequence == INT64_MAX) continue;
    const struct hb_batch *batch = core->round.batches[item->batch];
    const struct hb_key_state *key =
        hb_key_find(per_key, hb_event_key(&batch->events[item->index]));
    if (!key || !(key->flags & HB_KEY_KNOWN)) {
      want(core, item, HB_PLACE_KEY_RECORD);
    } else if (batch->decisions[item->index].verdict == HB_VERDICT_NONE) {
      look_at_copy(core, item, key);
    }
  }
}

/* ---- asking */

/* False: the batch asked for it already. */
static bool ask_record(struct hb_ordering *core, struct hb_per_key *per_key, struct hb_batch *batch,
                       uint32_t index) {
  struct hb_slice bytes = hb_event_key(&batch->events[index]);
  struct hb_key_state *key = hb_key_find(per_key, bytes);
  if (!key) key = hb_key_add(core, per_key, bytes);
  if (key->pins && key->asking == batch) return false;
  key->asking = batch;
  key->pins++;
  batch->decisions[index].flags |= DECISION_PINNED;
  batch->pinned++;
  return true;
}

/* The key is known. */
static struct hb_need_key ask_content(const struct hb_per_key *per_key,
                                      const struct hb_batch *batch,
                                      const struct hb_need_item *item) {
  const struct hb_key_state *key = hb_key_find(per_key, hb_event_key(&batch->events[item->index]));
  struct hb_need_key ask = {.index = item->index, .place = item->place};
  if (item->place == HB_PLACE_KEY_CONTENT) {
    ask.record = key->record;
    return ask;
  }
  const struct hb_keyed_entry *held = hb_key_list_find(&key->held, item->sequence);
  ask.bundle = hb_key_bundle_id(per_key, held->slot);
  ask.at = held->index;
  return ask;
}

struct hb_need *hb_per_key_ask(struct hb_ordering *core, struct hb_batch *batch, size_t from,
                               size_t to) {
  struct hb_per_key *per_key = hb_core_find_stream(core, batch->stream)->per_key;
  struct hb_need *need = hb_calloc(1, sizeof *need + (to - from) * sizeof *need->keys);
  need->batch = batch;
  need->keys = (struct hb_need_key *)(void *)(need + 1);
  for (size_t i = from; i < to; i++) {
    const struct hb_need_item *item = &core->wanted[i].item;
    struct hb_need_key ask = {.index = item->index, .place = item->place};
    if (item->place != HB_PLACE_KEY_RECORD) {
      ask = ask_content(per_key, batch, item);
    } else if (!ask_record(core, per_key, batch, item->index)) {
      continue;
    }
    need->keys[need->keys_count++] = ask;
  }
  HB_ASSERT(need->keys_count > 0);
  return need;
}

/* ---- answers */

static void learn(const struct hb_core_stream *stream, const struct hb_batch *batch,
                  const struct hb_need_key *answer) {
  struct hb_key_state *key =
      hb_key_find(stream->per_key, hb_event_key(&batch->events[answer->index]));
  HB_ASSERT(key && key->pins > 0);
  if (key->flags & HB_KEY_KNOWN) return;
  key->record = answer->found ? answer->record : hb_per_key_new_record(stream);
  key->flags |= HB_KEY_KNOWN;
}

void hb_per_key_answer(struct hb_ordering *core, const struct hb_need *need) {
  struct hb_core_stream *stream = hb_core_find_stream(core, need->batch->stream);
  if (!stream || need->error.code || core->dead) return;
  for (size_t i = 0; i < need->keys_count; i++) {
    const struct hb_need_key *answer = &need->keys[i];
    if (answer->place == HB_PLACE_KEY_RECORD) {
      learn(stream, need->batch, answer);
    } else if (answer->verdict != HB_VERDICT_MOVED) {
      HB_ASSERT(answer->verdict != HB_VERDICT_NONE);
      need->batch->decisions[answer->index].verdict = (uint8_t)answer->verdict;
    }
  }
}

void hb_per_key_unpin(struct hb_ordering *core, struct hb_batch *batch) {
  struct hb_core_stream *stream = hb_core_find_stream(core, batch->stream);
  for (uint32_t i = 0; i < batch->count && batch->pinned; i++) {
    if (!(batch->decisions[i].flags & DECISION_PINNED)) continue;
    batch->decisions[i].flags &= (uint8_t)~DECISION_PINNED;
    batch->pinned--;
    if (!stream) continue;
    struct hb_key_state *key = hb_key_find(stream->per_key, hb_event_key(&batch->events[i]));
    HB_ASSERT(key && key->pins > 0);
    if (key->asking == batch) key->asking = NULL;
    key->pins--;
    hb_key_settle(core, key);
  }
}
