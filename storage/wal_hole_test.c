/* Holes in real MANIFESTs, as a power loss in RocksDB's sync leaves them, and as damage does. What
 * opens has everything. */
#include "storage/wal_hole_internal.h"

#include <fcntl.h>

#include "base/endian.h"
#include "storage/crc32c_internal.h"
#include "storage/engine_internal.h"
#include "storage/index.h"
#include "storage/read.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"
#include "storage/wal_read_internal.h"

enum { ROWS = 20, STREAM = 1, PAGE = 4096, EDITS_MAX = 200 };

struct manifest {
  char path[400];
  size_t edits;
  off_t begin[EDITS_MAX];
  uint8_t last[1000]; /* the last edit */
  size_t last_size;
};

/* ---- stores */

static void put_row(struct fixture *fixture, uint32_t row) {
  hb_write_put_unprocessed(fixture->write, STREAM, HB_OUTCOME_CONFLICT, row, 0,
                           hb_slice_text("some event"), 0, 0);
  apply(fixture);
}

static void flush(struct fixture *fixture, enum hb_family family) {
  struct hb_err err;
  must(hb_rocks_flush(fixture->store->engine, family, &err), &err);
}

static void put_rows(struct fixture *fixture, uint32_t from, uint32_t to) {
  for (uint32_t row = from; row <= to; row++) put_row(fixture, row);
}

/* Family meta is flushed twice: not often enough to be compacted. The logs stay for the rows. */
static void make_rows(struct fixture *fixture, bool reopen) {
  make_stream(fixture, STREAM, "s");
  put_rows(fixture, 1, ROWS / 4);
  flush(fixture, HB_FAMILY_META);
  if (reopen) reopen_store(fixture);
  put_rows(fixture, ROWS / 4 + 1, ROWS / 2);
  hb_write_put_served_ms(fixture->write, fixture->commit);
  apply(fixture);
  flush(fixture, HB_FAMILY_META);
  put_rows(fixture, ROWS / 2 + 1, ROWS);
}

static void flush_all(struct fixture *fixture) {
  for (int i = 0; i < HB_FAMILY_COUNT; i++) flush(fixture, (enum hb_family)i);
}

static void copy_store(const struct fixture *fixture, const char *from, const char *to) {
  char command[1200];
  snprintf(command, sizeof command, "rm -rf '%s/%s' && cp -a '%s/%s' '%s/%s'", fixture->folder, to,
           fixture->folder, from, fixture->folder, to);
  assert_int_equal(system(command), 0);
}

static bool count_row(void *context, const struct hb_unprocessed *found) {
  uint32_t *rows = context;
  assert_int_equal(found->sequence, ++*rows);
  return true;
}

/* False: it is refused. */
static bool opens(struct fixture *fixture, struct hb_err *err) {
  uint32_t rows = 0;
  enum hb_code code = try_open(fixture, err);
  if (!code) {
    must(hb_unprocessed_each(fixture->store, STREAM, count_row, &rows, err), err);
    assert_int_equal(rows, ROWS);
  }
  close_store(fixture);
  return !code;
}

/* ---- their MANIFEST */

static void path_of(const struct fixture *fixture, const char *name, char out[400]) {
  snprintf(out, 400, "%.300s/db/%.60s", fixture->path, name);
}

static void find_manifest(const struct fixture *fixture, char out[400]) {
  char path[400];
  char name[32];
  path_of(fixture, "CURRENT", path);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%30s", name), 1);
  fclose(file);
  path_of(fixture, name, out);
}

static void read_manifest(const struct fixture *fixture, struct manifest *out) {
  struct hb_wal_reader reader;
  struct hb_err err;
  *out = (struct manifest){0};
  find_manifest(fixture, out->path);
  int fd = open(out->path, O_RDONLY);
  hb_wal_reader_init(&reader, fd);
  for (bool any = true; any;) {
    struct hb_slice edit;
    must(hb_wal_reader_next(&reader, &any, &edit, &err), &err);
    if (!any) break;
    assert_true(out->edits < EDITS_MAX && edit.size <= sizeof out->last);
    out->begin[out->edits++] = (off_t)reader.record_offset;
    memcpy(out->last, edit.data, edit.size);
    out->last_size = edit.size;
  }
  assert_false(reader.damage.any);
  hb_wal_reader_done(&reader);
  close(fd);
}

