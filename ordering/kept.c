/* Decides which refused events are kept aside: each refusal once, within unprocessed_bytes_max.
 *
 * A refusal is outcome, sequence and content. One that is there already is put again, so that its
 * row counts up; a new one costs its frame and 64 bytes of row. The set that knows them costs
 * memory and counts with the index: where that is full nothing new is kept either (I8). Within one
 * commit refusals are taken in ascending sequence. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

enum { ROW_BYTES = 64, KEPT_FIRST = 16 };

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static uint64_t name_of(enum hb_outcome outcome, int64_t sequence, uint64_t content_hash) {
  uint64_t name = mix(content_hash ^
                      mix((uint64_t)sequence + (uint64_t)outcome * UINT64_C(0x9E3779B97F4A7C15)));
  return name ? name : 1;
}

/* Its slot, or the unused one where it would be. There is always an unused one. */
static uint64_t *find_slot(const struct hb_kept *kept, uint64_t name) {
  size_t at = (size_t)name & (kept->cap - 1);
  while (kept->slots[at] && kept->slots[at] != name) at = (at + 1) & (kept->cap - 1);
  return &kept->slots[at];
}

static void grow(struct hb_ordering *core, struct hb_kept *kept) {
  struct hb_kept grown = {.cap = kept->cap ? kept->cap * 2 : KEPT_FIRST, .count = kept->count};
  grown.slots = hb_calloc(grown.cap, sizeof *grown.slots);
  for (size_t i = 0; i < kept->cap; i++) {
    if (kept->slots[i]) *find_slot(&grown, kept->slots[i]) = kept->slots[i];
  }
  core->index_bytes += (grown.cap - kept->cap) * sizeof *grown.slots;
  free(kept->slots);
  *kept = grown;
}

static bool contains(const struct hb_kept *kept, uint64_t name) {
  return kept->cap && *find_slot(kept, name) == name;
}

static void add(struct hb_ordering *core, struct hb_kept *kept, uint64_t name) {
  if (contains(kept, name)) return;
  if ((kept->count + 1) * 4 > kept->cap * 3) grow(core, kept);
  *find_slot(kept, name) = name;
  kept->count++;
}

void hb_kept_add(struct hb_ordering *core, struct hb_core_stream *stream, enum hb_outcome outcome,
                 int64_t sequence, uint64_t content_hash) {
  add(core, &stream->kept, name_of(outcome, sequence, content_hash));
}

void hb_kept_done(struct hb_ordering *core, struct hb_core_stream *stream) {
  core->index_bytes -= stream->kept.cap * sizeof *stream->kept.slots;
  free(stream->kept.slots);
  stream->kept = (struct hb_kept){0};
}

static bool fits(const struct hb_ordering *core, const struct hb_core_stream *stream,
                 uint64_t cost) {
  uint64_t used = stream->record.counters.unprocessed_bytes;
  uint64_t max = core->options.limits.unprocessed_bytes_max;
  return used <= max && cost <= max - used &&
         core->index_bytes < core->options.limits.held_index_max;
}

static bool keep(struct hb_ordering *core, struct hb_core_stream *stream, enum hb_outcome outcome,
                 const struct hb_event *event, struct hb_receipt receipt, bool was_stored) {
  uint64_t hash = hb_event_content_hash(event);
  uint64_t name = name_of(outcome, event->sequence, hash);
  if (!contains(&stream->kept, name)) {
    uint64_t cost = (uint64_t)event->frame_size + ROW_BYTES;
    if (!was_stored && !fits(core, stream, cost)) return false;
    stream->record.counters.unprocessed_bytes += cost;
    add(core, &stream->kept, name);
  }
  hb_outbox_touch(core, stream);
  hb_outbox_unprocessed(core, (struct hb_put_unprocessed){.stream = stream->id,
                                                          .outcome = outcome,
                                                          .was_stored = was_stored,
                                                          .event = event,
                                                          .content_hash = hash,
                                                          .receipt = receipt});
  return true;
}

bool hb_keep(struct hb_ordering *core, struct hb_core_stream *stream, enum hb_outcome outcome,
             const struct hb_event *event, struct hb_receipt receipt) {
  return keep(core, stream, outcome, event, receipt, false);
}

void hb_keep_stored(struct hb_ordering *core, struct hb_core_stream *stream,
                    enum hb_outcome outcome, const struct hb_event *event,
                    struct hb_receipt receipt) {
  bool kept = keep(core, stream, outcome, event, receipt, true);
  HB_ASSERT(kept);
}
