/* Decides which held events of a key are given in PER_KEY mode, where they are known by sequence.
 *
 * The key's record, read after the pass, is the judge: events below its `next` are released. If the
 * last of them has a position below `bound`, all were given from the log, and places below `next`
 * are dropped. If not, some were released after the pass, above `bound`: the phases start over from
 * there. A place above `next` whose bundle is gone, or does not have it, was rewritten or released
 * since: start over too. */
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/read_key_internal.h"
#include "storage/keys.h"
#include "storage/read.h"

static enum hb_code read_record(struct hb_key_page *page, bool *out_found,
                                struct hb_key_record *out, struct hb_err *err) {
  return hb_key_record_read(page->engine->store, page->read->stream->id, page->read->key, out_found,
                            out, err);
}

enum hb_code hb_key_read_next(struct hb_key_page *page, struct hb_err *err) {
  bool found;
  struct hb_key_record record;
  enum hb_code code = read_record(page, &found, &record, err);
  if (code != HB_OK || !found) return code;
  if (record.next > page->state->held_next) page->state->held_next = record.next;
  return HB_OK;
}

/* ---- giving places */

static bool find_event(const struct hb_block *block, struct hb_slice key, int64_t sequence,
                       struct hb_slice *out) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_event event;
    struct hb_slice frame = hb_block_frame(block, i);
    if (hb_scan_frame(frame, &event, NULL) != HB_OK) return false;
    if (event.sequence != sequence || !hb_slice_equal(hb_event_key(&event), key)) continue;
    *out = frame;
    return true;
  }
  return false;
}

static enum hb_code give(struct hb_key_page *page, const struct hb_key_place *place,
                         bool *out_given, bool *out_moved, struct hb_err *err) {
  struct hb_bundle_id id = {
      .stream = page->read->stream->id, .commit = place->commit, .part = place->part};
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  struct hb_slice frame;
  enum hb_code code = hb_bundle_read(page->engine->store, id, &bytes, err);
  if (code == HB_OK && bytes) code = hb_block_decode(hb_bytes_view(bytes), &block, err);
  if (code != HB_OK || !bytes) {
    *out_moved = true;
    hb_bytes_unref(bytes);
    return code;
  }
  page->budget -= (int64_t)bytes->size;
  if (find_event(&block, page->read->key, place->position, &frame)) {
    *out_given = hb_key_page_add(page, 0, frame, false);
  } else {
    *out_moved = true;
  }
  hb_bytes_unref(bytes);
  return HB_OK;
}

static size_t count_below(const struct hb_key_state *state, int64_t next) {
  size_t count = 0;
  while (count < state->places_count && state->places[count].position < next) count++;
  return count;
}

enum hb_code hb_key_give_held(struct hb_key_page *page, bool *out_done, bool *out_moved,
                              struct hb_err *err) {
  struct hb_key_state *state = page->state;
  bool found;
  struct hb_key_record record;
  enum hb_code code = read_record(page, &found, &record, err);
  if (code != HB_OK) return code;
  if (found && record.next > record.first && record.last_position >= state->bound) {
    *out_moved = true;
    return HB_OK;
  }
  if (found) hb_key_state_shift(state, count_below(state, record.next));
  while (state->places_count > 0 && !*out_moved) {
    bool given = false;
    if (page->budget <= 0) break;
    code = give(page, &state->places[0], &given, out_moved, err);
    if (code != HB_OK || !given) break;
    state->held_next = state->places[0].position + 1;
    hb_key_state_shift(state, 1);
  }
  if (code == HB_OK) *out_done = state->places_count == 0;
  return code;
}
