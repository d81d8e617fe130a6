/* Decides how keys stand with a processor: what is committed of each, and which of its events wait.
 *
 * What waits is counted where it waits, the log above the processor's place and the bundles above
 * the frontier, so no counter can be wrong about it. Place and counts are read until both are of
 * one commit; what is released while the bundles are looked through may be missing, as in a picture
 * of something that moves. In steps: others read in between.
 *
 * In PER_KEY mode a bundle numbers its events from 0 and may name some that left it, so the key's
 * record says which wait: those at or above its `next`. It is read after the frontier: what is
 * released in between is at worst missing, never counted twice. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/read_internal.h"
#include "storage/keys.h"
#include "storage/processor.h"

enum { TRIES = 100 };

struct hb_standings_pass {
  struct hb_engine *engine;
  struct hb_read *read;
  const struct hb_slice *keys;
  size_t count;
  int64_t *waits_from; /* owned; PER_KEY: for each key, what is held below it is released */
  int64_t next;        /* of the log */
  int64_t frontier;
  bool has_after; /* bundles up to `after` were looked at */
  struct hb_bundle_id after;
  int64_t budget; /* bytes of this step */
};

void hb_standings_done(struct hb_standings_pass *pass) {
  if (pass) free(pass->waits_from);
  free(pass);
}

/* ---- what is committed */

/* Events that the place went past wait too: the row that says where the key waits has counted them,
 * and sequences of a key follow on each other. */
static enum hb_code read_blocked(struct hb_standings_pass *pass, struct hb_processor_id id,
                                 struct hb_slice key, struct hb_key_standing *out,
                                 struct hb_err *err) {
  struct hb_blocked_row row;
  bool found;
  enum hb_code code = hb_blocked_read(pass->engine->store, id, key, &found, &row, err);
  if (code != HB_OK) return code;
  out->blocked = found && row.phase != HB_BLOCKED_CATCHES_UP;
  out->blocked_at = out->blocked ? row.sequence : 0;
  out->waiting = found ? row.passed - row.run : 0;
  if (out->waiting == 0) return HB_OK;
  out->earliest = row.sequence + 1 + (int64_t)row.run;
  out->latest = row.sequence + (int64_t)row.passed;
  return HB_OK;
}

static enum hb_code read_statuses(struct hb_standings_pass *pass, struct hb_processor_id id,
                                  struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (size_t i = 0; code == HB_OK && i < pass->count; i++) {
    struct hb_key_standing *standing = &pass->read->standings[i];
    code = hb_key_status_read(pass->engine->store, id, pass->keys[i], &standing->status, err);
    if (code == HB_OK) code = read_blocked(pass, id, pass->keys[i], standing, err);
  }
  return code;
}

/* Of one commit, unless bundles follow on each other faster than a page is read. */
static enum hb_code read_committed(struct hb_standings_pass *pass, int64_t *out_position,
                                   struct hb_err *err) {
  struct hb_store *store = pass->engine->store;
  struct hb_processor_id id = {.stream = pass->read->stream->id,
                               .processor = pass->read->processor};
  int64_t after = 0;
  enum hb_code code = hb_processor_position(store, id, out_position, err);
  for (int i = 0; code == HB_OK && i < TRIES; i++) {
    code = read_statuses(pass, id, err);
    if (code == HB_OK) code = hb_processor_position(store, id, &after, err);
    if (code == HB_OK && after == *out_position) break;
    *out_position = after;
  }
  return code;
}

static enum hb_code read_records(struct hb_standings_pass *pass, struct hb_err *err) {
  pass->waits_from = hb_calloc(pass->count + 1, sizeof *pass->waits_from);
  enum hb_code code = HB_OK;
  for (size_t i = 0; code == HB_OK && i < pass->count; i++) {
    bool found;
    struct hb_key_record record;
    code = hb_key_record_read(pass->engine->store, pass->read->stream->id, pass->keys[i], &found,
                              &record, err);
    pass->waits_from[i] = code == HB_OK && found ? record.next : INT64_MIN;
  }
  return code;
}

