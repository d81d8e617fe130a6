/* Decides when a key that waits at an event that failed is looked at, and with which events.
 *
 * Each copy (processor_copies.c) is tried once by itself, when the key begins to wait or when a
 * copy comes; all of them, and the failed event too, when the thread begins (code may be another
 * one by now) or when it is asked for (processor_retry.c). A good one found, or the failed one
 * given up, which is only done when it is asked for, the key's events that the place went past are
 * taken from the key's list, a page at a time.
 *
 * It is the work of each second turn, a bundle of new events that of the others. While results of a
 * new event are half committed nothing is done here, so that they stay together. */
#include <inttypes.h>

#include "base/clock.h"
#include "server/engine/engine_internal.h"
#include "server/engine/processor_wait_internal.h"
#include "server/engine/read_internal.h"

enum { PAGE = 200 };

/* ---- trying */

/* True: it failed, and the next one may be tried. */
static bool try_one(struct hb_feeding *feeding, struct hb_blocked_key *key, const uint64_t *hash) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct hb_event event;
  enum hb_try kind;
  if (hb_copies_read(feeding, &key->row, hash, &event, &kind, &err) != HB_OK) {
    hb_feeding_fail(feeding, &err);
    return false;
  }
  bool good = false;
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  enum hb_host_result result = hb_host_try(processor->host, key, &event, kind, &good, &err);
  bool failed = result == HB_HOST_DONE && !good;
  if (failed && !hash) key->try_failed = false;
  return hb_feeding_go_on(feeding, result, &err) && failed;
}

static void try_copies(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct hb_copies copies;
  enum hb_code code = hb_copies_find(processor, &key->row, &copies, &err);
  if (code != HB_OK) {
    hb_feeding_fail(feeding, &err);
    return;
  }
  for (size_t i = 0; i < copies.count; i++) {
    if (hb_copies_was_tried(key, copies.items[i].hash)) continue;
    if (!try_one(feeding, key, &copies.items[i].hash)) return; /* the key may be gone */
  }
  key->try_copies = false;
}

static void give_up(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  struct hb_err err = {0};
  hb_processor_call_begin(feeding->processor, hb_clock_mono_ms());
  enum hb_host_result result = hb_host_give_up(feeding->processor->host, key, &err);
  (void)hb_feeding_go_on(feeding, result, &err);
}

static void look_for_good_one(struct hb_feeding *feeding, struct hb_blocked_key *key) {
  if (key->row.phase == HB_BLOCKED_CHOSEN) {
    uint64_t hash = key->row.copy;
    (void)try_one(feeding, key, key->row.is_copy ? &hash : NULL);
  } else if (key->given_up) {
    give_up(feeding, key);
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
  hb_copies_take_notes(processor);
  hb_retry_begin(processor);
  if (!hb_processor_has_blocked_work(processor)) return hb_retry_end(processor);
  bool rests = processor->blocked_rests;
  processor->blocked_rests = !rests;
  if (rests || hb_host_place(processor->host)->skip > 0) return false;
  if (!hb_processor_begin_attempt(processor, frontier)) return true;
  struct hb_feeding feeding = hb_feeding_begin(processor, frontier);
  work(&feeding, hb_host_blocked(processor->host));
  return true;
}
