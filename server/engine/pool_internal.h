/* Threads that do what may wait for the disk, so that the sequencer never does.
 *
 * Two pools: `readers` (reads, needs, fetches) and `background` (one thread, deletions and
 * compactions: a step may take as long as the store is large). Work is an intrusive node; its kind
 * says who runs it. */
#ifndef HB_SERVER_ENGINE_POOL_INTERNAL_H
#define HB_SERVER_ENGINE_POOL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mailbox.h"

struct hb_engine;
struct hb_need;
struct hb_stream;

enum hb_work {
  HB_WORK_FETCH,
  HB_WORK_NEED,
  HB_WORK_READ,
  HB_WORK_VERIFY,
  HB_WORK_DELETION,
  HB_WORK_COMPACTION,
  HB_WORK_KINDS
};

struct hb_pool {
  struct hb_engine *engine; /* immutable, as threads and count */
  pthread_t *threads;
  uint32_t count;
  pthread_mutex_t mutex;
  pthread_cond_t posted;
  /* Protected by mutex. */
  struct {
    struct hb_node *first;
    struct hb_node *last;
  } queues[HB_WORK_KINDS];
  bool stopping;
  uint32_t turn;
};

void hb_pool_start(struct hb_pool *pool, struct hb_engine *engine, uint32_t count,
                   const char *name);
/* Any thread. Not after hb_pool_stop, but by work that runs. */
void hb_pool_post(struct hb_pool *pool, enum hb_work kind, struct hb_node *node);
/* Everything posted is done when it returns. */
void hb_pool_stop(struct hb_pool *pool);

/* Who runs what. A read that wants to let others go first posts itself again. */
void hb_fetch_run(struct hb_engine *engine, struct hb_node *node);
void hb_need_run(struct hb_engine *engine, struct hb_node *node);
void hb_read_run(struct hb_engine *engine, struct hb_node *node);
void hb_verification_run(struct hb_engine *engine, struct hb_node *node);
void hb_deletion_run(struct hb_engine *engine, struct hb_node *node);
void hb_compaction_run(struct hb_engine *engine, struct hb_node *node);
/* Instead, while there is no store. */
void hb_fetch_refuse(struct hb_engine *engine, struct hb_node *node);
void hb_need_refuse(struct hb_engine *engine, struct hb_node *node);
void hb_read_refuse(struct hb_engine *engine, struct hb_node *node);
void hb_verification_refuse(struct hb_engine *engine, struct hb_node *node);
void hb_deletion_refuse(struct hb_engine *engine, struct hb_node *node);
void hb_compaction_refuse(struct hb_engine *engine, struct hb_node *node);

/* What hb_need_run does before it answers: a verdict for each item. */
HB_MUST_CHECK enum hb_code hb_need_compare(struct hb_engine *engine, struct hb_need *need,
                                           struct hb_stream *stream, struct hb_err *err);

#endif
