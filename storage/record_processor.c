/* The values of a processor's rows in bytes, and what is none. */
#include "storage/record_processor_internal.h"

#include <string.h>

#include "storage/record_bytes_internal.h"
#include "storage/record_internal.h"

enum {
  FLAG_LOADED = 1,
  FLAG_STOP = 2,
  FLAG_DETACHED = 4,
  FLAG_SUSPENDED = 8,
  FLAG_WAIT = 16,
  FLAGS_ALL = 31
};
enum { FLAG_ANY = 1, FLAG_LAST = 2, STATUS_FLAGS_ALL = 3 };
enum { FLAG_END_KEY = 1, FLAG_WATERMARK = 2, FLAG_RESULTS_TIME = 4, PLACE_FLAGS_ALL = 7 };

static uint8_t flags_of(const struct hb_processor_config *config) {
  return (uint8_t)((config->loaded ? FLAG_LOADED : 0) |
                   (config->on_error == HB_ON_ERROR_SUSPEND ? FLAG_STOP : 0) |
                   (config->on_error == HB_ON_ERROR_WAIT ? FLAG_WAIT : 0) |
                   (config->detached ? FLAG_DETACHED : 0) |
                   (config->suspended ? FLAG_SUSPENDED : 0));
}

static enum hb_on_error on_error_of(uint8_t flags) {
  if (flags & FLAG_WAIT) return HB_ON_ERROR_WAIT;
  return flags & FLAG_STOP ? HB_ON_ERROR_SUSPEND : HB_ON_ERROR_CONTINUE;
}

static void add_u8(struct hb_buf *out, uint8_t value) { hb_buf_append_u8(out, value); }

/* ---- configuration */

static void add_name(struct hb_buf *out, const char *name) {
  size_t size = strlen(name);
  add_u8(out, (uint8_t)size);
  hb_buf_append(out, name, size);
}

static void take_text(struct hb_cursor *cursor, size_t size, size_t size_max, char *out) {
  const uint8_t *at = hb_take(cursor, size);
  if (at && (size > size_max || memchr(at, 0, size))) cursor->ok = false;
  if (!at || !cursor->ok) return;
  memcpy(out, at, size);
  out[size] = '\0';
}

void hb_record_put_processor(struct hb_buf *out, const struct hb_processor_config *config) {
  add_u8(out, HB_RECORD_VERSION);
  add_u8(out, flags_of(config));
  add_u8(out, (uint8_t)config->key_status);
  hb_add_u32(out, config->key_status_ms);
  add_name(out, config->name);
  add_name(out, config->processor);
  hb_add_i64(out, config->suspended ? config->suspended_at : 0);
  size_t why = config->suspended ? strlen(config->suspended_why) : 0;
  hb_add_u32(out, (uint32_t)why);
  hb_buf_append(out, config->suspended_why, why);
  hb_buf_append(out, config->parameters.data, config->parameters.size);
}

enum hb_code hb_record_get_processor(struct hb_slice value, struct hb_processor_config *out,
                                     struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "processor", &cursor, err);
  if (code) return code;
  struct hb_processor_config config = {.loaded = false};
  uint8_t flags = hb_take_u8(&cursor);
  uint8_t mode = hb_take_u8(&cursor);
  bool both = (flags & FLAG_STOP) && (flags & FLAG_WAIT);
  if (flags > FLAGS_ALL || both || mode > HB_KEY_STATUS_PERIODIC) cursor.ok = false;
  config.key_status = (enum hb_key_status_mode)mode;
  config.key_status_ms = hb_take_u32(&cursor);
  config.loaded = flags & FLAG_LOADED;
  config.on_error = on_error_of(flags);
  config.detached = flags & FLAG_DETACHED;
  config.suspended = flags & FLAG_SUSPENDED;
  take_text(&cursor, hb_take_u8(&cursor), HB_PROCESSOR_NAME_MAX, config.name);
  take_text(&cursor, hb_take_u8(&cursor), HB_PROCESSOR_NAME_MAX, config.processor);
  config.suspended_at = hb_take_i64(&cursor);
  take_text(&cursor, hb_take_u32(&cursor), HB_SUSPENDED_WHY_MAX, config.suspended_why);
  config.parameters = hb_slice_of(cursor.at, cursor.left);
  (void)hb_take(&cursor, cursor.left);
  code = hb_record_end(&cursor, "processor", value.size, err);
  if (!code) *out = config;
  return code;
}

