/* Decides about streams: when one is there, changed or gone. What is valid: config.h.
 *
 * Every job is one fsynced write of its own, and takes effect in the core, in the maps and for
 * everyone who looks only after it. The sequencer's thread runs jobs between two commits, so no
 * commit is ever half before a job. The store keeps what the user stated (0 = the server's
 * default), so that a default that is changed by flags holds for streams that state none. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/live.h"
#include "base/slice.h"
#include "base/stream_name.h"
#include "server/engine/config.h"
#include "server/engine/engine_internal.h"

static const char DEFAULT_STREAM[] = "default";

/* ---- create */

static enum hb_code create_again(struct hb_engine *engine, struct hb_job *job,
                                 struct hb_stream *stream, struct hb_err *err) {
  struct hb_stream_config have = hb_config_resolve(&engine->limits, &stream->stored);
  struct hb_stream_config want = hb_config_resolve(&engine->limits, &job->config);
  enum hb_code code = hb_config_check_same(&have, &want, err);
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
  enum hb_code code = hb_config_check(&job->config, err);
  if (code != HB_OK) return code;
  if ((int)job->config.ack == 0) job->config.ack = HB_ACK_DURABLE;
  struct hb_stream *found = hb_names_find(&engine->names, job->config.name);
  if (found) {
    code = create_again(engine, job, found, err);
    hb_stream_unref(found);
    return code;
  }
  if (hb_disk_stops_writes(engine)) return hb_err_disk(engine, err);
  if (sequencer->registry.count >= engine->limits.streams_max) {
    return hb_err_set(err, HB_LIMIT, "TOO_MANY_STREAMS",
                      "streams %zu reach the limit streams_max %" PRIu64, sequencer->registry.count,
                      engine->limits.streams_max);
  }
  struct hb_stream_config resolved = hb_config_resolve(&engine->limits, &job->config);
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
  enum hb_code code = hb_config_check_changes(&job->config, err);
  if (code != HB_OK) return code;
  if (hb_disk_stops_writes(engine)) return hb_err_disk(engine, err);
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  struct hb_stream_config stored = stream->stored;
  hb_config_change(&stored, &job->config);
  /* The fsync of this write covers what ASYNC left behind: from the first DURABLE answer on
   * everything before it is durable too (I1). */
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_put_config(write, stream->id, &stored);
  if (hb_sequencer_apply_rows(engine, err)) {
    struct hb_stream_config resolved = hb_config_resolve(&engine->limits, &stored);
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

void hb_stream_leave(struct hb_engine *engine, struct hb_stream *stream) {
  engine->disk.held -= stream->status.held_bytes;
  hb_names_remove(&engine->names, stream);
  hb_publish_drop(engine, stream);
  hb_processors_forget(engine, stream->id);
  hb_stream_mark_deleted(stream);
  hb_registry_remove(&engine->sequencer.registry, stream->id); /* its reference: last */
}

static void forget(struct hb_engine *engine, struct hb_stream *stream) {
  hb_ordering_remove_stream(engine->sequencer.core, stream->id);
  hb_stream_leave(engine, stream);
  hb_deletion_begin(engine, stream->id, HB_DELETION_FORGET);
}

static enum hb_code delete_stream(struct hb_engine *engine, struct hb_job *job,
                                  struct hb_err *err) {
  enum hb_code code = hb_stream_name_check("name", hb_slice_text(job->config.name), err);
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
  bool is_new = code == HB_OK && !status.record.sealed;
  if (is_new && hb_disk_stops_writes(engine)) {
    code = hb_err_disk(engine, err);
  } else if (is_new) {
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
  if (engine->sequencer.failed) {
    bool lost = hb_disk_stops_writes(engine);
    return lost ? hb_err_disk(engine, &job->error) : hb_err_failed(&job->error);
  }
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
    case HB_JOB_LIST_GAPS:
      return hb_list_gaps(engine, job, &job->error);
    default:
      HB_UNREACHABLE();
  }
}

void hb_job_run(struct hb_engine *engine, struct hb_job *job) {
  job->error = (struct hb_err){0};
  enum hb_code code = run(engine, job);
  HB_ASSERT(code == job->error.code);
  if (job->kind == HB_JOB_ATTACH_PROCESSOR) hb_attach_done(job);
  hb_live_gone(HB_LIVE_jobs);
  job->done(job);
}

void hb_engine_submit_job(struct hb_engine *engine, struct hb_job *job) {
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&job->error);
    job->done(job);
    return;
  }
  hb_live_born(HB_LIVE_jobs);
  if (job->kind == HB_JOB_ATTACH_PROCESSOR) {
    hb_attach_begin(engine, job);
  } else {
    hb_mailbox_post(engine->sequencer.jobs, &job->node);
  }
  hb_door_leave(engine);
}
