/* Decides who loads code that is to be attached, and what becomes of code that does not come back
 * from checking its parameters.
 *
 * Each attaching has a thread of its own until its code is ready; then the job goes to the
 * sequencer. So code that hangs keeps its own caller waiting and nobody else; health tells of it as
 * of any call of user code. At the end of the engine it is abandoned: its caller is answered, and
 * the thread, which has copies, finds that when it returns and touches nothing any more. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/live.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"

enum stage { IN_CODE, RETURNED, ABANDONED };

struct hb_attaching {
  struct hb_engine *engine;
  struct hb_job *job;
  char stream[HB_STREAM_NAME_MAX + 1];
  char processor[HB_PROCESSOR_NAME_MAX + 1];
  struct hb_buf parameters;
  uint64_t began_ms;
  _Atomic int stage; /* one step from IN_CODE decides whose it is: the thread's, or nobody's */
  /* Protected by the mutex of all processors. */
  struct hb_attaching *next;
  bool told_stuck;
};

static enum hb_code check_name(const char *field, const char *name, struct hb_err *err) {
  if (hb_processor_name_is_valid(name)) return HB_OK;
  return hb_err_set(err, HB_INVALID, "PROCESSOR_NAME_INVALID",
                    "%s '%.64s' must be 1 to %d characters a-z, 0-9, '.', '_', '-', the first a "
                    "letter or digit",
                    field, name, HB_PROCESSOR_NAME_MAX);
}

/* job->error says why. */
static void refuse(struct hb_job *job) {
  hb_attach_done(job);
  hb_live_gone(HB_LIVE_jobs);
  job->done(job);
}

/* ---- its thread */

static void leave(struct hb_attaching *attaching) {
  struct hb_processors *all = &attaching->engine->processors;
  pthread_mutex_lock(&all->mutex);
  struct hb_attaching **at = &all->attaching;
  while (*at != attaching) at = &(*at)->next;
  *at = attaching->next;
  all->attaching_count--;
  pthread_cond_broadcast(&all->ended);
  pthread_mutex_unlock(&all->mutex);
}

static void hand_on(struct hb_engine *engine, struct hb_job *job,
                    const struct hb_attached_code *attached) {
  job->processor->code = hb_calloc(1, sizeof *job->processor->code);
  *job->processor->code = *attached;
  if (hb_door_enter(engine)) {
    hb_mailbox_post(engine->sequencer.jobs, &job->node);
    hb_door_leave(engine);
    return;
  }
  (void)hb_err_stops(&job->error);
  refuse(job);
}

static void *run(void *context) {
  struct hb_attaching *attaching = context;
  struct hb_attached_code attached = {.code = NULL};
  struct hb_err err = {0};
  enum hb_code code = hb_attached_code_find(attaching->engine, attaching->processor,
                                            hb_buf_view(&attaching->parameters), &attached, &err);
  int stage = IN_CODE;
  if (!atomic_compare_exchange_strong(&attaching->stage, &stage, RETURNED)) {
    hb_attached_code_done(&attached);
  } else {
    if (code == HB_OK) {
      hand_on(attaching->engine, attaching->job, &attached);
    } else {
      attaching->job->error = err;
      refuse(attaching->job);
    }
    leave(attaching);
  }
  hb_buf_done(&attaching->parameters);
  free(attaching);
  return NULL;
}

/* ---- beginning */

static struct hb_attaching *create(struct hb_engine *engine, struct hb_job *job) {
  struct hb_attaching *attaching = hb_calloc(1, sizeof *attaching);
  struct hb_slice parameters = job->processor->parameters;
  attaching->engine = engine;
  attaching->job = job;
  memcpy(attaching->stream, job->config.name, sizeof attaching->stream);
  memcpy(attaching->processor, job->processor->processor, sizeof attaching->processor);
  hb_buf_append(&attaching->parameters, parameters.data, parameters.size);
  attaching->began_ms = hb_clock_mono_ms();
  return attaching;
}

static enum hb_code enter(struct hb_engine *engine, struct hb_attaching *attaching,
                          struct hb_err *err) {
  struct hb_processors *all = &engine->processors;
  enum hb_code code = HB_OK;
  pthread_mutex_lock(&all->mutex);
  if (all->stopping) {
    code = hb_err_stops(err);
  } else if (all->attaching_count >= engine->limits.processors_max) {
    code = hb_err_set(err, HB_LIMIT, "TOO_MANY_PROCESSORS",
                      "%zu processors are being attached, processors_max is %" PRIu64,
                      all->attaching_count, engine->limits.processors_max);
  } else {
    attaching->next = all->attaching;
    all->attaching = attaching;
    all->attaching_count++;
  }
  pthread_mutex_unlock(&all->mutex);
  return code;
}

void hb_attach_begin(struct hb_engine *engine, struct hb_job *job) {
  job->error = (struct hb_err){0};
  job->processor->code = NULL;
  enum hb_code code = check_name("name", job->processor->name, &job->error);
  if (code == HB_OK) code = check_name("processor", job->processor->processor, &job->error);
  if (code != HB_OK) {
    refuse(job);
    return;
  }
  struct hb_attaching *attaching = create(engine, job);
  if (enter(engine, attaching, &job->error) != HB_OK) {
    hb_buf_done(&attaching->parameters);
    free(attaching);
    refuse(job);
    return;
  }
  pthread_t thread;
  hb_thread_start(&thread, "hb-attach", run, attaching);
  pthread_detach(thread);
}

void hb_attach_done(struct hb_job *job) {
  if (!job->processor || !job->processor->code) return;
  hb_attached_code_done(job->processor->code);
  free(job->processor->code);
  job->processor->code = NULL;
}

/* ---- all of them; the mutex of all processors is held */

bool hb_attaching_look_locked(struct hb_engine *engine, uint64_t now_ms) {
  bool any = false;
  struct hb_attaching *next = engine->processors.attaching;
  for (; next; next = next->next) {
    bool stuck = now_ms > next->began_ms + engine->tuning.stuck_ms;
    any = any || stuck;
    if (stuck && !next->told_stuck) {
      hb_log(HB_LOG_WARN, "attach_stuck", "stream=%s processor=%s call_ms=%" PRIu64, next->stream,
             next->processor, now_ms - next->began_ms);
    }
    next->told_stuck = stuck;
  }
  return any;
}

void hb_attaching_abandon_locked(struct hb_processors *all, struct hb_job **jobs) {
  struct hb_attaching **at = &all->attaching;
  while (*at) {
    struct hb_attaching *next = (*at)->next; /* it may be freed as soon as it is abandoned */
    struct hb_job *job = (*at)->job;
    int stage = IN_CODE;
    if (!atomic_compare_exchange_strong(&(*at)->stage, &stage, ABANDONED)) {
      at = &(*at)->next;
      continue;
    }
    *at = next;
    all->attaching_count--;
    hb_log(HB_LOG_WARN, "attach_abandoned",
           "stream=%s processor=%s cause=\"its code does not come back\"", job->config.name,
           job->processor->processor);
    job->node.next = *jobs ? &(*jobs)->node : NULL;
    *jobs = job;
  }
}

void hb_attaching_refuse(struct hb_job *jobs) {
  while (jobs) {
    struct hb_job *job = jobs;
    jobs = (struct hb_job *)job->node.next; /* the node is its first */
    (void)hb_err_stops(&job->error);
    refuse(job);
  }
}
