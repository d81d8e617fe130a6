/* A stream in PER_KEY mode: how it begins and ends, what a commit of it begins and ends with, and
 * how it looks from outside.
 *
 * Numbers of such a stream are positions in its log. They are given when events are released, so
 * nothing lies between the frontier and complete_to: gaps are the keys' own. */
#include "ordering/per_key_internal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

struct hb_per_key *hb_per_key_create(struct hb_core_stream *stream) {
  struct hb_per_key *per_key = hb_calloc(1, sizeof *per_key);
  per_key->stream = stream;
  per_key->free_slot = HB_SLOT_NONE;
  per_key->making = HB_SLOT_NONE;
  return per_key;
}

static void drop_moved(struct hb_per_key *per_key) {
  for (size_t i = 0; i < per_key->moved_count; i++) {
    hb_bytes_unref(per_key->moved[i]->bytes);
    free(per_key->moved[i]);
  }
  per_key->moved_count = 0;
}

void hb_per_key_destroy(struct hb_ordering *core, struct hb_per_key *per_key) {
  drop_moved(per_key);
  hb_key_table_done(core, per_key);
  hb_key_bundle_done(core, per_key);
  free(per_key->candidates);
  free(per_key->drained);
  free(per_key->groups);
  free(per_key->groups_of_items);
  free((void *)per_key->changed);
  free((void *)per_key->moved);
  free(per_key->adding);
  free((void *)per_key->unknown);
  free(per_key);
}

struct hb_key_record hb_per_key_new_record(const struct hb_core_stream *stream) {
  struct hb_key_record record = {0};
  if (stream->config.first_seen) return record; /* until an event says that it is the first */
  record.begun = true;
  record.first = record.next = stream->config.first_sequence;
  return record;
}

void hb_key_record_bounds(const struct hb_key_record *record, int64_t sequence, int64_t *out_low,
                          int64_t *out_high) {
  uint64_t above = (uint64_t)sequence - (uint64_t)record->first;
  uint64_t below = (uint64_t)record->next - 1 - (uint64_t)sequence;
  *out_low = (int64_t)((uint64_t)record->first_position + above);
  *out_high = (int64_t)((uint64_t)record->last_position - below);
}

void hb_per_key_change(struct hb_ordering *core, struct hb_key_state *key) {
  struct hb_per_key *per_key = key->owner;
  if (key->flags & HB_KEY_CHANGED) return;
  key->flags |= HB_KEY_CHANGED;
  hb_reserve((void **)&per_key->changed, &per_key->changed_cap, per_key->changed_count + 1,
             sizeof(struct hb_key_state *));
  per_key->changed[per_key->changed_count++] = key;
  hb_outbox_touch(core, per_key->stream);
}

/* ---- a commit */

static void put_rows(struct hb_ordering *core, const struct hb_per_key *per_key) {
  for (size_t i = 0; i < per_key->changed_count; i++) {
    const struct hb_key_state *key = per_key->changed[i];
    hb_outbox_key(
        core, (struct hb_put_key){
                  .stream = per_key->stream->id, .key = hb_key_bytes(key), .record = key->record});
  }
}

void hb_per_key_close(struct hb_ordering *core) {
  for (size_t i = 0; i < core->touched_count; i++) {
    struct hb_per_key *per_key = core->touched[i]->per_key;
    if (!per_key) continue;
    hb_per_key_rewrite(core, per_key);
    put_rows(core, per_key);
  }
}

void hb_per_key_round_done(struct hb_ordering *core) {
  for (size_t i = 0; i < core->round.shares_count; i++) {
    struct hb_per_key *per_key = core->round.shares[i].stream->per_key;
    if (!per_key) continue;
    for (size_t k = 0; k < per_key->groups_count; k++) {
      struct hb_key_state *key = per_key->groups[k].key;
      key->group = 0;
      hb_key_settle(core, key);
    }
    per_key->groups_count = 0;
  }
}

/* Rows and frames of the commit are needed no more. */
void hb_per_key_committed(struct hb_ordering *core) {
  for (size_t i = 0; i < core->touched_count; i++) {
    struct hb_per_key *per_key = core->touched[i]->per_key;
    if (!per_key) continue;
    drop_moved(per_key);
    for (size_t k = 0; k < per_key->changed_count; k++) {
      struct hb_key_state *key = per_key->changed[k];
      key->flags &= ~(uint32_t)HB_KEY_CHANGED;
      hb_key_settle(core, key);
    }
    per_key->changed_count = 0;
  }
  hb_key_evict(core);
}

/* ---- from outside */

void hb_per_key_status(const struct hb_core_stream *stream, struct hb_stream_status *out) {
  const struct hb_per_key *per_key = stream->per_key;
  out->held_events = per_key->held_events;
  out->held_bytes = per_key->held_bytes;
  out->gaps_total = per_key->gaps;
  out->window_end = INT64_MAX; /* each key has its own */
}