/* Zeros from edit `from` on, up to `end`, and there an edit. */
static void make_hole(const struct manifest *manifest, size_t from, off_t end,
                      struct hb_slice edit) {
  int fd = open(manifest->path, O_WRONLY);
  uint8_t bytes[HB_WAL_HEADER_SIZE + sizeof manifest->last] = {0};
  bytes[4] = (uint8_t)edit.size;
  bytes[5] = (uint8_t)(edit.size >> 8);
  bytes[6] = 1;
  memcpy(bytes + HB_WAL_HEADER_SIZE, edit.data, edit.size);
  hb_put_u32_le(bytes, hb_crc32c_mask(hb_crc32c(0, hb_slice_of(bytes + 6, 1 + edit.size))));
  size_t size = HB_WAL_HEADER_SIZE + edit.size;
  assert_int_equal(ftruncate(fd, manifest->begin[from]), 0);
  assert_int_equal(pwrite(fd, bytes, size, end), size);
  close(fd);
}

static off_t page_end(off_t offset) { return (offset / PAGE + 1) * PAGE; }

/* The page with edit `from` is as it was before, the one behind it was written. */
static void lose_page(const struct manifest *manifest, size_t from) {
  make_hole(manifest, from, page_end(manifest->begin[from]),
            hb_slice_of(manifest->last, manifest->last_size));
}

static off_t size_of(const char *path) {
  struct stat stat_of;
  return stat(path, &stat_of) ? 0 : stat_of.st_size;
}

static void is_refused(struct fixture *fixture, const char *text) {
  char path[400];
  struct hb_err err;
  find_manifest(fixture, path);
  off_t size = size_of(path);
  assert_false(opens(fixture, &err));
  if (!strstr(err.message, text)) fail_msg("'%s' does not say %s", err.message, text);
  assert_int_equal(size_of(path), size);
}

/* ---- the rules */

/* Edits that wait are synced together: a power loss may take the first and leave the last. Nothing
 * was done because of them, so it opens without, and has everything. */
static void a_lost_page_before_one_that_was_kept(void **state) {
  struct fixture *fixture = *state;
  struct manifest manifest;
  struct hb_err err = {0};
  make_rows(fixture, false);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  lose_page(&manifest, manifest.edits - 2);
  if (!opens(fixture, &err)) fail_msg("%s", err.message);
  assert_true(opens(fixture, &err));
}

static bool get_indexed_to(void *context, const struct hb_stored_stream *stream) {
  *(int64_t *)context = stream->indexed_to;
  return true;
}

/* Each of the lost edits may have taken in an index file: all that these may have had is indexed
 * again. */
static void the_index_is_made_again(void **state) {
  struct fixture *fixture = *state;
  struct manifest manifest;
  struct hb_err err;
  int64_t indexed_to = 0;
  hb_write_put_indexed_to(fixture->write, STREAM, 1000000000);
  make_rows(fixture, false);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  off_t begin = manifest.begin[manifest.edits - 2];
  lose_page(&manifest, manifest.edits - 2);
  off_t behind = size_of(manifest.path) - begin;
  open_store(fixture);
  must(hb_stream_each(fixture->store, get_indexed_to, &indexed_to, &err), &err);
  assert_int_equal(indexed_to, 1000000000 - (1 + behind / 64) * HB_INDEX_FILE_MAX);
}

/* What was compacted away before is not needed. */
static void tables_that_went_before_the_hole(void **state) {
  struct fixture *fixture = *state;
  struct manifest manifest;
  struct hb_err err = {0};
  make_rows(fixture, false);
  hb_rocks_compact_all(fixture->store->engine, HB_FAMILY_META);
  hb_write_put_served_ms(fixture->write, fixture->commit);
  apply(fixture);
  flush(fixture, HB_FAMILY_META);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  lose_page(&manifest, manifest.edits - 2);
  if (!opens(fixture, &err)) fail_msg("%s", err.message);
}

/* Logs are removed after the sync of the edits that make them needless: those had been synced. */
static void the_same_where_logs_were_removed(void **state) {
  struct fixture *fixture = *state;
  struct manifest before;
  struct manifest manifest;
  make_rows(fixture, false);
  read_manifest(fixture, &before);
  flush_all(fixture);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  assert_true(manifest.edits > before.edits + 1);
  lose_page(&manifest, before.edits);
  is_refused(fixture, ".log, or one after it, is missing");
}

