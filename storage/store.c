/* Opening and closing. Decides the order in which a store comes into being and is opened:
 *
 *   create: folder, LOCK, FORMAT.new (synced), RocksDB, ids (synced), FORMAT.new -> FORMAT (synced)
 *   open:   LOCK, FORMAT, WAL check, RocksDB (recovers), ids compared, orphans dropped and the run
 *           raised (one synced write)
 *
 * A store exists from the moment when FORMAT does: whatever a crash leaves before that had nothing
 * stored in it and is made anew. With FORMAT there, a RocksDB that is not is damage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/folder_internal.h"
#include "storage/format_file_internal.h"
#include "storage/lock_internal.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/wal_check_internal.h"

enum { FIRST_STREAM = 1 };

static uint64_t or_default(uint64_t value, uint64_t fallback_mib) {
  return value ? value : fallback_mib << 20;
}

static enum hb_code open_engine(struct hb_store *store, const struct hb_store_options *options,
                                bool create, struct hb_err *err) {
  char *path = hb_folder_join(store->path, HB_FOLDER_ROCKSDB);
  struct hb_rocks_options engine = {
      .path = path,
      .create = create,
      .read_only = options->read_only,
      .no_compaction = store->info.damaged,
      .wal_bytes_max = or_default(options->wal_bytes_max, 256),
      .write_buffer_max = or_default(options->write_buffer_max, 128),
      .block_cache_max = or_default(options->block_cache_max, 32),
  };
  enum hb_code code = hb_rocks_open(&engine, &store->engine, err);
  free(path);
  return code;
}

/* ---- creation */

static enum hb_code random_bytes(void *out, size_t size, struct hb_err *err) {
  if (getrandom(out, size, 0) == (ssize_t)size) return HB_OK;
  return hb_err_set(err, HB_IO, NULL, "can't get random bytes: %s", strerror(errno));
}

static void put_meta(struct hb_batch_writer *batch, const char *name, const struct hb_buf *value) {
  hb_rocks_put(batch, HB_FAMILY_META, hb_slice_text(name), hb_buf_view(value));
}

static void put_meta_bytes(struct hb_batch_writer *batch, const char *name, const uint8_t *bytes,
                           size_t size) {
  struct hb_buf value = {0};
  hb_record_put_bytes(&value, hb_slice_of(bytes, size));
  put_meta(batch, name, &value);
  hb_buf_done(&value);
}

static void put_meta_u64(struct hb_batch_writer *batch, const char *name, uint64_t number) {
  struct hb_buf value = {0};
  hb_record_put_u64(&value, number);
  put_meta(batch, name, &value);
  hb_buf_done(&value);
}

static void put_run(struct hb_batch_writer *batch, struct hb_run_record record) {
  struct hb_buf value = {0};
  hb_record_put_run(&value, record);
  put_meta(batch, HB_META_RUN, &value);
  hb_buf_done(&value);
}

static void put_log_data(struct hb_batch_writer *batch, struct hb_log_data data) {
  uint8_t bytes[HB_LOG_DATA_SIZE];
  hb_log_data_put(bytes, data);
  hb_rocks_log_data(batch, hb_slice_of(bytes, sizeof bytes));
}

static enum hb_code write_ids(struct hb_store *store, struct hb_err *err) {
  enum hb_code code = random_bytes(store->info.incarnation, HB_STORE_ID_SIZE, err);
  if (code) return code;
  struct hb_batch_writer *batch = hb_rocks_batch_create(store->engine);
  put_meta_bytes(batch, HB_META_STORE_ID, store->info.store_id, HB_STORE_ID_SIZE);
  put_meta_bytes(batch, HB_META_INCARNATION, store->info.incarnation, HB_STORE_ID_SIZE);
  put_meta_u64(batch, HB_META_SERVED, 0);
  put_meta_u64(batch, HB_META_NEXT_STREAM, FIRST_STREAM);
  put_run(batch, (struct hb_run_record){0}); /* opening makes it 1 */
  put_log_data(batch, (struct hb_log_data){0});
  code = hb_rocks_write(store->engine, batch, true, err);
  hb_rocks_batch_destroy(batch);
  return code;
}

/* Empties what an interrupted creation left and takes up its FORMAT.new. Never removes more: a
 * FORMAT.new that can't be read was cut while being written, before there was a RocksDB folder, so
 * one that stands beside it is not ours to empty. */
static enum hb_code take_up_unfinished(struct hb_store *store, struct hb_format *format,
                                       bool *out_taken, struct hb_err *err) {
  enum hb_code code = hb_format_read(store->path, HB_FILE_FORMAT_NEW, format, err);
  *out_taken = code == HB_OK;
  if (!code) return hb_folder_clear(store->path, HB_FOLDER_ROCKSDB, err);
  char *rocksdb = hb_folder_join(store->path, HB_FOLDER_ROCKSDB);
  bool there = access(rocksdb, F_OK) == 0;
  free(rocksdb);
  return there ? code : HB_OK;
}

