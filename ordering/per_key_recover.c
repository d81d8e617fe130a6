/* Decides whether what the store holds of a PER_KEY stream agrees with itself.
 *
 * Bundles name keys; only those keys' records are read. An event waits where it is at or above its
 * key's `next` (or the key has not begun); one below its key's `first` is still to be kept aside;
 * others were released before their bundle went. Memory may be smaller than what is held. Checked:
 * what is read is a bundle of events numbered from 0, and no event that waits lies in two of them
 * (I10). After HB_CORRUPT the core is of no use. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

static enum hb_code damaged(struct hb_err *err, struct hb_bundle_id id, const char *what) {
  return hb_err_set(err, HB_CORRUPT, "BUNDLE_DAMAGED",
                    "stream %" PRIu64 ", bundle %" PRIu64 "/%" PRIu32 ": %s", id.stream, id.commit,
                    id.part, what);
}

static struct hb_key_state *key_of(struct hb_ordering *core, struct hb_per_key *per_key,
                                   const struct hb_event *event) {
  struct hb_slice bytes = hb_event_key(event);
  struct hb_key_state *key = hb_key_find(per_key, bytes);
  if (key) return key;
  key = hb_key_add(core, per_key, bytes);
  hb_reserve((void **)&per_key->unknown, &per_key->unknown_cap, per_key->unknown_count + 1,
             sizeof(struct hb_key_state *));
  per_key->unknown[per_key->unknown_count++] = key;
  return key;
}

enum hb_code hb_per_key_recover_bundle(struct hb_ordering *core, struct hb_core_stream *stream,
                                       struct hb_bundle_id id, struct hb_bytes *bytes,
                                       const struct hb_block *block, struct hb_err *err) {
  struct hb_per_key *per_key = stream->per_key;
  if (block->from != 0 || block->sequences || !block->count) {
    return damaged(err, id, "its events are not numbered from 0");
  }
  uint32_t slot = hb_key_bundle_create(core, per_key, id.commit, id.part);
  hb_key_bundle_set(core, per_key, slot, bytes, block);
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_event event;
    if (hb_scan_frame(hb_block_frame(block, i), &event, NULL)) {
      return damaged(err, id, "one of its frames is no event");
    }
    struct hb_keyed_entry entry = {.sequence = event.sequence, .slot = slot, .index = i};
    hb_key_list_append(&key_of(core, per_key, &event)->held, entry, &core->index_bytes);
    per_key->held_events++;
  }
  hb_key_memory_trim(core);
  return HB_OK;
}

/* ---- records */

bool hb_ordering_recover_wants_key(const struct hb_ordering *core, uint64_t id,
                                   struct hb_slice *out_key) {
  const struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (!stream || !stream->per_key || !stream->per_key->unknown_count) return false;
  const struct hb_per_key *per_key = stream->per_key;
  *out_key = hb_key_bytes(per_key->unknown[per_key->unknown_count - 1]);
  return true;
}

/* Entries below where the key goes on are no more its own to release. */
static void drop_below(struct hb_ordering *core, struct hb_key_state *key) {
  struct hb_per_key *per_key = key->owner;
  size_t below = 0;
  for (size_t i = key->held.from; i < key->held.to && key->record.begun; i++, below++) {
    const struct hb_keyed_entry *entry = &key->held.entries[i];
    if (entry->sequence >= key->record.next) break;
    if (entry->sequence < key->record.first) {
      per_key->bundles[entry->slot].asides++;
      key->asides++;
      per_key->asides++;
    } else {
      hb_key_bundle_forget(per_key, entry->slot);
      per_key->held_events--;
    }
  }
  hb_key_list_pop(&key->held, below, &core->index_bytes);
}

static enum hb_code check_once(const struct hb_key_state *key, uint64_t stream,
                               struct hb_err *err) {
  for (size_t i = key->held.from + 1; i < key->held.to; i++) {
    int64_t sequence = key->held.entries[i].sequence;
    if (key->held.entries[i - 1].sequence < sequence) continue;
    return hb_err_set(err, HB_CORRUPT, "SEQUENCE_HELD_TWICE",
                      "stream %" PRIu64 ": sequence %" PRId64 " of one key (%" PRIu32
                      " bytes) is held twice",
                      stream, sequence, key->size);
  }
  return HB_OK;
}

enum hb_code hb_ordering_recover_key(struct hb_ordering *core, uint64_t id, struct hb_slice bytes,
                                     const struct hb_key_record *record, struct hb_err *err) {
  struct hb_core_stream *stream = hb_core_find_stream(core, id);
  HB_ASSERT(stream && stream->per_key && stream->per_key->unknown_count > 0);
  struct hb_per_key *per_key = stream->per_key;
  struct hb_key_state *key = per_key->unknown[per_key->unknown_count - 1];
  HB_ASSERT(hb_slice_equal(bytes, hb_key_bytes(key)));
  per_key->unknown_count--;
  key->record = record ? *record : hb_per_key_new_record(stream);
  key->flags |= HB_KEY_KNOWN;
  hb_key_list_sort(&key->held);
  drop_below(core, key);
  enum hb_code code = check_once(key, id, err);
  if (code) return code;
  key->gaps = hb_key_list_gaps(&key->held, key->record.begun, key->record.next);
  per_key->gaps += key->gaps;
  const struct hb_keyed_entry *front = hb_key_list_front(&key->held);
  bool next_is_held = front && key->record.begun && front->sequence == key->record.next;
  if (next_is_held) hb_per_key_make_ready(core, key);
  hb_key_settle(core, key);
  return HB_OK;
}

enum hb_code hb_per_key_recover_end(struct hb_ordering *core, struct hb_core_stream *stream,
                                    struct hb_err *err) {
  struct hb_per_key *per_key = stream->per_key;
  HB_ASSERT(per_key->unknown_count == 0);
  if (!stream->record.frozen) {
    return hb_err_set(err, HB_CORRUPT, "NO_POSITIONS",
                      "stream %" PRIu64
                      ": its frontier record has no numbers, though its mode is "
                      "PER_KEY",
                      stream->id);
  }
  for (uint32_t slot = 0; slot < per_key->bundles_count; slot++) {
    struct hb_key_bundle *bundle = &per_key->bundles[slot];
    if (!(bundle->flags & HB_KEY_BUNDLE_USED)) continue;
    if (bundle->live) {
      hb_key_bundle_consider(core, per_key, slot);
      continue;
    }
    hb_recover_note_empty(core, stream, hb_key_bundle_id(per_key, slot));
    hb_key_bundle_drop(core, per_key, slot);
  }
  hb_key_rewrite_look(core, per_key);
  hb_key_evict(core);
  return HB_OK;
}
