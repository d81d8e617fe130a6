/* Decides what the store says of the keys of a PER_KEY stream (NEED): their records, and whether an
 * event that was released under a key and a sequence is the one that came again.
 *
 * The record bounds where the event lies. Where that is one position its block is read at once.
 * Else, above indexed_to, the log's tail is looked through once for all questions together. Below
 * it the key's list tells: near its beginning by counting, for a key's events are numbered without
 * gap; elsewhere by a search: positions and sequences ascend together, so each entry that is looked
 * at narrows the bounds from one side, and near the goal the list is followed again. */
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/need_key_internal.h"
#include "storage/index.h"
#include "storage/keys.h"

enum { FOLLOW_MAX = 256, PROBES_MAX = 256 };

/* A question whose answer is looked for. */
struct search {
  struct hb_need_key *ask;
  const struct hb_event *event;
  int64_t low; /* where it lies, both ends included */
  int64_t high;
};

struct look {
  struct hb_engine *engine;
  struct hb_stream *stream;
  struct hb_cursor cursor;
  int64_t indexed_to;
  int64_t earliest;
  struct search *searches; /* owned; those without an answer */
  size_t count;
};

static enum hb_code lost(const struct look *look, const struct search *search, struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "stream '%s': sequence %" PRId64 " of a key of %" PRIu32
                    " bytes is not in the log between positions %" PRId64 " and %" PRId64
                    ", though its record says so",
                    look->stream->name, search->event->sequence, search->event->key_size,
                    search->low, search->high);
}

static void answer(struct search *search, const struct hb_event *stored) {
  bool same = hb_event_same(search->event, stored);
  search->ask->verdict = same ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
}

/* The event at a position, in cursor->block. */
static enum hb_code event_at(struct look *look, int64_t position, struct hb_event *out,
                             struct hb_err *err) {
  bool found;
  enum hb_code code = hb_cursor_find(&look->cursor, position, &found, err);
  if (code != HB_OK) return code;
  if (!found) return hb_cursor_hole(look->stream, position, err);
  const struct hb_block *block = &look->cursor.block;
  uint32_t index = hb_block_find(block, position);
  if (index == block->count || hb_block_sequence(block, index) != position) {
    return hb_cursor_hole(look->stream, position, err);
  }
  return hb_scan_frame(hb_block_frame(block, index), out, err);
}

/* ---- one position */

static enum hb_code answer_at(struct look *look, struct search *search, int64_t position,
                              struct hb_err *err) {
  struct hb_event stored;
  enum hb_code code = event_at(look, position, &stored, err);
  if (code != HB_OK) return code;
  bool is_it = stored.sequence == search->event->sequence &&
               hb_slice_equal(hb_event_key(&stored), hb_event_key(search->event));
  if (!is_it) return lost(look, search, err);
  answer(search, &stored);
  return HB_OK;
}

/* ---- the tail: each block once, each event looked up among the questions */

struct table {
  uint32_t *slots; /* owned; index of a search + 1 */
  size_t mask;
};

static size_t place_of(const struct table *table, const struct hb_event *event) {
  struct hb_slice key = hb_event_key(event);
  uint64_t hash = key.size ? XXH3_64bits(key.data, key.size) : 0;
  hash = (hash ^ (uint64_t)event->sequence) * UINT64_C(0x9E3779B97F4A7C15);
  return (size_t)(hash >> 20) & table->mask;
}

static void table_init(struct table *table, const struct look *look) {
  size_t cap = 16;
  while (cap < look->count * 2) cap *= 2;
  table->mask = cap - 1;
  table->slots = hb_calloc(cap, sizeof *table->slots);
  for (size_t i = 0; i < look->count; i++) {
    if (look->searches[i].high < look->indexed_to) continue;
    size_t at = place_of(table, look->searches[i].event);
    while (table->slots[at]) at = (at + 1) & table->mask;
    table->slots[at] = (uint32_t)i + 1;
  }
}

/* The same event may be asked for more than once. */
static void answer_all(struct look *look, const struct table *table,
                       const struct hb_event *stored) {
  for (size_t at = place_of(table, stored); table->slots[at]; at = (at + 1) & table->mask) {
    struct search *search = &look->searches[table->slots[at] - 1];
    if (search->event->sequence == stored->sequence &&
        hb_slice_equal(hb_event_key(search->event), hb_event_key(stored))) {
      answer(search, stored);
    }
  }
}

static bool tail_range(const struct look *look, int64_t *out_from, int64_t *out_to) {
  bool any = false;
  for (size_t i = 0; i < look->count; i++) {
    const struct search *search = &look->searches[i];
    if (search->high < look->indexed_to) continue;
    int64_t low = search->low > look->indexed_to ? search->low : look->indexed_to;
    if (!any || low < *out_from) *out_from = low;
    if (!any || search->high > *out_to) *out_to = search->high;
    any = true;
  }
  return any;
}

