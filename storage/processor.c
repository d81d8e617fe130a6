/* Decides which rows a processor has, and reads them back. */
#include "storage/processor.h"

#include <xxhash.h>

#include "base/alloc.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/record_processor_internal.h"
#include "storage/store_internal.h"
#include "storage/write_internal.h"

/* ---- writing */

static struct hb_buf *begin_value(struct hb_write *write) {
  hb_buf_clear(&write->value);
  return &write->value;
}

static void put_part(struct hb_write *write, struct hb_processor_id id,
                     enum hb_processor_part part) {
  struct hb_key key = hb_key_processor_row(id, part);
  hb_rocks_put(write->batch, HB_FAMILY_STREAMS, hb_key_view(&key), hb_buf_view(&write->value));
}

void hb_write_put_processor(struct hb_write *write, struct hb_processor_id id,
                            const struct hb_processor_config *config) {
  hb_record_put_processor(begin_value(write), config);
  put_part(write, id, HB_PART_CONFIG);
}

void hb_write_put_place(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_processor_place *place) {
  hb_record_put_place(begin_value(write), place);
  put_part(write, id, HB_PART_PLACE);
}

void hb_write_put_attempt(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_processor_attempt *attempt) {
  hb_record_put_attempt(begin_value(write), attempt);
  put_part(write, id, HB_PART_ATTEMPT);
}

void hb_write_delete_attempt(struct hb_write *write, struct hb_processor_id id) {
  struct hb_key key = hb_key_processor_row(id, HB_PART_ATTEMPT);
  hb_rocks_delete(write->batch, HB_FAMILY_STREAMS, hb_key_view(&key));
}

void hb_write_put_state(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_state_row *row) {
  hb_buf_clear(&write->key);
  hb_key_state(&write->key, id, row->key, row->name);
  if (!row->present) {
    hb_rocks_delete(write->batch, HB_FAMILY_STATES, hb_buf_view(&write->key));
    return;
  }
  hb_record_put_bytes(begin_value(write), row->value);
  hb_rocks_put(write->batch, HB_FAMILY_STATES, hb_buf_view(&write->key),
               hb_buf_view(&write->value));
}

/* Where another processor would have its states, under no name. */
void hb_write_put_key_status(struct hb_write *write, struct hb_processor_id id,
                             const struct hb_key_status_row *row) {
  hb_buf_clear(&write->key);
  hb_key_state(&write->key, hb_statuses_id(id), row->key, (struct hb_slice){0});
  hb_record_put_key_status(begin_value(write), &row->status);
  hb_rocks_put(write->batch, HB_FAMILY_STATES, hb_buf_view(&write->key),
               hb_buf_view(&write->value));
}

void hb_write_put_timer(struct hb_write *write, struct hb_processor_id id,
                        const struct hb_timer_row *row) {
  hb_buf_clear(&write->key);
  hb_key_timer(&write->key, id, row);
  hb_record_put_bytes(begin_value(write), row->name);
  hb_rocks_put(write->batch, HB_FAMILY_TIMERS, hb_buf_view(&write->key),
               hb_buf_view(&write->value));
}

void hb_write_delete_timer(struct hb_write *write, struct hb_processor_id id,
                           const struct hb_timer_row *row) {
  hb_buf_clear(&write->key);
  hb_key_timer(&write->key, id, row);
  hb_rocks_delete(write->batch, HB_FAMILY_TIMERS, hb_buf_view(&write->key));
}

/* Where another processor would have its timers, under the key alone. */
static void begin_blocked(struct hb_write *write, struct hb_processor_id id, struct hb_slice key) {
  hb_buf_clear(&write->key);
  hb_key_state(&write->key, hb_statuses_id(id), key, (struct hb_slice){0});
}

void hb_write_put_blocked(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_blocked_row *row) {
  begin_blocked(write, id, row->key);
  hb_record_put_blocked(begin_value(write), row);
  hb_rocks_put(write->batch, HB_FAMILY_TIMERS, hb_buf_view(&write->key),
               hb_buf_view(&write->value));
}

void hb_write_delete_blocked(struct hb_write *write, struct hb_processor_id id,
                             struct hb_slice key) {
  begin_blocked(write, id, key);
  hb_rocks_delete(write->batch, HB_FAMILY_TIMERS, hb_buf_view(&write->key));
}

void hb_write_put_results(struct hb_write *write, struct hb_processor_id id, int64_t from,
                          struct hb_slice block) {
  struct hb_key key = hb_key_result(id, from);
  hb_rocks_put(write->batch, HB_FAMILY_RESULTS, hb_key_view(&key), block);
}

