/* Decides when a processor's thread works and when it sleeps.
 *
 * One thread each, at low priority, so that one that is slow holds up no other. It takes the
 * stream's published blocks, mostly from the shared tail, feeds its host, and commits when the host
 * says that the bundle is full, when it has reached the published frontier, or when a bundle has
 * been growing for 200 ms. While its commit is on its way it waits: then what is published
 * meanwhile is the next bundle. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"

enum { NICE = 5, BUNDLE_MS = 200 };

/* ---- what the host reads */

static bool is_abandoned(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  bool abandoned = processor->abandoned;
  pthread_mutex_unlock(&processor->mutex);
  return abandoned;
}

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  struct hb_processor *processor = context;
  if (is_abandoned(processor)) return hb_err_stops(err);
  return hb_state_read(processor->engine->store, processor->id, key, name, out_found, out, err);
}

static enum hb_code next_key(void *context, bool has_after, struct hb_slice after, bool *out_found,
                             struct hb_buf *out, struct hb_err *err) {
  struct hb_processor *processor = context;
  if (is_abandoned(processor)) return hb_err_stops(err);
  return hb_state_next_key(processor->engine->store, processor->id, has_after, after, out_found,
                           out, err);
}

static bool restore_timer(void *context, const struct hb_timer_row *row) {
  hb_host_restore_timer(context, row);
  return true;
}

/* Code and host; where that can't be, it stands still until the next start. */
static bool prepare(struct hb_processor *processor) {
  struct hb_engine *engine = processor->engine;
  struct hb_err err = {0};
  if (!processor->attached.code && hb_attached_code_find(engine, processor->config.processor,
                                                         hb_buf_view(&processor->parameters),
                                                         &processor->attached, &err) != HB_OK) {
    hb_processor_fail(processor, &err);
    return false;
  }
  struct hb_host_options options = {
      .processor = processor->attached.code,
      .self = processor->attached.self,
      .source = {.context = processor, .get = get, .next_key = next_key},
      .budget = engine->tuning.processing,
      .stop_on_failure = processor->config.stop_on_failure};
  processor->host = hb_host_create(&options);
  processor->write = hb_write_create(engine->store);
  hb_host_restore(processor->host, &processor->committed);
  if (hb_timer_each(engine->store, processor->id, restore_timer, processor->host, &err) == HB_OK) {
    hb_processor_show(processor);
    return true;
  }
  hb_processor_fail(processor, &err);
  return false;
}

/* ---- feeding */

struct feeding {
  struct hb_processor *processor;
  int64_t frontier;
  uint64_t until_ms;
  bool over; /* the thread is to end, or to look anew */
};

static bool should_stop(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  bool stopping = processor->stopping;
  pthread_mutex_unlock(&processor->mutex);
  return stopping;
}

/* After a call of user code that returned `result`. True: the next event. */
static bool go_on(struct feeding *feeding, enum hb_host_result result, const struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  uint64_t now = hb_clock_mono_ms();
  atomic_store(&processor->call_began_ms, 0);
  feeding->over = true;
  if (is_abandoned(processor)) return false;
  if (result == HB_HOST_ERROR) {
    hb_processor_fail(processor, err);
    return false;
  }
  if (result == HB_HOST_FAILED) {
    int64_t at;
    struct hb_slice why = hb_host_failure(processor->host, &at);
    char text[HB_SUSPENDED_WHY_MAX + 1];
    size_t size = why.size < HB_SUSPENDED_WHY_MAX ? why.size : HB_SUSPENDED_WHY_MAX;
    memcpy(text, why.data, size);
    text[size] = '\0';
    hb_processor_suspend(processor, text);
    return false;
  }
  bool cut = result == HB_HOST_FULL || now >= feeding->until_ms ||
             hb_host_place(processor->host)->position <= processor->one_by_one_until;
  if (cut) {
    (void)hb_processor_commit(processor, feeding->frontier);
    return false;
  }
  feeding->over = false;
  return true;
}

static void feed_block(struct feeding *feeding, const struct hb_block *block) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  uint32_t first = hb_block_find(block, hb_host_place(processor->host)->position);
  for (uint32_t i = first; i < block->count; i++) {
    struct hb_event event;
    enum hb_host_result result = HB_HOST_ERROR;
    atomic_store(&processor->call_began_ms, hb_clock_mono_ms());
    if (hb_scan_frame(hb_block_frame(block, i), &event, &err) == HB_OK) {
      result = hb_host_event(processor->host, &event, hb_block_sequence(block, i), &err);
    }
    if (!go_on(feeding, result, &err)) return;
    if (i % 64 == 0 && should_stop(processor)) {
      (void)hb_processor_commit(processor, feeding->frontier);
      feeding->over = true;
      return;
    }
  }
  hb_host_skip_to(processor->host, block->to);
}