/* ---- place */

static void add_time(struct hb_buf *out, struct hb_time time) {
  hb_add_i64(out, time.present ? time.seconds : 0);
  hb_add_u32(out, time.present ? (uint32_t)time.nanos : 0);
}

static struct hb_time take_time(struct hb_cursor *cursor, bool present) {
  struct hb_time time = {.present = present, .seconds = hb_take_i64(cursor)};
  uint32_t nanos = hb_take_u32(cursor);
  if (nanos > 999999999) cursor->ok = false;
  time.nanos = (int32_t)nanos;
  return time;
}

void hb_record_put_place(struct hb_buf *out, const struct hb_processor_place *place) {
  add_u8(out, HB_RECORD_VERSION);
  add_u8(out, (uint8_t)((place->has_end_key ? FLAG_END_KEY : 0) |
                        (place->watermark.present ? FLAG_WATERMARK : 0) |
                        (place->results_time.present ? FLAG_RESULTS_TIME : 0)));
  add_u8(out, (uint8_t)place->phase);
  hb_add_i64(out, place->position);
  hb_add_u64(out, place->skip);
  add_time(out, place->watermark);
  hb_add_i64(out, place->next_result);
  add_time(out, place->results_time);
  hb_add_i64(out, place->next_status);
  hb_add_u64(out, place->next_creation);
  hb_add_u64(out, place->events);
  hb_add_u64(out, place->timers_fired);
  hb_add_u64(out, place->failed);
  hb_add_u64(out, place->unprocessed_bytes);
  if (place->has_end_key) hb_buf_append(out, place->end_key.data, place->end_key.size);
}

enum hb_code hb_record_get_place(struct hb_slice value, struct hb_processor_place *out,
                                 struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "processor's place", &cursor, err);
  if (code) return code;
  struct hb_processor_place place = {.skip = 0};
  uint8_t flags = hb_take_u8(&cursor);
  uint8_t phase = hb_take_u8(&cursor);
  if (flags > PLACE_FLAGS_ALL || phase > HB_PHASE_ENDED) cursor.ok = false;
  place.phase = (enum hb_phase)phase;
  place.position = hb_take_i64(&cursor);
  place.skip = hb_take_u64(&cursor);
  place.watermark = take_time(&cursor, flags & FLAG_WATERMARK);
  place.next_result = hb_take_i64(&cursor);
  place.results_time = take_time(&cursor, flags & FLAG_RESULTS_TIME);
  place.next_status = hb_take_i64(&cursor);
  place.next_creation = hb_take_u64(&cursor);
  place.events = hb_take_u64(&cursor);
  place.timers_fired = hb_take_u64(&cursor);
  place.failed = hb_take_u64(&cursor);
  place.unprocessed_bytes = hb_take_u64(&cursor);
  place.has_end_key = flags & FLAG_END_KEY;
  if (place.has_end_key) {
    place.end_key = hb_slice_of(cursor.at, cursor.left);
    (void)hb_take(&cursor, cursor.left);
  }
  if (place.next_result < 0 || place.next_status < 0) cursor.ok = false;
  code = hb_record_end(&cursor, "processor's place", value.size, err);
  if (!code) *out = place;
  return code;
}

/* ---- attempts, failures */

void hb_record_put_attempt(struct hb_buf *out, const struct hb_processor_attempt *attempt) {
  add_u8(out, HB_RECORD_VERSION);
  hb_add_i64(out, attempt->position);
  hb_add_u32(out, attempt->attempts);
  hb_add_i64(out, attempt->until);
}

enum hb_code hb_record_get_attempt(struct hb_slice value, struct hb_processor_attempt *out,
                                   struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "processor's attempt", &cursor, err);
  if (code) return code;
  struct hb_processor_attempt attempt = {.position = hb_take_i64(&cursor)};
  attempt.attempts = hb_take_u32(&cursor);
  attempt.until = hb_take_i64(&cursor);
  code = hb_record_end(&cursor, "processor's attempt", value.size, err);
  if (!code) *out = attempt;
  return code;
}