static struct hb_key failure_key(struct hb_processor_id id, int64_t position,
                                 struct hb_slice frame) {
  return hb_key_failure(id.stream, position,
                        XXH3_64bits_withSeed(frame.data, frame.size, id.processor));
}

enum hb_code hb_failure_is_kept(struct hb_store *store, struct hb_processor_id id, int64_t position,
                                struct hb_slice frame, bool *out, struct hb_err *err) {
  struct hb_key key = failure_key(id, position, frame);
  struct hb_bytes *row;
  enum hb_code code =
      hb_rocks_get(store->engine, HB_FAMILY_UNPROCESSED, hb_key_view(&key), &row, err);
  if (code != HB_OK) return code;
  *out = row != NULL;
  hb_bytes_unref(row);
  return HB_OK;
}

void hb_write_put_failure(struct hb_write *write, struct hb_processor_id id,
                          const struct hb_failure_row *row, uint64_t seen_wall_ms) {
  struct hb_buf frame = {0};
  hb_record_put_failure(&frame, id.processor, row);
  struct hb_key key = failure_key(id, row->position, row->frame);
  struct hb_unprocessed value = {.count = 1,
                                 .first_seen_wall_ms = seen_wall_ms,
                                 .last_seen_wall_ms = seen_wall_ms,
                                 .frame = hb_buf_view(&frame)};
  hb_record_put_unprocessed(begin_value(write), &value);
  hb_rocks_merge(write->batch, HB_FAMILY_UNPROCESSED, hb_key_view(&key),
                 hb_buf_view(&write->value));
  hb_buf_done(&frame);
}

void hb_write_drop_processor(struct hb_write *write, struct hb_processor_id id) {
  static const enum hb_family FAMILIES[] = {HB_FAMILY_STATES, HB_FAMILY_TIMERS, HB_FAMILY_RESULTS};
  struct hb_key start = hb_key_processor(id);
  struct hb_key end = hb_key_processor_end(hb_statuses_id(id));
  for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
    hb_rocks_delete_range(write->batch, FAMILIES[i], hb_key_view(&start), hb_key_view(&end));
  }
  static const enum hb_processor_part PARTS[] = {HB_PART_CONFIG, HB_PART_PLACE, HB_PART_ATTEMPT};
  for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
    struct hb_key key = hb_key_processor_row(id, PARTS[i]);
    hb_rocks_delete(write->batch, HB_FAMILY_STREAMS, hb_key_view(&key));
  }
}

/* ---- processors */

struct gather {
  hb_processor_visit *visit;
  void *context;
  bool open;
  bool has_config;
  bool has_place;
  struct hb_stored_processor current;
  struct hb_buf config; /* what its slices look at */
  struct hb_buf place;
};

static enum hb_code emit(struct gather *gather, bool *stop, struct hb_err *err) {
  if (!gather->open) return HB_OK;
  gather->open = false;
  if (!gather->has_config || !gather->has_place) {
    return hb_err_set(err, HB_CORRUPT, NULL, "a processor has no %s",
                      gather->has_config ? "place" : "configuration");
  }
  *stop = !gather->visit(gather->context, &gather->current);
  return HB_OK;
}

static struct hb_slice keep(struct hb_buf *buf, struct hb_slice value) {
  hb_buf_clear(buf);
  hb_buf_append(buf, value.data, value.size);
  return hb_buf_view(buf);
}

static enum hb_code take_part(struct gather *gather, enum hb_processor_part part,
                              struct hb_slice value, struct hb_err *err) {
  struct hb_stored_processor *current = &gather->current;
  if (part == HB_PART_CONFIG) {
    gather->has_config = true;
    return hb_record_get_processor(keep(&gather->config, value), &current->config, err);
  }
  if (part == HB_PART_PLACE) {
    gather->has_place = true;
    return hb_record_get_place(keep(&gather->place, value), &current->place, err);
  }
  current->has_attempt = true;
  return hb_record_get_attempt(value, &current->attempt, err);
}

static enum hb_code visit_part(void *context, struct hb_slice key, struct hb_slice value,
                               bool *stop, struct hb_err *err) {
  struct gather *gather = context;
  struct hb_processor_id id;
  enum hb_processor_part part;
  if (!hb_key_parse_processor_row(key, &id, &part)) return hb_store_bad_key(err);
  if (gather->open && gather->current.id.processor != id.processor) {
    enum hb_code code = emit(gather, stop, err);
    if (code || *stop) return code;
  }
  if (!gather->open) {
    gather->open = true;
    gather->has_config = gather->has_place = false;
    gather->current = (struct hb_stored_processor){.id = id};
  }
  return take_part(gather, part, value, err);
}

