/* Decides what a store of a PER_KEY stream remembers, and what must be true of it at any time. */
#include "tests/model/per_key_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "tests/model/per_key_gaps.h"

struct hb_stream_config hb_rig_config(int64_t first_sequence) {
  struct hb_limits limits = hb_limits_default();
  struct hb_stream_config config = {
      .mode = HB_MODE_PER_KEY,
      .first_sequence = first_sequence,
      .ack = HB_ACK_DURABLE,
      .limits = {.ahead_max = limits.ahead_max,
                 .held_bytes_max = limits.held_bytes_max,
                 .held_events_max = limits.held_events_max,
                 .gaps_max = limits.gaps_max,
                 .event_bytes_max = limits.event_bytes_max},
  };
  memcpy(config.name, "keys", sizeof "keys");
  return config;
}

void hb_rig_start(struct hb_per_key_rig *rig, const struct hb_stream_config *config,
                  const struct hb_ordering_options *options) {
  memset(rig, 0, sizeof *rig);
  if (options) rig->options = *options;
  if (!rig->options.limits.ahead_max) rig->options.limits = hb_limits_default();
  rig->config = *config;
  rig->now = (struct hb_now){.served_ms = 1000, .wall_ms = 1700000001000};
  rig->record = hb_ordering_new_record(config);
  rig->core = hb_ordering_create(&rig->options);
  assert_int_equal(hb_ordering_add_stream(rig->core, HB_RIG_STREAM, config, &rig->record, NULL),
                   HB_OK);
}

void hb_rig_stop(struct hb_per_key_rig *rig) {
  hb_ordering_fail(rig->core);
  while (hb_ordering_take_answered(rig->core)) continue;
  hb_ordering_destroy(rig->core);
  for (size_t i = 0; i < rig->blocks_count; i++) hb_bytes_unref(rig->blocks[i].block);
  for (size_t i = 0; i < rig->bundles_count; i++) hb_bytes_unref(rig->bundles[i].block);
  free(rig->blocks);
  free(rig->bundles);
}

/* ---- looking */

static struct hb_block decode(const struct hb_bytes *bytes) {
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
  return block;
}

static struct hb_event scan(struct hb_slice frame) {
  struct hb_event event;
  assert_int_equal(hb_scan_frame(frame, &event, NULL), HB_OK);
  return event;
}

const struct hb_key_record *hb_rig_row(const struct hb_per_key_rig *rig, const char *key) {
  for (size_t i = 0; i < rig->rows_count; i++) {
    if (strcmp(rig->rows[i].key, key) == 0) return &rig->rows[i].record;
  }
  return NULL;
}

static void text_of(struct hb_slice key, char out[16]) {
  assert_true(key.size < 16);
  memset(out, 0, 16);
  if (key.size) memcpy(out, key.data, key.size);
}

static struct hb_rig_event event_of(struct hb_slice frame, bool held, int64_t position) {
  struct hb_event event = scan(frame);
  struct hb_rig_event out = {.sequence = event.sequence,
                             .content = hb_test_content(&event),
                             .held = held,
                             .position = position};
  text_of(hb_event_key(&event), out.key);
  return out;
}

static bool waits(const struct hb_per_key_rig *rig, struct hb_rig_event *event) {
  const struct hb_key_record *row = hb_rig_row(rig, event->key);
  event->aside = row && event->sequence < row->first;
  if (row) return event->aside || event->sequence >= row->next;
  return rig->config.first_seen || event->sequence >= rig->config.first_sequence;
}

struct hb_rig_event *hb_rig_events(const struct hb_per_key_rig *rig, size_t *out_count) {
  struct hb_rig_event *events = NULL;
  size_t cap = 0;
  size_t count = 0;
  for (size_t i = 0; i < rig->blocks_count; i++) {
    struct hb_block block = decode(rig->blocks[i].block);
    hb_reserve((void **)&events, &cap, count + block.count, sizeof *events);
    for (uint32_t k = 0; k < block.count; k++) {
      events[count++] = event_of(hb_block_frame(&block, k), false, hb_block_sequence(&block, k));
    }
  }
  for (size_t i = 0; i < rig->bundles_count; i++) {
    struct hb_block block = decode(rig->bundles[i].block);
    hb_reserve((void **)&events, &cap, count + block.count, sizeof *events);
    for (uint32_t k = 0; k < block.count; k++) {
      struct hb_rig_event event = event_of(hb_block_frame(&block, k), true, 0);
      if (waits(rig, &event)) events[count++] = event;
    }
  }
  *out_count = count;
  return events;
}

