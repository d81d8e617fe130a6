#include "storage/delete.h"

#include "storage/engine_internal.h"
#include "storage/index.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

enum { BLOCK_COUNT = 300, BLOCK_BYTES = 64 * 1024 };

/* Bytes of files in a family, blob files included. */
static uint64_t bytes_of(struct fixture *fixture, enum hb_family family) {
  struct hb_rocks *engine = fixture->store->engine;
  return hb_rocks_number(engine, family, "rocksdb.total-sst-files-size") +
         hb_rocks_number(engine, family, "rocksdb.total-blob-file-size");
}

static int count_rows(struct fixture *fixture, enum hb_family family, uint64_t stream) {
  struct hb_rocks_iter *iter = hb_store_iter(fixture->store, family, stream);
  int count = 0;
  for (hb_rocks_iter_first(iter); hb_rocks_iter_valid(iter); hb_rocks_iter_next(iter)) count++;
  hb_rocks_iter_destroy(iter);
  return count;
}

static void put_noise(struct fixture *fixture, uint64_t stream, uint32_t number, uint64_t *random) {
  static uint8_t noise[BLOCK_BYTES];
  for (size_t i = 0; i + 8 <= sizeof noise; i += 8) {
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    memcpy(noise + i, random, 8);
  }
  struct hb_slice bytes = hb_slice_of(noise, sizeof noise);
  hb_write_put_block(fixture->write, stream, number, bytes);
  hb_write_put_bundle(fixture->write, (struct hb_bundle_id){stream, number, 0}, bytes);
}

static void put_entries(struct fixture *fixture, uint64_t stream) {
  enum { COUNT = 20000 };
  struct hb_index_entry *entries = hb_calloc(COUNT, sizeof *entries);
  struct hb_err err;
  for (int i = 0; i < COUNT; i++) {
    entries[i].key = hb_slice_text("key");
    entries[i].position = i * 7;
  }
  must(hb_index_ingest(fixture->store, stream, entries, COUNT, &err), &err);
  free(entries);
}

/* Some of everything that a stream can have. */
static void fill(struct fixture *fixture, uint64_t stream, const char *name) {
  struct hb_gap gap = {.start = 3, .end = 5};
  uint64_t random = stream;
  make_stream(fixture, stream, name);
  for (uint32_t i = 1; i <= BLOCK_COUNT; i++) {
    put_noise(fixture, stream, i, &random);
    if (i % 50 == 0) apply(fixture);
  }
  hb_write_put_gap(fixture->write, stream, &gap);
  hb_write_put_unprocessed(fixture->write, stream, HB_OUTCOME_CONFLICT, 3, 4,
                           hb_slice_text("frame"), 5, 6);
  hb_write_put_indexed_to(fixture->write, stream, 7);
  apply(fixture);
  put_entries(fixture, stream);
}

static void delete_stream(struct fixture *fixture, uint64_t stream) {
  struct hb_err err;
  hb_write_mark_deleting(fixture->write, stream);
  apply(fixture);
  must(hb_store_drop_files(fixture->store, stream, &err), &err);
  hb_write_drop_stream(fixture->write, stream);
  apply(fixture);
  must(hb_store_reclaim(fixture->store, stream, &err), &err);
}

static void check_gone(struct fixture *fixture, uint64_t stream) {
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    enum hb_family family = (enum hb_family)i;
    if (!hb_family_is_per_stream(family)) continue;
    int expected = family == HB_FAMILY_STREAMS ? 1 : 0; /* the mark */
    if (count_rows(fixture, family, stream) != expected) {
      fail_msg("%s has %d rows of the stream", hb_family_name(family),
               count_rows(fixture, family, stream));
    }
  }
}

/* A deleted stream leaves its mark alone, then nothing; its bytes are given back; a neighbour on
 * either side keeps all it has. */
static void a_deleted_stream_leaves_nothing(void **state) {
  struct fixture *fixture = *state;
  fill(fixture, 1, "one");
  fill(fixture, 2, "two");
  fill(fixture, 3, "three");
  struct hb_err err;
  must(hb_rocks_flush(fixture->store->engine, HB_FAMILY_LOG, &err), &err);
  must(hb_rocks_flush(fixture->store->engine, HB_FAMILY_HELD, &err), &err);
  uint64_t log_before = bytes_of(fixture, HB_FAMILY_LOG);
  uint64_t lists_before = bytes_of(fixture, HB_FAMILY_LISTS);
  uint64_t mib = 1024 * 1024;
  assert_true(log_before > 3 * 18 * mib);
  delete_stream(fixture, 2);
  check_gone(fixture, 2);
  hb_write_delete_mark(fixture->write, 2);
  apply(fixture);
  assert_int_equal(count_rows(fixture, HB_FAMILY_STREAMS, 2), 0);
  assert_true(bytes_of(fixture, HB_FAMILY_LOG) < log_before / 3 * 2 + mib);
  assert_true(bytes_of(fixture, HB_FAMILY_LISTS) < lists_before / 3 * 2 + mib / 8);
  for (uint64_t stream = 1; stream <= 3; stream += 2) {
    assert_int_equal(count_rows(fixture, HB_FAMILY_LOG, stream), BLOCK_COUNT);
    assert_int_equal(count_rows(fixture, HB_FAMILY_HELD, stream), BLOCK_COUNT);
    assert_int_equal(count_rows(fixture, HB_FAMILY_LISTS, stream), 20000);
    assert_int_equal(count_rows(fixture, HB_FAMILY_GAPS, stream), 1);
    assert_int_equal(count_rows(fixture, HB_FAMILY_UNPROCESSED, stream), 1);
    assert_int_equal(count_rows(fixture, HB_FAMILY_STREAMS, stream), 3);
  }
}

/* With the last stream gone nearly everything is: bundles in files of their own included. */
static void the_last_stream_gives_all_back(void **state) {
  struct fixture *fixture = *state;
  fill(fixture, 1, "one");
  delete_stream(fixture, 1);
  hb_write_delete_mark(fixture->write, 1);
  apply(fixture);
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    if (!hb_family_is_per_stream((enum hb_family)i)) continue;
    assert_true(bytes_of(fixture, (enum hb_family)i) < 64 * 1024);
  }
}

/* A deletion that was cut short at any step is started over, with the same end. */
static void a_deletion_is_started_over(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  fill(fixture, 1, "one");
  hb_write_mark_deleting(fixture->write, 1);
  apply(fixture);
  reopen_store(fixture);
  assert_int_equal(count_rows(fixture, HB_FAMILY_LOG, 1), BLOCK_COUNT);
  must(hb_store_drop_files(fixture->store, 1, &err), &err);
  reopen_store(fixture);
  hb_write_drop_stream(fixture->write, 1);
  apply(fixture);
  reopen_store(fixture);
  check_gone(fixture, 1);
  delete_stream(fixture, 1);
  check_gone(fixture, 1);
  hb_write_delete_mark(fixture->write, 1);
  apply(fixture);
  reopen_store(fixture);
  assert_int_equal(count_rows(fixture, HB_FAMILY_STREAMS, 1), 0);
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown)
  const struct CMUnitTest tests[] = {
      ONE(a_deleted_stream_leaves_nothing),
      ONE(the_last_stream_gives_all_back),
      ONE(a_deletion_is_started_over),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
