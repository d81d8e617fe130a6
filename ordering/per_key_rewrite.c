/* Decides when bundles of a PER_KEY stream are put into new ones: sparse ones (less than a quarter
 * waits) keep disk for what is gone, tiny ones cost a row each. When enough of them gathered, or
 * they waste a bundle's worth, a commit rewrites some, a bundle's worth at a time. What is on disk
 * only is fetched first, a few at a time. Old and new change places in one commit (I10).
 *
 * Events that had been held below where their key turned out to begin are kept aside by this alone,
 * and it always pays: so one that lies in a bundle, below its key's `first`, is not kept aside yet,
 * also after a crash. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/per_key_internal.h"

enum { REWRITE_SPARSE = 16, REWRITE_TINY = 64 };

/* In this order they are chosen: a tiny one alone would be put again as it is. */
enum worth { WORTH_ASIDES, WORTH_SPARSE, WORTH_TINY, WORTHS };

static enum worth worth_of(const struct hb_key_bundle *bundle) {
  if (bundle->asides) return WORTH_ASIDES;
  return hb_key_bundle_is_sparse(bundle) ? WORTH_SPARSE : WORTH_TINY;
}

static bool is_old(const struct hb_ordering *core, const struct hb_key_bundle *bundle) {
  return bundle->flags & HB_KEY_BUNDLE_USED && bundle->flags & HB_KEY_BUNDLE_CANDIDATE &&
         bundle->commit != core->commit.number;
}

static bool may_rewrite(const struct hb_ordering *core, const struct hb_key_bundle *bundle) {
  return is_old(core, bundle) && bundle->frames;
}

/* Slots are used again: what is no candidate any more leaves the list. */
static void tidy_candidates(struct hb_per_key *per_key) {
  enum { BOTH = HB_KEY_BUNDLE_USED | HB_KEY_BUNDLE_CANDIDATE };
  size_t kept = 0;
  for (size_t i = 0; i < per_key->candidates_count; i++) {
    uint32_t slot = per_key->candidates[i];
    struct hb_key_bundle *bundle = &per_key->bundles[slot];
    if ((bundle->flags & BOTH) != BOTH) continue;
    bundle->flags &= ~(uint32_t)HB_KEY_BUNDLE_CANDIDATE; /* one that is named twice is kept once */
    per_key->candidates[kept++] = slot;
  }
  per_key->candidates_count = kept;
  for (size_t i = 0; i < kept; i++) {
    per_key->bundles[per_key->candidates[i]].flags |= HB_KEY_BUNDLE_CANDIDATE;
  }
}

/* ---- whether it pays */

struct tally {
  size_t of[WORTHS];
  size_t wasted; /* by sparse ones, on disk */
};

static struct tally count_candidates(const struct hb_ordering *core,
                                     const struct hb_per_key *per_key, bool resident_only) {
  struct tally tally = {0};
  for (size_t i = 0; i < per_key->candidates_count; i++) {
    const struct hb_key_bundle *bundle = &per_key->bundles[per_key->candidates[i]];
    if (!is_old(core, bundle) || (resident_only && !bundle->frames)) continue;
    tally.of[worth_of(bundle)]++;
    if (hb_key_bundle_is_sparse(bundle)) {
      tally.wasted += bundle->disk_bytes - hb_key_bundle_live_bytes(bundle);
    }
  }
  return tally;
}

static bool pays(const struct hb_ordering *core, const struct hb_per_key *per_key,
                 const struct tally *tally) {
  return tally->of[WORTH_ASIDES] || tally->of[WORTH_SPARSE] >= REWRITE_SPARSE ||
         tally->of[WORTH_TINY] >= REWRITE_TINY ||
         (tally->wasted >= core->options.bundle_bytes && tally->wasted > per_key->live_bytes);
}

/* Where it pays over all candidates, those in memory go first, so that room for others comes. */
static bool is_ready(const struct hb_ordering *core, const struct hb_per_key *per_key) {
  if (!per_key->candidates_count) return false;
  struct tally here = count_candidates(core, per_key, true);
  if (pays(core, per_key, &here)) return true;
  if (!core->key_memory.spilled || !here.of[WORTH_SPARSE]) return false;
  struct tally all = count_candidates(core, per_key, false);
  return !all.of[WORTH_ASIDES] && pays(core, per_key, &all);
}

void hb_key_rewrite_look(struct hb_ordering *core, struct hb_per_key *per_key) {
  per_key->rewrite_ready = is_ready(core, per_key);
  if (per_key->rewrite_ready) hb_release_enqueue(core, per_key->stream);
}

