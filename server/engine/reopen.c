/* Decides when and how a store that met a full disk is replaced by itself, opened again.
 *
 * RocksDB refuses every write after one that failed, and has no way back in its C interface. It
 * still reads, so it serves readers as long as there is no room: opening writes the log as files
 * before it removes it. Once there is, and nobody waits for the old core (comparisons, bundles,
 * deletions are back),
 *
 *   readers are drained  store_lock; what comes waits
 *   closed, opened       what was acknowledged is in the log
 *   rebuilt              a new core, from the store; streams, their watches and subscribers stay
 *
 * and all goes on: subscriptions at their cursors, the index from what is stored. Whether the
 * commit that failed is there or not is seen now, and by nobody before (I6). */
#include <inttypes.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"
#include "storage/compact.h"

bool hb_store_enter(struct hb_engine *engine) {
  pthread_rwlock_rdlock(&engine->store_lock);
  if (engine->store) return true;
  pthread_rwlock_unlock(&engine->store_lock);
  return false;
}

void hb_store_leave(struct hb_engine *engine) { pthread_rwlock_unlock(&engine->store_lock); }

enum hb_code hb_store_open_for(struct hb_engine *engine, struct hb_err *err) {
  struct hb_store_options options = {.path = engine->disk.path,
                                     .wal_bytes_max = engine->limits.wal_bytes_max};
  hb_store_open_fn *store_open = atomic_load(&engine->store_open);
  return store_open(&options, &engine->store, err);
}

/* ---- when */

static bool has_room(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (engine->store) sequencer->wal_bytes = hb_store_wal_bytes(engine->store);
  return hb_disk_has_room(engine, sequencer->wal_bytes);
}

/* Nothing that belongs to the old store or core is out any more. */
static bool is_quiet(struct hb_engine *engine) {
  const struct hb_sequencer *sequencer = &engine->sequencer;
  pthread_mutex_lock(&engine->deletions_mutex);
  bool deleting = engine->deletions > 0;
  pthread_mutex_unlock(&engine->deletions_mutex);
  return !deleting && sequencer->needs_out == 0 && sequencer->fetches_out == 0 &&
         hb_ordering_batch_bytes(sequencer->core) == 0;
}

/* ---- how */

static void close_old(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  hb_write_destroy(sequencer->write);
  sequencer->write = NULL;
  hb_verification_drop(engine);
  hb_store_close(engine->store);
  engine->store = NULL;
}

static enum hb_code rebuild(struct hb_engine *engine, struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  const struct hb_store_info *info = hb_store_info(engine->store);
  sequencer->write = hb_write_create(engine->store);
  if (info->next_stream > sequencer->next_stream) sequencer->next_stream = info->next_stream;
  hb_sequencer_drop_notes(engine);
  hb_publish_reset(engine);
  hb_ordering_destroy(sequencer->core);
  sequencer->core = hb_engine_create_core(engine);
  atomic_fetch_add(&engine->store_epoch, 1);
  enum hb_code code = hb_peers_reload(&engine->peers, engine->store, err);
  if (code == HB_OK) code = hb_engine_recover(engine, true, err);
  return code;
}

/* The indexer looks at every stream again, processors begin anew at what is stored. */
static void kick_all(struct hb_engine *engine) {
  const struct hb_registry *registry = &engine->sequencer.registry;
  for (size_t i = 0; i < registry->count; i++) hb_indexer_kick(engine, registry->streams[i]);
  hb_processors_kick(engine);
}

/* Somebody took the space meanwhile: readers are refused until it is there again. */
static void wait_for_space(struct hb_engine *engine, const struct hb_err *err) {
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_ERROR, "reopen_delayed", "retry_ms=%" PRIu32 " cause=%s",
         engine->tuning.reopen_retry_ms, hb_log_quote(err->message, quoted, sizeof quoted));
  engine->sequencer.reopen_due_ms = hb_clock_mono_ms() + engine->tuning.reopen_retry_ms;
}

static void reopen(struct hb_engine *engine) {
  uint64_t began_ms = hb_clock_mono_ms();
  struct hb_err err = {0};
  if (engine->store) hb_store_end_compaction(engine->store); /* it holds the lock for long */
  pthread_rwlock_wrlock(&engine->store_lock);
  close_old(engine);
  enum hb_code code = hb_store_open_for(engine, &err);
  bool is_open = code == HB_OK;
  if (is_open) code = rebuild(engine, &err);
  pthread_rwlock_unlock(&engine->store_lock);
  if (code != HB_OK) {
    if (!is_open && code == HB_NO_SPACE) {
      wait_for_space(engine, &err);
    } else {
      hb_sequencer_fail(engine, &err);
    }
    return;
  }
  hb_sequencer_resume(engine);
  hb_log(HB_LOG_INFO, "store_reopened", "ms=%" PRIu64 " log_bytes=%" PRIu64,
         hb_clock_mono_ms() - began_ms, engine->sequencer.wal_bytes);
  hb_disk_regain(engine);
  kick_all(engine);
}

void hb_reopen_try(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!hb_disk_is_lost(engine) || sequencer->fatal || atomic_load(&sequencer->stopping)) return;
  if (hb_clock_mono_ms() < sequencer->reopen_due_ms || !has_room(engine)) return;
  if (engine->store) hb_store_end_background(engine->store); /* a compaction may take long */
  if (is_quiet(engine)) reopen(engine);
}
