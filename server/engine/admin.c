/* Decides about streams: what a valid one is, what may be changed, when one is there or gone.
 *
 * Every job is one fsynced write of its own, and takes effect in the core, in the maps and for
 * everyone who looks only after it. The sequencer's thread runs jobs between two commits, so no
 * commit is ever half before a job. The store keeps what the user stated (0 = the server's
 * default), so that a default that is changed by flags holds for streams that state none. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "server/engine/engine_internal.h"

static const char DEFAULT_STREAM[] = "default";

/* ---- what is valid */

static bool is_name_char(char c, bool first) {
  if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return true;
  return !first && (c == '.' || c == '_' || c == '-');
}

static enum hb_code check_name(const char *name, struct hb_err *err) {
  size_t size = strnlen(name, HB_STREAM_NAME_MAX + 1);
  bool valid = size > 0 && size <= HB_STREAM_NAME_MAX;
  for (size_t i = 0; valid && i < size; i++) valid = is_name_char(name[i], i == 0);
  if (valid) return HB_OK;
  return hb_err_set(err, HB_INVALID, "STREAM_NAME_INVALID",
                    "stream name '%.*s' must be 1 to %d characters a-z, 0-9, '.', '_', '-', the "
                    "first a letter or digit",
                    (int)(size > 64 ? 64 : size), name, HB_STREAM_NAME_MAX);
}

struct limit_field {
  const char *name; /* a row of base/limits_table.h */
  size_t offset;    /* in struct hb_stream_limits */
};
static const struct limit_field LIMIT_FIELDS[] = {
    {"ahead_max", offsetof(struct hb_stream_limits, ahead_max)},
    {"held_bytes_max", offsetof(struct hb_stream_limits, held_bytes_max)},
    {"held_events_max", offsetof(struct hb_stream_limits, held_events_max)},
    {"gaps_max", offsetof(struct hb_stream_limits, gaps_max)},
    {"event_bytes_max", offsetof(struct hb_stream_limits, event_bytes_max)}};
enum { LIMIT_FIELDS_COUNT = sizeof LIMIT_FIELDS / sizeof LIMIT_FIELDS[0] };

static uint64_t limit_get(const struct hb_stream_limits *limits, size_t i) {
  uint64_t value;
  memcpy(&value, (const char *)limits + LIMIT_FIELDS[i].offset, sizeof value);
  return value;
}

static void limit_set(struct hb_stream_limits *limits, size_t i, uint64_t value) {
  memcpy((char *)limits + LIMIT_FIELDS[i].offset, &value, sizeof value);
}

static enum hb_code check_limits(const struct hb_stream_limits *limits, struct hb_err *err) {
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    const struct hb_limit_row *row = hb_limits_find(LIMIT_FIELDS[i].name);
    uint64_t value = limit_get(limits, i);
    if (value == 0 || (value >= row->min && value <= row->max)) continue;
    return hb_err_set(err, HB_INVALID, "LIMIT_OUT_OF_RANGE",
                      "%s %" PRIu64 " must be from %" PRIu64 " to %" PRIu64
                      " %s, or 0 for the server's default",
                      row->name, value, row->min, row->max, row->unit);
  }
  return HB_OK;
}

/* ack 0 is none: allowed in an update, and the default in a creation. */
static enum hb_code check_ack(enum hb_ack ack, struct hb_err *err) {
  int value = (int)ack;
  if (value == 0 || value == HB_ACK_DURABLE || value == HB_ACK_ASYNC) return HB_OK;
  return hb_err_set(err, HB_INVALID, "ACK_MODE_INVALID", "ack_mode %d is not known", value);
}

static enum hb_code check_new(const struct hb_stream_config *config, struct hb_err *err) {
  enum hb_code code = check_name(config->name, err);
  if (code == HB_OK) code = check_ack(config->ack, err);
  if (code == HB_OK) code = check_limits(&config->limits, err);
  if (code != HB_OK) return code;
  if (config->mode == HB_MODE_PER_KEY) {
    return hb_err_set(err, HB_UNIMPLEMENTED, NULL, "mode PER_KEY is not implemented");
  }
  if (config->mode != HB_MODE_GLOBAL) {
    return hb_err_set(err, HB_INVALID, "MODE_INVALID", "mode %d must be GLOBAL or PER_KEY",
                      (int)config->mode);
  }
  if (!config->first_seen && config->first_sequence == INT64_MAX) {
    return hb_err_set(err, HB_INVALID, "FIRST_SEQUENCE_INVALID",
                      "first_sequence %" PRId64 " must be below %" PRId64, config->first_sequence,
                      INT64_MAX);
  }
  return HB_OK;
}

