/* What a store does between a write that met a full disk and being closed. */
#include "storage/delete.h"
#include "storage/read.h"
#include "storage/test_store_internal.h"

enum { BLOCKS = 50, BLOCK_EVENTS = 100 };

static void fill(struct fixture *fixture) {
  make_stream(fixture, 1, "s");
  for (int64_t i = 0; i < BLOCKS; i++) {
    put_block(fixture, 1, 1 + i * BLOCK_EVENTS, 1 + (i + 1) * BLOCK_EVENTS);
    apply(fixture);
  }
}

static void check_blocks(struct fixture *fixture) {
  struct hb_log_reader *reader;
  struct hb_err err;
  must(hb_log_reader_open(fixture->store, 1, 1, &reader, &err), &err);
  int count = 0;
  struct hb_bytes *block = NULL;
  for (;; count++) {
    must(hb_log_reader_next(reader, &block, &err), &err);
    if (!block) break;
    hb_bytes_unref(block);
  }
  hb_log_reader_close(reader);
  assert_int_equal(count, BLOCKS);
}

/* The log's size is what was written since the last start: what the next start has to find room
 * for. */
static void log_size_is_told(void **state) {
  struct fixture *fixture = *state;
  uint64_t before = hb_store_wal_bytes(fixture->store);
  fill(fixture);
  uint64_t after = hb_store_wal_bytes(fixture->store);
  assert_true(after >= before + (uint64_t)BLOCKS * BLOCK_EVENTS * 10);
  reopen_store(fixture);
  assert_true(hb_store_wal_bytes(fixture->store) < after / 10);
}

/* Once the background has ended everything is still read, what would have to wait for it returns,
 * and closing and opening loses nothing. */
static void reads_after_background(void **state) {
  struct fixture *fixture = *state;
  fill(fixture);
  hb_store_end_background(fixture->store);
  check_blocks(fixture);
  struct hb_err err;
  assert_int_not_equal(hb_store_reclaim(fixture->store, 1, &err), HB_OK);
  check_blocks(fixture);
  hb_store_end_background(fixture->store); /* again: no harm */
  reopen_store(fixture);
  check_blocks(fixture);
  struct hb_err ignored;
  must(hb_store_reclaim(fixture->store, 1, &ignored), &ignored);
}

/* RocksDB's text log stays empty, whatever is done: a line that finds no room would abort the
 * process. */
static void nothing_is_logged(void **state) {
  struct fixture *fixture = *state;
  fill(fixture);
  struct hb_err err;
  must(hb_store_reclaim(fixture->store, 1, &err), &err);
  reopen_store(fixture);
  char path[600];
  struct stat log;
  snprintf(path, sizeof path, "%s/db/LOG", fixture->path);
  assert_int_equal(stat(path, &log), 0);
  assert_int_equal(log.st_size, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(log_size_is_told, setup_store, teardown),
      cmocka_unit_test_setup_teardown(reads_after_background, setup_store, teardown),
      cmocka_unit_test_setup_teardown(nothing_is_logged, setup_store, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