void hb_record_put_failure(struct hb_buf *out, uint64_t processor,
                           const struct hb_failure_row *row) {
  hb_add_u64(out, processor);
  hb_add_u32(out, (uint32_t)row->explanation.size);
  hb_buf_append(out, row->explanation.data, row->explanation.size);
  hb_buf_append(out, row->frame.data, row->frame.size);
}

enum hb_code hb_record_get_failure(struct hb_slice bytes, uint64_t *out_processor,
                                   struct hb_failure_row *out, struct hb_err *err) {
  struct hb_cursor cursor = {.at = bytes.data, .left = bytes.size, .ok = true};
  uint64_t processor = hb_take_u64(&cursor);
  uint32_t size = hb_take_u32(&cursor);
  const uint8_t *explanation = hb_take(&cursor, size);
  if (!cursor.ok) return hb_err_set(err, HB_CORRUPT, NULL, "failure: wrong size");
  *out_processor = processor;
  out->explanation = hb_slice_of(explanation, size);
  out->frame = hb_slice_of(cursor.at, cursor.left);
  return HB_OK;
}

/* ---- statuses by key */

void hb_record_put_key_status(struct hb_buf *out, const struct hb_key_status *status) {
  add_u8(out, HB_RECORD_VERSION);
  add_u8(out, (uint8_t)((status->any ? FLAG_ANY : 0) | (status->last_received ? FLAG_LAST : 0)));
  hb_add_i64(out, status->any ? status->last_processed : 0);
  hb_add_u64(out, status->processed);
  hb_add_u64(out, status->failed);
  hb_add_u64(out, status->results);
  hb_add_u64(out, status->duplicates);
  hb_add_u64(out, status->rejected);
}

enum hb_code hb_record_get_key_status(struct hb_slice value, struct hb_key_status *out,
                                      struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "key's status", &cursor, err);
  if (code) return code;
  uint8_t flags = hb_take_u8(&cursor);
  if (flags > STATUS_FLAGS_ALL) cursor.ok = false;
  struct hb_key_status status = {.any = flags & FLAG_ANY, .last_received = flags & FLAG_LAST};
  status.last_processed = hb_take_i64(&cursor);
  status.processed = hb_take_u64(&cursor);
  status.failed = hb_take_u64(&cursor);
  status.results = hb_take_u64(&cursor);
  status.duplicates = hb_take_u64(&cursor);
  status.rejected = hb_take_u64(&cursor);
  code = hb_record_end(&cursor, "key's status", value.size, err);
  if (!code) *out = status;
  return code;
}

/* ---- keys that wait */

enum { BLOCKED_COPY = 0x80 };

void hb_record_put_blocked(struct hb_buf *out, const struct hb_blocked_row *row) {
  add_u8(out, HB_RECORD_VERSION);
  add_u8(out, (uint8_t)((unsigned)row->phase | (row->is_copy ? BLOCKED_COPY : 0U)));
  hb_add_i64(out, row->sequence);
  hb_add_i64(out, row->position);
  hb_add_u64(out, row->passed);
  hb_add_u64(out, row->run);
  hb_add_i64(out, row->next);
  hb_add_u64(out, row->skip);
  hb_add_u64(out, row->copy);
}

enum hb_code hb_record_get_blocked(struct hb_slice value, struct hb_blocked_row *out,
                                   struct hb_err *err) {
  struct hb_cursor cursor;
  enum hb_code code = hb_record_begin(value, "key that waits", &cursor, err);
  if (code) return code;
  uint8_t flags = hb_take_u8(&cursor);
  uint8_t phase = flags & (uint8_t)~BLOCKED_COPY;
  struct hb_blocked_row row = {.key = out->key, .is_copy = flags & BLOCKED_COPY};
  row.sequence = hb_take_i64(&cursor);
  row.position = hb_take_i64(&cursor);
  row.passed = hb_take_u64(&cursor);
  row.run = hb_take_u64(&cursor);
  row.next = hb_take_i64(&cursor);
  row.skip = hb_take_u64(&cursor);
  row.copy = hb_take_u64(&cursor);
  if (phase > HB_BLOCKED_CATCHES_UP || row.run > row.passed) cursor.ok = false;
  row.phase = (enum hb_blocked_phase)phase;
  code = hb_record_end(&cursor, "key that waits", value.size, err);
  if (!code) *out = row;
  return code;
}