static enum hb_code look_through_tail(struct look *look, struct hb_err *err) {
  int64_t from = 0;
  int64_t to = 0;
  if (!tail_range(look, &from, &to)) return HB_OK;
  struct table table;
  table_init(&table, look);
  look->cursor.next = from;
  enum hb_code code = HB_OK;
  bool more = true;
  while (code == HB_OK) {
    code = hb_cursor_next(&look->cursor, to + 1, &more, err);
    if (code != HB_OK || !more) break;
    const struct hb_block *block = &look->cursor.block;
    for (uint32_t i = 0; code == HB_OK && i < block->count; i++) {
      struct hb_event stored;
      code = hb_scan_frame(hb_block_frame(block, i), &stored, err);
      if (code == HB_OK) answer_all(look, &table, &stored);
    }
  }
  free(table.slots);
  return code;
}

/* ---- the key's list */

struct entries {
  int64_t last;
  size_t count;
  size_t wanted;
};

static bool count_entry(void *context, const struct hb_index_entry *entry) {
  struct entries *entries = context;
  entries->last = entry->position;
  return ++entries->count < entries->wanted;
}

/* The position of the `wanted`-th entry of the key at or above `from` and below `end`. */
static enum hb_code nth_entry(struct look *look, const struct search *search, int64_t from,
                              int64_t end, size_t wanted, bool *out_found, int64_t *out,
                              struct hb_err *err) {
  struct entries entries = {.wanted = wanted};
  enum hb_code code =
      hb_index_each(look->engine->store, look->stream->id, hb_event_key(search->event), from, end,
                    count_entry, &entries, err);
  *out_found = entries.count == wanted;
  *out = entries.last;
  return code;
}

/* Positions and sequences that belong together, below and above what is looked for. */
struct anchors {
  int64_t low_position;
  int64_t low_sequence;
  int64_t high_position;
  int64_t high_sequence;
};

static int64_t guess(const struct search *search, const struct anchors *anchors, int probe) {
  if (probe % 2) return search->low + (search->high - search->low) / 2;
  double part = (double)((uint64_t)search->event->sequence - (uint64_t)anchors->low_sequence) /
                (double)((uint64_t)anchors->high_sequence - (uint64_t)anchors->low_sequence);
  double at = (double)anchors->low_position +
              part * (double)(anchors->high_position - anchors->low_position);
  if (at <= (double)search->low) return search->low;
  return at >= (double)search->high ? search->high : (int64_t)at;
}

/* An entry with another sequence was looked at. */
static void narrow(struct search *search, struct anchors *anchors, int64_t guessed,
                   int64_t position, int64_t sequence) {
  uint64_t wanted = (uint64_t)search->event->sequence;
  if (sequence < search->event->sequence) {
    anchors->low_position = position;
    anchors->low_sequence = sequence;
    search->low = position + (int64_t)(wanted - (uint64_t)sequence);
    return;
  }
  anchors->high_position = position;
  anchors->high_sequence = sequence;
  int64_t high = position - (int64_t)((uint64_t)sequence - wanted);
  search->high = high < guessed ? high : guessed - 1; /* nothing of the key lies between */
}

static enum hb_code probe(struct look *look, struct search *search, struct anchors *anchors,
                          int number, struct hb_err *err) {
  int64_t guessed = guess(search, anchors, number);
  bool found;
  int64_t position;
  enum hb_code code = nth_entry(look, search, guessed, search->high + 1, 1, &found, &position, err);
  if (code != HB_OK) return code;
  if (!found) {
    search->high = guessed - 1;
    return HB_OK;
  }
  struct hb_event stored;
  code = event_at(look, position, &stored, err);
  if (code != HB_OK) return code;
  if (stored.sequence == search->event->sequence) return answer_at(look, search, position, err);
  uint64_t above = (uint64_t)search->event->sequence - (uint64_t)stored.sequence;
  narrow(search, anchors, guessed, position, stored.sequence);
  if (stored.sequence > search->event->sequence || above > FOLLOW_MAX) return HB_OK;
  code = nth_entry(look, search, position, search->high + 1, (size_t)above + 1, &found, &position,
                   err);
  if (code != HB_OK) return code;
  return found ? answer_at(look, search, position, err) : lost(look, search, err);
}

/* Of a key with few events before it: its place in the list is its number, so the list alone tells
 * the position. */