enum hb_code hb_processor_each(struct hb_store *store, uint64_t stream, hb_processor_visit *visit,
                               void *context, struct hb_err *err) {
  struct gather gather = {.visit = visit, .context = context};
  struct hb_key start = hb_key_streams_row(stream, HB_KIND_PROCESSOR);
  struct hb_key end = hb_key_streams_row(stream, HB_KIND_PROCESSOR + 1);
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_STREAMS,
                                                    hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  enum hb_code code = hb_store_each_row(iter, HB_FAMILY_STREAMS, visit_part, &gather, err);
  bool stop = false;
  if (!code) code = emit(&gather, &stop, err);
  hb_buf_done(&gather.config);
  hb_buf_done(&gather.place);
  return code;
}

/* ---- states */

enum hb_code hb_state_read(struct hb_store *store, struct hb_processor_id id, struct hb_slice key,
                           struct hb_slice name, bool *out_found, struct hb_buf *out,
                           struct hb_err *err) {
  struct hb_buf row = {0};
  hb_key_state(&row, id, key, name);
  struct hb_bytes *value = NULL;
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_STATES, hb_buf_view(&row), &value, err);
  struct hb_slice bytes = {0};
  if (!code && value) {
    code = hb_record_get_bytes(hb_bytes_view(value), &bytes, err);
    code = hb_store_wrap_row(code, HB_FAMILY_STATES, hb_buf_view(&row), err);
  }
  if (!code) {
    *out_found = value != NULL;
    if (bytes.size) hb_buf_append(out, bytes.data, bytes.size);
  }
  hb_bytes_unref(value);
  hb_buf_done(&row);
  return code;
}

enum hb_code hb_state_next_key(struct hb_store *store, struct hb_processor_id id, bool has_after,
                               struct hb_slice after, bool *out_found, struct hb_buf *out,
                               struct hb_err *err) {
  struct hb_buf start = {0};
  struct hb_buf key = {0};
  if (has_after) {
    hb_key_state_after(&start, id, after);
  } else {
    struct hb_key first = hb_key_processor(id);
    hb_buf_append(&start, first.data, first.size);
  }
  struct hb_key end = hb_key_processor_end(id);
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(store->engine, HB_FAMILY_STATES, hb_buf_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  enum hb_code code = HB_OK;
  bool found = hb_rocks_iter_valid(iter);
  if (found) {
    struct hb_slice row = hb_rocks_iter_key(iter);
    struct hb_processor_id parsed;
    struct hb_slice name;
    if (!hb_key_parse_state(row, &parsed, &key, &name)) {
      code = hb_store_wrap_row(hb_store_bad_key(err), HB_FAMILY_STATES, row, err);
    }
  } else {
    code = hb_rocks_iter_error(iter, err);
  }
  if (!code) {
    *out_found = found;
    if (found) hb_buf_append(out, key.data, key.size);
  }
  hb_rocks_iter_destroy(iter);
  hb_buf_done(&start);
  hb_buf_done(&key);
  return code;
}

/* ---- statuses by key */

enum hb_code hb_processor_position(struct hb_store *store, struct hb_processor_id id,
                                   int64_t *out_position, struct hb_err *err) {
  struct hb_key key = hb_key_processor_row(id, HB_PART_PLACE);
  struct hb_bytes *value = NULL;
  enum hb_code code =
      hb_rocks_get(store->engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value, err);
  if (code) return code;
  if (!value) return hb_err_set(err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "processor is gone");
  struct hb_processor_place place;
  code = hb_record_get_place(hb_bytes_view(value), &place, err);
  if (!code) *out_position = place.position;
  hb_bytes_unref(value);
  return code;
}

enum hb_code hb_key_status_read(struct hb_store *store, struct hb_processor_id id,
                                struct hb_slice key, struct hb_key_status *out,
                                struct hb_err *err) {
  struct hb_buf row = {0};
  struct hb_bytes *value = NULL;
  hb_key_state(&row, hb_statuses_id(id), key, (struct hb_slice){0});
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_STATES, hb_buf_view(&row), &value, err);
  struct hb_key_status status = {.any = false};
  if (!code && value) code = hb_record_get_key_status(hb_bytes_view(value), &status, err);
  if (code) {
    (void)hb_store_wrap_row(code, HB_FAMILY_STATES, hb_buf_view(&row), err);
  } else {
    *out = status;
  }
  if (value) hb_bytes_unref(value);
  hb_buf_done(&row);
  return code;
}

/* ---- timers */

struct timers {
  hb_timer_visit *visit;
  void *context;
  struct hb_buf key;
};

