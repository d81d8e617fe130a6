/* All processors: who is in the list, which of them have a thread, and how they end.
 *
 * A thread that is in user code may never come back. It is waited for a while, then abandoned: it
 * finds that when it returns, and touches nothing any more. One that is in the engine's own code is
 * always waited for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"

enum { STOP_LOOK_MS = 50 };

void hb_processors_init(struct hb_processors *processors) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&processors->mutex, NULL);
  pthread_cond_init(&processors->ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void hb_processors_done(struct hb_processors *processors) {
  for (size_t i = 0; i < processors->count; i++) hb_processor_unref(processors->items[i]);
  free(processors->items);
  pthread_cond_destroy(&processors->ended);
  pthread_mutex_destroy(&processors->mutex);
}

void hb_processors_add(struct hb_engine *engine, struct hb_processor *processor) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  hb_reserve((void **)&all->items, &all->cap, all->count + 1, sizeof(struct hb_processor *));
  all->items[all->count++] = hb_processor_ref(processor);
  pthread_mutex_unlock(&all->mutex);
}

void hb_processors_remove(struct hb_engine *engine, struct hb_processor *processor) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  size_t at = 0;
  while (at < all->count && all->items[at] != processor) at++;
  HB_ASSERT(at < all->count);
  all->count--;
  memmove(all->items + at, all->items + at + 1, (all->count - at) * sizeof(struct hb_processor *));
  pthread_mutex_unlock(&all->mutex);
  hb_processor_unref(processor);
}

struct hb_processor *hb_processors_find(struct hb_engine *engine, uint64_t stream,
                                        const char *name) {
  struct hb_processors *all = &engine->processors;
  struct hb_processor *found = NULL;
  pthread_mutex_lock(&all->mutex);
  for (size_t i = 0; i < all->count && !found; i++) {
    struct hb_processor *item = all->items[i];
    if (item->id.stream == stream && strcmp(item->config.name, name) == 0) {
      found = hb_processor_ref(item);
    }
  }
  pthread_mutex_unlock(&all->mutex);
  return found;
}

struct hb_processor *hb_processors_find_id(struct hb_engine *engine, struct hb_processor_id id) {
  struct hb_processors *all = &engine->processors;
  struct hb_processor *found = NULL;
  pthread_mutex_lock(&all->mutex);
  for (size_t i = 0; i < all->count && !found; i++) {
    struct hb_processor *item = all->items[i];
    bool same = item->id.stream == id.stream && item->id.processor == id.processor;
    if (same) found = hb_processor_ref(item);
  }
  pthread_mutex_unlock(&all->mutex);
  return found;
}

/* ---- threads */

bool hb_processors_enter(struct hb_engine *engine, struct hb_processor *processor) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  bool begins = !all->stopping;
  if (begins) {
    processor->next_running = all->running;
    all->running = hb_processor_ref(processor);
  }
  pthread_mutex_unlock(&all->mutex);
  return begins;
}

/* At once: code of another one may still end the process. One that is detached is no matter: its
 * mark is not looked at again. */
void hb_processors_note_mark(struct hb_engine *engine, struct hb_processor_id id) {
  pthread_mutex_lock(&engine->processors.mutex);
  bool stopping = engine->processors.stopping;
  pthread_mutex_unlock(&engine->processors.mutex);
  if (stopping) hb_stopped_note(engine->disk.path, id);
}

static void unlink_locked(struct hb_processors *all, struct hb_processor *processor) {
  struct hb_processor **at = &all->running;
  while (*at != processor) at = &(*at)->next_running;
  *at = processor->next_running;
}

void hb_processors_leave(struct hb_engine *engine, struct hb_processor *processor) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  unlink_locked(all, processor);
  hb_processor_unref(processor);
  pthread_cond_broadcast(&all->ended);
  pthread_mutex_unlock(&all->mutex);
}

void hb_processors_start(struct hb_engine *engine) {
  struct hb_processors *all = &engine->processors;
  for (size_t i = 0; i < all->count; i++) { /* nobody else changes the list yet */
    struct hb_processor *processor = all->items[i];
    if (processor->config.detached || processor->config.suspended) continue;
    hb_processor_start(processor);
  }
}

