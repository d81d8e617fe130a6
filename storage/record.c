/* Decides how a value lies in bytes, and what is no value. Little-endian; sizes are exact, so that
 * neither a cut row nor one with something after its end passes. */
#include "storage/record_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"

enum { VERSION = 1 };

/* Reads on after `ok` turned false give 0; who decodes asks once, at the end. */
struct cursor {
  const uint8_t *at;
  size_t left;
  bool ok;
};

static const uint8_t *take(struct cursor *cursor, size_t size) {
  if (!cursor->ok || cursor->left < size) {
    cursor->ok = false;
    return NULL;
  }
  const uint8_t *at = cursor->at;
  cursor->at += size;
  cursor->left -= size;
  return at;
}

static uint8_t take_u8(struct cursor *cursor) {
  const uint8_t *at = take(cursor, 1);
  return at ? *at : 0;
}

static uint32_t take_u32(struct cursor *cursor) {
  const uint8_t *at = take(cursor, 4);
  return at ? hb_get_u32_le(at) : 0;
}

static uint64_t take_u64(struct cursor *cursor) {
  const uint8_t *at = take(cursor, 8);
  return at ? hb_get_u64_le(at) : 0;
}

static int64_t take_i64(struct cursor *cursor) { return (int64_t)take_u64(cursor); }

static void add_u32(struct hb_buf *out, uint32_t value) {
  hb_put_u32_le(hb_buf_reserve(out, 4), value);
  out->size += 4;
}

static void add_u64(struct hb_buf *out, uint64_t value) {
  hb_put_u64_le(hb_buf_reserve(out, 8), value);
  out->size += 8;
}

static void add_i64(struct hb_buf *out, int64_t value) { add_u64(out, (uint64_t)value); }

static enum hb_code begin(struct hb_slice value, const char *what, struct cursor *out,
                          struct hb_err *err) {
  *out = (struct cursor){0};
  if (!value.size) return hb_err_set(err, HB_CORRUPT, NULL, "%s: empty", what);
  if (value.data[0] != VERSION) {
    return hb_err_set(err, HB_VERSION, NULL, "%s: version %u, this program knows %d", what,
                      value.data[0], VERSION);
  }
  *out = (struct cursor){.at = value.data + 1, .left = value.size - 1, .ok = true};
  return HB_OK;
}

/* Everything was read, nothing is left. */
static enum hb_code end(const struct cursor *cursor, const char *what, size_t size,
                        struct hb_err *err) {
  if (cursor->ok && !cursor->left) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL, "%s: wrong size, %zu bytes", what, size);
}

/* ---- config */

enum { FIRST_SEEN = 1 };

void hb_record_put_config(struct hb_buf *out, const struct hb_stream_config *config) {
  size_t name_size = strlen(config->name);
  hb_buf_append_u8(out, VERSION);
  hb_buf_append_u8(out, (uint8_t)config->mode);
  hb_buf_append_u8(out, config->first_seen ? FIRST_SEEN : 0);
  hb_buf_append_u8(out, (uint8_t)config->ack);
  add_i64(out, config->first_sequence);
  add_u64(out, config->limits.ahead_max);
  add_u64(out, config->limits.held_bytes_max);
  add_u64(out, config->limits.held_events_max);
  add_u64(out, config->limits.gaps_max);
  add_u64(out, config->limits.event_bytes_max);
  hb_buf_append_u8(out, (uint8_t)name_size);
  hb_buf_append(out, config->name, name_size);
}

static bool is_name(const uint8_t *name, size_t size) {
  if (!size || size > HB_STREAM_NAME_MAX) return false;
  for (size_t i = 0; i < size; i++) {
    bool alnum = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
    bool inner = i > 0 && (name[i] == '.' || name[i] == '_' || name[i] == '-');
    if (!alnum && !inner) return false;
  }
  return true;
}