static enum hb_code visit_timer(void *context, struct hb_slice key, struct hb_slice value,
                                bool *stop, struct hb_err *err) {
  struct timers *timers = context;
  struct hb_processor_id id;
  struct hb_timer_row row;
  if (!hb_key_parse_timer(key, &id, &timers->key, &row)) return hb_store_bad_key(err);
  enum hb_code code = hb_record_get_bytes(value, &row.name, err);
  if (!code) *stop = !timers->visit(timers->context, &row);
  return code;
}

enum hb_code hb_timer_each(struct hb_store *store, struct hb_processor_id id, hb_timer_visit *visit,
                           void *context, struct hb_err *err) {
  struct timers timers = {.visit = visit, .context = context};
  struct hb_key start = hb_key_processor(id);
  struct hb_key end = hb_key_processor_end(id);
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(store->engine, HB_FAMILY_TIMERS, hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  enum hb_code code = hb_store_each_row(iter, HB_FAMILY_TIMERS, visit_timer, &timers, err);
  hb_buf_done(&timers.key);
  return code;
}

/* ---- keys that wait */

struct blocked {
  hb_blocked_visit *visit;
  void *context;
  struct hb_buf key;
};

static enum hb_code visit_blocked(void *context, struct hb_slice key, struct hb_slice value,
                                  bool *stop, struct hb_err *err) {
  struct blocked *blocked = context;
  struct hb_processor_id id;
  struct hb_slice name;
  if (!hb_key_parse_state(key, &id, &blocked->key, &name) || name.size) {
    return hb_store_bad_key(err);
  }
  struct hb_blocked_row row = {.key = hb_buf_view(&blocked->key)};
  enum hb_code code = hb_record_get_blocked(value, &row, err);
  if (!code) *stop = !blocked->visit(blocked->context, &row);
  return code;
}

enum hb_code hb_blocked_each(struct hb_store *store, struct hb_processor_id id,
                             hb_blocked_visit *visit, void *context, struct hb_err *err) {
  struct blocked blocked = {.visit = visit, .context = context};
  struct hb_key start = hb_key_processor(hb_statuses_id(id));
  struct hb_key end = hb_key_processor_end(hb_statuses_id(id));
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(store->engine, HB_FAMILY_TIMERS, hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  enum hb_code code = hb_store_each_row(iter, HB_FAMILY_TIMERS, visit_blocked, &blocked, err);
  hb_buf_done(&blocked.key);
  return code;
}

enum hb_code hb_blocked_read(struct hb_store *store, struct hb_processor_id id, struct hb_slice key,
                             bool *out_found, struct hb_blocked_row *out, struct hb_err *err) {
  struct hb_buf row = {0};
  struct hb_bytes *value = NULL;
  hb_key_state(&row, hb_statuses_id(id), key, (struct hb_slice){0});
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_TIMERS, hb_buf_view(&row), &value, err);
  struct hb_blocked_row found = {.key = key};
  if (!code && value) code = hb_record_get_blocked(hb_bytes_view(value), &found, err);
  if (code) {
    (void)hb_store_wrap_row(code, HB_FAMILY_TIMERS, hb_buf_view(&row), err);
  } else {
    *out_found = value != NULL;
    if (value) *out = found;
  }
  hb_bytes_unref(value);
  hb_buf_done(&row);
  return code;
}

/* ---- failures */

struct failures {
  hb_failure_visit *visit;
  void *context;
};

static enum hb_code visit_failure(void *context, struct hb_slice key, struct hb_slice value,
                                  bool *stop, struct hb_err *err) {
  const struct failures *failures = context;
  struct hb_stored_failure row = {.count = 0};
  uint64_t stream;
  uint64_t hash;
  if (!hb_key_parse_failure(key, &stream, &row.position, &hash)) return HB_OK; /* a refusal */
  struct hb_unprocessed kept;
  struct hb_failure_row parts;
  enum hb_code code = hb_record_get_unprocessed(value, &kept, err);
  if (!code) code = hb_record_get_failure(kept.frame, &row.processor, &parts, err);
  if (code) return code;
  row.count = kept.count;
  row.first_seen_wall_ms = kept.first_seen_wall_ms;
  row.last_seen_wall_ms = kept.last_seen_wall_ms;
  row.explanation = parts.explanation;
  row.frame = parts.frame;
  *stop = !failures->visit(failures->context, &row);
  return HB_OK;
}

enum hb_code hb_failure_each(struct hb_store *store, uint64_t stream, hb_failure_visit *visit,
                             void *context, struct hb_err *err) {
  struct failures failures = {.visit = visit, .context = context};
  struct hb_key start = hb_key_failure(stream, INT64_MIN, 0);
  struct hb_key end = hb_key_stream_end(stream);
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_UNPROCESSED,
                                                    hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_UNPROCESSED, visit_failure, &failures, err);
}
