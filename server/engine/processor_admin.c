/* Decides who may be attached, what becomes of one that is detached, and which ones are there when
 * the store is opened, by a start or again. Before a job comes here its code was made ready
 * (processor_attach.c). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/engine/engine_internal.h"

/* ---- attaching, sequencer */

enum { STATUS_MS = 5000 };

/* What an attachment that states none gets: a failed event of a key's own sequence is a gap in it.
 */
static enum hb_on_error on_error_of(const struct hb_stream *stream,
                                    const struct hb_processor_request *request) {
  if (request->on_error != HB_ON_ERROR_DEFAULT) return request->on_error;
  return hb_stream_mode(stream) == HB_MODE_PER_KEY ? HB_ON_ERROR_WAIT : HB_ON_ERROR_CONTINUE;
}

static enum hb_code check_on_error(const struct hb_stream *stream,
                                   const struct hb_processor_request *request, struct hb_err *err) {
  if (request->on_error != HB_ON_ERROR_WAIT || hb_stream_mode(stream) == HB_MODE_PER_KEY) {
    return HB_OK;
  }
  return hb_err_set(err, HB_INVALID, "ON_ERROR_INVALID",
                    "on_error is WAIT_KEY, but stream '%s' is not in PER_KEY mode: its sequence is "
                    "one over all keys, and nothing could take a failed event's place",
                    stream->name);
}

static struct hb_processor_config config_of(const struct hb_stream *stream,
                                            const struct hb_processor_request *request) {
  struct hb_processor_config config = {.parameters = request->parameters,
                                       .loaded = request->code->library != NULL,
                                       .on_error = on_error_of(stream, request),
                                       .key_status = request->key_status};
  if (config.key_status == HB_KEY_STATUS_PERIODIC) {
    config.key_status_ms = request->key_status_ms ? request->key_status_ms : STATUS_MS;
  }
  memcpy(config.name, request->name, sizeof config.name);
  memcpy(config.processor, request->processor, sizeof config.processor);
  return config;
}

/* What is attached under the name already. */
static enum hb_code check_same(struct hb_processor *found,
                               const struct hb_processor_request *request, struct hb_err *err) {
  const char *field = NULL;
  struct hb_processor_config wanted = config_of(found->stream, request);
  if (strcmp(found->config.processor, request->processor) != 0) {
    field = "processor";
  } else if (!hb_slice_equal(hb_buf_view(&found->parameters), request->parameters)) {
    field = "parameters";
  } else if (found->config.on_error != wanted.on_error) {
    field = "on_error";
  } else if (found->config.key_status != wanted.key_status ||
             found->config.key_status_ms != wanted.key_status_ms) {
    field = "key_status";
  }
  if (!field) return HB_OK;
  return hb_err_set(err, HB_EXISTS, "PROCESSOR_EXISTS", "processor '%s' exists with another %s",
                    request->name, field);
}

static struct hb_processor_place first_place(struct hb_stream *stream, bool start_now) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  struct hb_processor_place place = {.position = INT64_MIN};
  if (!status.record.frozen) return place;
  place.position = start_now ? status.record.frontier : status.record.earliest;
  if (start_now) place.watermark = status.record.max_event_time;
  return place;
}

static void take_code(struct hb_processor *processor, struct hb_processor_request *request) {
  processor->attached = *request->code;
  free(request->code);
  request->code = NULL;
}

static enum hb_code check_room(struct hb_engine *engine, struct hb_err *err) {
  pthread_mutex_lock(&engine->processors.mutex);
  size_t count = engine->processors.count;
  pthread_mutex_unlock(&engine->processors.mutex);
  if (count < engine->limits.processors_max) return HB_OK;
  return hb_err_set(err, HB_LIMIT, "TOO_MANY_PROCESSORS",
                    "processors %zu reach the limit processors_max %" PRIu64, count,
                    engine->limits.processors_max);
}

static enum hb_code attach_new(struct hb_engine *engine, struct hb_stream *stream,
                               struct hb_processor_request *request, struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  enum hb_code code = check_room(engine, err);
  if (code == HB_OK && hb_disk_stops_writes(engine)) code = hb_err_disk(engine, err);
  if (code != HB_OK) return code;
  struct hb_processor_id id = {.stream = stream->id, .processor = sequencer->next_stream};
  struct hb_processor_config config = config_of(stream, request);
  struct hb_processor_place place = first_place(stream, request->start_now);
  sequencer->next_stream += 2; /* see hb_statuses_id */
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_put_processor(write, id, &config);
  hb_write_put_place(write, id, &place);
  hb_write_put_next_stream(write, sequencer->next_stream); /* ids are never used again */
  if (!hb_sequencer_apply_rows(engine, err)) return HB_UNAVAILABLE;
  struct hb_processor_logs logs = hb_processor_logs_create(engine, id, &config, &place);
  struct hb_processor *processor = hb_processor_create(engine, id, stream, &logs, &config, &place);
  hb_processor_logs_done(&logs);
  take_code(processor, request);
  hb_processors_add(engine, processor);
  hb_processor_start(processor);
  hb_processor_unref(processor);
  return HB_OK;
}

