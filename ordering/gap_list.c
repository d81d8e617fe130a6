/* Decides which gaps, and which keys with gaps, a page of them has.
 *
 * Keys are gone through by their hashes with the bits turned round: a table that doubles splits
 * each of its places in two that are next to each other in that order, so a page goes on where the
 * one before ended though the table grew, or is another one after a restart. Those of one place are
 * sorted, so that a page may end between them. */
#include "ordering/gap_list.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"
#include "ordering/per_key_internal.h"

/* ---- gaps */

static bool add(struct hb_gap_page *page, struct hb_gap gap) {
  page->more = page->count == page->max;
  if (!page->more) page->gaps[page->count++] = gap;
  return !page->more;
}

static void list_stream(const struct hb_ordering *core, const struct hb_core_stream *stream,
                        struct hb_gap_page *page) {
  struct hb_gap_walk walk = hb_gap_walk_from(&stream->covered, page->from);
  struct hb_range range;
  uint64_t *moment;
  while (hb_gap_walk_next(&walk, &range, &moment)) {
    struct hb_gap gap = {.start = range.start,
                         .end = range.end,
                         .first_seen_served_ms = hb_moment_served_ms(*moment),
                         .first_seen_wall_ms = hb_moment_wall_ms(&core->moments, *moment)};
    if (gap.start >= page->from && !add(page, gap)) return;
  }
}

/* The end of what is known to be there without a gap; for a key that has not begun from the lowest
 * event on that is held. */
static int64_t first_gap(const struct hb_key_state *key) {
  const struct hb_keyed_entry *front = hb_key_list_front(&key->held);
  if (key->record.begun) return hb_per_key_complete_to(key);
  return hb_key_list_run_end(&key->held, front->sequence);
}

static void list_key(const struct hb_key_state *key, struct hb_gap_page *page) {
  int64_t start = first_gap(key);
  page->initial_missing = !key->record.begun;
  if (page->from > start) start = hb_key_list_run_end(&key->held, page->from);
  const struct hb_keyed_entry *next;
  while ((next = hb_key_list_above(&key->held, start)) != NULL) {
    if (!add(page, (struct hb_gap){.start = start, .end = next->sequence})) return;
    start = hb_key_list_run_end(&key->held, next->sequence);
  }
}

bool hb_ordering_list_gaps(const struct hb_ordering *core, uint64_t id, struct hb_slice key,
                           struct hb_gap_page *page) {
  const struct hb_core_stream *stream = hb_core_find_stream(core, id);
  page->count = 0;
  page->more = page->initial_missing = false;
  if (!stream || core->in_flight) return false;
  if (!stream->per_key) {
    list_stream(core, stream, page);
    return true;
  }
  const struct hb_key_state *state = hb_key_find(stream->per_key, key);
  if (state && hb_key_list_count(&state->held) > 0) list_key(state, page);
  return true;
}

/* ---- keys */

static void describe(const struct hb_key_state *key, struct hb_slice bytes,
                     struct hb_key_gaps *out) {
  struct hb_gap_page page = {.from = INT64_MIN, .gaps = &out->gap, .max = 1};
  *out = (struct hb_key_gaps){.key = bytes,
                              .begun = key->record.begun,
                              .highest = key->held.entries[key->held.to - 1].sequence,
                              .held = hb_key_list_count(&key->held),
                              .gaps = key->gaps};
  out->complete_to = out->begun ? hb_per_key_complete_to(key) : 0;
  list_key(key, &page);
  out->has_gap = page.count > 0;
}

/* False: there is no room for it. The buffer moves: places in it for now. */
static bool add_key(struct hb_gap_keys_page *page, const struct hb_key_state *key) {
  struct hb_slice name = hb_key_bytes(key);
  bool fits = page->count < page->max &&
              (page->count == 0 || page->bytes->size + name.size <= page->bytes_max);
  if (!fits) return false;
  hb_buf_append(page->bytes, name.data, name.size);
  describe(key, hb_slice_of(NULL, name.size), &page->keys[page->count++]);
  return true;
}

static void set_names(struct hb_gap_keys_page *page) {
  const uint8_t *at = page->bytes->data;
  for (size_t i = 0; i < page->count; i++) {
    page->keys[i].key.data = at;
    if (page->keys[i].key.size) at += page->keys[i].key.size; /* of the empty key alone: no bytes */
  }
}

static bool is_behind(const struct hb_gap_keys_page *page, const struct hb_key_state *key) {
  uint64_t order = hb_key_order(key);
  if (order != page->order) return order > page->order;
  return !page->has_after || hb_slice_compare(hb_key_bytes(key), page->after) > 0;
}

/* False: the page is full; it goes on behind the last key. */
static bool add_cell(struct hb_gap_keys_page *page, struct hb_key_state *const *keys,
                     size_t count) {
  for (size_t i = 0; i < count; i++) {
    bool has = keys[i]->gaps > 0 && hb_key_list_count(&keys[i]->held) > 0;
    if (!has || !is_behind(page, keys[i])) continue;
    if (!hb_slice_starts_with(hb_key_bytes(keys[i]), page->prefix)) continue;
    if (!add_key(page, keys[i])) return false;
    page->more_order = hb_key_order(keys[i]);
  }
  return true;
}

bool hb_ordering_list_gap_keys(const struct hb_ordering *core, uint64_t id,
                               struct hb_gap_keys_page *page) {
  HB_ASSERT(page->max > 0 && page->looks_max > 0);
  const struct hb_core_stream *stream = hb_core_find_stream(core, id);
  page->count = 0;
  page->more = page->more_has_key = false;
  if (!stream || !stream->per_key || core->in_flight) return false;
  struct hb_key_cell cell = {.order = page->order};
  bool any = stream->per_key->table.cap > 0;
  for (size_t looks = 0; any; looks++) {
    if (looks == page->looks_max) {
      page->more = true;
      page->more_has_key = false;
      page->more_order = cell.order;
      break;
    }
    hb_key_cell_read(stream->per_key, &cell);
    if (!add_cell(page, cell.keys, cell.count)) {
      page->more = page->more_has_key = true;
      break;
    }
    any = hb_key_cell_next(stream->per_key, &cell);
  }
  hb_key_cell_done(&cell);
  set_names(page);
  return true;
}
