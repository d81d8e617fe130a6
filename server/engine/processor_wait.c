/* Decides when a key that waits at an event that failed is looked at, and with which events.
 *
 * Copies are what was kept of its sequence at ingest (CONFLICT), in the order in which they came:
 * by wall time in milliseconds, within one by content hash. Each is tried once by itself, when the
 * key begins to wait or when a copy comes; all of them, and the failed event too, when the thread
 * begins (code may be another one by now) or when it is asked for. A good one found, the key's
 * events that the place went past are taken from the key's list, a page at a time.
 *
 * It is the work of each second turn, a bundle of new events that of the others. While results of a
 * new event are half committed nothing is done here, so that they stay together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/read_internal.h"

enum { PAGE = 200, NOTES_BYTES = 1 << 20 };

/* ---- who is told of what comes of it */

void hb_processor_open_retries(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->retries_open = true;
  pthread_mutex_unlock(&processor->mutex);
}

static struct hb_retry *take_first(struct hb_processor *processor, bool begun_only) {
  pthread_mutex_lock(&processor->mutex);
  struct hb_retry *first = processor->retries;
  if (first && begun_only && !first->begun) first = NULL;
  if (first) processor->retries = first->next;
  pthread_mutex_unlock(&processor->mutex);
  return first;
}

static void answer_lost(struct hb_retry *retry) {
  (void)hb_err_set(&retry->error, HB_UNAVAILABLE, "RETRY_ENDED",
                   "processor '%s' ended, or began anew, meanwhile; what came of it is not known",
                   retry->name);
  retry->done(retry);
}

void hb_processor_close_retries(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->retries_open = false;
  pthread_mutex_unlock(&processor->mutex);
  struct hb_retry *retry;
  while ((retry = take_first(processor, false)) != NULL) answer_lost(retry);
}

void hb_processor_lose_retry(struct hb_processor *processor) {
  struct hb_retry *retry = take_first(processor, true);
  if (retry) answer_lost(retry);
}

static bool submit(struct hb_processor *processor, struct hb_retry *retry) {
  pthread_mutex_lock(&processor->mutex);
  bool open = processor->retries_open;
  if (open) {
    struct hb_retry **at = &processor->retries;
    while (*at) at = &(*at)->next;
    *at = retry;
    processor->news = true;
    pthread_cond_broadcast(&processor->changed);
  }
  pthread_mutex_unlock(&processor->mutex);
  return open;
}

void hb_engine_retry_blocked(struct hb_engine *engine, struct hb_stream *stream,
                             struct hb_retry *retry) {
  retry->next = NULL;
  retry->begun = false;
  retry->tried = retry->good = retry->blocked = 0;
  retry->why[0] = '\0';
  retry->error = (struct hb_err){0};
  struct hb_processor *processor = hb_processors_find(engine, stream->id, retry->name);
  if (!processor) {
    (void)hb_err_set(&retry->error, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                     "stream '%s' has no processor '%.64s'", stream->name, retry->name);
    retry->done(retry);
    return;
  }
  if (!submit(processor, retry)) {
    (void)hb_err_set(&retry->error, HB_PRECONDITION, "PROCESSOR_NOT_RUNNING",
                     "processor '%s' does not run", retry->name);
    retry->done(retry);
  }
  hb_processor_unref(processor);
}

static bool is_meant(const struct hb_retry *retry, const struct hb_blocked_key *key) {
  bool waits = key->row.phase != HB_BLOCKED_CATCHES_UP;
  return waits && (!retry->has_key || hb_slice_equal(retry->key, key->row.key));
}

/* The first one that is asked for and not under way. Its thread alone takes from the list. */
static void begin_retry(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  struct hb_retry *retry = processor->retries;
  bool begins = retry && !retry->begun;
  if (begins) retry->begun = true;
  pthread_mutex_unlock(&processor->mutex);
  if (!begins) return;
  struct hb_blocked *blocked = hb_host_blocked(processor->host);
  for (size_t i = 0; i < blocked->count; i++) {
    struct hb_blocked_key *key = blocked->items[i];
    if (!is_meant(retry, key)) continue;
    hb_blocked_look(key, true);
    key->asked = true;
    retry->tried++;
  }
}

