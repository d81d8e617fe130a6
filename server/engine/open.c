/* Decides in which order the engine comes to life and ends.
 *
 *   open   store, recovery (recover.c), `default` in a new store, threads
 *   stop   the door is closed; processors end; the sequencer finishes what was accepted; indexer,
 *          background and readers end; every callback has been made
 *   close  memory, then the store */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "server/engine/engine_internal.h"
#include "storage/index.h"

static uint32_t or_default(uint32_t value, uint32_t by_default) {
  return value ? value : by_default;
}

static struct hb_tuning tuning_of(const struct hb_tuning *given) {
  struct hb_tuning tuning = given ? *given : (struct hb_tuning){0};
  tuning.tick_ms = or_default(tuning.tick_ms, 1000);
  tuning.save_ms = or_default(tuning.save_ms, 5000);
  tuning.index_entries = or_default(tuning.index_entries, HB_INDEX_FILE_MAX);
  tuning.index_file_entries = or_default(tuning.index_file_entries, 1000);
  tuning.index_age_ms = or_default(tuning.index_age_ms, 5000);
  tuning.index_idle_ms = or_default(tuning.index_idle_ms, 1000);
  tuning.index_nap_ms = or_default(tuning.index_nap_ms, 100);
  tuning.index_retry_ms = or_default(tuning.index_retry_ms, 5000);
  tuning.read_step_bytes = or_default(tuning.read_step_bytes, 16 << 20);
  tuning.verify_step_bytes = or_default(tuning.verify_step_bytes, 4 << 20);
  tuning.stuck_ms = or_default(tuning.stuck_ms, 30000);
  tuning.stop_wait_ms = or_default(tuning.stop_wait_ms, 5000);
  tuning.key_page_bytes = or_default(tuning.key_page_bytes, 7 << 19); /* 3.5 MiB */
  tuning.disk_look_ms = or_default(tuning.disk_look_ms, 100);
  tuning.reopen_retry_ms = or_default(tuning.reopen_retry_ms, 1000);
  tuning.fly_bytes = or_default(tuning.fly_bytes, 128 << 10);
  tuning.disk_look_bytes = or_default(tuning.disk_look_bytes, 4 << 20);
  return tuning;
}

/* A writer waits for readers that are in, not for those that come: it is the sequencer. */
static void init_store_lock(pthread_rwlock_t *lock) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock, &attributes);
  pthread_rwlockattr_destroy(&attributes);
}

static struct hb_engine *create(const struct hb_engine_options *options,
                                const struct hb_tuning *tuning) {
  struct hb_engine *engine = hb_calloc(1, sizeof *engine);
  engine->limits = options->limits;
  engine->tuning = tuning_of(tuning);
  engine->async_sync_ms = or_default(options->async_sync_ms, 10);
  if (options->processor_dir) engine->processor_dir = hb_strdup(options->processor_dir);
  engine->on_fatal = options->on_fatal;
  engine->context = options->context;
  engine->opened_ms = hb_clock_mono_ms();
  atomic_init(&engine->store_write, hb_store_write);
  atomic_init(&engine->store_open, hb_store_open);
  pthread_rwlock_init(&engine->door, NULL);
  init_store_lock(&engine->store_lock);
  pthread_mutex_init(&engine->verification_mutex, NULL);
  pthread_mutex_init(&engine->deletions_mutex, NULL);
  pthread_cond_init(&engine->deletions_done, NULL);
  hb_names_init(&engine->names);
  hb_indexer_create(engine);
  hb_disk_open(engine, options->data_dir);
  hb_processors_init(&engine->processors);
  return engine;
}

static enum hb_code open_store(struct hb_engine *engine, struct hb_err *err) {
  enum hb_code code = hb_store_open_for(engine, err);
  if (code != HB_OK) return code;
  const struct hb_store_info *info = hb_store_info(engine->store);
  memcpy(engine->info.store_id, info->store_id, sizeof engine->info.store_id);
  memcpy(engine->info.incarnation, info->incarnation, sizeof engine->info.incarnation);
  engine->info.created = info->created;
  engine->info.damaged = info->damaged;
  engine->served_base_ms = info->served_ms;
  engine->sequencer.next_stream = info->next_stream;
  hb_sequencer_create(engine);
  return hb_peers_open(&engine->peers, engine->store, engine->limits.peers_max, err);
}

