/* Opening and closing RocksDB, batches and single reads. Decides that every family is there from
 * the first version on, and that each write can say whether it is durable on return. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "storage/engine_rocks_internal.h"

static const struct {
  const char *name;
  bool per_stream;
} FAMILIES[HB_FAMILY_COUNT] = {
#define FAMILY_ROW(id, text, per_stream_rows) [id] = {text, per_stream_rows},
    HB_FAMILY_TABLE(FAMILY_ROW)
#undef FAMILY_ROW
};

const char *hb_family_name(enum hb_family family) { return FAMILIES[family].name; }

bool hb_family_is_per_stream(enum hb_family family) { return FAMILIES[family].per_stream; }

static void create_call_options(struct hb_rocks *engine) {
  engine->write = rocksdb_writeoptions_create();
  engine->write_sync = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(engine->write_sync, 1);
  engine->read = rocksdb_readoptions_create();
  rocksdb_readoptions_set_verify_checksums(engine->read, 1);
  rocksdb_readoptions_set_fill_cache(engine->read, 0);
}

static void destroy_engine(struct hb_rocks *engine) {
  if (engine->write) rocksdb_writeoptions_destroy(engine->write);
  if (engine->write_sync) rocksdb_writeoptions_destroy(engine->write_sync);
  if (engine->read) rocksdb_readoptions_destroy(engine->read);
  hb_rocks_setup_done(&engine->setup);
  free(engine);
}

enum hb_code hb_rocks_open(const struct hb_rocks_options *options, struct hb_rocks **out,
                           struct hb_err *err) {
  struct hb_rocks *engine = hb_calloc(1, sizeof *engine);
  enum hb_code code = hb_rocks_setup_init(&engine->setup, options, err);
  if (code) {
    free(engine);
    return code;
  }
  engine->read_only = options->read_only;
  create_call_options(engine);
  const char *names[HB_ROCKS_FAMILIES];
  for (int i = 0; i < HB_FAMILY_COUNT; i++) names[i] = FAMILIES[i].name;
  names[HB_FAMILY_COUNT] = "default";
  char *text = NULL;
  const rocksdb_options_t *const *families =
      (const rocksdb_options_t *const *)engine->setup.families;
  if (options->read_only) {
    engine->db = rocksdb_open_for_read_only_column_families(engine->setup.db, options->path,
                                                            HB_ROCKS_FAMILIES, names, families,
                                                            engine->families, 0, &text);
  } else {
    engine->db = rocksdb_open_column_families(engine->setup.db, options->path, HB_ROCKS_FAMILIES,
                                              names, families, engine->families, &text);
  }
  code = hb_rocks_take_error(text, "RocksDB", err); /* which names its file */
  if (code) {
    destroy_engine(engine);
    return code;
  }
  *out = engine;
  return HB_OK;
}

void hb_rocks_close(struct hb_rocks *engine) {
  if (!engine) return;
  for (int i = 0; i < HB_ROCKS_FAMILIES; i++) {
    rocksdb_column_family_handle_destroy(engine->families[i]);
  }
  rocksdb_close(engine->db);
  destroy_engine(engine);
}

void hb_rocks_end_background(struct hb_rocks *engine) {
  rocksdb_cancel_all_background_work(engine->db, 0);
}

/* ---- damage */

static void end_compactions(struct hb_rocks *engine) {
  const char *name = "disable_auto_compactions";
  const char *value = "true";
  for (int i = 0; i < HB_ROCKS_FAMILIES; i++) {
    char *text = NULL;
    rocksdb_set_options_cf(engine->db, engine->families[i], 1, &name, &value, &text);
    (void)hb_rocks_take_error(text, name, NULL); /* then a compaction may meet the damage */
  }
}

enum hb_code hb_rocks_note(struct hb_rocks *engine, enum hb_code code) {
  if (code == HB_CORRUPT && !engine->read_only && !atomic_exchange(&engine->damaged, true)) {
    end_compactions(engine);
  }
  return code;
}

bool hb_rocks_is_damaged(const struct hb_rocks *engine) { return atomic_load(&engine->damaged); }

/* ---- batches */

struct hb_batch_writer {
  struct hb_rocks *engine; /* borrowed */
  rocksdb_writebatch_t *batch;
};