enum hb_code hb_record_get_config(struct hb_slice value, struct hb_stream_config *out,
                                  struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "configuration", &cursor, err);
  if (code) return code;
  struct hb_stream_config config = {.mode = (enum hb_mode)take_u8(&cursor)};
  uint8_t flags = take_u8(&cursor);
  config.ack = (enum hb_ack)take_u8(&cursor);
  config.first_sequence = take_i64(&cursor);
  config.limits.ahead_max = take_u64(&cursor);
  config.limits.held_bytes_max = take_u64(&cursor);
  config.limits.held_events_max = take_u64(&cursor);
  config.limits.gaps_max = take_u64(&cursor);
  config.limits.event_bytes_max = take_u64(&cursor);
  uint8_t name_size = take_u8(&cursor);
  const uint8_t *name = take(&cursor, name_size);
  code = end(&cursor, "configuration", value.size, err);
  if (code) return code;
  if (config.mode != HB_MODE_GLOBAL && config.mode != HB_MODE_PER_KEY) {
    return hb_err_set(err, HB_CORRUPT, NULL, "configuration: mode %d", (int)config.mode);
  }
  if (config.ack != HB_ACK_DURABLE && config.ack != HB_ACK_ASYNC) {
    return hb_err_set(err, HB_CORRUPT, NULL, "configuration: ack mode %d", (int)config.ack);
  }
  if (flags & ~FIRST_SEEN) {
    return hb_err_set(err, HB_CORRUPT, NULL, "configuration: flags %u", flags);
  }
  if (!is_name(name, name_size)) {
    return hb_err_set(err, HB_CORRUPT, NULL, "configuration: not a name of a stream");
  }
  config.first_seen = flags & FIRST_SEEN;
  memcpy(config.name, name, name_size);
  *out = config;
  return HB_OK;
}

/* ---- frontier record */

enum { FROZEN = 1, ANY = 2, HAS_TIME = 4, FRONTIER_FLAGS = FROZEN | ANY | HAS_TIME };

void hb_record_put_frontier(struct hb_buf *out, const struct hb_frontier *record) {
  const struct hb_stream_counters *counters = &record->counters;
  hb_buf_append_u8(out, VERSION);
  hb_buf_append_u8(out, (uint8_t)((record->frozen ? FROZEN : 0) | (record->any ? ANY : 0) |
                                  (record->max_event_time.present ? HAS_TIME : 0)));
  add_i64(out, record->first_sequence);
  add_i64(out, record->complete_to);
  add_i64(out, record->frontier);
  add_i64(out, record->earliest);
  add_i64(out, record->highest);
  add_i64(out, record->max_event_time.seconds);
  add_u32(out, (uint32_t)record->max_event_time.nanos);
  add_u64(out, counters->stored);
  add_u64(out, counters->duplicate);
  add_u64(out, counters->conflict);
  add_u64(out, counters->late);
  add_u64(out, counters->before_first);
  add_u64(out, counters->held);
  add_u64(out, counters->unprocessed_bytes);
  add_u64(out, record->commit);
}

static void take_counters(struct cursor *cursor, struct hb_stream_counters *out) {
  out->stored = take_u64(cursor);
  out->duplicate = take_u64(cursor);
  out->conflict = take_u64(cursor);
  out->late = take_u64(cursor);
  out->before_first = take_u64(cursor);
  out->held = take_u64(cursor);
  out->unprocessed_bytes = take_u64(cursor);
}

/* What holds for every record that was written (I5, I10 rest on it). */
static enum hb_code check_frontier(const struct hb_frontier *record, uint8_t flags,
                                   struct hb_err *err) {
  if (flags & ~FRONTIER_FLAGS) {
    return hb_err_set(err, HB_CORRUPT, NULL, "frontier record: flags %u", flags);
  }
  if (record->any && !record->frozen) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "frontier record: something is stored, but no first sequence is known");
  }
  if (record->frozen &&
      (record->first_sequence > record->earliest || record->earliest > record->frontier ||
       record->frontier > record->complete_to)) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "frontier record: first %" PRId64 ", earliest %" PRId64 ", frontier %" PRId64
                      ", complete_to %" PRId64 " do not ascend",
                      record->first_sequence, record->earliest, record->frontier,
                      record->complete_to);
  }
  if (record->max_event_time.nanos < 0 || record->max_event_time.nanos > 999999999) {
    return hb_err_set(err, HB_CORRUPT, NULL, "frontier record: nanos %" PRId32,
                      record->max_event_time.nanos);
  }
  return HB_OK;
}

