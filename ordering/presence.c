/* Decides what stands at a sequence that comes again: nothing, content that can be compared here
 * and now, or content that a reader must compare (NEED).
 *
 * A verdict stays with its event, for contents never change; presence is looked up each time. An
 * event without a verdict that leaves here uncovered is new. */
#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

enum { AHEAD_SPANS = 6, AHEAD_PAGE = 12 };

static void want(struct hb_ordering *core, const struct hb_item *item, enum hb_place_kind place,
                 struct hb_bundle_id bundle) {
  hb_reserve((void **)&core->wanted, &core->wanted_cap, core->wanted_count + 1,
             sizeof *core->wanted);
  core->wanted[core->wanted_count++] = (struct hb_wanted){
      .batch = item->batch,
      .item = {.index = item->index,
               .part = bundle.part,
               .sequence = item->sequence,
               .commit = bundle.commit,
               .place = place},
  };
}

static enum hb_verdict compare(const struct hb_held_bundle *bundle, uint32_t index,
                               const struct hb_event *event) {
  struct hb_event held;
  enum hb_code code = hb_scan_frame(hb_bundle_frame(bundle, index), &held, NULL);
  HB_ASSERT(code == HB_OK); /* it was scanned before it was stored, and the block is checked */
  return hb_event_same(&held, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
}

/* The items [from, to) have one covered sequence. */
static void settle_covered(struct hb_ordering *core, struct hb_core_stream *stream,
                           const struct hb_item *from, const struct hb_item *to) {
  struct hb_held_run run = {0};
  const struct hb_held_bundle *bundle = NULL;
  if (from->sequence >= stream->record.frontier) {
    bool held = hb_held_find(&stream->held, from->sequence, &run);
    HB_ASSERT(held); /* I4 */
    bundle = &stream->bundles[run.slot];
  }
  for (const struct hb_item *item = from; item < to; item++) {
    const struct hb_batch *batch = core->round.batches[item->batch];
    struct hb_decision *decision = &batch->decisions[item->index];
    if (decision->verdict != HB_VERDICT_NONE) continue;
    if (!bundle) {
      want(core, item, HB_PLACE_LOG, (struct hb_bundle_id){0});
    } else if (hb_bundle_is_resident(bundle)) {
      uint32_t index = run.index + (uint32_t)(item->sequence - run.start);
      decision->verdict = (uint8_t)compare(bundle, index, &batch->events[item->index]);
    } else {
      want(core, item, HB_PLACE_BUNDLE, hb_bundle_id_of(stream, run.slot));
    }
  }
}

void hb_presence_look_up(struct hb_ordering *core, const struct hb_share *share) {
  struct hb_core_stream *stream = share->stream;
  if (!stream->record.frozen) return;
  if (stream->per_key) {
    hb_per_key_look_up(core, share);
    return;
  }
  const struct hb_item *item = core->round.items + share->items_from;
  const struct hb_item *end = core->round.items + share->items_to;
  int64_t covered_end = hb_intervals_end(&stream->covered);
  while (item < end && item->sequence < stream->record.first_sequence) item++;
  size_t ahead[2] = {0, 0};
  while (item < end && item->sequence < covered_end) {
    if (end - item > AHEAD_PAGE) { /* see hb_admit_held */
      hb_intervals_expect(&stream->covered, item[AHEAD_SPANS].sequence, item[AHEAD_PAGE].sequence,
                          ahead);
    }
    const struct hb_item *next = item + 1;
    while (next < end && next->sequence == item->sequence) next++;
    if (hb_intervals_contains(&stream->covered, item->sequence)) {
      settle_covered(core, stream, item, next);
    }
    item = next;
  }
}