enum hb_code hb_standings_begin(struct hb_engine *engine, struct hb_read *read,
                                const struct hb_slice *keys, size_t count,
                                struct hb_standings_pass **out, struct hb_err *err) {
  struct hb_standings_pass *pass = hb_calloc(1, sizeof *pass);
  *pass = (struct hb_standings_pass){.engine = engine, .read = read, .keys = keys, .count = count};
  read->standings = hb_calloc(count + 1, sizeof *read->standings);
  *out = pass;
  int64_t position;
  enum hb_code code = read_committed(pass, &position, err);
  struct hb_stream_status status;
  hb_stream_get_status(read->stream, &status);
  if (code == HB_OK && status.record.frozen) {
    int64_t earliest = status.record.earliest;
    pass->next = position > earliest ? position : earliest;
    pass->frontier = status.record.frontier;
  } else {
    pass->next = pass->frontier = INT64_MIN; /* whatever waits is held */
  }
  bool per_key = hb_stream_mode(read->stream) == HB_MODE_PER_KEY;
  if (code == HB_OK && per_key) code = read_records(pass, err);
  return code;
}

/* ---- what waits */

static struct hb_key_standing *find(struct hb_standings_pass *pass, struct hb_slice key) {
  size_t low = 0;
  size_t high = pass->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = hb_slice_compare(pass->keys[middle], key);
    if (order == 0) return &pass->read->standings[middle];
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

static void count_event(struct hb_key_standing *standing, const struct hb_event *event) {
  int64_t sequence = event->sequence;
  if (!standing->waiting || sequence < standing->earliest) standing->earliest = sequence;
  if (!standing->waiting || sequence > standing->latest) standing->latest = sequence;
  standing->waiting++;
  if (event->flags & HB_EVENT_LAST) standing->status.last_received = true;
}

/* `held`: of a bundle, where all events from `first` on may wait. */
static enum hb_code count_block(struct hb_standings_pass *pass, const struct hb_block *block,
                                uint32_t first, bool held, struct hb_err *err) {
  for (uint32_t i = first; i < block->count; i++) {
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, i), &event, err);
    if (code != HB_OK) return code;
    struct hb_key_standing *standing = find(pass, hb_event_key(&event));
    if (!standing) continue;
    size_t index = (size_t)(standing - pass->read->standings);
    bool left = held && pass->waits_from && event.sequence < pass->waits_from[index];
    if (!left) count_event(standing, &event);
  }
  return HB_OK;
}

static enum hb_code count_log(struct hb_standings_pass *pass, struct hb_err *err) {
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, pass->engine->store, pass->read->stream, pass->next);
  enum hb_code code = HB_OK;
  while (pass->budget > 0) {
    bool more;
    code = hb_cursor_next(&cursor, pass->frontier, &more, err);
    if (code != HB_OK || !more) break;
    code = count_block(pass, &cursor.block, hb_block_find(&cursor.block, pass->next), false, err);
    if (code != HB_OK) break;
    pass->next = cursor.next;
    pass->budget -= (int64_t)cursor.bytes->size;
  }
  hb_cursor_done(&cursor);
  return code;
}

struct visit {
  struct hb_standings_pass *pass;
  bool stopped;
  enum hb_code code;
  struct hb_err *err;
};

static bool visit_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct visit *visit = context;
  struct hb_standings_pass *pass = visit->pass;
  struct hb_block block;
  visit->code = hb_block_decode(bytes, &block, visit->err);
  if (visit->code == HB_OK) {
    uint32_t first = pass->waits_from ? 0 : hb_block_find(&block, pass->frontier);
    visit->code = count_block(pass, &block, first, true, visit->err);
  }
  pass->has_after = true;
  pass->after = id;
  pass->budget -= (int64_t)bytes.size;
  visit->stopped = visit->code != HB_OK || pass->budget <= 0;
  return !visit->stopped;
}

enum hb_code hb_standings_step(struct hb_standings_pass *pass, bool *out_done, struct hb_err *err) {
  pass->budget = (int64_t)pass->engine->tuning.read_step_bytes;
  *out_done = false;
  if (pass->next < pass->frontier) {
    enum hb_code code = count_log(pass, err);
    if (code != HB_OK || pass->budget <= 0) return code;
  }
  struct visit visit = {.pass = pass, .err = err};
  enum hb_code code =
      hb_bundle_each(pass->engine->store, pass->read->stream->id,
                     pass->has_after ? &pass->after : NULL, visit_bundle, &visit, err);
  if (code == HB_OK) code = visit.code;
  *out_done = code == HB_OK && !visit.stopped;
  return code;
}
