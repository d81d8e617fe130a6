/* Decides which copies of an event that failed there are, and in which order: those kept of its
 * sequence at ingest (CONFLICT), by wall time in milliseconds, within one by content hash. And
 * which keys are looked at when copies come. */
#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/processor_wait_internal.h"

enum { NOTES_BYTES = 1 << 20 };

/* ---- copies that come */

static bool is_copy(const struct hb_batch *batch, uint32_t index) {
  return batch->decisions[index].outcome == HB_OUTCOME_CONFLICT;
}

/* Keys are noted, so that copies which nobody waits for make nobody look. */
static void note(struct hb_processor *processor, const struct hb_batch *batch) {
  pthread_mutex_lock(&processor->mutex);
  struct hb_buf *out = &processor->copies;
  for (uint32_t i = 0; i < batch->count; i++) {
    if (!is_copy(batch, i)) continue;
    struct hb_slice key = hb_event_key(&batch->events[i]);
    processor->copies_lost = processor->copies_lost || out->size >= NOTES_BYTES;
    if (processor->copies_lost) break;
    hb_put_u32_le(hb_buf_reserve(out, 4), (uint32_t)key.size);
    out->size += 4;
    hb_buf_append(out, key.data, key.size);
  }
  processor->news = true;
  pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

void hb_processors_note_copies(struct hb_engine *engine, const struct hb_stream *stream,
                               const struct hb_batch *batch) {
  const struct hb_processors *all = &engine->processors;
  if (all->count == 0 || batch->error.code != HB_OK) return;
  if (hb_stream_mode(stream) != HB_MODE_PER_KEY) return;
  uint32_t first = 0;
  while (first < batch->count && !is_copy(batch, first)) first++;
  if (first == batch->count) return;
  for (size_t i = 0; i < all->count; i++) { /* the sequencer alone changes the list */
    struct hb_processor *processor = all->items[i];
    bool waits = processor->config.on_error == HB_ON_ERROR_WAIT && !processor->gone;
    if (processor->id.stream == stream->id && waits) note(processor, batch);
  }
}

static void look_at_all(struct hb_blocked *blocked) {
  for (size_t i = 0; i < blocked->count; i++) hb_blocked_look(blocked->items[i], false);
}

void hb_copies_take_notes(struct hb_processor *processor) {
  struct hb_blocked *blocked = hb_host_blocked(processor->host);
  pthread_mutex_lock(&processor->mutex);
  struct hb_buf *copies = &processor->copies;
  if (processor->copies_lost) look_at_all(blocked);
  for (size_t at = 0; at < copies->size && blocked->count > 0;) {
    struct hb_slice key = hb_slice_of(copies->data + at + 4, hb_get_u32_le(copies->data + at));
    struct hb_blocked_key *found = hb_blocked_find(blocked, key);
    if (found) hb_blocked_look(found, false);
    at += 4 + key.size;
  }
  hb_buf_clear(copies);
  processor->copies_lost = false;
  pthread_mutex_unlock(&processor->mutex);
}

/* ---- which copies there are */

static bool is_before(const struct hb_copy *a, const struct hb_copy *b) {
  return a->seen_ms != b->seen_ms ? a->seen_ms < b->seen_ms : a->hash < b->hash;
}

static bool is_of_key(const struct hb_unprocessed *kept, const struct hb_blocked_row *row) {
  struct hb_event event;
  return hb_scan_frame(kept->frame, &event, NULL) == HB_OK && event.sequence == row->sequence &&
         hb_slice_equal(hb_event_key(&event), row->key);
}

static bool visit_copy(void *context, const struct hb_unprocessed *kept) {
  struct hb_copies *copies = context;
  if (!is_of_key(kept, copies->row)) return true;
  struct hb_copy copy = {.seen_ms = kept->first_seen_wall_ms, .hash = kept->content_hash};
  size_t at = copies->count;
  while (at > 0 && is_before(&copy, &copies->items[at - 1])) at--;
  if (at == HB_COPIES_MAX) return true;
  if (copies->count < HB_COPIES_MAX) copies->count++;
  memmove(copies->items + at + 1, copies->items + at,
          (copies->count - at - 1) * sizeof *copies->items);
  copies->items[at] = copy;
  return true;
}

bool hb_copies_was_tried(const struct hb_blocked_key *key, uint64_t hash) {
  for (size_t i = 0; i < key->tried_count; i++) {
    if (key->tried[i] == hash) return true;
  }
  return false;
}

enum hb_code hb_copies_find(struct hb_processor *processor, const struct hb_blocked_row *row,
                            struct hb_copies *out, struct hb_err *err) {
  *out = (struct hb_copies){.row = row};
  if (!hb_processor_enter_store(processor)) return hb_err_no_store(err);
  enum hb_code code = hb_unprocessed_of(processor->engine->store, processor->id.stream,
                                        HB_OUTCOME_CONFLICT, row->sequence, visit_copy, out, err);
  hb_processor_leave_store(processor);
  return code;
}

/* ---- an event to try, copied to processor->event */

struct wanted {
  const struct hb_blocked_row *row;
  uint64_t hash;
  struct hb_buf *out;
};

static bool visit_wanted(void *context, const struct hb_unprocessed *kept) {
  struct wanted *wanted = context;
  if (kept->content_hash != wanted->hash || !is_of_key(kept, wanted->row)) return true;
  hb_buf_append(wanted->out, kept->frame.data, kept->frame.size);
  return false;
}

static enum hb_code read_copy(struct hb_processor *processor, const struct hb_blocked_row *row,
                              uint64_t hash, struct hb_err *err) {
  struct wanted wanted = {.row = row, .hash = hash, .out = &processor->event};
  return hb_unprocessed_of(processor->engine->store, processor->id.stream, HB_OUTCOME_CONFLICT,
                           row->sequence, visit_wanted, &wanted, err);
}

static enum hb_code read_failed(struct hb_processor *processor, const struct hb_blocked_row *row,
                                int64_t frontier, struct hb_err *err) {
  struct hb_cursor cursor;
  bool found;
  hb_cursor_init(&cursor, processor->engine->store, processor->stream, row->position);
  enum hb_code code = hb_cursor_next(&cursor, frontier, &found, err);
  uint32_t at = code == HB_OK && found ? hb_block_find(&cursor.block, row->position) : 0;
  if (code == HB_OK && found && at < cursor.block.count) {
    struct hb_slice frame = hb_block_frame(&cursor.block, at);
    hb_buf_append(&processor->event, frame.data, frame.size);
  }
  hb_cursor_done(&cursor);
  return code;
}

static enum hb_code check(const struct hb_processor *processor, const struct hb_blocked_row *row,
                          struct hb_event *out, struct hb_err *err) {
  struct hb_slice frame = hb_buf_view(&processor->event);
  if (frame.size && hb_scan_frame(frame, out, err) == HB_OK && out->sequence == row->sequence &&
      hb_slice_equal(hb_event_key(out), row->key)) {
    return HB_OK;
  }
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "processor '%s': no event of sequence %" PRId64 " is where a key waits for one",
                    processor->config.name, row->sequence);
}

enum hb_code hb_copies_read(struct hb_feeding *feeding, const struct hb_blocked_row *row,
                            const uint64_t *hash, struct hb_event *out, struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  hb_buf_clear(&processor->event);
  if (!hb_processor_enter_store(processor)) return hb_err_no_store(err);
  enum hb_code code = hash ? read_copy(processor, row, *hash, err)
                           : read_failed(processor, row, feeding->frontier, err);
  hb_processor_leave_store(processor);
  return code == HB_OK ? check(processor, row, out, err) : code;
}
