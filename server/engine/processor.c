/* One processor: who keeps what of it, and what is shown of it.
 *
 * A processor is shared by reference: the list, its thread, whoever looks. Its thread owns the host
 * and makes bundles; the sequencer writes them, keeps what was committed, and decides whether it is
 * still attached (`gone`), so that nothing of a detached processor is ever written. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/engine/engine_internal.h"

/* ---- one */

static void show_place(struct hb_processor *processor, const struct hb_processor_place *place) {
  struct hb_processor_info *info = &processor->info;
  info->begun = place->position != INT64_MIN;
  info->position = place->position;
  info->results = place->next_result;
  info->watermark = place->watermark;
  info->events = place->events;
  info->timers_fired = place->timers_fired;
  info->failed = place->failed;
  if (place->phase == HB_PHASE_ENDED) info->state = HB_PROCESSOR_ENDED;
}

static void show_config(struct hb_processor *processor) {
  struct hb_processor_info *info = &processor->info;
  const struct hb_processor_config *config = &processor->config;
  if (config->detached) info->state = HB_PROCESSOR_DETACHED;
  if (!config->suspended) return;
  if (!config->detached) info->state = HB_PROCESSOR_SUSPENDED;
  info->stopped_at = config->suspended_at;
  memcpy(info->why, config->suspended_why, sizeof info->why);
}

static void keep_place(struct hb_processor *processor, const struct hb_processor_place *place) {
  hb_buf_clear(&processor->committed_key);
  if (place->has_end_key) {
    hb_buf_append(&processor->committed_key, place->end_key.data, place->end_key.size);
  }
  processor->committed = *place;
  processor->committed.end_key = hb_buf_view(&processor->committed_key);
}

static void init_changed(pthread_cond_t *changed) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

struct hb_processor *hb_processor_create(struct hb_engine *engine, struct hb_processor_id id,
                                         struct hb_stream *stream,
                                         const struct hb_processor_logs *logs,
                                         const struct hb_processor_config *config,
                                         const struct hb_processor_place *place) {
  struct hb_processor *processor = hb_calloc(1, sizeof *processor);
  processor->refs = 1;
  processor->engine = engine;
  processor->id = id;
  processor->stream = hb_stream_ref(stream);
  processor->results = hb_stream_ref(logs->results);
  if (logs->statuses) processor->statuses = hb_stream_ref(logs->statuses);
  hb_buf_append(&processor->parameters, config->parameters.data, config->parameters.size);
  processor->config = *config;
  processor->config.parameters = hb_buf_view(&processor->parameters);
  pthread_mutex_init(&processor->mutex, NULL);
  init_changed(&processor->changed);
  keep_place(processor, place);
  show_place(processor, place);
  show_config(processor);
  processor->one_by_one_until = INT64_MIN;
  return processor;
}

struct hb_processor *hb_processor_ref(struct hb_processor *processor) {
  atomic_fetch_add_explicit(&processor->refs, 1, memory_order_relaxed);
  return processor;
}

void hb_processor_unref(struct hb_processor *processor) {
  if (!processor) return;
  if (atomic_fetch_sub_explicit(&processor->refs, 1, memory_order_acq_rel) > 1) return;
  hb_attached_code_done(&processor->attached);
  hb_stream_unref(processor->stream);
  hb_stream_unref(processor->results);
  hb_stream_unref(processor->statuses);
  hb_buf_done(&processor->refused);
  hb_buf_done(&processor->counting);
  hb_buf_done(&processor->copies);
  hb_buf_done(&processor->event);
  hb_copies_done(processor);
  hb_buf_done(&processor->parameters);
  hb_buf_done(&processor->committed_key);
  pthread_cond_destroy(&processor->changed);
  pthread_mutex_destroy(&processor->mutex);
  free(processor);
}

