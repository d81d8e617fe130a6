/* Decides where a compaction runs: on the background's one thread, after deletions that were asked
 * for before it, which give it less to do. */
#include "storage/compact.h"

#include "server/engine/engine_internal.h"

void hb_compaction_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_compaction *compaction = (struct hb_compaction *)node;
  compaction->bytes_before = hb_store_file_bytes(engine->store);
  if (hb_store_compact(engine->store, &compaction->error) == HB_OK) {
    compaction->bytes_after = hb_store_file_bytes(engine->store);
  }
  compaction->done(compaction);
}

void hb_compaction_refuse(struct hb_engine *engine, struct hb_node *node) {
  (void)engine;
  struct hb_compaction *compaction = (struct hb_compaction *)node;
  (void)hb_err_no_store(&compaction->error);
  compaction->done(compaction);
}

void hb_engine_compact(struct hb_engine *engine, struct hb_compaction *compaction) {
  compaction->error = (struct hb_err){.code = HB_OK};
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&compaction->error);
    compaction->done(compaction);
    return;
  }
  hb_pool_post(&engine->background, HB_WORK_COMPACTION, &compaction->node);
  hb_door_leave(engine);
}

void hb_engine_end_compaction(struct hb_engine *engine) {
  if (!hb_store_enter(engine)) return;
  hb_store_end_compaction(engine->store);
  hb_store_leave(engine);
}