static enum hb_code count_list(struct look *look, struct search *search, struct hb_err *err) {
  const struct hb_key_record *record = &search->ask->record;
  uint64_t before = (uint64_t)search->event->sequence - (uint64_t)record->first;
  if (search->low == search->high || before > FOLLOW_MAX) return HB_OK;
  bool found;
  int64_t position;
  enum hb_code code = nth_entry(look, search, record->first_position, look->indexed_to,
                                (size_t)before + 1, &found, &position, err);
  if (code != HB_OK) return code;
  bool possible = found && position >= search->low && position <= search->high;
  if (!possible) return lost(look, search, err);
  search->low = search->high = position;
  return HB_OK;
}

static enum hb_code search_list(struct look *look, struct search *search, struct hb_err *err) {
  const struct hb_key_record *record = &search->ask->record;
  struct anchors anchors = {.low_position = record->first_position,
                            .low_sequence = record->first,
                            .high_position = record->last_position,
                            .high_sequence = record->next - 1};
  if (search->high >= look->indexed_to) search->high = look->indexed_to - 1;
  for (int i = 0; i < PROBES_MAX && search->low <= search->high; i++) {
    if (search->low == search->high) return answer_at(look, search, search->low, err);
    enum hb_code code = probe(look, search, &anchors, i, err);
    if (code != HB_OK || search->ask->verdict != HB_VERDICT_NONE) return code;
  }
  return lost(look, search, err);
}

/* ---- all of a need */

/* So that blocks are read in ascending order, each once. */
static int by_place(const void *a, const void *b) {
  const struct search *left = a;
  const struct search *right = b;
  return (left->low > right->low) - (left->low < right->low);
}

static enum hb_code read_records(struct look *look, struct hb_need *need, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (size_t i = 0; code == HB_OK && i < need->keys_count; i++) {
    struct hb_need_key *ask = &need->keys[i];
    if (ask->place != HB_PLACE_KEY_RECORD) continue;
    code = hb_key_record_read(look->engine->store, look->stream->id,
                              hb_event_key(&need->batch->events[ask->index]), &ask->found,
                              &ask->record, err);
  }
  return code;
}

static void gather(struct look *look, struct hb_need *need) {
  look->searches = hb_calloc(need->keys_count, sizeof *look->searches);
  for (size_t i = 0; i < need->keys_count; i++) {
    struct hb_need_key *ask = &need->keys[i];
    if (ask->place != HB_PLACE_KEY_CONTENT) continue;
    ask->verdict = HB_VERDICT_NONE;
    struct search search = {.ask = ask, .event = &need->batch->events[ask->index]};
    hb_key_record_bounds(&ask->record, search.event->sequence, &search.low, &search.high);
    if (search.high < look->earliest) {
      ask->verdict = HB_VERDICT_TRUNCATED;
    } else {
      look->searches[look->count++] = search;
    }
  }
}

static void drop_answered(struct look *look) {
  size_t kept = 0;
  for (size_t i = 0; i < look->count; i++) {
    if (look->searches[i].ask->verdict == HB_VERDICT_NONE) {
      look->searches[kept++] = look->searches[i];
    }
  }
  look->count = kept;
}

/* Those whose position is known. */
static enum hb_code answer_placed(struct look *look, struct hb_err *err) {
  enum hb_code code = HB_OK;
  if (look->count > 1) qsort(look->searches, look->count, sizeof *look->searches, by_place);
  for (size_t i = 0; code == HB_OK && i < look->count; i++) {
    struct search *search = &look->searches[i];
    if (search->low == search->high) code = answer_at(look, search, search->low, err);
  }
  drop_answered(look);
  return code;
}

static enum hb_code search_all(struct look *look, struct hb_err *err) {
  enum hb_code code = answer_placed(look, err);
  if (code == HB_OK) code = look_through_tail(look, err);
  drop_answered(look);
  for (size_t i = 0; code == HB_OK && i < look->count; i++) {
    code = count_list(look, &look->searches[i], err);
  }
  if (code == HB_OK) code = answer_placed(look, err);
  for (size_t i = 0; code == HB_OK && i < look->count; i++) {
    code = search_list(look, &look->searches[i], err);
  }
  return code;
}

enum hb_code hb_need_keys(struct hb_engine *engine, struct hb_need *need, struct hb_stream *stream,
                          struct hb_err *err) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  struct look look = {.engine = engine,
                      .stream = stream,
                      .indexed_to = status.indexed_to,
                      .earliest = status.record.earliest};
  hb_cursor_init(&look.cursor, engine->store, stream, 0);
  enum hb_code code = read_records(&look, need, err);
  if (code == HB_OK) code = hb_need_keys_held(engine, need, err);
  gather(&look, need);
  if (code == HB_OK) code = search_all(&look, err);
  hb_cursor_done(&look.cursor);
  free(look.searches);
  return code;
}
