/* Decides which copies of an event that failed there are, and in which order: those kept of its
 * sequence at ingest (CONFLICT), by wall time in milliseconds, within one by content hash. And
 * which keys are looked at when copies come.
 *
 * Rows are found by number alone, whatever their key, and keys often wait at one and the same
 * number (all at their first event, say). So what was read of a number is remembered until more
 * copies have come: a thousand keys read its rows once. A copy that comes meanwhile is noted after
 * its row is there, and makes its key look again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/processor_wait_internal.h"

enum { NOTES_BYTES = 1 << 20, PASS_BYTES = 4 << 20 };

/* What was read of one number, for whichever key. */
struct seen_copy {
  size_t key_offset; /* in the pass's keys */
  uint32_t key_size;
  struct hb_copy copy;
};

struct hb_copies_pass {
  bool valid;
  bool too_many; /* no room for them: each key reads for itself */
  uint64_t epoch;
  int64_t sequence;
  struct hb_buf keys;
  struct seen_copy *items; /* owned; by key */
  size_t count;
  size_t cap;
};

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
  bool any = processor->copies_lost || copies->size > 0;
  if (any && processor->copies_pass) processor->copies_pass->valid = false;
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

static void add_copy(struct hb_copies *copies, struct hb_copy copy) {
  size_t at = copies->count;
  while (at > 0 && is_before(&copy, &copies->items[at - 1])) at--;
  if (at == HB_COPIES_MAX) return;
  if (copies->count < HB_COPIES_MAX) copies->count++;
  memmove(copies->items + at + 1, copies->items + at,
          (copies->count - at - 1) * sizeof *copies->items);
  copies->items[at] = copy;
}

static bool visit_copy(void *context, const struct hb_unprocessed *kept) {
  struct hb_copies *copies = context;
  struct hb_copy copy = {.seen_ms = kept->first_seen_wall_ms, .hash = kept->content_hash};
  if (is_of_key(kept, copies->row)) add_copy(copies, copy);
  return true;
}

/* ---- the same for many keys that wait at one number: its rows are read once for all of them */

void hb_copies_done(struct hb_processor *processor) {
  struct hb_copies_pass *pass = processor->copies_pass;
  if (!pass) return;
  hb_buf_done(&pass->keys);
  free(pass->items);
  free(pass);
  processor->copies_pass = NULL;
}

static struct hb_slice key_of(const struct hb_copies_pass *pass, const struct seen_copy *seen) {
  return hb_slice_of(pass->keys.data + seen->key_offset, seen->key_size);
}

static bool visit_any(void *context, const struct hb_unprocessed *kept) {
  struct hb_copies_pass *pass = context;
  struct hb_event event;
  if (hb_scan_frame(kept->frame, &event, NULL) != HB_OK) return true;
  size_t bytes = pass->keys.size + event.key_size + (pass->count + 1) * sizeof *pass->items;
  pass->too_many = bytes > PASS_BYTES;
  if (pass->too_many) return false;
  struct hb_slice key = hb_event_key(&event);
  hb_reserve((void **)&pass->items, &pass->cap, pass->count + 1, sizeof *pass->items);
  pass->items[pass->count++] =
      (struct seen_copy){.key_offset = pass->keys.size,
                         .key_size = event.key_size,
                         .copy = {.seen_ms = kept->first_seen_wall_ms, .hash = kept->content_hash}};
  hb_buf_append(&pass->keys, key.data, key.size);
  return true;
}

static int compare_seen(const void *a, const void *b, void *context) {
  const struct hb_copies_pass *pass = context;
  return hb_slice_compare(key_of(pass, a), key_of(pass, b));
}

/* The store is held. */
static enum hb_code read_pass(struct hb_processor *processor, int64_t sequence,
                              struct hb_err *err) {
  if (!processor->copies_pass)
    processor->copies_pass = hb_calloc(1, sizeof *processor->copies_pass);
  struct hb_copies_pass *pass = processor->copies_pass;
  bool is_it = pass->valid && pass->sequence == sequence && pass->epoch == processor->epoch;
  if (is_it) return HB_OK;
  pass->count = 0;
  pass->too_many = false;
  hb_buf_clear(&pass->keys);
  enum hb_code code = hb_unprocessed_of(processor->engine->store, processor->id.stream,
                                        HB_OUTCOME_CONFLICT, sequence, visit_any, pass, err);
  pass->valid = code == HB_OK;
  pass->sequence = sequence;
  pass->epoch = processor->epoch;
  if (pass->count > 1) {
    qsort_r(pass->items, pass->count, sizeof *pass->items, compare_seen, pass);
  }
  return code;
}

static void take_from_pass(const struct hb_copies_pass *pass, struct hb_copies *out) {
  size_t low = 0;
  size_t high = pass->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (hb_slice_compare(key_of(pass, &pass->items[middle]), out->row->key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < pass->count; low++) {
    if (!hb_slice_equal(key_of(pass, &pass->items[low]), out->row->key)) break;
    add_copy(out, pass->items[low].copy);
  }
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
  enum hb_code code = read_pass(processor, row->sequence, err);
  if (code == HB_OK && !processor->copies_pass->too_many) {
    take_from_pass(processor->copies_pass, out);
  } else if (code == HB_OK) {
    code = hb_unprocessed_of(processor->engine->store, processor->id.stream, HB_OUTCOME_CONFLICT,
                             row->sequence, visit_copy, out, err);
  }
  hb_processor_leave_store(processor);
  return code;
}

/* ---- an event to try, copied to processor->event */

struct wanted {
  const struct hb_blocked_row *row;
  struct hb_buf *out;
};

static bool visit_wanted(void *context, const struct hb_unprocessed *kept) {
  struct wanted *wanted = context;
  if (!is_of_key(kept, wanted->row)) return true;
  hb_buf_append(wanted->out, kept->frame.data, kept->frame.size);
  return false;
}

static enum hb_code read_copy(struct hb_processor *processor, const struct hb_blocked_row *row,
                              uint64_t hash, struct hb_err *err) {
  struct wanted wanted = {.row = row, .out = &processor->event};
  return hb_unprocessed_one(processor->engine->store, processor->id.stream, HB_OUTCOME_CONFLICT,
                            row->sequence, hash, visit_wanted, &wanted, err);
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
                            const uint64_t *hash, struct hb_event *out, enum hb_try *out_kind,
                            struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  hb_buf_clear(&processor->event);
  if (!hb_processor_enter_store(processor)) return hb_err_no_store(err);
  enum hb_code code = hash ? read_copy(processor, row, *hash, err)
                           : read_failed(processor, row, feeding->frontier, err);
  bool is_kept = false;
  if (code == HB_OK && hash) {
    code = hb_failure_is_kept(processor->engine->store, processor->id, row->position,
                              hb_buf_view(&processor->event), &is_kept, err);
  }
  hb_processor_leave_store(processor);
  *out_kind = !hash ? HB_TRY_FAILED : is_kept ? HB_TRY_KEPT : HB_TRY_COPY;
  return code == HB_OK ? check(processor, row, out, err) : code;
}
