/* Decides how a stream's configuration and its frontier record lie in bytes, and which of them can
 * be true. */
#include <inttypes.h>
#include <string.h>

#include "storage/record_bytes_internal.h"
#include "storage/record_internal.h"

/* ---- config */

enum { FIRST_SEEN = 1 };

void hb_record_put_config(struct hb_buf *out, const struct hb_stream_config *config) {
  size_t name_size = strlen(config->name);
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_buf_append_u8(out, (uint8_t)config->mode);
  hb_buf_append_u8(out, config->first_seen ? FIRST_SEEN : 0);
  hb_buf_append_u8(out, (uint8_t)config->ack);
  hb_add_i64(out, config->first_sequence);
  hb_add_u64(out, config->limits.ahead_max);
  hb_add_u64(out, config->limits.held_bytes_max);
  hb_add_u64(out, config->limits.held_events_max);
  hb_add_u64(out, config->limits.gaps_max);
  hb_add_u64(out, config->limits.event_bytes_max);
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
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "configuration", &cursor, err);
  if (code) return code;
  struct hb_stream_config config = {.mode = (enum hb_mode)hb_take_u8(&cursor)};
  uint8_t flags = hb_take_u8(&cursor);
  config.ack = (enum hb_ack)hb_take_u8(&cursor);
  config.first_sequence = hb_take_i64(&cursor);
  config.limits.ahead_max = hb_take_u64(&cursor);
  config.limits.held_bytes_max = hb_take_u64(&cursor);
  config.limits.held_events_max = hb_take_u64(&cursor);
  config.limits.gaps_max = hb_take_u64(&cursor);
  config.limits.event_bytes_max = hb_take_u64(&cursor);
  uint8_t name_size = hb_take_u8(&cursor);
  const uint8_t *name = hb_take(&cursor, name_size);
  code = hb_record_end(&cursor, "configuration", value.size, err);
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

enum { FROZEN = 1, ANY = 2, HAS_TIME = 4, SEALED = 8, FRONTIER_FLAGS = 15 };

void hb_record_put_frontier(struct hb_buf *out, const struct hb_frontier *record) {
  const struct hb_stream_counters *counters = &record->counters;
  hb_buf_append_u8(out, HB_RECORD_VERSION);
  hb_buf_append_u8(out, (uint8_t)((record->frozen ? FROZEN : 0) | (record->any ? ANY : 0) |
                                  (record->max_event_time.present ? HAS_TIME : 0) |
                                  (record->sealed ? SEALED : 0)));
  hb_add_i64(out, record->first_sequence);
  hb_add_i64(out, record->complete_to);
  hb_add_i64(out, record->frontier);
  hb_add_i64(out, record->earliest);
  hb_add_i64(out, record->highest);
  hb_add_i64(out, record->max_event_time.seconds);
  hb_add_u32(out, (uint32_t)record->max_event_time.nanos);
  hb_add_u64(out, counters->stored);
  hb_add_u64(out, counters->duplicate);
  hb_add_u64(out, counters->conflict);
  hb_add_u64(out, counters->late);
  hb_add_u64(out, counters->before_first);
  hb_add_u64(out, counters->held);
  hb_add_u64(out, counters->unprocessed_bytes);
  hb_add_u64(out, record->commit);
  if (record->sealed) hb_add_i64(out, record->seal_end);
}

static void take_counters(struct hb_cursor *cursor, struct hb_stream_counters *out) {
  out->stored = hb_take_u64(cursor);
  out->duplicate = hb_take_u64(cursor);
  out->conflict = hb_take_u64(cursor);
  out->late = hb_take_u64(cursor);
  out->before_first = hb_take_u64(cursor);
  out->held = hb_take_u64(cursor);
  out->unprocessed_bytes = hb_take_u64(cursor);
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
  if (record->sealed && (!record->frozen || record->seal_end < record->complete_to ||
                         (record->any && record->seal_end <= record->highest))) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "frontier record: sealed at %" PRId64 " below what is stored",
                      record->seal_end);
  }
  if (record->max_event_time.nanos < 0 || record->max_event_time.nanos > 999999999) {
    return hb_err_set(err, HB_CORRUPT, NULL, "frontier record: nanos %" PRId32,
                      record->max_event_time.nanos);
  }
  return HB_OK;
}

enum hb_code hb_record_get_frontier(struct hb_slice value, struct hb_frontier *out,
                                    struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "frontier record", &cursor, err);
  if (code) return code;
  uint8_t flags = hb_take_u8(&cursor);
  struct hb_frontier record = {.frozen = flags & FROZEN, .any = flags & ANY};
  record.first_sequence = hb_take_i64(&cursor);
  record.complete_to = hb_take_i64(&cursor);
  record.frontier = hb_take_i64(&cursor);
  record.earliest = hb_take_i64(&cursor);
  record.highest = hb_take_i64(&cursor);
  record.max_event_time.seconds = hb_take_i64(&cursor);
  record.max_event_time.nanos = (int32_t)hb_take_u32(&cursor);
  record.max_event_time.present = flags & HAS_TIME;
  take_counters(&cursor, &record.counters);
  record.commit = hb_take_u64(&cursor);
  record.sealed = flags & SEALED;
  if (record.sealed) record.seal_end = hb_take_i64(&cursor);
  code = hb_record_end(&cursor, "frontier record", value.size, err);
  if (!code) code = check_frontier(&record, flags, err);
  if (!code) *out = record;
  return code;
}