/* It was detached and its state kept: another one goes on at its place. The thread of the first may
 * still be on its way out; it writes nothing any more. */
static enum hb_code attach_again(struct hb_engine *engine, struct hb_processor *found,
                                 struct hb_processor_request *request, struct hb_err *err) {
  if (hb_disk_stops_writes(engine)) return hb_err_disk(engine, err);
  struct hb_processor_config config = config_of(found->stream, request);
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  hb_write_put_processor(write, found->id, &config);
  hb_write_delete_attempt(write, found->id);
  if (!hb_sequencer_apply_rows(engine, err)) return HB_UNAVAILABLE;
  struct hb_processor_logs logs = {.results = found->results, .statuses = found->statuses};
  struct hb_processor *processor =
      hb_processor_create(engine, found->id, found->stream, &logs, &config, &found->committed);
  take_code(processor, request);
  hb_processors_remove(engine, found);
  hb_processors_add(engine, processor);
  hb_processor_start(processor);
  hb_processor_unref(processor);
  return HB_OK;
}

enum hb_code hb_attach_processor(struct hb_engine *engine, struct hb_job *job, struct hb_err *err) {
  struct hb_processor_request *request = job->processor;
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  struct hb_processor *found = hb_processors_find(engine, stream->id, request->name);
  enum hb_code code = check_on_error(stream, request, err);
  if (code != HB_OK) {
    /* said */
  } else if (!found) {
    code = attach_new(engine, stream, request, err);
  } else {
    code = check_same(found, request, err);
    if (code == HB_OK && found->gone) code = attach_again(engine, found, request, err);
  }
  hb_processor_unref(found);
  hb_stream_unref(stream);
  return code;
}

/* ---- detaching, sequencer */

static void drop(struct hb_engine *engine, struct hb_processor *processor) {
  hb_publish_drop(engine, processor->results);
  hb_stream_mark_deleted(processor->results);
  if (processor->statuses) {
    hb_publish_drop(engine, processor->statuses);
    hb_stream_mark_deleted(processor->statuses);
  }
  hb_processors_remove(engine, processor);
}

static void leave(struct hb_engine *engine, struct hb_processor *processor, bool keep_state) {
  processor->gone = true;
  hb_processor_end(processor);
  if (!keep_state) {
    drop(engine, processor);
    return;
  }
  pthread_mutex_lock(&processor->mutex);
  processor->config.detached = true;
  processor->info.state = HB_PROCESSOR_DETACHED;
  pthread_mutex_unlock(&processor->mutex);
}

static enum hb_code detach(struct hb_engine *engine, struct hb_processor *processor,
                           bool keep_state, struct hb_err *err) {
  struct hb_write *write = hb_sequencer_begin_rows(engine);
  if (keep_state) {
    pthread_mutex_lock(&processor->mutex);
    struct hb_processor_config config = processor->config;
    pthread_mutex_unlock(&processor->mutex);
    config.detached = true;
    hb_write_put_processor(write, processor->id, &config);
  } else {
    hb_write_drop_processor(write, processor->id);
  }
  if (!hb_sequencer_apply_rows(engine, err)) return HB_UNAVAILABLE;
  leave(engine, processor, keep_state);
  return HB_OK;
}

enum hb_code hb_detach_processor(struct hb_engine *engine, struct hb_job *job, struct hb_err *err) {
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  const char *name = job->processor->name;
  struct hb_processor *processor = hb_processors_find(engine, stream->id, name);
  enum hb_code code = processor
                          ? detach(engine, processor, job->processor->keep_state, err)
                          : hb_err_set(err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                                       "stream '%s' has no processor '%.64s'", stream->name, name);
  hb_processor_unref(processor);
  hb_stream_unref(stream);
  return code;
}

void hb_processors_forget(struct hb_engine *engine, uint64_t stream) {
  struct hb_processors *all = &engine->processors;
  for (size_t i = 0; i < all->count;) { /* the sequencer alone changes the list */
    struct hb_processor *processor = all->items[i];
    if (processor->id.stream != stream) {
      i++;
      continue;
    }
    hb_processor_ref(processor);
    leave(engine, processor, false);
    hb_processor_unref(processor);
  }
}

