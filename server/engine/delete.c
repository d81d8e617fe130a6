/* Decides how a deleted stream leaves the disk. From its mark on (one commit, admin.c) it is gone
 * for everyone; its data goes in steps, each harmless to do again, and the mark goes last:
 *
 *   FORGET   indexer     it holds nothing of the stream, no index file can follow any more
 *   FILES    background  whole files of every family
 *   ROWS     sequencer   one range deletion per family, a write of its own
 *   RECLAIM  background  flush and compact, which gives the space back
 *   MARK     sequencer   the mark goes
 *
 * A step that fails is left: the mark stays, and the next start takes the deletion up at FILES; so
 * does opening the store again, at FORGET. All of it goes on where the disk is so full that nothing
 * else is written: it takes little and gives much. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"
#include "storage/delete.h"

static void count(struct hb_engine *engine, bool more) {
  pthread_mutex_lock(&engine->deletions_mutex);
  if (more) {
    engine->deletions++;
  } else {
    engine->deletions--;
  }
  pthread_cond_broadcast(&engine->deletions_done);
  pthread_mutex_unlock(&engine->deletions_mutex);
}

void hb_engine_wait_deletions(struct hb_engine *engine) {
  pthread_mutex_lock(&engine->deletions_mutex);
  while (engine->deletions > 0) {
    pthread_cond_wait(&engine->deletions_done, &engine->deletions_mutex);
  }
  pthread_mutex_unlock(&engine->deletions_mutex);
}

static void send(struct hb_engine *engine, struct hb_deletion *deletion) {
  if (deletion->step == HB_DELETION_FORGET) {
    hb_indexer_forget(engine, deletion);
  } else {
    hb_pool_post(&engine->background, HB_WORK_DELETION, &deletion->node);
  }
}

void hb_deletion_begin(struct hb_engine *engine, uint64_t stream, enum hb_deletion_step step) {
  struct hb_deletion *deletion = hb_calloc(1, sizeof *deletion);
  deletion->stream = stream;
  deletion->step = step;
  count(engine, true);
  send(engine, deletion);
}

/* Background. */
void hb_deletion_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_deletion *deletion = (struct hb_deletion *)node;
  struct hb_err err = {0};
  enum hb_code code = deletion->step == HB_DELETION_FILES
                          ? hb_store_drop_files(engine->store, deletion->stream, &err)
                          : hb_store_reclaim(engine->store, deletion->stream, &err);
  if (code != HB_OK) {
    char quoted[HB_ERR_MESSAGE_SIZE];
    hb_log(HB_LOG_WARN, "deletion_delayed", "stream_id=%" PRIu64 " cause=%s", deletion->stream,
           hb_log_quote(err.message, quoted, sizeof quoted));
    deletion->failed = true;
  }
  hb_mailbox_post(engine->sequencer.deletions, node);
}

/* The mark is still there: whoever opens the store begins again. */
void hb_deletion_refuse(struct hb_engine *engine, struct hb_node *node) {
  ((struct hb_deletion *)node)->failed = true;
  hb_mailbox_post(engine->sequencer.deletions, node);
}

static void finish(struct hb_engine *engine, struct hb_deletion *deletion) {
  free(deletion);
  count(engine, false);
}

/* The sequencer's own two steps. False: the write failed. */
static bool drop_rows(struct hb_engine *engine, uint64_t stream) {
  hb_write_drop_stream(hb_sequencer_begin_rows(engine), stream);
  return hb_sequencer_apply_rows(engine, NULL);
}

static void drop_mark(struct hb_engine *engine, uint64_t stream) {
  hb_write_delete_mark(hb_sequencer_begin_rows(engine), stream);
  (void)hb_sequencer_apply_rows(engine, NULL);
}

void hb_deletion_continue(struct hb_engine *engine, struct hb_deletion *deletion) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (deletion->failed || sequencer->failed || atomic_load(&sequencer->stopping)) {
    finish(engine, deletion);
    return;
  }
  if (deletion->step == HB_DELETION_FORGET) {
    deletion->step = HB_DELETION_FILES;
  } else if (deletion->step == HB_DELETION_FILES) {
    deletion->step = HB_DELETION_RECLAIM;
    if (!drop_rows(engine, deletion->stream)) {
      finish(engine, deletion);
      return;
    }
  } else {
    drop_mark(engine, deletion->stream);
    finish(engine, deletion);
    return;
  }
  send(engine, deletion);
}