enum hb_code hb_record_get_frontier(struct hb_slice value, struct hb_frontier *out,
                                    struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "frontier record", &cursor, err);
  if (code) return code;
  uint8_t flags = take_u8(&cursor);
  struct hb_frontier record = {.frozen = flags & FROZEN, .any = flags & ANY};
  record.first_sequence = take_i64(&cursor);
  record.complete_to = take_i64(&cursor);
  record.frontier = take_i64(&cursor);
  record.earliest = take_i64(&cursor);
  record.highest = take_i64(&cursor);
  record.max_event_time.seconds = take_i64(&cursor);
  record.max_event_time.nanos = (int32_t)take_u32(&cursor);
  record.max_event_time.present = flags & HAS_TIME;
  take_counters(&cursor, &record.counters);
  record.commit = take_u64(&cursor);
  code = end(&cursor, "frontier record", value.size, err);
  if (!code) code = check_frontier(&record, flags, err);
  if (!code) *out = record;
  return code;
}

/* ---- gap */

void hb_record_put_gap(struct hb_buf *out, const struct hb_gap *gap) {
  hb_buf_append_u8(out, VERSION);
  add_i64(out, gap->end);
  add_u64(out, gap->first_seen_served_ms);
  add_u64(out, gap->first_seen_wall_ms);
}

enum hb_code hb_record_get_gap(struct hb_slice value, struct hb_gap *out, struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "gap", &cursor, err);
  if (code) return code;
  struct hb_gap gap = {.start = out->start, .end = take_i64(&cursor)};
  gap.first_seen_served_ms = take_u64(&cursor);
  gap.first_seen_wall_ms = take_u64(&cursor);
  code = end(&cursor, "gap", value.size, err);
  if (code) return code;
  if (gap.end <= gap.start) {
    return hb_err_set(err, HB_CORRUPT, NULL, "gap: end %" PRId64 " is not above start %" PRId64,
                      gap.end, gap.start);
  }
  *out = gap;
  return HB_OK;
}

/* ---- index entry */

void hb_record_put_index(uint8_t out[HB_RECORD_INDEX_SIZE], const struct hb_index_entry *entry) {
  out[0] = VERSION;
  hb_put_u64_le(out + 1, (uint64_t)entry->block);
  hb_put_u32_le(out + 9, entry->offset);
  hb_put_u32_le(out + 13, entry->length);
}

enum hb_code hb_record_get_index(struct hb_slice value, struct hb_index_entry *out,
                                 struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "index entry", &cursor, err);
  if (code) return code;
  int64_t block = take_i64(&cursor);
  uint32_t offset = take_u32(&cursor);
  uint32_t length = take_u32(&cursor);
  code = end(&cursor, "index entry", value.size, err);
  if (code) return code;
  out->block = block;
  out->offset = offset;
  out->length = length;
  return HB_OK;
}

/* ---- unprocessed */

void hb_record_put_unprocessed(struct hb_buf *out, const struct hb_unprocessed *row) {
  hb_buf_append_u8(out, VERSION);
  add_u64(out, row->count);
  add_u64(out, row->first_seen_wall_ms);
  add_u64(out, row->last_seen_wall_ms);
  add_u32(out, row->peer);
  hb_buf_append(out, row->frame.data, row->frame.size);
}

enum hb_code hb_record_get_unprocessed(struct hb_slice value, struct hb_unprocessed *out,
                                       struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "unprocessed event", &cursor, err);
  if (code) return code;
  uint64_t count = take_u64(&cursor);
  uint64_t first = take_u64(&cursor);
  uint64_t last = take_u64(&cursor);
  uint32_t peer = take_u32(&cursor);
  if (!cursor.ok || !cursor.left || !count) {
    return hb_err_set(err, HB_CORRUPT, NULL, "unprocessed event: wrong size, %zu bytes",
                      value.size);
  }
  out->count = count;
  out->first_seen_wall_ms = first;
  out->last_seen_wall_ms = last;
  out->peer = peer;
  out->frame = hb_slice_of(cursor.at, cursor.left);
  return HB_OK;
}