struct hb_bytes *hb_rig_bundle(const struct hb_per_key_rig *rig, struct hb_bundle_id id) {
  for (size_t i = 0; i < rig->bundles_count; i++) {
    const struct hb_rig_bundle *bundle = &rig->bundles[i];
    if (bundle->id.commit == id.commit && bundle->id.part == id.part) return bundle->block;
  }
  return NULL;
}

/* The store here has one reference to each, and the core another where it keeps it. */
size_t hb_rig_resident_bytes(const struct hb_per_key_rig *rig, size_t *out_largest) {
  size_t bytes = 0;
  *out_largest = 0;
  for (size_t i = 0; i < rig->bundles_count; i++) {
    const struct hb_bytes *block = rig->bundles[i].block;
    if (atomic_load(&block->refs) > 1) bytes += block->size;
    if (block->size > *out_largest) *out_largest = block->size;
  }
  return bytes;
}

/* ---- readers */

static enum hb_verdict compare(const struct hb_per_key_rig *rig, const struct hb_need_key *ask,
                               const struct hb_event *event) {
  int64_t low;
  int64_t high;
  hb_key_record_bounds(&ask->record, event->sequence, &low, &high);
  assert_true(low >= 0 && low <= high);
  for (size_t i = 0; i < rig->blocks_count; i++) {
    struct hb_block block = decode(rig->blocks[i].block);
    for (uint32_t k = 0; k < block.count; k++) {
      struct hb_event stored = scan(hb_block_frame(&block, k));
      if (stored.sequence != event->sequence) continue;
      if (!hb_slice_equal(hb_event_key(&stored), hb_event_key(event))) continue;
      int64_t position = hb_block_sequence(&block, k);
      assert_true(position >= low && position <= high);
      return hb_event_same(&stored, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
    }
  }
  fail_msg("an event that was asked for is not in the log");
  return HB_VERDICT_NONE;
}

static enum hb_verdict compare_held(const struct hb_per_key_rig *rig, const struct hb_need_key *ask,
                                    const struct hb_event *event) {
  const struct hb_bytes *bytes = hb_rig_bundle(rig, ask->bundle);
  if (!bytes) return HB_VERDICT_MOVED;
  struct hb_block block = decode(bytes);
  assert_true(ask->at < block.count);
  struct hb_event held = scan(hb_block_frame(&block, ask->at));
  assert_int_equal(held.sequence, event->sequence);
  assert_true(hb_slice_equal(hb_event_key(&held), hb_event_key(event)));
  return hb_event_same(&held, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
}

void hb_rig_answer(struct hb_per_key_rig *rig, struct hb_need *need) {
  assert_int_equal(need->count, 0);
  for (size_t i = 0; i < need->keys_count; i++) {
    struct hb_need_key *ask = &need->keys[i];
    const struct hb_event *event = &need->batch->events[ask->index];
    if (ask->place == HB_PLACE_KEY_CONTENT) {
      ask->verdict = compare(rig, ask, event);
      rig->content_needs++;
      continue;
    }
    if (ask->place == HB_PLACE_KEY_HELD) {
      ask->verdict = compare_held(rig, ask, event);
      rig->held_needs++;
      continue;
    }
    assert_int_equal(ask->place, HB_PLACE_KEY_RECORD);
    char key[16];
    text_of(hb_event_key(event), key);
    const struct hb_key_record *row = hb_rig_row(rig, key);
    ask->found = row != NULL;
    if (row) ask->record = *row;
    rig->record_needs++;
  }
}

/* ---- writing */

static void apply_block(struct hb_per_key_rig *rig, const struct hb_put_block *put) {
  struct hb_block block = decode(put->block);
  const struct hb_put_block *last = rig->blocks_count ? &rig->blocks[rig->blocks_count - 1] : NULL;
  assert_int_equal(put->from, last ? last->to : 0); /* I4 */
  assert_int_equal(block.from, put->from);
  assert_int_equal(block.to, put->to);
  assert_null(block.sequences); /* positions follow on each other */
  hb_reserve((void **)&rig->blocks, &rig->blocks_cap, rig->blocks_count + 1, sizeof *rig->blocks);
  rig->blocks[rig->blocks_count++] = *put;
  hb_bytes_ref(put->block);
  rig->block_bytes += put->block->size;
}

/* What was held before lies in a new bundle. */
static bool is_rewrite(const struct hb_per_key_rig *rig, const struct hb_bytes *bytes) {
  struct hb_block block = decode(bytes);
  struct hb_event first = scan(hb_block_frame(&block, 0));
  for (size_t i = 0; i < rig->bundles_count; i++) {
    struct hb_block old = decode(rig->bundles[i].block);
    for (uint32_t k = 0; k < old.count; k++) {
      struct hb_event event = scan(hb_block_frame(&old, k));
      if (hb_event_same(&event, &first)) return true;
    }
  }
  return false;
}

static void apply_bundles(struct hb_per_key_rig *rig, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->bundles_count; i++) {
    rig->rewrites += is_rewrite(rig, commit->bundles[i].block);
  }
  for (size_t i = 0; i < commit->bundles_count; i++) {
    assert_int_equal(commit->bundles[i].id.commit, commit->number);
    hb_reserve((void **)&rig->bundles, &rig->bundles_cap, rig->bundles_count + 1,
               sizeof *rig->bundles);
    rig->bundles[rig->bundles_count++] =
        (struct hb_rig_bundle){commit->bundles[i].id, hb_bytes_ref(commit->bundles[i].block)};
  }
  for (size_t i = 0; i < commit->drained_count; i++) {
    struct hb_bundle_id id = commit->drained[i];
    assert_true(id.commit != commit->number);
    const struct hb_bytes *block = hb_rig_bundle(rig, id);
    assert_non_null(block);
    size_t at = 0;
    while (rig->bundles[at].block != block) at++;
    hb_bytes_unref(rig->bundles[at].block);
    rig->bundles[at] = rig->bundles[--rig->bundles_count];
  }
}

static void apply_key(struct hb_per_key_rig *rig, const struct hb_put_key *put) {
  char key[16];
  text_of(put->key, key);
  struct hb_key_record *row = (struct hb_key_record *)hb_rig_row(rig, key);
  if (!row) {
    assert_true(rig->rows_count < HB_RIG_KEYS);
    memcpy(rig->rows[rig->rows_count].key, key, sizeof key);
    row = &rig->rows[rig->rows_count++].record;
  } else {
    assert_int_equal(row->first, put->record.first);
    assert_true(row->next <= put->record.next); /* I5, per key */
    assert_true(row->complete <= put->record.complete);
  }
  *row = put->record;
}

void hb_rig_apply(struct hb_per_key_rig *rig, const struct hb_commit *commit) {
  rig->block_bytes = 0;
  for (size_t i = 0; i < commit->blocks_count; i++) apply_block(rig, &commit->blocks[i]);
  apply_bundles(rig, commit);
  for (size_t i = 0; i < commit->keys_count; i++) apply_key(rig, &commit->keys[i]);
  assert_true(commit->frontiers_count <= 1);
  for (size_t i = 0; i < commit->frontiers_count; i++) rig->record = commit->frontiers[i].record;
  assert_int_equal(rig->record.frontier,
                   rig->blocks_count ? rig->blocks[rig->blocks_count - 1].to : 0);
  assert_int_equal(rig->record.frontier, rig->record.complete_to);
  assert_int_equal(commit->gaps_count, 0);
  rig->refusals += commit->unprocessed_count;
  for (size_t i = 0; i < commit->unprocessed_count; i++) {
    assert_true(commit->unprocessed[i].event->frame_size > 0);
    (void)scan(hb_event_frame(commit->unprocessed[i].event));
  }
  rig->last_commit = commit->number;
}

/* ---- driving */

void hb_rig_settle(struct hb_per_key_rig *rig) {
  for (bool moved = true; moved;) {
    moved = false;
    struct hb_need *need;
    while ((need = hb_ordering_take_need(rig->core))) {
      hb_rig_answer(rig, need);
      hb_ordering_answer_need(rig->core, need);
      moved = true;
    }
    struct hb_bundle_id id;
    while (hb_ordering_take_fetch(rig->core, &id)) {
      rig->fetches++;
      hb_ordering_fetched(rig->core, id, hb_rig_bundle(rig, id));
      moved = true;
    }
    if (!hb_ordering_has_work(rig->core)) continue;
    const struct hb_commit *commit = hb_ordering_decide(rig->core, rig->now);
    moved = true;
    if (!commit) continue;
    hb_rig_apply(rig, commit);
    hb_ordering_committed(rig->core, commit);
  }
}

struct hb_test_batch *hb_rig_send(struct hb_per_key_rig *rig, const struct hb_test_event *events,
                                  size_t count) {
  struct hb_test_batch *batch = hb_test_batch_create(HB_RIG_STREAM, 1, events, count);
  hb_ordering_submit(rig->core, &batch->batch);
  hb_rig_settle(rig);
  assert_ptr_equal(hb_ordering_take_answered(rig->core), &batch->batch);
  assert_int_equal(batch->batch.error.code, HB_OK);
  return batch;
}

void hb_rig_recover(struct hb_per_key_rig *rig) {
  hb_ordering_fail(rig->core);
  while (hb_ordering_take_answered(rig->core)) continue;
  hb_ordering_destroy(rig->core);
  rig->options.last_commit = rig->last_commit;
  rig->core = hb_ordering_create(&rig->options);
  struct hb_err err = {0};
  enum hb_code code =
      hb_ordering_add_stream(rig->core, HB_RIG_STREAM, &rig->config, &rig->record, &err);
  for (size_t i = 0; code == HB_OK && i < rig->bundles_count; i++) {
    code = hb_ordering_recover_bundle(rig->core, rig->bundles[i].id, rig->bundles[i].block, &err);
  }
  struct hb_slice key;
  while (code == HB_OK && hb_ordering_recover_wants_key(rig->core, HB_RIG_STREAM, &key)) {
    char text[16];
    text_of(key, text);
    code = hb_ordering_recover_key(rig->core, HB_RIG_STREAM, key, hb_rig_row(rig, text), &err);
  }
  if (code == HB_OK) code = hb_ordering_recover_end(rig->core, HB_RIG_STREAM, rig->now, &err);
  if (code) print_message("%s\n", err.message);
  assert_int_equal(code, HB_OK);
}

/* ---- what must be true */

static void check_released(const struct hb_per_key_rig *rig, const struct hb_rig_event *events,
                           size_t count) {
  for (size_t i = 0; i < rig->rows_count; i++) {
    const struct hb_key_record *row = &rig->rows[i].record;
    int64_t next = row->first;
    for (size_t k = 0; k < count; k++) {
      if (events[k].held || strcmp(events[k].key, rig->rows[i].key) != 0) continue;
      assert_int_equal(events[k].sequence, next++); /* I3 */
      if (next == row->first + 1) assert_int_equal(row->first_position, events[k].position);
      if (next == row->next) assert_int_equal(row->last_position, events[k].position);
    }
    assert_int_equal(next, row->next);
  }
}

static int by_key(const void *a, const void *b) {
  const struct hb_rig_event *x = a;
  const struct hb_rig_event *y = b;
  int keys = strcmp(x->key, y->key);
  return keys ? keys : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

void hb_rig_check(struct hb_per_key_rig *rig) {
  size_t count;
  struct hb_rig_event *events = hb_rig_events(rig, &count);
  check_released(rig, events, count);
  if (count) qsort(events, count, sizeof *events, by_key);
  uint64_t held = 0;
  uint64_t gaps = 0;
  for (size_t i = 0; i < count; i++) {
    bool same_key = i > 0 && strcmp(events[i - 1].key, events[i].key) == 0;
    if (same_key) assert_true(events[i - 1].sequence < events[i].sequence); /* I10 */
    const struct hb_key_record *row = hb_rig_row(rig, events[i].key);
    if (!events[i].held) {
      assert_non_null(row);
      continue;
    }
    held++;
    if (events[i].aside) continue;
    bool follows =
        same_key && !events[i - 1].aside && events[i - 1].sequence + 1 == events[i].sequence;
    if (row && events[i].sequence == row->next) follows = true;
    if (!row && !rig->config.first_seen && events[i].sequence == rig->config.first_sequence) {
      follows = true;
    }
    gaps += !follows;
  }
  hb_rig_check_gaps(rig, events, count);
  free(events);
  struct hb_stream_status status;
  assert_true(hb_ordering_status(rig->core, HB_RIG_STREAM, rig->now, &status));
  uint64_t bytes = 0;
  for (size_t i = 0; i < rig->bundles_count; i++) bytes += rig->bundles[i].block->size;
  assert_int_equal(status.held_events, held);
  assert_int_equal(status.gaps_total, gaps);
  assert_int_equal(status.held_bytes, bytes);
  assert_int_equal(status.record.frontier, rig->record.frontier);
  assert_int_equal(status.record.counters.stored, (uint64_t)rig->record.frontier + held);
}