/* A quarter of the memory is for them; one may always come. */
void hb_key_rewrite_plan(struct hb_ordering *core, struct hb_per_key *per_key) {
  if (!per_key->candidates_count || is_ready(core, per_key)) return;
  struct tally all = count_candidates(core, per_key, false);
  if (!pays(core, per_key, &all)) return;
  size_t max = (size_t)core->options.limits.key_held_memory_max / 4;
  size_t bytes = core->key_memory.rewrite_bytes;
  for (size_t i = 0; i < core->fetches_count; i++) {
    if (core->fetches[i].keyed) bytes += core->fetches[i].bytes;
  }
  for (int worth = 0; worth < WORTHS; worth++) {
    if (all.of[WORTH_ASIDES] && worth != WORTH_ASIDES) return;
    for (size_t i = 0; i < per_key->candidates_count; i++) {
      uint32_t slot = per_key->candidates[i];
      const struct hb_key_bundle *bundle = &per_key->bundles[slot];
      if (!is_old(core, bundle) || (int)worth_of(bundle) != worth) continue;
      if (!hb_key_memory_can_fetch(bundle)) continue;
      if (bytes && bytes + bundle->disk_bytes > max) return;
      bytes += bundle->disk_bytes;
      hb_key_memory_fetch(core, per_key, slot, true);
    }
  }
}

/* ---- doing it */

static bool is_aside(const struct hb_key_state *key, const struct hb_event *event) {
  return key->asides && key->record.begun && event->sequence < key->record.first;
}

static void move_aside(struct hb_ordering *core, struct hb_key_state *key,
                       const struct hb_key_frames *frames, uint32_t index) {
  struct hb_per_key *per_key = key->owner;
  struct hb_core_stream *stream = per_key->stream;
  struct hb_key_moved *moved = hb_calloc(1, sizeof *moved);
  moved->bytes = hb_bytes_ref(frames->bytes);
  enum hb_code code = hb_scan_frame(hb_block_frame(&frames->block, index), &moved->event, NULL);
  HB_ASSERT(code == HB_OK);
  hb_reserve((void **)&per_key->moved, &per_key->moved_cap, per_key->moved_count + 1,
             sizeof(struct hb_key_moved *));
  per_key->moved[per_key->moved_count++] = moved;
  hb_keep_stored(core, stream, HB_OUTCOME_BEFORE_FIRST, &moved->event,
                 hb_block_receipt(&frames->block, index));
  stream->record.counters.before_first++;
  stream->record.counters.stored--;
  per_key->held_events--;
  per_key->asides--;
  key->asides--;
  hb_key_settle(core, key);
}

static void move_event(struct hb_ordering *core, struct hb_per_key *per_key,
                       const struct hb_key_frames *frames, uint32_t index) {
  struct hb_slice frame = hb_block_frame(&frames->block, index);
  struct hb_event event;
  enum hb_code code = hb_scan_frame(frame, &event, NULL);
  HB_ASSERT(code == HB_OK); /* it was scanned before it was stored, and the block is checked */
  struct hb_key_state *key = hb_key_find(per_key, hb_event_key(&event));
  if (!key) return;
  if (is_aside(key, &event)) {
    move_aside(core, key, frames, index);
    return;
  }
  struct hb_keyed_entry *held = hb_key_list_find(&key->held, event.sequence);
  if (!held || held->slot != frames->slot || held->index != index) return;
  if (key->woken == frames->slot + 1) hb_key_memory_unpin(core, key);
  struct hb_block_entry entry = {.frame = frame.data,
                                 .frame_size = (uint32_t)frame.size,
                                 .receipt = hb_block_receipt(&frames->block, index)};
  *held = hb_per_key_hold_add(core, per_key, event.sequence, entry);
}

/* What waits of it is added to the bundle being made. */
static void move_events(struct hb_ordering *core, struct hb_per_key *per_key, uint32_t slot) {
  const struct hb_key_frames *frames = per_key->bundles[slot].frames; /* stays where it is */
  for (uint32_t i = 0; i < frames->block.count; i++) move_event(core, per_key, frames, i);
  hb_reserve((void **)&per_key->drained, &per_key->drained_cap, per_key->drained_count + 1,
             sizeof *per_key->drained);
  per_key->drained[per_key->drained_count++] = slot;
}

/* A bundle's worth in each commit. */
static void move_candidates(struct hb_ordering *core, struct hb_per_key *per_key) {
  size_t bytes = 0;
  for (int worth = 0; worth < WORTHS; worth++) {
    for (size_t i = 0; i < per_key->candidates_count; i++) {
      uint32_t slot = per_key->candidates[i];
      const struct hb_key_bundle *bundle = &per_key->bundles[slot];
      if (!may_rewrite(core, bundle) || (int)worth_of(bundle) != worth) continue;
      size_t more = hb_key_bundle_live_bytes(bundle);
      if (bytes && bytes + more > core->options.bundle_bytes) return;
      bytes += more;
      move_events(core, per_key, slot);
    }
  }
}

void hb_per_key_rewrite(struct hb_ordering *core, struct hb_per_key *per_key) {
  tidy_candidates(per_key);
  per_key->rewrite_ready = false;
  if (!is_ready(core, per_key)) return;
  HB_ASSERT(per_key->drained_count == 0);
  move_candidates(core, per_key);
  hb_per_key_hold_end(core, per_key);
  for (size_t i = 0; i < per_key->drained_count; i++) {
    hb_key_bundle_delete(core, per_key, per_key->drained[i]);
  }
  per_key->drained_count = 0;
  hb_key_rewrite_look(core, per_key);
}
