/* Sorted files: written aside, then taken in as a whole. Decides that taking one in makes no writer
 * wait for a flush: RocksDB would flush a memtable that overlaps with the file while it holds all
 * writers up, so that is done before, when nobody waits. */
#include <stdlib.h>

#include "base/alloc.h"
#include "storage/engine_rocks_internal.h"

struct hb_rocks_file {
  rocksdb_sstfilewriter_t *writer;
  rocksdb_envoptions_t *env;
};

enum hb_code hb_rocks_file_create(struct hb_rocks *engine, enum hb_family family, const char *path,
                                  struct hb_rocks_file **out, struct hb_err *err) {
  struct hb_rocks_file *file = hb_calloc(1, sizeof *file);
  file->env = rocksdb_envoptions_create();
  file->writer = rocksdb_sstfilewriter_create(file->env, engine->setup.families[family]);
  char *text = NULL;
  rocksdb_sstfilewriter_open(file->writer, path, &text);
  enum hb_code code = hb_rocks_take_error(text, path, err);
  if (code) {
    hb_rocks_file_destroy(file);
    return code;
  }
  *out = file;
  return HB_OK;
}

enum hb_code hb_rocks_file_add(struct hb_rocks_file *file, struct hb_slice key,
                               struct hb_slice value, struct hb_err *err) {
  char *text = NULL;
  rocksdb_sstfilewriter_put(file->writer, (const char *)key.data, key.size,
                            (const char *)value.data, value.size, &text);
  return hb_rocks_take_error(text, "index file", err);
}

enum hb_code hb_rocks_file_finish(struct hb_rocks_file *file, struct hb_err *err) {
  char *text = NULL;
  rocksdb_sstfilewriter_finish(file->writer, &text);
  return hb_rocks_take_error(text, "index file", err);
}

void hb_rocks_file_destroy(struct hb_rocks_file *file) {
  if (!file) return;
  rocksdb_sstfilewriter_destroy(file->writer);
  rocksdb_envoptions_destroy(file->env);
  free(file);
}

static rocksdb_ingestexternalfileoptions_t *ingest_options(void) {
  rocksdb_ingestexternalfileoptions_t *options = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
  rocksdb_ingestexternalfileoptions_set_snapshot_consistency(options, 1);
  rocksdb_ingestexternalfileoptions_set_allow_global_seqno(options, 1);
  /* Rows that came since the flush before: then the writers do wait, for a few rows. */
  rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(options, 1);
  return options;
}

enum hb_code hb_rocks_ingest(struct hb_rocks *engine, enum hb_family family, const char *path,
                             struct hb_err *err) {
  if (hb_rocks_number(engine, family, "rocksdb.num-entries-active-mem-table")) {
    enum hb_code code = hb_rocks_flush(engine, family, err);
    if (code) return code;
  }
  rocksdb_ingestexternalfileoptions_t *options = ingest_options();
  char *text = NULL;
  rocksdb_ingest_external_file_cf(engine->db, engine->families[family], &path, 1, options, &text);
  rocksdb_ingestexternalfileoptions_destroy(options);
  return hb_rocks_take_error(text, "ingest", err);
}
