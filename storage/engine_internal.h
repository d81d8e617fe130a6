/* The engine: RocksDB behind a small interface. Only engine_*.c include RocksDB's header, and
 * nothing of it (handles, error texts, memory) leaves them. */
#ifndef HB_STORAGE_ENGINE_INTERNAL_H
#define HB_STORAGE_ENGINE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/slice.h"

/* Every family of the format, from its first version on. What FORMAT.md calls them is in the
 * table; order is not stored. PER_STREAM: each row starts with the id of its stream. */
#define HB_FAMILY_TABLE(X)                      \
  X(HB_FAMILY_META, "meta", false)              \
  X(HB_FAMILY_STREAMS, "streams", true)         \
  X(HB_FAMILY_HELD, "held", true)               \
  X(HB_FAMILY_LOG, "log", true)                 \
  X(HB_FAMILY_LISTS, "lists", true)             \
  X(HB_FAMILY_KEYS, "keys", true)               \
  X(HB_FAMILY_STATES, "states", true)           \
  X(HB_FAMILY_TIMERS, "timers", true)           \
  X(HB_FAMILY_RESULTS, "results", true)         \
  X(HB_FAMILY_CURSORS, "cursors", true)         \
  X(HB_FAMILY_GAPS, "gaps", true)               \
  X(HB_FAMILY_VOIDS, "voids", true)             \
  X(HB_FAMILY_UNPROCESSED, "unprocessed", true) \
  X(HB_FAMILY_PEERS, "peers", false)

#define HB_FAMILY_ENUM(id, name, per_stream) id,
enum hb_family { HB_FAMILY_TABLE(HB_FAMILY_ENUM) HB_FAMILY_COUNT };
#undef HB_FAMILY_ENUM

const char *hb_family_name(enum hb_family family);
bool hb_family_is_per_stream(enum hb_family family);

struct hb_rocks;

struct hb_rocks_options {
  const char *path;
  bool create;        /* else a store that is not there is HB_CORRUPT */
  bool read_only;     /* nothing in the folder is changed; what the log has is replayed in memory */
  bool no_compaction; /* no table is rewritten: see hb_rocks_is_damaged */
  uint64_t wal_bytes_max;
  uint64_t write_buffer_max;
  uint64_t block_cache_max;
};

/* What was recovered is durable on return: RocksDB replays its log into memtables, writes those as
 * files, syncs them and only then forgets the log (avoid_flush_during_recovery is off). */
HB_MUST_CHECK enum hb_code hb_rocks_open(const struct hb_rocks_options *options,
                                         struct hb_rocks **out, struct hb_err *err);
/* NULL is allowed. */
void hb_rocks_close(struct hb_rocks *engine);

/* Flushes and compactions end soon, none begins: only reading and closing are left. */
void hb_rocks_end_background(struct hb_rocks *engine);

/* A read has met a damaged table since the opening. From then on no table is compacted: a
 * compaction that met it would end all writing, for every stream. Any thread. */
bool hb_rocks_is_damaged(const struct hb_rocks *engine);

/* A text of RocksDB as an error, by its documented prefix. `text` is not freed. */
enum hb_code hb_rocks_error(const char *text, const char *what, struct hb_err *err);

/* ---- writing: batches are applied as a whole. One thread at a time for each batch. */

struct hb_batch_writer; /* a WriteBatch */
struct hb_batch_writer *hb_rocks_batch_create(struct hb_rocks *engine);
void hb_rocks_batch_destroy(struct hb_batch_writer *batch);
void hb_rocks_batch_clear(struct hb_batch_writer *batch);
size_t hb_rocks_batch_count(const struct hb_batch_writer *batch);
void hb_rocks_put(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key,
                  struct hb_slice value);
void hb_rocks_delete(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key);
/* For a key that was put exactly once, and is never put again: it and its put go together. */
void hb_rocks_delete_once(struct hb_batch_writer *batch, enum hb_family family,
                          struct hb_slice key);
void hb_rocks_delete_range(struct hb_batch_writer *batch, enum hb_family family,
                           struct hb_slice start, struct hb_slice end);
void hb_rocks_merge(struct hb_batch_writer *batch, enum hb_family family, struct hb_slice key,
                    struct hb_slice operand);
