/* Decides one page of a key's list: ascending positions, each entry released or held, none that
 * was there when paging began missed or repeated, though entries move from held to released (at
 * the same position) between pages and within one.
 *
 *   RELEASED  entries from `next` up to the frontier F that is published now, from index and log
 *   PASS      all bundles, in key order, a step at a time: the lowest places >= next of the key
 *   DRAIN     entries from `next` up to `bound`, the frontier published *after* the pass, again
 *             from index and log; then the places above it, each from its bundle
 *
 * Everything is given in ascending position and `next` only rises, so nothing is repeated. An entry
 * e >= next that the pass should have seen is missed only if it left its bundle before the pass
 * came there. Then it was rewritten, and the pass meets the new bundle later (its commit number is
 * higher); or it was released by a write that the pass's view showed. That write was under way or
 * done, so once it is published (hb_stream_settle) e is below `bound`, and DRAIN reads it from the
 * log. The same wait keeps a bundle that isn't fsynced yet from being shown (I2).
 *
 * In PER_KEY mode held events have no position yet. They come behind all released ones, known and
 * ordered by their sequence; `held_next` is where their part of the list stands. What the pass saw
 * may be released above `bound` before its turn comes: the key's record says so, and the phases
 * start over (read_key_sequence.c).
 *
 * A place that is gone when its turn comes was released since (it is in the log, at its position)
 * or rewritten: then the phases start over at its position. Where the pass saw more than a page,
 * they start over above the last place. A step looks at 16 MiB; what it has is a page then, empty
 * or not, with all of this in its token. */
#include "server/engine/read_key_internal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/reads.h"

bool hb_key_page_is_full(const struct hb_key_page *page) {
  return page->read->entries_count >= page->read->page_size ||
         page->frame_bytes >= page->engine->tuning.key_page_bytes;
}

bool hb_key_page_add(struct hb_key_page *page, int64_t position, struct hb_slice frame,
                     bool released) {
  struct hb_read *read = page->read;
  size_t max = page->engine->tuning.key_page_bytes;
  if (hb_key_page_is_full(page)) return false;
  if (read->entries_count > 0 && frame.size > max - page->frame_bytes) return false;
  hb_reserve((void **)&read->entries, &page->entries_cap, read->entries_count + 1,
             sizeof *read->entries);
  /* A copy: a reference would keep a whole block for one small event. */
  struct hb_bytes *copy = hb_bytes_copy(frame);
  read->entries[read->entries_count++] = (struct hb_key_entry){
      .owner = copy, .frame = hb_bytes_view(copy), .position = position, .released = released};
  page->frame_bytes += frame.size;
  return true;
}

static void start_over(struct hb_key_state *state, int64_t next) {
  state->phase = HB_KEY_RELEASED;
  state->next = next;
  state->has_after = false;
  state->truncated = false;
  state->places_count = 0;
}

/* Each of these does what it can of its phase and says whether the page ends here (*out_stop), or
 * the list (*out_end); else the state has another phase. */

static enum hb_code do_released(struct hb_key_page *page, bool *out_stop, bool *out_end,
                                struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct hb_stream_status status;
  hb_stream_get_status(page->read->stream, &status);
  if (!status.record.frozen) {
    *out_end = true;
    return HB_OK;
  }
  bool done;
  enum hb_code code = hb_key_read_released(page, status.record.frontier, &done, err);
  if (code != HB_OK) return code;
  *out_stop = !done;
  if (!done) return HB_OK;
  /* What was held when paging began and published is released now, or counted here. */
  *out_end = page->read->released_only || status.held_events == 0;
  state->phase = HB_KEY_PASS;
  bool per_key = hb_stream_mode(page->read->stream) == HB_MODE_PER_KEY;
  if (per_key && !*out_end) return hb_key_read_next(page, err);
  return HB_OK;
}

static enum hb_code do_pass(struct hb_key_page *page, bool *out_stop, struct hb_err *err) {
  bool done;
  enum hb_code code = hb_key_read_pass(page, &done, err);
  if (code != HB_OK) return code;
  *out_stop = !done;
  if (!done) return HB_OK;
  if (!hb_stream_settle(page->read->stream)) return hb_err_failed(err);
  struct hb_stream_status status;
  hb_stream_get_status(page->read->stream, &status);
  page->state->bound = status.record.frontier;
  page->state->phase = HB_KEY_DRAIN;
  return HB_OK;
}

static enum hb_code do_drain(struct hb_key_page *page, bool *out_stop, bool *out_end,
                             struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct hb_stream_status status;
  hb_stream_get_status(page->read->stream, &status);
  if (state->bound > status.record.frontier) return hb_token_invalid(err); /* never given so */
  bool done;
  enum hb_code code = hb_key_read_released(page, state->bound, &done, err);
  if (code != HB_OK || !done) {
    *out_stop = true;
    return code;
  }
  bool moved = false;
  bool per_key = hb_stream_mode(page->read->stream) == HB_MODE_PER_KEY;
  code = per_key ? hb_key_give_held(page, &done, &moved, err)
                 : hb_key_read_places(page, &done, &moved, err);
  if (code != HB_OK) return code;
  if (moved) {
    start_over(state, per_key ? state->next : state->places[0].position);
  } else if (!done) {
    *out_stop = true;
  } else if (state->truncated) {
    start_over(state, state->next);
  } else {
    *out_end = true;
  }
  return HB_OK;
}

static enum hb_code fill(struct hb_key_page *page, bool *out_end, struct hb_err *err) {
  bool stop = false;
  enum hb_code code = HB_OK;
  while (code == HB_OK && !stop && !*out_end && page->budget > 0 && !hb_key_page_is_full(page)) {
    switch (page->state->phase) {
      case HB_KEY_RELEASED:
        code = do_released(page, &stop, out_end, err);
        break;
      case HB_KEY_PASS:
        code = do_pass(page, &stop, err);
        break;
      case HB_KEY_DRAIN:
        code = do_drain(page, &stop, out_end, err);
        break;
    }
  }
  return code;
}

enum hb_code hb_read_key(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  struct hb_key_state state = {.phase = HB_KEY_RELEASED,
                               .held_next = INT64_MIN,
                               .next = read->has_from ? read->from_position : INT64_MIN};
  if (read->page_size == 0) read->page_size = 1;
  if (read->page_size > engine->limits.page_size_max) {
    read->page_size = (uint32_t)engine->limits.page_size_max;
  }
  if (read->token.size > 0) {
    enum hb_code code = hb_key_token_decode(read, engine->limits.page_size_max, &state, err);
    if (code != HB_OK) return code;
  }
  struct hb_key_page page = {
      .engine = engine, .read = read, .state = &state, .budget = engine->tuning.read_step_bytes};
  bool end = false;
  enum hb_code code = fill(&page, &end, err);
  if (code == HB_OK && !end) hb_key_token_encode(&state, read, &read->next_token);
  hb_key_state_done(&state);
  return code;
}