struct hb_ordering *hb_engine_create_core(struct hb_engine *engine) {
  struct hb_ordering_options options = engine->tuning.core;
  options.limits = engine->limits;
  options.last_commit = hb_store_info(engine->store)->last_commit;
  return hb_ordering_create(&options);
}

static enum hb_code build(struct hb_engine *engine, struct hb_err *err) {
  engine->sequencer.core = hb_engine_create_core(engine);
  enum hb_code code = hb_engine_recover(engine, false, err);
  if (code == HB_OK) code = hb_stopped_forget(engine->disk.path, err);
  if (code != HB_OK) return code;
  /* Also where the process ended between making the store and making its stream. */
  bool is_new = engine->info.created || engine->sequencer.next_stream <= 1;
  if (!is_new || engine->info.streams > 0) return HB_OK;
  code = hb_create_default_stream(engine, err);
  if (code == HB_OK) engine->info.streams = 1;
  return code;
}

enum hb_code hb_engine_open_tuned(const struct hb_engine_options *options,
                                  const struct hb_tuning *tuning, struct hb_engine **out,
                                  struct hb_err *err) {
  struct hb_engine *engine = create(options, tuning);
  enum hb_code code = open_store(engine, err);
  if (code == HB_OK) {
    hb_pool_start(&engine->background, engine, 1, "hb-background");
    code = build(engine, err);
  }
  if (code != HB_OK) {
    hb_engine_stop(engine);
    hb_engine_close(engine);
    return code;
  }
  hb_pool_start(&engine->readers, engine, or_default(options->readers, 2), "hb-reader");
  hb_indexer_start(engine);
  hb_disk_look(engine);
  hb_processors_start(engine); /* before the sequencer, which may change the list */
  hb_sequencer_start(engine);
  engine->info.recovery_ms = (uint32_t)(hb_clock_mono_ms() - engine->opened_ms);
  *out = engine;
  return HB_OK;
}

enum hb_code hb_engine_open(const struct hb_engine_options *options, struct hb_engine **out,
                            struct hb_err *err) {
  return hb_engine_open_tuned(options, NULL, out, err);
}

void hb_engine_stop(struct hb_engine *engine) {
  pthread_rwlock_wrlock(&engine->door);
  bool stopped = engine->door_closed;
  engine->door_closed = true;
  pthread_rwlock_unlock(&engine->door);
  if (stopped) return;
  if (engine->store) hb_engine_end_compaction(engine); /* else it could not be opened */
  hb_processors_stop(engine);
  hb_sequencer_stop(engine);
  hb_indexer_stop(engine);
  hb_pool_stop(&engine->background);
  hb_pool_stop(&engine->readers);
}

void hb_engine_close(struct hb_engine *engine) {
  if (!engine) return;
  HB_ASSERT(engine->door_closed);
  hb_processors_done(&engine->processors);
  hb_sequencer_destroy(engine);
  hb_indexer_destroy(engine);
  hb_peers_close(&engine->peers);
  hb_names_done(&engine->names);
  hb_store_close(engine->store);
  pthread_cond_destroy(&engine->deletions_done);
  pthread_mutex_destroy(&engine->deletions_mutex);
  pthread_mutex_destroy(&engine->verification_mutex);
  hb_disk_close(engine);
  pthread_rwlock_destroy(&engine->store_lock);
  pthread_rwlock_destroy(&engine->door);
  free(engine->processor_dir);
  free(engine);
}

/* ---- what is known */

const struct hb_engine_info *hb_engine_info(const struct hb_engine *engine) {
  return &engine->info;
}

const struct hb_limits *hb_engine_limits(const struct hb_engine *engine) { return &engine->limits; }

uint64_t hb_engine_served_ms(const struct hb_engine *engine) {
  return engine->served_base_ms + (hb_clock_mono_ms() - engine->opened_ms);
}

struct hb_stream *hb_engine_find_stream(struct hb_engine *engine, const char *name) {
  return hb_names_find(&engine->names, name);
}

size_t hb_engine_list_streams(struct hb_engine *engine, const char *prefix, const char *after,
                              struct hb_stream_config *out, size_t max, bool *out_more) {
  return hb_names_list(&engine->names, prefix, after, out, max, out_more);
}

uint32_t hb_engine_intern_peer(struct hb_engine *engine, struct hb_slice text) {
  return hb_peers_intern(&engine->peers, text);
}