static void wait_locked(struct hb_processors *all, uint64_t until_ms) {
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                           .tv_nsec = (long)(until_ms % 1000) * 1000000};
  while ((all->running || all->attaching) &&
         pthread_cond_timedwait(&all->ended, &all->mutex, &until) == 0) {
  }
}

/* Its thread keeps the reference. */
static void abandon_locked(struct hb_processors *all) {
  struct hb_processor *next;
  for (struct hb_processor *processor = all->running; processor; processor = next) {
    next = processor->next_running;
    uint64_t began = hb_processor_call_ms(processor);
    if (began == HB_CALL_NONE ||
        !atomic_compare_exchange_strong(&processor->call_began_ms, &began, HB_CALL_ABANDONED)) {
      continue;
    }
    unlink_locked(all, processor);
    hb_processor_close_retries(processor);
    hb_log(HB_LOG_WARN, "processor_abandoned",
           "stream=%s processor=%s cause=\"its code does not come back\"", processor->stream->name,
           processor->config.name);
  }
}

void hb_processors_stop(struct hb_engine *engine) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  all->stopping = true;
  for (struct hb_processor *at = all->running; at; at = at->next_running) hb_processor_end(at);
  struct hb_job *abandoned = NULL;
  wait_locked(all, hb_clock_mono_ms() + engine->tuning.stop_wait_ms);
  while (all->running || all->attaching) {
    abandon_locked(all);
    hb_attaching_abandon_locked(all, &abandoned);
    wait_locked(all, hb_clock_mono_ms() + STOP_LOOK_MS);
  }
  pthread_mutex_unlock(&all->mutex);
  hb_attaching_refuse(abandoned);
}

void hb_processors_kick(struct hb_engine *engine) {
  struct hb_processors *all = &engine->processors;
  pthread_mutex_lock(&all->mutex);
  for (struct hb_processor *processor = all->running; processor;
       processor = processor->next_running) {
    pthread_mutex_lock(&processor->mutex);
    processor->news = processor->kicked = true;
    pthread_cond_broadcast(&processor->changed);
    pthread_mutex_unlock(&processor->mutex);
  }
  pthread_mutex_unlock(&all->mutex);
}

/* ---- what the sequencer does with all of them; it alone changes the list */

void hb_processors_mark_lost(struct hb_engine *engine) {
  const struct hb_processors *all = &engine->processors;
  for (size_t i = 0; i < all->count; i++) {
    hb_stream_mark_lost(all->items[i]->results);
    if (all->items[i]->statuses) hb_stream_mark_lost(all->items[i]->statuses);
  }
}

static void reset_log(struct hb_engine *engine, struct hb_stream *log) {
  hb_publish_drop(engine, log);
  hb_tail_done(&log->unpublished);
  log->touched = 0;
}

void hb_processors_reset_results(struct hb_engine *engine) {
  const struct hb_processors *all = &engine->processors;
  for (size_t i = 0; i < all->count; i++) {
    reset_log(engine, all->items[i]->results);
    if (all->items[i]->statuses) reset_log(engine, all->items[i]->statuses);
  }
}

void hb_processors_look(struct hb_engine *engine) {
  struct hb_processors *all = &engine->processors;
  uint64_t now = hb_clock_mono_ms();
  bool any = false;
  pthread_mutex_lock(&all->mutex);
  for (struct hb_processor *processor = all->running; processor;
       processor = processor->next_running) {
    uint64_t began = hb_processor_call_ms(processor);
    bool stuck = began > 0 && now > began + engine->tuning.stuck_ms;
    any = any || stuck;
    if (stuck && !processor->told_stuck) {
      hb_log(HB_LOG_WARN, "processor_stuck", "stream=%s processor=%s call_ms=%" PRIu64,
             processor->stream->name, processor->config.name, now - began);
    }
    if (!stuck && processor->told_stuck) {
      hb_log(HB_LOG_INFO, "processor_moves", "stream=%s processor=%s", processor->stream->name,
             processor->config.name);
    }
    processor->told_stuck = stuck;
  }
  any = hb_attaching_look_locked(engine, now) || any;
  pthread_mutex_unlock(&all->mutex);
  atomic_store(&all->stuck, any);
}

bool hb_engine_processing_is_stuck(struct hb_engine *engine) {
  return atomic_load(&engine->processors.stuck);
}