/* Up to one bundle. */
static void feed(struct feeding *feeding, int64_t position) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, processor->engine->store, processor->stream, position);
  bool more = true;
  while (!feeding->over) {
    if (hb_cursor_next(&cursor, feeding->frontier, &more, &err) != HB_OK) {
      hb_processor_fail(processor, &err);
      feeding->over = true;
    }
    if (feeding->over || !more) break;
    feed_block(feeding, &cursor.block);
  }
  if (!is_abandoned(processor)) hb_cursor_done(&cursor);
  if (!feeding->over) (void)hb_processor_commit(processor, feeding->frontier);
}

static void finish(struct feeding *feeding, int64_t end) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  atomic_store(&processor->call_began_ms, hb_clock_mono_ms());
  enum hb_host_result result = hb_host_end(processor->host, end, &err);
  if (go_on(feeding, result, &err)) (void)hb_processor_commit(processor, end);
}

/* False: there is nothing to do. */
static bool turn(struct hb_processor *processor) {
  struct hb_stream_status status;
  hb_stream_get_status(processor->stream, &status);
  const struct hb_processor_place *place = hb_host_place(processor->host);
  const struct hb_frontier *record = &status.record;
  if (!record->frozen || place->phase == HB_PHASE_ENDED) return false;
  bool events = place->phase == HB_PHASE_EVENTS && place->position < record->frontier;
  bool ends = record->sealed && record->frontier >= record->seal_end;
  if (!events && !ends) return false;
  if (!hb_processor_begin_attempt(processor, record->frontier)) return true;
  struct feeding feeding = {.processor = processor,
                            .frontier = record->frontier,
                            .until_ms = hb_clock_mono_ms() + BUNDLE_MS};
  if (events) {
    feed(&feeding, place->position == INT64_MIN ? record->earliest : place->position);
  } else {
    finish(&feeding, record->seal_end);
  }
  return true;
}

/* ---- the thread */

static void changed(struct hb_watch *watch) {
  struct hb_processor *processor = watch->context;
  pthread_mutex_lock(&processor->mutex);
  processor->news = true;
  pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

/* Before looking: what is published from now on is news. */
static void clear_news(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->news = false;
  pthread_mutex_unlock(&processor->mutex);
}

static void wait_for_news(struct hb_processor *processor) {
  if (hb_watch_arm(&processor->watch)) return;
  pthread_mutex_lock(&processor->mutex);
  while (!processor->news && !processor->stopping) {
    pthread_cond_wait(&processor->changed, &processor->mutex);
  }
  pthread_mutex_unlock(&processor->mutex);
}

static void work(struct hb_processor *processor) {
  processor->watch = (struct hb_watch){.changed = changed, .context = processor};
  hb_watch_start(&processor->watch, processor->stream);
  while (!should_stop(processor)) {
    clear_news(processor);
    if (!turn(processor)) wait_for_news(processor);
    if (is_abandoned(processor)) return;
  }
  hb_watch_stop(&processor->watch);
  hb_processor_clear_attempt(processor);
}

static void *run(void *context) {
  struct hb_processor *processor = context;
  struct hb_processors *all = &processor->engine->processors;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* this thread only, on Linux */
  if (prepare(processor)) work(processor);
  if (is_abandoned(processor)) return NULL; /* the engine may be gone */
  hb_host_destroy(processor->host);
  processor->host = NULL;
  hb_write_destroy(processor->write);
  processor->write = NULL;
  hb_attached_code_done(&processor->attached);
  pthread_mutex_lock(&all->mutex);
  hb_processor_unref(processor);
  all->running--;
  pthread_cond_broadcast(&all->ended);
  pthread_mutex_unlock(&all->mutex);
  return NULL;
}

void hb_processor_start(struct hb_processor *processor) {
  struct hb_processors *all = &processor->engine->processors;
  pthread_mutex_lock(&all->mutex);
  all->running++;
  pthread_mutex_unlock(&all->mutex);
  pthread_t thread;
  hb_thread_start(&thread, "hb-processor", run, hb_processor_ref(processor));
  pthread_detach(thread);
}
