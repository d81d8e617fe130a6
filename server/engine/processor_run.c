/* Decides when a processor's thread works and when it sleeps, and where it begins.
 *
 * One thread each, at low priority, so that one that is slow holds up no other. Its host begins at
 * the committed place with the committed states; while a bundle's commit is on its way the thread
 * waits, and what is published meanwhile is the next bundle. Where a commit may or may not have
 * been written (the disk was full) the host knows too much: it is thrown away, and another begins
 * at what is stored once the store was opened again. So does each host of a store that is gone. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/engine/engine_internal.h"

enum { NICE = 15, STATUSES_MAX = 20000 };

/* ---- the store */

static bool is_current(const struct hb_processor *processor) {
  return processor->epoch == atomic_load(&processor->engine->store_epoch);
}

bool hb_processor_enter_store(struct hb_processor *processor) {
  struct hb_engine *engine = processor->engine;
  if (!processor->lost && hb_store_enter(engine)) {
    if (is_current(processor)) return true;
    hb_store_leave(engine);
  }
  processor->lost = true;
  return false;
}

void hb_processor_leave_store(struct hb_processor *processor) { hb_store_leave(processor->engine); }

/* ---- beginning */

/* Once per thread. False: it stands still until the next start, or is abandoned. */
static bool find_code(struct hb_processor *processor) {
  if (processor->attached.code) return true;
  struct hb_err err = {0};
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  enum hb_code code =
      hb_attached_code_find(processor->engine, processor->config.processor,
                            hb_buf_view(&processor->parameters), &processor->attached, &err);
  if (!hb_processor_call_end(processor)) return false;
  if (code != HB_OK) hb_processor_fail(processor, &err);
  return code == HB_OK;
}

static bool restore_timer(void *context, const struct hb_timer_row *row) {
  hb_host_restore_timer(context, row);
  return true;
}

/* Code or copies may be others by now: each of them is looked at. */
static bool restore_blocked(void *context, const struct hb_blocked_row *row) {
  struct hb_host *host = context;
  hb_host_restore_blocked(host, row);
  hb_blocked_look(hb_blocked_find(hb_host_blocked(host), row->key), true);
  return true;
}

static void drop_host(struct hb_processor *processor) {
  hb_processor_lose_retry(processor);
  hb_host_destroy(processor->host);
  processor->host = NULL;
  hb_write_destroy(processor->write);
  processor->write = NULL;
}

/* A host that knows what is stored. The store is held. */
static bool restore(struct hb_processor *processor) {
  struct hb_engine *engine = processor->engine;
  struct hb_err err = {0};
  struct hb_host_options options = {.processor = processor->attached.code,
                                    .self = processor->attached.self,
                                    .source = hb_processor_source,
                                    .budget = engine->tuning.processing,
                                    .on_error = processor->config.on_error,
                                    .key_status = processor->config.key_status};
  options.source.context = processor;
  options.budget.blocked_keys = (uint32_t)engine->limits.blocked_keys_max;
  processor->epoch = atomic_load(&engine->store_epoch);
  processor->lost = false;
  processor->host = hb_host_create(&options);
  processor->write = hb_write_create(engine->store);
  hb_host_restore(processor->host, &processor->committed);
  enum hb_code code =
      hb_timer_each(engine->store, processor->id, restore_timer, processor->host, &err);
  if (code == HB_OK) {
    code = hb_blocked_each(engine->store, processor->id, restore_blocked, processor->host, &err);
  }
  if (code == HB_OK) {
    hb_processor_show(processor);
    return true;
  }
  hb_processor_fail(processor, &err);
  return false;
}

static bool is_suspended(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  bool suspended = processor->config.suspended;
  if (suspended) processor->stopping = true;
  pthread_mutex_unlock(&processor->mutex);
  return suspended;
}

/* False: there is no store to begin at yet, or the thread is to end. */
static bool begin(struct hb_processor *processor) {
  struct hb_engine *engine = processor->engine;
  if (processor->host && !processor->lost && is_current(processor)) return true;
  if (processor->lost && is_current(processor)) return false; /* another one will come */
  drop_host(processor);
  if (!hb_store_enter(engine)) return false;
  bool begun = !is_suspended(processor) && restore(processor);
  hb_store_leave(engine);
  return begun;
}

/* ---- working */

/* ---- statuses that are told now and then */

static uint64_t statuses_due_ms(const struct hb_processor *processor) {
  if (!processor->host || hb_host_statuses_due(processor->host) == 0) return UINT64_MAX;
  if (hb_host_statuses_due(processor->host) >= STATUSES_MAX) return 0;
  return processor->statuses_told_ms + processor->config.key_status_ms;
}