/* Nothing is left to do. True: somebody was told. */
static bool end_retry(struct hb_processor *processor) {
  struct hb_retry *retry = take_first(processor, true);
  if (!retry) return false;
  struct hb_blocked *blocked = hb_host_blocked(processor->host);
  uint64_t bad = 0;
  for (size_t i = 0; i < blocked->count; i++) {
    bad += blocked->items[i]->asked;
    blocked->items[i]->asked = false;
  }
  retry->good = retry->tried - bad;
  retry->blocked = blocked->count;
  if (bad > 0) {
    int64_t at;
    struct hb_slice why = hb_host_failure(processor->host, &at);
    size_t size = why.size < HB_SUSPENDED_WHY_MAX ? why.size : HB_SUSPENDED_WHY_MAX;
    if (size) memcpy(retry->why, why.data, size);
    retry->why[size] = '\0';
  }
  retry->done(retry);
  return true;
}

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

static void take_notes(struct hb_processor *processor) {
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

struct copy {
  uint64_t seen_ms;
  uint64_t hash;
};
struct copies {
  const struct hb_blocked_row *row;
  struct copy items[HB_COPIES_MAX];
  size_t count;
};

static bool is_before(const struct copy *a, const struct copy *b) {
  return a->seen_ms != b->seen_ms ? a->seen_ms < b->seen_ms : a->hash < b->hash;
}

static bool is_of_key(const struct hb_unprocessed *kept, const struct hb_blocked_row *row) {
  struct hb_event event;
  return hb_scan_frame(kept->frame, &event, NULL) == HB_OK && event.sequence == row->sequence &&
         hb_slice_equal(hb_event_key(&event), row->key);
}

static bool visit_copy(void *context, const struct hb_unprocessed *kept) {
  struct copies *copies = context;
  if (!is_of_key(kept, copies->row)) return true;
  struct copy copy = {.seen_ms = kept->first_seen_wall_ms, .hash = kept->content_hash};
  size_t at = copies->count;
  while (at > 0 && is_before(&copy, &copies->items[at - 1])) at--;
  if (at == HB_COPIES_MAX) return true;
  if (copies->count < HB_COPIES_MAX) copies->count++;
  memmove(copies->items + at + 1, copies->items + at,
          (copies->count - at - 1) * sizeof *copies->items);
  copies->items[at] = copy;
  return true;
}

static bool was_tried(const struct hb_blocked_key *key, uint64_t hash) {
  for (size_t i = 0; i < key->tried_count; i++) {
    if (key->tried[i] == hash) return true;
  }
  return false;
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

/* `hash` NULL: the event that failed. */
static enum hb_code read_event(struct hb_feeding *feeding, const struct hb_blocked_row *row,
                               const uint64_t *hash, struct hb_event *out, struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  hb_buf_clear(&processor->event);
  if (!hb_processor_enter_store(processor)) return hb_err_no_store(err);
  enum hb_code code = hash ? read_copy(processor, row, *hash, err)
                           : read_failed(processor, row, feeding->frontier, err);
  hb_processor_leave_store(processor);
  return code == HB_OK ? check(processor, row, out, err) : code;
}

/* ---- trying */

/* True: it failed, and the next one may be tried. */
static bool try_one(struct hb_feeding *feeding, struct hb_blocked_key *key, const uint64_t *hash) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct hb_event event;
  if (read_event(feeding, &key->row, hash, &event, &err) != HB_OK) {
    hb_feeding_fail(feeding, &err);
    return false;
  }
  bool good = false;
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  enum hb_host_result result = hb_host_try(processor->host, key, &event, hash != NULL, &good, &err);
  bool failed = result == HB_HOST_DONE && !good;
  if (failed && !hash) key->try_failed = false;
  return hb_feeding_go_on(feeding, result, &err) && failed;
}

static void try_copies(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct copies copies = {.row = &key->row};
  enum hb_code code = HB_OK;
  if (hb_processor_enter_store(processor)) {
    code = hb_unprocessed_of(processor->engine->store, processor->id.stream, HB_OUTCOME_CONFLICT,
                             key->row.sequence, visit_copy, &copies, &err);
    hb_processor_leave_store(processor);
  } else {
    code = hb_err_no_store(&err);
  }
  if (code != HB_OK) {
    hb_feeding_fail(feeding, &err);
    return;
  }
  for (size_t i = 0; i < copies.count; i++) {
    if (was_tried(key, copies.items[i].hash)) continue;
    if (!try_one(feeding, key, &copies.items[i].hash)) return; /* the key may be gone */
  }
  key->try_copies = false;
}

static void look_for_good_one(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  if (key->row.phase == HB_BLOCKED_CHOSEN) {
    uint64_t hash = key->row.copy;
    (void)try_one(feeding, key, key->row.is_copy ? &hash : NULL);
  } else if (key->try_failed) {
    (void)try_one(feeding, key, NULL);
  } else {
    try_copies(feeding, key);
  }
}

/* ---- catching up */

static enum hb_code err_missing(const struct hb_processor *processor,
                                const struct hb_blocked_row *row, struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "processor '%s': fewer events of a key lie between %" PRId64
                    " and its place than it passed over",
                    processor->config.name, row->next);
}

