/* Decides which work a free thread takes next: what the sequencer waits for and what callers wait
 * for in turn, so that a producer that sends history again (needs) can't starve subscribers
 * (reads), nor they it. A verification has the time that nobody else wants. */
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/engine_internal.h"
#include "server/engine/pool_internal.h"

static struct hb_node *pop_locked(struct hb_pool *pool, enum hb_work kind) {
  struct hb_node *node = pool->queues[kind].first;
  if (!node) return NULL;
  pool->queues[kind].first = node->next;
  if (!node->next) pool->queues[kind].last = NULL;
  node->next = NULL;
  return node;
}

static struct hb_node *pick_locked(struct hb_pool *pool, enum hb_work *out_kind) {
  static const enum hb_work orders[2][HB_WORK_KINDS] = {
      {HB_WORK_FETCH, HB_WORK_NEED, HB_WORK_READ, HB_WORK_VERIFY, HB_WORK_DELETION,
       HB_WORK_COMPACTION},
      {HB_WORK_READ, HB_WORK_FETCH, HB_WORK_NEED, HB_WORK_VERIFY, HB_WORK_DELETION,
       HB_WORK_COMPACTION}};
  const enum hb_work *order = orders[pool->turn++ % 2];
  for (int i = 0; i < HB_WORK_KINDS; i++) {
    struct hb_node *node = pop_locked(pool, order[i]);
    if (node) {
      *out_kind = order[i];
      return node;
    }
  }
  return NULL;
}

typedef void work_fn(struct hb_engine *engine, struct hb_node *node);

/* A piece of work is what a store that is to be replaced waits for. */
static void run(struct hb_pool *pool, enum hb_work kind, struct hb_node *node) {
  static work_fn *const runs[HB_WORK_KINDS] = {
      [HB_WORK_FETCH] = hb_fetch_run,       [HB_WORK_NEED] = hb_need_run,
      [HB_WORK_READ] = hb_read_run,         [HB_WORK_VERIFY] = hb_verification_run,
      [HB_WORK_DELETION] = hb_deletion_run, [HB_WORK_COMPACTION] = hb_compaction_run};
  static work_fn *const refuses[HB_WORK_KINDS] = {
      [HB_WORK_FETCH] = hb_fetch_refuse,       [HB_WORK_NEED] = hb_need_refuse,
      [HB_WORK_READ] = hb_read_refuse,         [HB_WORK_VERIFY] = hb_verification_refuse,
      [HB_WORK_DELETION] = hb_deletion_refuse, [HB_WORK_COMPACTION] = hb_compaction_refuse};
  if (!hb_store_enter(pool->engine)) {
    refuses[kind](pool->engine, node);
    return;
  }
  runs[kind](pool->engine, node);
  hb_store_leave(pool->engine);
}

static void *work(void *context) {
  struct hb_pool *pool = context;
  pthread_mutex_lock(&pool->mutex);
  for (;;) {
    enum hb_work kind = HB_WORK_READ;
    struct hb_node *node = pick_locked(pool, &kind);
    if (node) {
      pthread_mutex_unlock(&pool->mutex);
      run(pool, kind, node);
      pthread_mutex_lock(&pool->mutex);
    } else if (pool->stopping) {
      break;
    } else {
      pthread_cond_wait(&pool->posted, &pool->mutex);
    }
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

void hb_pool_start(struct hb_pool *pool, struct hb_engine *engine, uint32_t count,
                   const char *name) {
  pool->engine = engine;
  pool->count = count;
  pool->threads = hb_calloc(count, sizeof *pool->threads);
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->posted, NULL);
  for (uint32_t i = 0; i < count; i++) hb_thread_start(&pool->threads[i], name, work, pool);
}

void hb_pool_post(struct hb_pool *pool, enum hb_work kind, struct hb_node *node) {
  node->next = NULL;
  pthread_mutex_lock(&pool->mutex);
  if (pool->queues[kind].last) {
    pool->queues[kind].last->next = node;
  } else {
    pool->queues[kind].first = node;
  }
  pool->queues[kind].last = node;
  pthread_cond_signal(&pool->posted);
  pthread_mutex_unlock(&pool->mutex);
}

void hb_pool_stop(struct hb_pool *pool) {
  if (!pool->threads) return;
  pthread_mutex_lock(&pool->mutex);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->posted);
  pthread_mutex_unlock(&pool->mutex);
  for (uint32_t i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
  free(pool->threads);
  pool->threads = NULL;
  pthread_cond_destroy(&pool->posted);
  pthread_mutex_destroy(&pool->mutex);
}