struct hb_batch_writer *hb_rocks_batch_create(struct hb_rocks *engine) {
  struct hb_batch_writer *batch = hb_calloc(1, sizeof *batch);
  batch->engine = engine;
  batch->batch = rocksdb_writebatch_create();
  return batch;
}

void hb_rocks_batch_destroy(struct hb_batch_writer *batch) {
  if (!batch) return;
  rocksdb_writebatch_destroy(batch->batch);
  free(batch);
}

void hb_rocks_batch_clear(struct hb_batch_writer *batch) { rocksdb_writebatch_clear(batch->batch); }

size_t hb_rocks_batch_count(const struct hb_batch_writer *batch) {
  return (size_t)rocksdb_writebatch_count(batch->batch);
}

static const char *chars(struct hb_slice slice) { return (const char *)slice.data; }

void hb_rocks_put(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key,
                  struct hb_slice value) {
  rocksdb_writebatch_put_cf(batch->batch, batch->engine->families[family], chars(key), key.size,
                            chars(value), value.size);
}

void hb_rocks_delete(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key) {
  rocksdb_writebatch_delete_cf(batch->batch, batch->engine->families[family], chars(key), key.size);
}

void hb_rocks_delete_once(struct hb_batch_writer *batch, enum hb_family family,
                          struct hb_slice key) {
  rocksdb_writebatch_singledelete_cf(batch->batch, batch->engine->families[family], chars(key),
                                     key.size);
}

void hb_rocks_delete_range(struct hb_batch_writer *batch, enum hb_family family,
                           struct hb_slice start, struct hb_slice end) {
  rocksdb_writebatch_delete_range_cf(batch->batch, batch->engine->families[family], chars(start),
                                     start.size, chars(end), end.size);
}

void hb_rocks_merge(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key,
                    struct hb_slice operand) {
  rocksdb_writebatch_merge_cf(batch->batch, batch->engine->families[family], chars(key), key.size,
                              chars(operand), operand.size);
}

void hb_rocks_log_data(struct hb_batch_writer *batch, struct hb_slice data) {
  rocksdb_writebatch_put_log_data(batch->batch, chars(data), data.size);
}

static enum hb_code flush_all(struct hb_rocks *engine, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (int i = 0; !code && i < HB_FAMILY_COUNT; i++) {
    code = hb_rocks_flush(engine, (enum hb_family)i, err);
  }
  return code;
}

static uint64_t number_of(struct hb_rocks *engine, const char *name) {
  uint64_t number = 0;
  (void)rocksdb_property_int(engine->db, name, &number);
  return number;
}

/* After a sync. RocksDB syncs logs by itself too: those that are full, before it puts to use the
 * table of a flush. Where that sync fails, ours of the same file may succeed right after it and
 * prove nothing, for the kernel tells of lost pages once. What was synced before the log was full
 * is safe from that, so there is nothing to ask where no write went without a sync: asking takes
 * RocksDB's mutex. What was not synced (ASYNC) is not safe while a flush runs, whose end would
 * tell, nor where RocksDB has counted a failure in the background (of a flush, or of a compaction).
 * Then everything goes into tables, whose syncs are their own: an answer needs no log then. */
static enum hb_code check_background(struct hb_rocks *engine, struct hb_err *err) {
  if (!atomic_exchange(&engine->unsynced, false)) return HB_OK;
  bool flushes = number_of(engine, "rocksdb.num-running-flushes") > 0;
  uint64_t errors = number_of(engine, "rocksdb.background-errors");
  if (!flushes && errors == atomic_load(&engine->background_errors)) return HB_OK;
  enum hb_code code = flush_all(engine, err);
  if (!code) atomic_store(&engine->background_errors, errors);
  return code;
}

enum hb_code hb_rocks_write(struct hb_rocks *engine, struct hb_batch_writer *batch, bool sync,
                            struct hb_err *err) {
  HB_ASSERT(batch->engine == engine);
  char *text = NULL;
  if (!sync) atomic_store(&engine->unsynced, true);
  rocksdb_write(engine->db, sync ? engine->write_sync : engine->write, batch->batch, &text);
  enum hb_code code = hb_rocks_take_error(text, "write", err);
  return code || !sync ? code : check_background(engine, err);
}

enum hb_code hb_rocks_sync(struct hb_rocks *engine, struct hb_err *err) {
  char *text = NULL;
  rocksdb_flush_wal(engine->db, 1, &text);
  enum hb_code code = hb_rocks_take_error(text, "sync", err);
  return code ? code : check_background(engine, err);
}