struct hb_stream_config hb_config_resolve(const struct hb_engine *engine,
                                          const struct hb_stream_config *stored) {
  struct hb_stream_config config = *stored;
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    if (limit_get(&config.limits, i) > 0) continue;
    limit_set(&config.limits, i,
              hb_limits_get(&engine->limits, hb_limits_find(LIMIT_FIELDS[i].name)));
  }
  return config;
}

/* ---- create */

static enum hb_code check_same(const struct hb_stream_config *have,
                               const struct hb_stream_config *want, struct hb_err *err) {
  const char *field = NULL;
  if (have->mode != want->mode) {
    field = "mode";
  } else if (have->first_seen != want->first_seen ||
             (!have->first_seen && have->first_sequence != want->first_sequence)) {
    field = "first_sequence";
  } else if (have->ack != want->ack) {
    field = "ack_mode";
  }
  for (size_t i = 0; !field && i < LIMIT_FIELDS_COUNT; i++) {
    if (limit_get(&have->limits, i) != limit_get(&want->limits, i)) field = LIMIT_FIELDS[i].name;
  }
  if (!field) return HB_OK;
  return hb_err_set(err, HB_EXISTS, "STREAM_EXISTS", "stream '%s' exists with another %s",
                    have->name, field);
}

static enum hb_code create_again(struct hb_engine *engine, struct hb_job *job,
                                 struct hb_stream *stream, struct hb_err *err) {
  struct hb_stream_config have = hb_config_resolve(engine, &stream->stored);
  struct hb_stream_config want = hb_config_resolve(engine, &job->config);
  enum hb_code code = check_same(&have, &want, err);
  if (code != HB_OK) return code;
  job->config = have;
  memcpy(job->incarnation, stream->incarnation, sizeof job->incarnation);
  return HB_OK;
}

static void add(struct hb_engine *engine, struct hb_job *job, uint64_t id,
                const struct hb_stream_config *resolved) {
  struct hb_stream *stream = hb_stream_create(id, engine->info.incarnation, &job->config, resolved);
  hb_registry_add(&engine->sequencer.registry, stream);
  hb_publish_touch(engine, id, UINT64_MAX);
  hb_publish_all(engine);
  stream->touched = 0;
  hb_names_add(&engine->names, stream);
  memcpy(job->incarnation, stream->incarnation, sizeof job->incarnation);
  job->config = *resolved;
  hb_stream_unref(stream);
}

static enum hb_code create_stream(struct hb_engine *engine, struct hb_job *job,
                                  struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  enum hb_code code = check_new(&job->config, err);
  if (code != HB_OK) return code;
  if ((int)job->config.ack == 0) job->config.ack = HB_ACK_DURABLE;
  struct hb_stream *found = hb_names_find(&engine->names, job->config.name);
  if (found) {
    code = create_again(engine, job, found, err);
    hb_stream_unref(found);
    return code;
  }
  if (sequencer->registry.count >= engine->limits.streams_max) {
    return hb_err_set(err, HB_LIMIT, "TOO_MANY_STREAMS",
                      "streams %zu reach the limit streams_max %" PRIu64, sequencer->registry.count,
                      engine->limits.streams_max);
  }
  struct hb_stream_config resolved = hb_config_resolve(engine, &job->config);
  struct hb_frontier record = hb_ordering_new_record(&job->config);
  uint64_t id = sequencer->next_stream;
  code = hb_ordering_add_stream(sequencer->core, id, &resolved, &record, err);
  if (code != HB_OK) return code;
  sequencer->next_stream++;
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_put_config(write, id, &job->config);
  hb_write_put_frontier(write, id, &record);
  hb_write_put_next_stream(write, sequencer->next_stream); /* ids are never used again */
  if (!hb_sequencer_apply_rows(engine, err)) return HB_UNAVAILABLE;
  add(engine, job, id, &resolved);
  return HB_OK;
}

enum hb_code hb_create_default_stream(struct hb_engine *engine, struct hb_err *err) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.mode = HB_MODE_GLOBAL, .first_sequence = 1}};
  memcpy(job.config.name, DEFAULT_STREAM, sizeof DEFAULT_STREAM);
  return create_stream(engine, &job, err);
}

/* ---- update */