/* A page of the key's events from row->next on, with at least one. */
static enum hb_code read_page(struct hb_processor *processor, const struct hb_blocked_row *row,
                              struct hb_read *read, struct hb_err *err) {
  struct hb_buf token = {0};
  enum hb_code code = HB_OK;
  do {
    hb_read_done(read);
    *read = (struct hb_read){.kind = HB_READ_KEY,
                             .stream = processor->stream,
                             .key = row->key,
                             .has_from = true,
                             .from_position = row->next,
                             .released_only = true,
                             .page_size = PAGE,
                             .token = hb_buf_view(&token)};
    if (!hb_processor_enter_store(processor)) {
      code = hb_err_no_store(err);
      break;
    }
    code = hb_read_key(processor->engine, read, err);
    hb_processor_leave_store(processor);
    hb_buf_clear(&token);
    hb_buf_append(&token, read->next_token.data, read->next_token.size);
  } while (code == HB_OK && read->entries_count == 0 && token.size > 0);
  hb_buf_done(&token);
  bool none = code == HB_OK && read->entries_count == 0;
  return none ? err_missing(processor, row, err) : code;
}

static bool run_entry(struct hb_feeding *feeding, struct hb_blocked_key *key,
                      const struct hb_key_entry *entry) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct hb_event event;
  enum hb_host_result result = HB_HOST_ERROR;
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  if (entry->position >= hb_host_place(processor->host)->position) {
    (void)err_missing(processor, &key->row, &err);
  } else if (hb_scan_frame(entry->frame, &event, &err) == HB_OK) {
    result = hb_host_catch_up(processor->host, key, &event, entry->position, &err);
  }
  return hb_feeding_go_on(feeding, result, &err);
}

static void catch_up(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  struct hb_processor *processor = feeding->processor;
  struct hb_read read = {.kind = HB_READ_KEY};
  struct hb_err err = {0};
  uint64_t left = key->row.passed - key->row.run;
  if (read_page(processor, &key->row, &read, &err) != HB_OK) {
    hb_feeding_fail(feeding, &err);
  }
  for (size_t i = 0; i < read.entries_count && i < left && !feeding->over; i++) {
    if (hb_processor_should_stop(processor)) feeding->over = true;
    bool last = i + 1 == left;
    if (feeding->over || !run_entry(feeding, key, &read.entries[i]) || last) break;
    if (key->row.phase != HB_BLOCKED_CATCHES_UP) break; /* one of them failed */
  }
  hb_read_done(&read);
}

/* ---- a turn */

bool hb_processor_has_blocked_work(const struct hb_processor *processor) {
  return hb_blocked_next(hb_host_blocked(processor->host)) != NULL;
}

static void work(struct hb_feeding *feeding, struct hb_blocked *blocked) {
  struct hb_blocked_key *key;
  while (!feeding->over && (key = hb_blocked_next(blocked)) != NULL) {
    if (key->row.phase == HB_BLOCKED_CATCHES_UP) {
      catch_up(feeding, key);
    } else {
      look_for_good_one(feeding, key);
    }
    bool late = hb_clock_mono_ms() >= feeding->until_ms;
    if (late || hb_processor_should_stop(feeding->processor)) break;
  }
  if (!feeding->over) (void)hb_processor_commit(feeding->processor, feeding->frontier);
}

bool hb_processor_work_on_blocked(struct hb_processor *processor, int64_t frontier) {
  take_notes(processor);
  begin_retry(processor);
  if (!hb_processor_has_blocked_work(processor)) return end_retry(processor);
  bool rests = processor->blocked_rests;
  processor->blocked_rests = !rests;
  if (rests || hb_host_place(processor->host)->skip > 0) return false;
  if (!hb_processor_begin_attempt(processor, frontier)) return true;
  struct hb_feeding feeding = hb_feeding_begin(processor, frontier);
  work(&feeding, hb_host_blocked(processor->host));
  return true;
}