/* ---- what is stored */

struct recovering {
  struct hb_engine *engine;
  struct hb_stream *stream;
  bool again;
  enum hb_code code;
  struct hb_err *err;
};

static void add(struct recovering *recovering, const struct hb_stored_processor *stored,
                const struct hb_processor_logs *logs) {
  struct hb_engine *engine = recovering->engine;
  struct hb_processor *processor = hb_processor_create(engine, stored->id, recovering->stream, logs,
                                                       &stored->config, &stored->place);
  processor->gone = stored->config.detached;
  processor->seen = true;
  processor->mark =
      (struct hb_processor_mark){.stored = stored->has_attempt, .attempt = stored->attempt};
  bool counted = processor->mark.attempt.attempts > 0;
  if (counted && hb_stopped_is_noted(engine->disk.path, stored->id)) {
    processor->mark.attempt.attempts--;
  }
  hb_processors_add(engine, processor);
  if (recovering->again && !stored->config.detached && !stored->config.suspended) {
    hb_processor_start(processor);
  }
  hb_processor_unref(processor);
}

static void add_new(struct recovering *recovering, const struct hb_stored_processor *stored) {
  struct hb_processor_logs logs =
      hb_processor_logs_create(recovering->engine, stored->id, &stored->config, &stored->place);
  add(recovering, stored, &logs);
  hb_processor_logs_done(&logs);
}

/* I5 for results. */
static enum hb_code check_shown(struct hb_processor *known,
                                const struct hb_stored_processor *stored, struct hb_err *err) {
  struct hb_stream_status shown;
  hb_stream_get_status(known->results, &shown);
  if (stored->place.next_result >= shown.record.frontier) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "processor '%s' has %" PRId64 " results, but %" PRId64
                    " were durable before the store was opened again; restore the folder from a "
                    "backup",
                    stored->config.name, stored->place.next_result, shown.record.frontier);
}

/* What was detached or attached by a write that seemed to fail is seen now. */
static void update(struct recovering *recovering, struct hb_processor *known,
                   const struct hb_stored_processor *stored) {
  struct hb_engine *engine = recovering->engine;
  known->seen = true;
  hb_processor_set(engine, known, stored);
  if (stored->config.detached == known->gone) return;
  if (stored->config.detached) {
    leave(engine, known, true);
    return;
  }
  struct hb_processor_logs logs = {
      .results = hb_stream_ref(known->results),
      .statuses = known->statuses ? hb_stream_ref(known->statuses) : NULL};
  hb_processors_remove(engine, known);
  add(recovering, stored, &logs);
  hb_processor_logs_done(&logs);
}

static struct hb_processor *find_by_id(const struct hb_processors *all, struct hb_processor_id id) {
  for (size_t i = 0; i < all->count; i++) { /* the sequencer alone changes the list */
    if (all->items[i]->id.processor == id.processor) return all->items[i];
  }
  return NULL;
}

static bool recover(void *context, const struct hb_stored_processor *stored) {
  struct recovering *recovering = context;
  struct hb_processor *known = find_by_id(&recovering->engine->processors, stored->id);
  if (!known) {
    add_new(recovering, stored);
    return true;
  }
  recovering->code = check_shown(known, stored, recovering->err);
  if (recovering->code == HB_OK) update(recovering, known, stored);
  return recovering->code == HB_OK;
}

/* Those that were dropped by a write that seemed to fail. */
static void leave_gone(struct hb_engine *engine, uint64_t stream) {
  const struct hb_processors *all = &engine->processors;
  for (size_t i = all->count; i > 0; i--) {
    struct hb_processor *processor = all->items[i - 1];
    if (processor->id.stream != stream || processor->seen) continue;
    hb_processor_ref(processor);
    leave(engine, processor, false);
    hb_processor_unref(processor);
  }
}

enum hb_code hb_processors_recover(struct hb_engine *engine, struct hb_stream *stream, bool again,
                                   struct hb_err *err) {
  struct hb_processors *all = &engine->processors;
  for (size_t i = 0; i < all->count; i++) {
    if (all->items[i]->id.stream == stream->id) all->items[i]->seen = false;
  }
  struct recovering recovering = {.engine = engine, .stream = stream, .again = again, .err = err};
  enum hb_code code = hb_processor_each(engine->store, stream->id, recover, &recovering, err);
  if (code == HB_OK) code = recovering.code;
  if (code == HB_OK) leave_gone(engine, stream->id);
  return code;
}
