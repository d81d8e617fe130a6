/* Reads a key's held entries: a pass over all bundles finds places, later each is fetched. */
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/read_key_internal.h"
#include "storage/read.h"

struct pass {
  struct hb_key_page *page;
  bool stopped;
  enum hb_code code;
  struct hb_err *err;
};

/* PER_KEY: the key's events at or above held_next, which is what they are known by. */
static enum hb_code look_by_sequence(struct hb_key_page *page, struct hb_bundle_id id,
                                     const struct hb_block *block, struct hb_err *err) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, i), &event, err);
    if (code != HB_OK) return code;
    if (event.sequence < page->state->held_next) continue;
    if (!hb_slice_equal(hb_event_key(&event), page->read->key)) continue;
    struct hb_key_place place = {.position = event.sequence, .commit = id.commit, .part = id.part};
    hb_key_state_add(page->state, place, page->read->page_size);
  }
  return HB_OK;
}

/* Remember the key's events at or above next. */
static enum hb_code look(struct hb_key_page *page, struct hb_bundle_id id,
                         const struct hb_block *block, struct hb_err *err) {
  struct hb_key_state *state = page->state;
  size_t max = page->read->page_size;
  if (hb_stream_mode(page->read->stream) == HB_MODE_PER_KEY) {
    return look_by_sequence(page, id, block, err);
  }
  for (uint32_t i = hb_block_find(block, state->next); i < block->count; i++) {
    int64_t position = hb_block_sequence(block, i);
    /* Beyond the highest place that still counts, its key doesn't matter: the phases start over. */
    bool full = state->places_count == max && state->truncated;
    if (full && position > state->places[max - 1].position) break;
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, i), &event, err);
    if (code != HB_OK) return code;
    if (!hb_slice_equal(hb_event_key(&event), page->read->key)) continue;
    struct hb_key_place place = {.position = position, .commit = id.commit, .part = id.part};
    hb_key_state_add(state, place, max);
  }
  return HB_OK;
}

static bool visit(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct pass *pass = context;
  struct hb_key_state *state = pass->page->state;
  struct hb_block block;
  pass->code = hb_block_decode(bytes, &block, pass->err);
  if (pass->code == HB_OK) pass->code = look(pass->page, id, &block, pass->err);
  state->has_after = true;
  state->after = id;
  pass->page->budget -= (int64_t)bytes.size;
  pass->stopped = pass->code != HB_OK || pass->page->budget <= 0;
  return !pass->stopped;
}

enum hb_code hb_key_read_pass(struct hb_key_page *page, bool *out_done, struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct pass pass = {.page = page, .err = err};
  enum hb_code code = hb_bundle_each(page->engine->store, page->read->stream->id,
                                     state->has_after ? &state->after : NULL, visit, &pass, err);
  if (code == HB_OK) code = pass.code;
  if (code == HB_OK) *out_done = !pass.stopped;
  return code;
}

/* ---- giving places */

static bool find_event(const struct hb_block *block, int64_t position, struct hb_slice *out) {
  uint32_t index = hb_block_find(block, position);
  if (index == block->count || hb_block_sequence(block, index) != position) return false;
  *out = hb_block_frame(block, index);
  return true;
}

/* Gone from its bundle: released since, or rewritten. */
static enum hb_code give_from_log(struct hb_key_page *page, int64_t position, bool *out_given,
                                  bool *out_moved, struct hb_err *err) {
  if (!hb_stream_settle(page->read->stream)) return hb_err_failed(err);
  struct hb_stream_status status;
  hb_stream_get_status(page->read->stream, &status);
  *out_moved = position >= status.record.frontier;
  if (*out_moved) return HB_OK;
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, page->engine->store, page->read->stream, position);
  bool found;
  enum hb_code code = hb_cursor_next(&cursor, status.record.frontier, &found, err);
  struct hb_slice frame;
  if (code == HB_OK && !find_event(&cursor.block, position, &frame)) {
    code = hb_cursor_hole(page->read->stream, position, err);
  }
  if (code == HB_OK) {
    page->budget -= (int64_t)cursor.bytes->size;
    *out_given = hb_key_page_add(page, position, frame, true);
  }
  hb_cursor_done(&cursor);
  return code;
}

/* The bundle read last: neighbours in a list often share it. */
struct last_bundle {
  struct hb_bundle_id id;
  struct hb_bytes *bytes;
  struct hb_block block;
};

static enum hb_code load(struct hb_key_page *page, const struct hb_key_place *place,
                         struct last_bundle *last, struct hb_err *err) {
  if (last->bytes && last->id.commit == place->commit && last->id.part == place->part) {
    return HB_OK;
  }
  hb_bytes_unref(last->bytes);
  last->bytes = NULL;
  last->id = (struct hb_bundle_id){
      .stream = page->read->stream->id, .commit = place->commit, .part = place->part};
  enum hb_code code = hb_bundle_read(page->engine->store, last->id, &last->bytes, err);
  if (code != HB_OK || !last->bytes) return code;
  page->budget -= (int64_t)last->bytes->size;
  return hb_block_decode(hb_bytes_view(last->bytes), &last->block, err);
}

static enum hb_code give(struct hb_key_page *page, const struct hb_key_place *place,
                         struct last_bundle *last, bool *out_given, bool *out_moved,
                         struct hb_err *err) {
  enum hb_code code = load(page, place, last, err);
  if (code != HB_OK) return code;
  struct hb_slice frame;
  if (last->bytes && find_event(&last->block, place->position, &frame)) {
    *out_given = hb_key_page_add(page, place->position, frame, false);
    return HB_OK;
  }
  return give_from_log(page, place->position, out_given, out_moved, err);
}

enum hb_code hb_key_read_places(struct hb_key_page *page, bool *out_done, bool *out_moved,
                                struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct last_bundle last = {0};
  enum hb_code code = HB_OK;
  size_t i = 0;
  for (; i < state->places_count; i++) {
    bool given = state->places[i].position < state->next; /* in the released part */
    if (!given) {
      if (page->budget <= 0) break;
      code = give(page, &state->places[i], &last, &given, out_moved, err);
      if (code != HB_OK || !given) break;
      state->next = state->places[i].position + 1;
    }
  }
  hb_bytes_unref(last.bytes);
  hb_key_state_shift(state, i);
  if (code == HB_OK) *out_done = state->places_count == 0;
  return code;
}
