/* Processors of the fake engine: there is none, but for results that a test gave it. */
#include "server/engine/processors.h"
#include "server/rpc/fake_engine.h"
#include "server/rpc/fake_internal.h"

bool hb_engine_get_processor(struct hb_engine *engine, struct hb_stream *stream, const char *name,
                             struct hb_processor_info *out) {
  (void)engine;
  (void)stream;
  (void)name;
  (void)out;
  return false;
}

size_t hb_engine_list_processors(struct hb_engine *engine, struct hb_stream *stream,
                                 const char *after, struct hb_processor_info *out, size_t max,
                                 bool *out_more) {
  (void)engine;
  (void)stream;
  (void)after;
  (void)out;
  (void)max;
  *out_more = false;
  return 0;
}

void fake_engine_set_results(struct hb_stream *stream, struct hb_stream *results,
                             int64_t processed_to) {
  pthread_mutex_lock(&stream->engine->mutex);
  stream->results = results;
  results->processed_to = processed_to;
  pthread_mutex_unlock(&stream->engine->mutex);
  fake_engine_tell(results);
}

struct hb_stream *hb_engine_find_results(struct hb_engine *engine, struct hb_stream *stream,
                                         const char *name) {
  (void)name;
  pthread_mutex_lock(&engine->mutex);
  struct hb_stream *results = stream->results;
  pthread_mutex_unlock(&engine->mutex);
  return results ? hb_stream_ref(results) : NULL;
}

struct hb_stream *hb_engine_find_statuses(struct hb_engine *engine, struct hb_stream *stream,
                                          const char *name) {
  (void)engine;
  (void)stream;
  (void)name;
  return NULL;
}

void hb_engine_retry_blocked(struct hb_engine *engine, struct hb_stream *stream,
                             struct hb_retry *retry) {
  (void)engine;
  (void)stream;
  (void)hb_err_set(&retry->error, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "there is none");
  retry->done(retry);
}

bool hb_engine_processing_is_stuck(struct hb_engine *engine) {
  (void)engine;
  return false;
}

void hb_processor_info_done(struct hb_processor_info *info) { hb_buf_done(&info->parameters); }