void hb_processor_end(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->stopping = true;
  pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

void hb_processor_show(struct hb_processor *processor) {
  struct hb_host_stats stats = hb_host_stats(processor->host);
  int64_t failure_at;
  struct hb_slice failure = hb_host_failure(processor->host, &failure_at);
  const struct hb_processor_place *place = hb_host_place(processor->host);
  pthread_mutex_lock(&processor->mutex);
  struct hb_processor_info *info = &processor->info;
  show_place(processor, place);
  info->timers = stats.timers;
  info->blocked_keys = stats.blocked_keys;
  info->cache_bytes = stats.cache_bytes;
  info->has_failure = failure.data != NULL;
  if (info->has_failure) {
    size_t size = failure.size < HB_SUSPENDED_WHY_MAX ? failure.size : HB_SUSPENDED_WHY_MAX;
    memcpy(info->failure, failure.data, size);
    info->failure[size] = '\0';
    info->failure_at = failure_at;
  }
  pthread_mutex_unlock(&processor->mutex);
}

/* ---- results: a stream that only looks like one */

/* `ended`: nothing will follow, as after the end of a sealed stream. */
static struct hb_stream_status status_of(int64_t next_result, struct hb_time time, bool ended) {
  return (struct hb_stream_status){.record = {.frozen = true,
                                              .complete_to = next_result,
                                              .frontier = next_result,
                                              .any = next_result > 0,
                                              .highest = next_result - 1,
                                              .max_event_time = time,
                                              .sealed = ended,
                                              .seal_end = next_result},
                                   .window_end = next_result};
}

static struct hb_stream_status status_of_results(const struct hb_processor_place *place) {
  struct hb_stream_status status =
      status_of(place->next_result, place->results_time, place->phase == HB_PHASE_ENDED);
  status.processed_to = place->position;
  return status;
}

static struct hb_stream_status status_of_statuses(const struct hb_processor_place *place) {
  return status_of(place->next_status, (struct hb_time){0}, false); /* refusals may follow */
}

static void show_log(struct hb_engine *engine, struct hb_stream *log,
                     struct hb_stream_status status) {
  log->results_status = status;
  hb_publish_touch_stream(engine, log, UINT64_MAX);
  hb_publish_all(engine);
  log->touched = 0;
}

static struct hb_stream *create_log(struct hb_engine *engine, struct hb_processor_id id,
                                    const char *name, struct hb_stream_status status) {
  struct hb_stream_config config = {.mode = HB_MODE_GLOBAL, .ack = HB_ACK_DURABLE};
  memcpy(config.name, name, strnlen(name, HB_STREAM_NAME_MAX));
  struct hb_stream *log =
      hb_stream_create(id.processor, engine->info.incarnation, &config, &config);
  log->is_results = true;
  log->results_of = id;
  show_log(engine, log, status);
  return log;
}

struct hb_processor_logs hb_processor_logs_create(struct hb_engine *engine,
                                                  struct hb_processor_id id,
                                                  const struct hb_processor_config *config,
                                                  const struct hb_processor_place *place) {
  struct hb_processor_logs logs = {
      .results = create_log(engine, id, config->name, status_of_results(place))};
  bool tells = config->key_status == HB_KEY_STATUS_EVERY_EVENT ||
               config->key_status == HB_KEY_STATUS_PERIODIC;
  if (tells) {
    logs.statuses = create_log(engine, hb_statuses_id(id), config->name, status_of_statuses(place));
  }
  return logs;
}

void hb_processor_logs_done(const struct hb_processor_logs *logs) {
  hb_stream_unref(logs->results);
  hb_stream_unref(logs->statuses);
}

static void keep_blocks(struct hb_engine *engine, struct hb_stream *log,
                        const struct hb_result_block *blocks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct hb_result_block *put = &blocks[i];
    hb_tail_push(&log->unpublished, put->from, put->to, hb_bytes_ref(put->block));
    engine->sequencer.unpublished_bytes += put->block->size;
  }
}

void hb_processor_note_written(struct hb_engine *engine, struct hb_processor *processor,
                               const struct hb_bundle *bundle) {
  keep_blocks(engine, processor->results, bundle->results, bundle->results_count);
  processor->results->results_status = status_of_results(&bundle->place);
  if (processor->statuses) {
    keep_blocks(engine, processor->statuses, bundle->told, bundle->told_count);
    processor->statuses->results_status = status_of_statuses(&bundle->place);
  }
  keep_place(processor, &bundle->place);
}

void hb_processor_set(struct hb_engine *engine, struct hb_processor *processor,
                      const struct hb_stored_processor *stored) {
  const struct hb_processor_place *place = &stored->place;
  keep_place(processor, place);
  pthread_mutex_lock(&processor->mutex);
  struct hb_processor_config *config = &processor->config;
  config->suspended = stored->config.suspended;
  config->suspended_at = stored->config.suspended_at;
  memcpy(config->suspended_why, stored->config.suspended_why, sizeof config->suspended_why);
  show_place(processor, place);
  show_config(processor);
  pthread_mutex_unlock(&processor->mutex);
  show_log(engine, processor->results, status_of_results(place));
  if (processor->statuses) show_log(engine, processor->statuses, status_of_statuses(place));
}