/* False: there was nothing to tell yet. */
static bool tell_statuses(struct hb_processor *processor, int64_t frontier) {
  uint64_t now_ms = hb_clock_mono_ms();
  if (now_ms < statuses_due_ms(processor)) return false;
  struct hb_err err = {0};
  hb_processor_call_begin(processor, hb_clock_mono_ms()); /* it reads states */
  enum hb_host_result result = hb_host_tell_statuses(processor->host, &err);
  if (!hb_processor_call_end(processor)) return true;
  processor->statuses_told_ms = now_ms;
  if (result == HB_HOST_DONE) {
    (void)hb_processor_commit(processor, frontier);
  } else if (!processor->lost) {
    hb_processor_fail(processor, &err);
  }
  return true;
}

/* ---- a turn */

/* What was put off. False: there is none, or it may wait. */
static bool commit_due(struct hb_processor *processor, int64_t frontier) {
  if (hb_clock_mono_ms() < hb_processor_commit_due_ms(processor)) return false;
  (void)hb_processor_commit(processor, frontier);
  return true;
}

/* False: there is nothing to do. */
static bool turn(struct hb_processor *processor) {
  struct hb_stream_status status;
  hb_stream_get_status(processor->stream, &status);
  const struct hb_processor_place *place = hb_host_place(processor->host);
  const struct hb_frontier *record = &status.record;
  hb_host_set_wall_ms(processor->host, hb_clock_wall_ms());
  if (hb_processor_count_refusals(processor, record->frontier)) return true;
  if (tell_statuses(processor, record->frontier)) return true;
  if (hb_processor_work_on_blocked(processor, record->frontier)) return true;
  if (!record->frozen || place->phase == HB_PHASE_ENDED) return false;
  bool events = place->phase == HB_PHASE_EVENTS && place->position < record->frontier;
  bool ends = record->sealed && record->frontier >= record->seal_end;
  if (!events && !ends) {
    return commit_due(processor, record->frontier) || hb_processor_has_blocked_work(processor);
  }
  uint64_t lag = (uint64_t)record->frontier - (uint64_t)place->position;
  bool behind = lag > hb_host_results_budget(processor->host) ||
                hb_clock_mono_ms() < processor->linger_until_ms;
  hb_host_set_behind(processor->host, behind);
  if (!hb_processor_begin_attempt(processor, record->frontier)) return true;
  if (events) {
    int64_t from = place->position == INT64_MIN ? record->earliest : place->position;
    hb_processor_feed(processor, from, record->frontier, behind);
  } else {
    hb_processor_finish(processor, record->seal_end);
  }
  return true;
}

/* ---- the thread */

bool hb_processor_should_stop(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  bool stopping = processor->stopping;
  pthread_mutex_unlock(&processor->mutex);
  return stopping;
}

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
  uint64_t until_ms = statuses_due_ms(processor);
  uint64_t commit_ms = hb_processor_commit_due_ms(processor);
  if (commit_ms < until_ms) until_ms = commit_ms;
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                           .tv_nsec = (long)(until_ms % 1000) * 1000000};
  bool in_time = true;
  pthread_mutex_lock(&processor->mutex);
  while (!processor->news && !processor->stopping && in_time) {
    if (until_ms == UINT64_MAX) {
      pthread_cond_wait(&processor->changed, &processor->mutex);
    } else {
      in_time = pthread_cond_timedwait(&processor->changed, &processor->mutex, &until) == 0;
    }
  }
  pthread_mutex_unlock(&processor->mutex);
}

static void work(struct hb_processor *processor) {
  processor->watch = (struct hb_watch){.changed = changed, .context = processor};
  hb_watch_start(&processor->watch, processor->stream);
  while (!hb_processor_should_stop(processor)) {
    clear_news(processor);
    if (!begin(processor) || !turn(processor)) wait_for_news(processor);
    if (processor->abandoned) return; /* the engine may be gone */
  }
  hb_watch_stop(&processor->watch);
  if (hb_processor_commit_due_ms(processor) != UINT64_MAX) {
    (void)hb_processor_commit(processor, hb_host_place(processor->host)->position);
  }
  if (processor->host && !processor->lost) hb_processor_clear_attempt(processor);
  if (processor->has_marked && (processor->mark.stored || processor->lost)) {
    hb_processors_note_mark(processor->engine, processor->id);
  }
}

static void *run(void *context) {
  struct hb_processor *processor = context;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* this thread only, on Linux */
  if (find_code(processor)) work(processor);
  if (processor->abandoned) return NULL;
  drop_host(processor);
  hb_processor_close_retries(processor);
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  hb_attached_code_done(&processor->attached);
  if (!hb_processor_call_end(processor)) return NULL;
  hb_processors_leave(processor->engine, processor);
  return NULL;
}

void hb_processor_start(struct hb_processor *processor) {
  if (!hb_processors_enter(processor->engine, processor)) return; /* at the next start */
  hb_processor_open_retries(processor);
  pthread_t thread;
  hb_thread_start(&thread, "hb-processor", run, processor);
  pthread_detach(thread);
}