static enum hb_code create(struct hb_store *store, const struct hb_store_options *options,
                           bool unfinished, struct hb_err *err) {
  struct hb_format format;
  bool taken = false;
  enum hb_code code = HB_OK;
  if (unfinished) code = take_up_unfinished(store, &format, &taken, err);
  if (!code && !taken) {
    format.version = HB_FORMAT_VERSION;
    code = random_bytes(format.store_id, HB_STORE_ID_SIZE, err);
    if (!code) code = hb_format_write_new(store->path, &format, err);
  }
  if (!code) code = open_engine(store, options, true, err);
  if (code) return code;
  memcpy(store->info.store_id, format.store_id, HB_STORE_ID_SIZE);
  code = write_ids(store, err);
  if (!code) code = hb_format_publish(store->path, err);
  return code;
}

/* ---- opening what is there */

static enum hb_code open_existing(struct hb_store *store, const struct hb_store_options *options,
                                  struct hb_err *err) {
  struct hb_format format;
  enum hb_code code = hb_format_read(store->path, HB_FILE_FORMAT, &format, err);
  if (code) return code;
  memcpy(store->info.store_id, format.store_id, HB_STORE_ID_SIZE);
  char *current = hb_folder_join(store->path, HB_FOLDER_ROCKSDB "/CURRENT");
  if (access(current, F_OK)) {
    code = hb_err_set(err, HB_CORRUPT, NULL,
                      "data folder: '%s' has a FORMAT but no '" HB_FOLDER_ROCKSDB
                      "/CURRENT' (%s); restore the folder from a backup",
                      store->path, strerror(errno));
  }
  free(current);
  if (code) return code;
  char *rocksdb = hb_folder_join(store->path, HB_FOLDER_ROCKSDB);
  code = hb_wal_check(rocksdb, &store->lost_edits, err);
  free(rocksdb);
  if (code) return code;
  code = open_engine(store, options, false, err);
  if (code) {
    hb_err_wrap(err, "data folder: can't open '%s'; restore it from a backup if it is damaged",
                store->path);
  }
  return code;
}

static enum hb_code get_meta(struct hb_store *store, const char *name, struct hb_bytes **out,
                             struct hb_err *err) {
  struct hb_slice key = hb_slice_text(name);
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_META, key, out, err);
  if (code || *out) return code;
  return hb_err_set(err, HB_CORRUPT, NULL, "data folder: '%s': meta row %s is missing", store->path,
                    name);
}

static enum hb_code get_meta_u64(struct hb_store *store, const char *name, uint64_t *out,
                                 struct hb_err *err) {
  struct hb_bytes *value = NULL;
  enum hb_code code = get_meta(store, name, &value, err);
  if (code) return code;
  code = hb_record_get_u64(hb_bytes_view(value), out, err);
  if (code) hb_err_wrap(err, "meta row %s", name);
  hb_bytes_unref(value);
  return code;
}

static enum hb_code get_meta_id(struct hb_store *store, const char *name,
                                uint8_t out[HB_STORE_ID_SIZE], struct hb_err *err) {
  struct hb_bytes *value = NULL;
  enum hb_code code = get_meta(store, name, &value, err);
  if (code) return code;
  struct hb_slice bytes;
  code = hb_record_get_bytes(hb_bytes_view(value), &bytes, err);
  if (!code && bytes.size != HB_STORE_ID_SIZE) {
    code =
        hb_err_set(err, HB_CORRUPT, NULL, "%zu bytes, expected %d", bytes.size, HB_STORE_ID_SIZE);
  }
  if (code) {
    hb_err_wrap(err, "meta row %s", name);
  } else {
    memcpy(out, bytes.data, HB_STORE_ID_SIZE);
  }
  hb_bytes_unref(value);
  return code;
}

static enum hb_code get_run(struct hb_store *store, struct hb_run_record *out, struct hb_err *err) {
  struct hb_bytes *value = NULL;
  enum hb_code code = get_meta(store, HB_META_RUN, &value, err);
  if (code) return code;
  code = hb_record_get_run(hb_bytes_view(value), out, err);
  if (code) hb_err_wrap(err, "meta row " HB_META_RUN);
  hb_bytes_unref(value);
  return code;
}

static enum hb_code read_meta(struct hb_store *store, struct hb_run_record *out_run,
                              struct hb_err *err) {
  uint8_t id[HB_STORE_ID_SIZE];
  enum hb_code code = get_meta_id(store, HB_META_STORE_ID, id, err);
  if (code) return code;
  if (memcmp(id, store->info.store_id, sizeof id) != 0) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "data folder: '%s': FORMAT and RocksDB are of two different stores; put "
                      "together again what belongs together",
                      store->path);
  }
  code = get_meta_id(store, HB_META_INCARNATION, store->info.incarnation, err);
  if (!code) code = get_meta_u64(store, HB_META_SERVED, &store->info.served_ms, err);
  if (!code) code = get_meta_u64(store, HB_META_NEXT_STREAM, &store->info.next_stream, err);
  if (!code) code = get_run(store, out_run, err);
  return code;
}