void hb_record_merge_unprocessed(struct hb_slice older, struct hb_slice newer, struct hb_buf *out) {
  struct hb_unprocessed a;
  struct hb_unprocessed b;
  bool has_a = hb_record_get_unprocessed(older, &a, NULL) == HB_OK;
  bool has_b = hb_record_get_unprocessed(newer, &b, NULL) == HB_OK;
  if (!has_a || !has_b) {
    struct hb_slice kept = has_b ? newer : older;
    hb_buf_append(out, kept.data, kept.size);
    return;
  }
  a.count = a.count > UINT64_MAX - b.count ? UINT64_MAX : a.count + b.count;
  if (b.first_seen_wall_ms < a.first_seen_wall_ms) a.first_seen_wall_ms = b.first_seen_wall_ms;
  if (b.last_seen_wall_ms > a.last_seen_wall_ms) a.last_seen_wall_ms = b.last_seen_wall_ms;
  hb_record_put_unprocessed(out, &a);
}

/* ---- plain ones */

void hb_record_put_u64(struct hb_buf *out, uint64_t value) {
  hb_buf_append_u8(out, VERSION);
  add_u64(out, value);
}

enum hb_code hb_record_get_u64(struct hb_slice value, uint64_t *out, struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "number", &cursor, err);
  if (code) return code;
  uint64_t number = take_u64(&cursor);
  code = end(&cursor, "number", value.size, err);
  if (!code) *out = number;
  return code;
}

void hb_record_put_bytes(struct hb_buf *out, struct hb_slice bytes) {
  hb_buf_append_u8(out, VERSION);
  hb_buf_append(out, bytes.data, bytes.size);
}

enum hb_code hb_record_get_bytes(struct hb_slice value, struct hb_slice *out, struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "bytes", &cursor, err);
  if (!code) *out = hb_slice_of(cursor.at, cursor.left);
  return code;
}

void hb_record_put_run(struct hb_buf *out, struct hb_run_record record) {
  hb_buf_append_u8(out, VERSION);
  add_u64(out, record.run);
  add_u64(out, record.commit);
}

enum hb_code hb_record_get_run(struct hb_slice value, struct hb_run_record *out,
                               struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "run", &cursor, err);
  if (code) return code;
  struct hb_run_record record = {.run = take_u64(&cursor)};
  record.commit = take_u64(&cursor);
  code = end(&cursor, "run", value.size, err);
  if (!code) *out = record;
  return code;
}

/* ---- log data */

void hb_log_data_put(uint8_t out[HB_LOG_DATA_SIZE], struct hb_log_data data) {
  out[0] = VERSION;
  out[1] = 'H';
  out[2] = 'B';
  hb_put_u64_le(out + 3, data.run);
  hb_put_u64_le(out + 11, data.mark);
  hb_put_u64_le(out + 19, data.commit);
  hb_put_u64_le(out + 27, data.previous);
  hb_put_u64_le(out + 35, data.synced);
}

enum hb_code hb_log_data_get(struct hb_slice value, struct hb_log_data *out, struct hb_err *err) {
  struct cursor cursor;
  enum hb_code code = begin(value, "log data", &cursor, err);
  if (code) return code;
  const uint8_t *magic = take(&cursor, 2);
  struct hb_log_data data = {.run = take_u64(&cursor)};
  data.mark = take_u64(&cursor);
  data.commit = take_u64(&cursor);
  data.previous = take_u64(&cursor);
  data.synced = take_u64(&cursor);
  code = end(&cursor, "log data", value.size, err);
  if (code) return code;
  if (memcmp(magic, "HB", 2) != 0) {
    return hb_err_set(err, HB_CORRUPT, NULL, "log data: not ours");
  }
  *out = data;
  return HB_OK;
}
