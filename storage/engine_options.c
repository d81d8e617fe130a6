/* Decides how RocksDB is set up: one table row per family, and what they share. The numbers are for
 * two cores and a server of less than 400 MB. */
#include <stdio.h>
#include <stdlib.h>

#include "storage/engine_rocks_internal.h"

enum { KIB = 1024, MIB = 1024 * KIB };
enum { LOG_FATAL_ONLY = 4 }; /* InfoLogLevel::FATAL_LEVEL; the C interface has no name for it */

/* What the C interface has no setter for. */
static const char OPTIONS_WITHOUT_SETTER[] =
    "avoid_flush_during_recovery=false;strict_bytes_per_sync=true";

enum layout {
  SMALL,   /* few rows, often rewritten or not used yet: a small buffer */
  BLOCKS,  /* large values that are read by ranges and are not compressible enough to try */
  ENTRIES, /* very many small rows that come as files */
  POINTS,  /* very many small rows that are looked up one by one, often where there is none */
  STATES,  /* likewise, and often rewritten */
};

struct family_options {
  enum layout layout;
  size_t write_buffer;
  int write_buffers; /* in memory at most, the one being filled included */
};

static const struct family_options FAMILIES[HB_ROCKS_FAMILIES] = {
    [HB_FAMILY_META] = {SMALL, 64 * KIB, 2},       [HB_FAMILY_STREAMS] = {SMALL, 1 * MIB, 2},
    [HB_FAMILY_HELD] = {BLOCKS, 32 * MIB, 3},      [HB_FAMILY_LOG] = {BLOCKS, 32 * MIB, 3},
    [HB_FAMILY_LISTS] = {ENTRIES, 4 * MIB, 2},     [HB_FAMILY_KEYS] = {POINTS, 16 * MIB, 3},
    [HB_FAMILY_STATES] = {STATES, 16 * MIB, 3},    [HB_FAMILY_TIMERS] = {SMALL, 1 * MIB, 2},
    [HB_FAMILY_RESULTS] = {BLOCKS, 8 * MIB, 2},    [HB_FAMILY_CURSORS] = {SMALL, 256 * KIB, 2},
    [HB_FAMILY_GAPS] = {SMALL, 1 * MIB, 2},        [HB_FAMILY_VOIDS] = {SMALL, 1 * MIB, 2},
    [HB_FAMILY_UNPROCESSED] = {SMALL, 4 * MIB, 2}, [HB_FAMILY_PEERS] = {SMALL, 256 * KIB, 2},
    [HB_FAMILY_COUNT] = {SMALL, 64 * KIB, 2},
};

/* Index blocks live in the cache, so that memory does not grow with the number of files. */
static void set_table(rocksdb_options_t *options, rocksdb_cache_t *cache, size_t block_size,
                      rocksdb_filterpolicy_t *owned_filter) {
  rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_block_size(table, block_size);
  rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
  rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
  rocksdb_block_based_options_set_format_version(table, 5);
  if (owned_filter) rocksdb_block_based_options_set_filter_policy(table, owned_filter);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
}

/* Universal: a bundle of entries is rewritten few times. The triggers are far away because a
 * writer of any family waits when one of them is reached. */
static void set_entries(rocksdb_options_t *options) {
  rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 8);
  rocksdb_options_set_level0_slowdown_writes_trigger(options, 1000);
  rocksdb_options_set_level0_stop_writes_trigger(options, 2000);
  rocksdb_options_set_soft_pending_compaction_bytes_limit(options, 0);
  rocksdb_options_set_hard_pending_compaction_bytes_limit(options, 0);
  rocksdb_options_set_compression(options, rocksdb_lz4_compression);
}

/* Ascending keys make files that do not overlap: they move down a level without being rewritten. */
static void set_blocks(rocksdb_options_t *options) {
  rocksdb_options_set_arena_block_size(options, 128 * KIB);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_target_file_size_base(options, 64 * MIB);
  rocksdb_options_set_max_bytes_for_level_base(options, 512 * MIB);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 4);
  rocksdb_options_set_level0_slowdown_writes_trigger(options, 40);
  rocksdb_options_set_level0_stop_writes_trigger(options, 60);
}

/* Bundles live from one commit to a later one. Their bytes lie in files of their own: compaction,
 * which lets a bundle and its deletion meet, moves names only, and a file whose bundles are all
 * gone is removed unread. One that is mostly empty is rewritten for the few that stay long. */
static void set_short_lived(rocksdb_options_t *options) {
  rocksdb_options_set_enable_blob_files(options, 1);
  rocksdb_options_set_min_blob_size(options, 4 * KIB);
  rocksdb_options_set_blob_file_size(options, 64 * MIB);
  rocksdb_options_set_enable_blob_gc(options, 1);
  rocksdb_options_set_blob_gc_age_cutoff(options, strtod(HB_ROCKS_BLOB_CUTOFF, NULL));
  rocksdb_options_set_blob_gc_force_threshold(options, 0.8);
}