/* Where the edits are not there at all nothing looks damaged, but for the log. */
static void a_manifest_cut_where_logs_were_removed(void **state) {
  struct fixture *fixture = *state;
  struct manifest before;
  make_rows(fixture, false);
  read_manifest(fixture, &before);
  off_t size = size_of(before.path);
  flush_all(fixture);
  close_store(fixture);
  assert_int_equal(truncate(before.path, size), 0);
  is_refused(fixture, ".log, or one after it, is missing");
}

/* And so are tables. */
static void the_same_where_a_table_was_removed(void **state) {
  struct fixture *fixture = *state;
  struct manifest manifest;
  make_rows(fixture, false);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  lose_page(&manifest, manifest.edits - 2);
  char command[500];
  snprintf(command, sizeof command, "rm $(ls %.300s/db/*.sst | head -n 1)", fixture->path);
  assert_int_equal(system(command), 0);
  is_refused(fixture, "a table is gone");
}

/* No page is lost in a part. */
static void a_hole_that_ends_within_a_page(void **state) {
  struct fixture *fixture = *state;
  struct manifest manifest;
  make_rows(fixture, false);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  size_t from = manifest.edits - 2;
  make_hole(&manifest, from, page_end(manifest.begin[from]) - 64,
            hb_slice_of(manifest.last, manifest.last_size));
  is_refused(fixture, "MANIFEST is damaged at offset");
}

/* A family is added with a sync of its own, so what was before that had been synced. */
static void an_added_family_behind_a_hole(void **state) {
  static const uint8_t added[] = {0xC8, 0x01, 20, 0xC9, 0x01, 1, 'x'};
  struct fixture *fixture = *state;
  struct manifest manifest;
  make_rows(fixture, false);
  close_store(fixture);
  read_manifest(fixture, &manifest);
  size_t from = manifest.edits - 2;
  make_hole(&manifest, from, page_end(manifest.begin[from]), hb_slice_of(added, sizeof added));
  is_refused(fixture, "MANIFEST is damaged at offset");
}

struct tried {
  unsigned opened;
  unsigned refused;
};

static struct tried try_each_edit(struct fixture *fixture) {
  struct manifest manifest;
  struct tried tried = {0};
  close_store(fixture);
  read_manifest(fixture, &manifest);
  copy_store(fixture, "data", "kept");
  for (size_t from = 1; from < manifest.edits; from++) {
    struct hb_err err;
    copy_store(fixture, "kept", "data");
    lose_page(&manifest, from);
    off_t size = size_of(manifest.path);
    bool opened = opens(fixture, &err);
    if (!opened) assert_int_equal(err.code, HB_CORRUPT);
    if (!opened) assert_int_equal(size_of(manifest.path), size);
    tried.opened += opened;
    tried.refused += !opened;
  }
  return tried;
}

/* Where it begins a MANIFEST has been synced as a whole. */
static void at_any_edit_of_the_first_manifest(void **state) {
  make_rows(*state, false);
  struct tried tried = try_each_edit(*state);
  assert_int_equal(tried.opened, 4); /* two for each flush */
  assert_true(tried.refused > HB_FAMILY_COUNT);
}

/* Opened again, a store has rows in tables that its MANIFEST begins with. */
static void at_any_edit_of_a_later_manifest(void **state) {
  make_rows(*state, true);
  struct tried tried = try_each_edit(*state);
  assert_int_equal(tried.opened, 2);
  assert_true(tried.refused > 2 * HB_FAMILY_COUNT);
}

/* Where all was flushed, each edit made a log needless that is gone now. */
static void at_any_edit_where_all_was_flushed(void **state) {
  make_rows(*state, false);
  flush_all(*state);
  struct tried tried = try_each_edit(*state);
  assert_int_equal(tried.opened, 0);
  assert_true(tried.refused > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_lost_page_before_one_that_was_kept), TEST(the_index_is_made_again),
      TEST(tables_that_went_before_the_hole),     TEST(a_manifest_cut_where_logs_were_removed),
      TEST(the_same_where_logs_were_removed),     TEST(the_same_where_a_table_was_removed),
      TEST(a_hole_that_ends_within_a_page),       TEST(an_added_family_behind_a_hole),
      TEST(at_any_edit_of_the_first_manifest),    TEST(at_any_edit_of_a_later_manifest),
      TEST(at_any_edit_where_all_was_flushed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