static enum hb_code note_run(struct hb_store *store, struct hb_run_record before,
                             struct hb_err *err) {
  struct hb_store_info *info = &store->info;
  enum hb_code code = hb_recover_last_commit(store, &info->last_commit, err);
  if (code && !store->read_only) return code; /* who only looks wants to see it all */
  if (before.commit > info->last_commit) info->last_commit = before.commit;
  info->run = before.run;
  return HB_OK;
}

/* One synced write: what is dropped, and the run. Everything before it is durable already. */
static enum hb_code begin_run(struct hb_store *store, struct hb_run_record before,
                              struct hb_err *err) {
  struct hb_store_info *info = &store->info;
  enum hb_code code = note_run(store, before, err);
  if (!code) code = random_bytes(&store->run_mark, sizeof store->run_mark, err);
  if (code) return code;
  info->run++;
  struct hb_batch_writer *batch = hb_rocks_batch_create(store->engine);
  code = hb_recover_orphans(store, batch, err);
  if (!code && store->lost_edits) code = hb_recover_index(store, batch, err);
  put_run(batch, (struct hb_run_record){.run = info->run, .commit = info->last_commit});
  put_log_data(batch, (struct hb_log_data){.run = info->run,
                                           .mark = store->run_mark,
                                           .commit = info->last_commit,
                                           .previous = info->last_commit,
                                           .synced = info->last_commit});
  if (!code) code = hb_rocks_write(store->engine, batch, true, err);
  hb_rocks_batch_destroy(batch);
  store->written = info->last_commit;
  store->synced = info->last_commit;
  return code;
}

static enum hb_code prepare_index_folder(struct hb_store *store, struct hb_err *err) {
  char *path = hb_folder_join(store->path, HB_FOLDER_INDEX);
  enum hb_code code = hb_folder_make(path, err);
  free(path);
  return code ? code : hb_folder_clear(store->path, HB_FOLDER_INDEX, err);
}

/* ---- both */

/* A process that was killed may have left FORMAT, its name or the folder's name unsynced: they are
 * made durable before anything is built on them. A parent that may not be read has a folder that
 * somebody else made. */
static enum hb_code settle(const char *path, enum hb_folder_state state, struct hb_err *err) {
  if (state == HB_FOLDER_EMPTY) {
    enum hb_code code = hb_folder_sync_parent(path, err);
    return code == HB_PERMISSION ? HB_OK : code;
  }
  const char *name = state == HB_FOLDER_STORE ? HB_FILE_FORMAT : HB_FILE_FORMAT_NEW;
  enum hb_code code = hb_folder_sync_file(path, name, err);
  return code ? code : hb_folder_sync(path, err);
}

static enum hb_code open_locked(struct hb_store *store, const struct hb_store_options *options,
                                struct hb_err *err) {
  enum hb_folder_state state;
  enum hb_code code = hb_folder_look(store->path, &state, err);
  if (!code) code = settle(store->path, state, err);
  if (code) return code;
  code = state == HB_FOLDER_STORE ? open_existing(store, options, err)
                                  : create(store, options, state == HB_FOLDER_UNFINISHED, err);
  struct hb_run_record run = {0};
  if (!code) code = read_meta(store, &run, err);
  if (!code && options->read_only) return note_run(store, run, err);
  if (!code) code = prepare_index_folder(store, err);
  if (!code) code = begin_run(store, run, err);
  /* Until the first stream is made, a start that was cut short counts as none. */
  if (!code) store->info.created = store->info.next_stream == FIRST_STREAM;
  return code;
}

enum hb_code hb_store_open(const struct hb_store_options *options, struct hb_store **out,
                           struct hb_err *err) {
  enum hb_folder_state state;
  enum hb_code code = options->read_only ? HB_OK : hb_folder_make(options->path, err);
  /* Looked at before LOCK is made: nothing is put into a folder of somebody else. */
  if (!code) code = hb_folder_look(options->path, &state, err);
  if (!code && options->read_only && state != HB_FOLDER_STORE) {
    code = hb_err_set(err, HB_VERSION, NULL, "data folder: '%s' has no store in it", options->path);
  }
  int lock = -1;
  if (!code) code = hb_lock_take(options->path, &lock, err);
  if (code) return code;
  struct hb_store *store = hb_calloc(1, sizeof *store);
  store->path = hb_strdup(options->path);
  store->lock = lock;
  store->read_only = options->read_only;
  store->info.damaged = store->damage_noted = hb_damaged_is_noted(store->path);
  code = open_locked(store, options, err);
  if (code) {
    hb_rocks_close(store->engine);
    hb_lock_release(store->lock);
    free(store->path);
    free(store);
    return code;
  }
  *out = store;
  return HB_OK;
}

void hb_store_close(struct hb_store *store) {
  if (!store) return;
  /* What was acknowledged as "survives a kill" survives a clean stop of the machine too. Whoever
   * has to know about a failure calls hb_store_sync before. After a failed write RocksDB must not
   * be asked to sync: with assertions (Debian's has them) it aborts. */
  if (!store->failure.code && !store->read_only) (void)!hb_rocks_sync(store->engine, NULL);
  hb_rocks_close(store->engine);
  hb_lock_release(store->lock);
  free(store->path);
  free(store);
}

const struct hb_store_info *hb_store_info(const struct hb_store *store) { return &store->info; }