static enum hb_code update_stream(struct hb_engine *engine, struct hb_job *job,
                                  struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  enum hb_code code = check_name(job->config.name, err);
  if (code == HB_OK) code = check_ack(job->config.ack, err);
  if (code == HB_OK) code = check_limits(&job->config.limits, err);
  if (code != HB_OK) return code;
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  struct hb_stream_config stored = stream->stored;
  if ((int)job->config.ack != 0) stored.ack = job->config.ack;
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    uint64_t value = limit_get(&job->config.limits, i);
    if (value > 0) limit_set(&stored.limits, i, value);
  }
  /* The fsync of this write covers what ASYNC left behind: from the first DURABLE answer on
   * everything before it is durable too (I1). */
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_put_config(write, stream->id, &stored);
  if (hb_sequencer_apply_rows(engine, err)) {
    struct hb_stream_config resolved = hb_config_resolve(engine, &stored);
    hb_ordering_update_stream(sequencer->core, stream->id, &resolved);
    stream->stored = stored;
    hb_stream_set_config(stream, &resolved);
    hb_publish_touch(engine, stream->id, UINT64_MAX); /* window_end follows ahead_max */
    hb_publish_all(engine);
    stream->touched = 0;
    job->config = resolved;
    memcpy(job->incarnation, stream->incarnation, sizeof job->incarnation);
  } else {
    code = HB_UNAVAILABLE;
  }
  hb_stream_unref(stream);
  return code;
}

/* ---- delete */

static void forget(struct hb_engine *engine, struct hb_stream *stream) {
  hb_names_remove(&engine->names, stream);
  hb_ordering_remove_stream(engine->sequencer.core, stream->id);
  hb_registry_remove(&engine->sequencer.registry, stream->id);
  hb_publish_drop(engine, stream);
  hb_processors_forget(engine, stream->id);
  hb_stream_mark_deleted(stream);
  hb_deletion_begin(engine, stream->id, HB_DELETION_FORGET);
}

static enum hb_code delete_stream(struct hb_engine *engine, struct hb_job *job,
                                  struct hb_err *err) {
  enum hb_code code = check_name(job->config.name, err);
  if (code != HB_OK) return code;
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_mark_deleting(write, stream->id);
  if (hb_sequencer_apply_rows(engine, err)) {
    forget(engine, stream);
  } else {
    code = HB_UNAVAILABLE;
  }
  hb_stream_unref(stream);
  return code;
}

/* ---- seal */

static enum hb_code seal_stream(struct hb_engine *engine, struct hb_job *job, struct hb_err *err) {
  struct hb_ordering *core = engine->sequencer.core;
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  struct hb_stream_status status;
  bool known = hb_ordering_status(core, stream->id, hb_sequencer_now(engine), &status);
  HB_ASSERT(known);
  enum hb_code code = hb_ordering_check_seal(core, stream->id, job->seal_end, err);
  if (code == HB_OK && !status.record.sealed) {
    status.record.sealed = true;
    status.record.seal_end = job->seal_end;
    struct hb_write *write = hb_sequencer_begin_rows(engine);
    hb_write_put_frontier(write, stream->id, &status.record);
    if (hb_sequencer_apply_rows(engine, err)) {
      hb_ordering_seal(core, stream->id, job->seal_end);
      hb_publish_touch(engine, stream->id, UINT64_MAX);
      hb_publish_all(engine);
      stream->touched = 0;
    } else {
      code = HB_UNAVAILABLE;
    }
  }
  hb_stream_unref(stream);
  return code;
}

/* ---- jobs */

static enum hb_code run(struct hb_engine *engine, struct hb_job *job) {
  if (engine->sequencer.failed) return hb_err_failed(&job->error);
  switch (job->kind) {
    case HB_JOB_CREATE_STREAM:
      return create_stream(engine, job, &job->error);
    case HB_JOB_UPDATE_STREAM:
      return update_stream(engine, job, &job->error);
    case HB_JOB_DELETE_STREAM:
      return delete_stream(engine, job, &job->error);
    case HB_JOB_SEAL_STREAM:
      return seal_stream(engine, job, &job->error);
    case HB_JOB_ATTACH_PROCESSOR:
      return hb_attach_processor(engine, job, &job->error);
    case HB_JOB_DETACH_PROCESSOR:
      return hb_detach_processor(engine, job, &job->error);
    default:
      HB_UNREACHABLE();
  }
}

void hb_job_run(struct hb_engine *engine, struct hb_job *job) {
  job->error = (struct hb_err){0};
  enum hb_code code = run(engine, job);
  HB_ASSERT(code == job->error.code);
  if (job->kind == HB_JOB_ATTACH_PROCESSOR) hb_attach_done(job);
  job->done(job);
}

void hb_engine_submit_job(struct hb_engine *engine, struct hb_job *job) {
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&job->error);
    job->done(job);
    return;
  }
  if (job->kind == HB_JOB_ATTACH_PROCESSOR) {
    hb_pool_post(&engine->background, HB_WORK_ATTACH, &job->node);
  } else {
    hb_mailbox_post(engine->sequencer.jobs, &job->node);
  }
  hb_door_leave(engine);
}