/* Only in RocksDB's log, for who reads that. */
void hb_rocks_log_data(struct hb_batch_writer *batch, struct hb_slice data);
HB_MUST_CHECK enum hb_code hb_rocks_write(struct hb_rocks *engine, struct hb_batch_writer *batch,
                                          bool sync, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_rocks_sync(struct hb_rocks *engine, struct hb_err *err);

/* ---- reading, any thread */

/* *out NULL: no such row. One reference, the caller's. */
HB_MUST_CHECK enum hb_code hb_rocks_get(struct hb_rocks *engine, enum hb_family family,
                                        struct hb_slice key, struct hb_bytes **out,
                                        struct hb_err *err);

/* Rows with start <= key < end as of the iterator's creation. Values read through it are not put
 * into the cache: whoever iterates passes by once. */
struct hb_rocks_iter;
struct hb_rocks_iter *hb_rocks_iter_create(struct hb_rocks *engine, enum hb_family family,
                                           struct hb_slice start, struct hb_slice end);
void hb_rocks_iter_destroy(struct hb_rocks_iter *iter); /* NULL is allowed */
void hb_rocks_iter_first(struct hb_rocks_iter *iter);
void hb_rocks_iter_last(struct hb_rocks_iter *iter);
void hb_rocks_iter_seek(struct hb_rocks_iter *iter, struct hb_slice key);      /* >= */
void hb_rocks_iter_seek_back(struct hb_rocks_iter *iter, struct hb_slice key); /* <= */
void hb_rocks_iter_next(struct hb_rocks_iter *iter);
/* False: past the end, or an error, which hb_rocks_iter_error tells (HB_OK where there is none).*/
bool hb_rocks_iter_valid(const struct hb_rocks_iter *iter);
HB_MUST_CHECK enum hb_code hb_rocks_iter_error(const struct hb_rocks_iter *iter,
                                               struct hb_err *err);
/* Valid until the iterator moves. */
struct hb_slice hb_rocks_iter_key(const struct hb_rocks_iter *iter);
struct hb_slice hb_rocks_iter_value(const struct hb_rocks_iter *iter);

/* ---- files: sorted rows written aside and taken in as a whole */

struct hb_rocks_file;
HB_MUST_CHECK enum hb_code hb_rocks_file_create(struct hb_rocks *engine, enum hb_family family,
                                                const char *path, struct hb_rocks_file **out,
                                                struct hb_err *err);
/* Keys strictly ascending. */
HB_MUST_CHECK enum hb_code hb_rocks_file_add(struct hb_rocks_file *file, struct hb_slice key,
                                             struct hb_slice value, struct hb_err *err);
/* Synced on return. */
HB_MUST_CHECK enum hb_code hb_rocks_file_finish(struct hb_rocks_file *file, struct hb_err *err);
void hb_rocks_file_destroy(struct hb_rocks_file *file); /* NULL is allowed */
/* Takes the finished file at `path`; it is gone from there, and durable, on return. */
HB_MUST_CHECK enum hb_code hb_rocks_ingest(struct hb_rocks *engine, enum hb_family family,
                                           const char *path, struct hb_err *err);

/* ---- giving space back, any thread */

/* Files that lie in [start, end) as a whole. */
HB_MUST_CHECK enum hb_code hb_rocks_drop_files(struct hb_rocks *engine, enum hb_family family,
                                               struct hb_slice start, struct hb_slice end,
                                               struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_rocks_flush(struct hb_rocks *engine, enum hb_family family,
                                          struct hb_err *err);
void hb_rocks_compact(struct hb_rocks *engine, enum hb_family family, struct hb_slice start,
                      struct hb_slice end);
/* The whole family. */
void hb_rocks_compact_all(struct hb_rocks *engine, enum hb_family family);
/* No compaction that somebody asked for runs any more; waits for those that do to notice. */
void hb_rocks_end_compaction(struct hb_rocks *engine);
/* Bytes of files between two keys, about. */
uint64_t hb_rocks_size(struct hb_rocks *engine, enum hb_family family, struct hb_slice start,
                       struct hb_slice end);
/* A number that RocksDB tells of a family by name ("rocksdb.total-sst-files-size"); 0 if unknown.
 */
uint64_t hb_rocks_number(struct hb_rocks *engine, enum hb_family family, const char *name);

#endif