/* ---- single reads, numbers */

enum hb_code hb_rocks_get(struct hb_rocks *engine, enum hb_family family, struct hb_slice key,
                          struct hb_bytes **out, struct hb_err *err) {
  char *text = NULL;
  rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned_cf(
      engine->db, engine->read, engine->families[family], chars(key), key.size, &text);
  enum hb_code code = hb_rocks_note(engine, hb_rocks_take_error(text, "read", err));
  if (code) return code;
  if (!pinned) {
    *out = NULL;
    return HB_OK;
  }
  size_t size = 0;
  const char *value = rocksdb_pinnableslice_value(pinned, &size);
  *out = hb_bytes_copy(hb_slice_of(value, size));
  rocksdb_pinnableslice_destroy(pinned);
  return HB_OK;
}

uint64_t hb_rocks_number(struct hb_rocks *engine, enum hb_family family, const char *name) {
  uint64_t value = 0;
  if (rocksdb_property_int_cf(engine->db, engine->families[family], name, &value)) return 0;
  return value;
}

uint64_t hb_rocks_size(struct hb_rocks *engine, enum hb_family family, struct hb_slice start,
                       struct hb_slice end) {
  const char *starts[] = {chars(start)};
  const char *ends[] = {chars(end)};
  uint64_t size = 0;
  char *text = NULL;
  rocksdb_approximate_sizes_cf(engine->db, engine->families[family], 1, starts, &start.size, ends,
                               &end.size, &size, &text);
  return hb_rocks_take_error(text, "size", NULL) ? 0 : size;
}

/* ---- giving space back */

enum hb_code hb_rocks_drop_files(struct hb_rocks *engine, enum hb_family family,
                                 struct hb_slice start, struct hb_slice end, struct hb_err *err) {
  char *text = NULL;
  rocksdb_delete_file_in_range_cf(engine->db, engine->families[family], chars(start), start.size,
                                  chars(end), end.size, &text);
  return hb_rocks_take_error(text, "drop files", err);
}

enum hb_code hb_rocks_flush(struct hb_rocks *engine, enum hb_family family, struct hb_err *err) {
  rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_wait(options, 1);
  char *text = NULL;
  rocksdb_flush_cf(engine->db, options, engine->families[family], &text);
  rocksdb_flushoptions_destroy(options);
  return hb_rocks_take_error(text, "flush", err);
}

void hb_rocks_compact(struct hb_rocks *engine, enum hb_family family, struct hb_slice start,
                      struct hb_slice end) {
  rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
  rocksdb_compact_range_cf_opt(engine->db, engine->families[family], options, chars(start),
                               start.size, chars(end), end.size);
  rocksdb_compactoptions_destroy(options);
}

/* How old a blob file must be, among all, for a compaction to rewrite what of it is alive. */
static void set_blob_cutoff(struct hb_rocks *engine, enum hb_family family, const char *share) {
  const char *name = "blob_garbage_collection_age_cutoff";
  char *text = NULL;
  rocksdb_set_options_cf(engine->db, engine->families[family], 1, &name, &share, &text);
  (void)hb_rocks_take_error(text, name, NULL); /* a family without such files has none to rewrite */
}

/* A file that overlaps with nothing is moved down without being rewritten: it holds only what is
 * there, for what replaces or deletes a row overlaps with it. Not so where the values lie in files
 * of their own: those are rewritten too, all of them. */
void hb_rocks_compact_all(struct hb_rocks *engine, enum hb_family family) {
  enum { FORCE = 2 };
  rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
  bool has_blobs = hb_rocks_number(engine, family, "rocksdb.num-blob-files") > 0;
  if (has_blobs) {
    rocksdb_compactoptions_set_bottommost_level_compaction(options, FORCE);
    set_blob_cutoff(engine, family, "1.0");
  }
  rocksdb_compact_range_cf_opt(engine->db, engine->families[family], options, NULL, 0, NULL, 0);
  rocksdb_compactoptions_destroy(options);
  if (has_blobs) set_blob_cutoff(engine, family, HB_ROCKS_BLOB_CUTOFF);
}

void hb_rocks_end_compaction(struct hb_rocks *engine) {
  rocksdb_disable_manual_compaction(engine->db);
}