uint64_t hb_processor_call_ms(struct hb_processor *processor) {
  uint64_t began = atomic_load(&processor->call_began_ms);
  return began == HB_CALL_IN_STORE || began == HB_CALL_ABANDONED ? HB_CALL_NONE : began;
}

void hb_processor_answer(struct hb_processor *processor, enum hb_bundle_fate fate) {
  pthread_mutex_lock(&processor->mutex);
  processor->fate = fate;
  pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

/* ---- looking from outside */

static uint64_t lag_of(struct hb_processor *processor, const struct hb_processor_info *info) {
  struct hb_stream_status status;
  hb_stream_get_status(processor->stream, &status);
  if (!status.record.frozen) return 0;
  int64_t from = info->begun ? info->position : status.record.earliest;
  return status.record.frontier > from ? (uint64_t)status.record.frontier - (uint64_t)from : 0;
}

static void describe(struct hb_processor *processor, struct hb_processor_info *out) {
  pthread_mutex_lock(&processor->mutex);
  *out = processor->info;
  memcpy(out->name, processor->config.name, sizeof out->name);
  memcpy(out->processor, processor->config.processor, sizeof out->processor);
  out->loaded = processor->config.loaded;
  out->on_error = processor->config.on_error;
  out->key_status = processor->config.key_status;
  out->key_status_ms = processor->config.key_status_ms;
  out->id = processor->id.processor;
  pthread_mutex_unlock(&processor->mutex);
  out->lag = lag_of(processor, out);
  uint64_t began = hb_processor_call_ms(processor);
  uint64_t now = hb_clock_mono_ms();
  out->call_ms = began > 0 && now > began ? now - began : 0;
  out->parameters = (struct hb_buf){0};
  hb_buf_append(&out->parameters, processor->parameters.data, processor->parameters.size);
}

void hb_processor_info_done(struct hb_processor_info *info) { hb_buf_done(&info->parameters); }

bool hb_engine_get_processor(struct hb_engine *engine, struct hb_stream *stream, const char *name,
                             struct hb_processor_info *out) {
  struct hb_processor *processor = hb_processors_find(engine, stream->id, name);
  if (!processor) return false;
  describe(processor, out);
  hb_processor_unref(processor);
  return true;
}

/* The first name of the stream's above `after`. The lock is held. */
static struct hb_processor *next_locked(const struct hb_processors *all, uint64_t stream,
                                        const char *after) {
  struct hb_processor *best = NULL;
  for (size_t i = 0; i < all->count; i++) {
    struct hb_processor *item = all->items[i];
    if (item->id.stream != stream || strcmp(item->config.name, after) <= 0) continue;
    if (!best || strcmp(item->config.name, best->config.name) < 0) best = item;
  }
  return best ? hb_processor_ref(best) : NULL;
}

size_t hb_engine_list_processors(struct hb_engine *engine, struct hb_stream *stream,
                                 const char *after, struct hb_processor_info *out, size_t max,
                                 bool *out_more) {
  struct hb_processors *all = &engine->processors;
  size_t count = 0;
  *out_more = false;
  for (;;) {
    const char *last = count > 0 ? out[count - 1].name : after;
    pthread_mutex_lock(&all->mutex);
    struct hb_processor *next = next_locked(all, stream->id, last);
    pthread_mutex_unlock(&all->mutex);
    if (!next) return count;
    *out_more = count == max;
    if (count < max) describe(next, &out[count++]);
    hb_processor_unref(next);
    if (*out_more) return count;
  }
}

struct hb_stream *hb_engine_find_results(struct hb_engine *engine, struct hb_stream *stream,
                                         const char *name) {
  struct hb_processor *processor = hb_processors_find(engine, stream->id, name);
  if (!processor) return NULL;
  struct hb_stream *results = hb_stream_ref(processor->results);
  hb_processor_unref(processor);
  return results;
}

struct hb_stream *hb_engine_find_statuses(struct hb_engine *engine, struct hb_stream *stream,
                                          const char *name) {
  struct hb_processor *processor = hb_processors_find(engine, stream->id, name);
  if (!processor) return NULL;
  struct hb_stream *statuses = processor->statuses ? hb_stream_ref(processor->statuses) : NULL;
  hb_processor_unref(processor);
  return statuses;
}