static rocksdb_options_t *family_options(const struct hb_rocks_setup *all, int family) {
  const struct family_options *row = &FAMILIES[family];
  rocksdb_options_t *options = rocksdb_options_create_copy(all->db);
  rocksdb_options_set_write_buffer_size(options, row->write_buffer);
  rocksdb_options_set_max_write_buffer_number(options, row->write_buffers);
  rocksdb_options_set_disable_auto_compactions(options, all->no_compaction);
  switch (row->layout) {
    case SMALL:
      set_table(options, all->cache, 4 * KIB, NULL);
      rocksdb_options_set_compression(options, rocksdb_no_compression);
      break;
    case BLOCKS:
      set_table(options, all->cache, 16 * KIB, NULL);
      set_blocks(options);
      break;
    case ENTRIES:
      set_table(options, all->cache, 16 * KIB, NULL);
      set_entries(options);
      break;
    case POINTS: /* a new key is found to be new without a block being read */
      set_table(options, all->cache, 4 * KIB, rocksdb_filterpolicy_create_bloom_full(10));
      set_entries(options);
      break;
    case STATES:
      set_table(options, all->cache, 4 * KIB, rocksdb_filterpolicy_create_bloom_full(10));
      rocksdb_options_set_compression(options, rocksdb_no_compression);
      break;
  }
  if (family == HB_FAMILY_HELD) set_short_lived(options);
  if (family == HB_FAMILY_UNPROCESSED) {
    rocksdb_options_set_merge_operator(options, hb_rocks_merge_create());
  }
  return options;
}

static void set_threads(rocksdb_options_t *db) {
  rocksdb_env_t *env = rocksdb_create_default_env();
  rocksdb_env_set_high_priority_background_threads(env, 1); /* flushes */
  rocksdb_env_set_low_priority_background_threads(env, 1);  /* compactions, */
  rocksdb_env_lower_thread_pool_cpu_priority(env);          /* behind everything else */
  rocksdb_options_set_env(db, env);
  rocksdb_env_destroy(env);
  rocksdb_options_set_max_background_jobs(db, 2);
}

static void set_files(rocksdb_options_t *db) {
  rocksdb_options_set_max_open_files(db, 512);
  rocksdb_options_set_max_file_opening_threads(db, 2);
  rocksdb_options_set_skip_stats_update_on_db_open(db, 1); /* it reads every file at start */
  rocksdb_options_set_max_manifest_file_size(db, 16 * MIB);
  rocksdb_options_set_keep_log_file_num(db, 4);
  /* Debian builds RocksDB with assertions: where its text log can't be written, on a full disk say,
   * the next line that it logs aborts the process, also while it opens. So it logs nothing at all:
   * the level leaves out every line, and a log that is not limited in size (the default) has no
   * header that is written whatever the level. Errors reach us as errors. */
  rocksdb_options_set_info_log_level(db, LOG_FATAL_ONLY);
  rocksdb_options_set_stats_dump_period_sec(db, 0);
  rocksdb_options_set_stats_persist_period_sec(db, 0);
  /* Written back while a file is written, so that its sync does not hold up a commit's. */
  rocksdb_options_set_bytes_per_sync(db, 1 * MIB);
}

static void set_wal(rocksdb_options_t *db, const struct hb_rocks_options *from) {
  rocksdb_options_set_max_total_wal_size(db, from->wal_bytes_max);
  rocksdb_options_set_recycle_log_file_num(db, 0); /* else old records stand behind new ones */
  rocksdb_options_set_manual_wal_flush(db, 0);
  rocksdb_options_set_wal_recovery_mode(db, rocksdb_point_in_time_recovery);
}

enum hb_code hb_rocks_setup_init(struct hb_rocks_setup *setup, const struct hb_rocks_options *from,
                                 struct hb_err *err) {
  *setup = (struct hb_rocks_setup){.cache = rocksdb_cache_create_lru(from->block_cache_max),
                                   .no_compaction = from->no_compaction};
  rocksdb_options_t *db = rocksdb_options_create();
  char *text = NULL;
  rocksdb_options_t *parsed = rocksdb_options_create();
  rocksdb_get_options_from_string(db, OPTIONS_WITHOUT_SETTER, parsed, &text);
  rocksdb_options_destroy(db);
  db = parsed;
  rocksdb_options_set_create_if_missing(db, from->create);
  rocksdb_options_set_create_missing_column_families(db, from->create);
  rocksdb_options_set_paranoid_checks(db, 1);
  rocksdb_options_set_db_write_buffer_size(db, from->write_buffer_max);
  rocksdb_options_set_enable_write_thread_adaptive_yield(db, 0); /* there is one writer */
  set_threads(db);
  set_files(db);
  set_wal(db, from);
  setup->db = db;
  for (int i = 0; i < HB_ROCKS_FAMILIES; i++) setup->families[i] = family_options(setup, i);
  enum hb_code code = hb_rocks_take_error(text, "rocksdb options", err);
  if (code) hb_rocks_setup_done(setup);
  return code;
}

void hb_rocks_setup_done(struct hb_rocks_setup *setup) {
  for (int i = 0; i < HB_ROCKS_FAMILIES; i++) {
    if (setup->families[i]) rocksdb_options_destroy(setup->families[i]);
  }
  if (setup->db) rocksdb_options_destroy(setup->db);
  if (setup->cache) rocksdb_cache_destroy(setup->cache);
  *setup = (struct hb_rocks_setup){0};
}
