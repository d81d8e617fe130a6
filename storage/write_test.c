#include "storage/write.h"

#include <dirent.h>

#include "storage/engine_internal.h"
#include "storage/folder_internal.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

struct streams {
  int count;
  struct hb_stored_stream items[8];
};

static bool take_stream(void *context, const struct hb_stored_stream *stream) {
  struct streams *streams = context;
  assert_true(streams->count < 8);
  streams->items[streams->count++] = *stream;
  return true;
}

static struct streams read_streams(struct fixture *fixture) {
  struct streams streams = {0};
  struct hb_err err;
  must(hb_stream_each(fixture->store, take_stream, &streams, &err), &err);
  return streams;
}

/* Configuration, frontier record and indexed_to of a stream are read back after a restart. */
static void streams_come_back(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  make_stream(fixture, 300, "later");
  hb_write_put_indexed_to(fixture->write, 300, INT64_MIN);
  apply(fixture);
  reopen_store(fixture);
  struct streams streams = read_streams(fixture);
  assert_int_equal(streams.count, 2);
  assert_int_equal(streams.items[0].stream, 1);
  assert_string_equal(streams.items[0].config.name, "one");
  assert_false(streams.items[0].has_indexed_to);
  assert_int_equal(streams.items[0].record.commit, 1);
  assert_int_equal(streams.items[1].stream, 300);
  assert_string_equal(streams.items[1].config.name, "later");
  assert_true(streams.items[1].has_indexed_to);
  assert_true(streams.items[1].indexed_to == INT64_MIN);
}

/* A frontier record is replaced by the next one. */
static void the_last_record_counts(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  for (int i = 0; i < 10; i++) {
    struct hb_frontier record = some_record(fixture->commit + 1);
    record.complete_to = record.frontier = 1 + i;
    hb_write_put_frontier(fixture->write, 1, &record);
    apply(fixture);
  }
  assert_int_equal(read_streams(fixture).items[0].record.frontier, 10);
}

static bool stop_at_once(void *context, const struct hb_stored_stream *stream) {
  (void)stream;
  ++*(int *)context;
  return false;
}

/* A visitor that says so sees no more, also where the next stream's rows follow. */
static void a_visit_can_stop(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  make_stream(fixture, 2, "two");
  int count = 0;
  struct hb_err err;
  must(hb_stream_each(fixture->store, stop_at_once, &count, &err), &err);
  assert_int_equal(count, 1);
}

/* The mark replaces what a stream was; without it nothing is left. */
static void a_mark_replaces_the_stream(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  make_stream(fixture, 2, "two");
  hb_write_put_indexed_to(fixture->write, 1, 7);
  hb_write_mark_deleting(fixture->write, 1);
  apply(fixture);
  struct streams streams = read_streams(fixture);
  assert_int_equal(streams.count, 2);
  assert_true(streams.items[0].deleting);
  assert_false(streams.items[0].has_indexed_to);
  assert_false(streams.items[1].deleting);
  hb_write_delete_mark(fixture->write, 1);
  apply(fixture);
  streams = read_streams(fixture);
  assert_int_equal(streams.count, 1);
  assert_int_equal(streams.items[0].stream, 2);
}

/* A configuration without a record, and the other way round, is damage. */
static void half_a_stream_is_damage(void **state) {
  struct fixture *fixture = *state;
  struct hb_stream_config config = some_config("half");
  struct streams streams = {0};
  struct hb_err err;
  hb_write_put_config(fixture->write, 1, &config);
  apply(fixture);
  assert_int_equal(hb_stream_each(fixture->store, take_stream, &streams, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "stream 1 has no frontier record"));
  hb_write_mark_deleting(fixture->write, 1);
  hb_write_delete_mark(fixture->write, 1);
  struct hb_frontier record = some_record(2);
  hb_write_put_frontier(fixture->write, 2, &record);
  apply(fixture);
  assert_int_equal(hb_stream_each(fixture->store, take_stream, &streams, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "stream 2 has no configuration"));
}

/* A write is empty until something is put, and again when cleared; what was cleared is not
 * written. */
static void a_cleared_write_has_nothing(void **state) {
  struct fixture *fixture = *state;
  assert_true(hb_write_is_empty(fixture->write));
  hb_write_put_served_ms(fixture->write, 5);
  assert_false(hb_write_is_empty(fixture->write));
  hb_write_clear(fixture->write);
  assert_true(hb_write_is_empty(fixture->write));
  make_stream(fixture, 1, "one");
  reopen_store(fixture);
  assert_int_equal(hb_store_info(fixture->store)->served_ms, 0);
}

/* Whether these bytes stand in one of RocksDB's logs. */
static bool is_in_log(struct fixture *fixture, struct hb_log_data data) {
  uint8_t wanted[HB_LOG_DATA_SIZE];
  hb_log_data_put(wanted, data);
  char *folder = hb_folder_join(fixture->path, HB_FOLDER_ROCKSDB);
  DIR *open_folder = opendir(folder);
  assert_non_null(open_folder);
  bool found = false;
  for (struct dirent *entry; (entry = readdir(open_folder));) {
    const char *dot = strrchr(entry->d_name, '.');
    if (!dot || strcmp(dot, ".log") != 0) continue;
    char *path = hb_folder_join(folder, entry->d_name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static uint8_t bytes[64 * 1024];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    free(path);
    found = found || memmem(bytes, size, wanted, sizeof wanted) != NULL;
  }
  closedir(open_folder);
  free(folder);
  return found;
}

static void is_told(struct fixture *fixture, uint64_t commit, uint64_t previous, uint64_t synced) {
  struct hb_log_data data = {.run = 1,
                             .mark = fixture->store->run_mark,
                             .commit = commit,
                             .previous = previous,
                             .synced = synced};
  assert_true(is_in_log(fixture, data));
  data.synced++;
  assert_false(is_in_log(fixture, data));
}

/* Each write says in RocksDB's log: run and its mark, its commit, the one before it, and the last
 * that was durable then; an unsynced one does not move that, a sync does. */
static void writes_say_which_commit_they_are(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  is_told(fixture, 0, 0, 0);
  hb_write_put_served_ms(fixture->write, 1);
  must(hb_store_write(fixture->store, fixture->write, 10, true, &err), &err);
  must(hb_store_write(fixture->store, fixture->write, 11, false, &err), &err);
  must(hb_store_write(fixture->store, fixture->write, 12, false, &err), &err);
  must(hb_store_sync(fixture->store, &err), &err);
  must(hb_store_write(fixture->store, fixture->write, 13, true, &err), &err);
  is_told(fixture, 10, 0, 0);
  is_told(fixture, 11, 10, 10);
  is_told(fixture, 12, 11, 10);
  is_told(fixture, 13, 12, 12);
}

/* ---- held */

struct ids {
  int count;
  int most; /* stop after so many */
  struct hb_bundle_id items[16];
};

static bool take_bundle(void *context, struct hb_bundle_id id, struct hb_slice block) {
  struct ids *ids = context;
  struct hb_block decoded;
  struct hb_err err;
  must(hb_block_decode(block, &decoded, &err), &err);
  assert_int_equal(decoded.from, (int64_t)id.commit); /* as the tests below write them */
  ids->items[ids->count++] = id;
  return ids->count < ids->most;
}

static struct ids read_bundles(struct fixture *fixture, uint64_t stream,
                               const struct hb_bundle_id *after, int most) {
  struct ids ids = {.most = most};
  struct hb_err err;
  must(hb_bundle_each(fixture->store, stream, after, take_bundle, &ids, &err), &err);
  return ids;
}

static void put_some_bundles(struct fixture *fixture) {
  put_bundle(fixture, (struct hb_bundle_id){1, 9, 0}, 9, 10);
  put_bundle(fixture, (struct hb_bundle_id){1, 9, 1}, 9, 11);
  put_bundle(fixture, (struct hb_bundle_id){1, 300, 0}, 300, 301);
  put_bundle(fixture, (struct hb_bundle_id){2, 9, 0}, 9, 10);
  apply(fixture);
}

/* Bundles of one stream come in the order of their names, and after any of them. */
static void bundles_come_in_order(void **state) {
  struct fixture *fixture = *state;
  put_some_bundles(fixture);
  struct ids ids = read_bundles(fixture, 1, NULL, 16);
  assert_int_equal(ids.count, 3);
  assert_int_equal(ids.items[0].part, 0);
  assert_int_equal(ids.items[1].part, 1);
  assert_int_equal(ids.items[2].commit, 300);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(read_bundles(fixture, 1, &ids.items[i], 16).count, 2 - i);
  }
  assert_int_equal(read_bundles(fixture, 1, NULL, 1).count, 1);
  struct hb_bundle_id between = {1, 10, 0};
  assert_int_equal(read_bundles(fixture, 1, &between, 16).items[0].commit, 300);
}

/* One bundle by name; a deleted one, or none, is no error. */
static void a_bundle_is_read_by_name(void **state) {
  struct fixture *fixture = *state;
  struct hb_bytes *bytes = NULL;
  struct hb_err err;
  put_some_bundles(fixture);
  must(hb_bundle_read(fixture->store, (struct hb_bundle_id){1, 9, 1}, &bytes, &err), &err);
  assert_non_null(bytes);
  hb_bytes_unref(bytes);
  hb_write_delete_bundle(fixture->write, (struct hb_bundle_id){1, 9, 1});
  apply(fixture);
  must(hb_bundle_read(fixture->store, (struct hb_bundle_id){1, 9, 1}, &bytes, &err), &err);
  assert_null(bytes);
  assert_int_equal(read_bundles(fixture, 1, NULL, 16).count, 2);
}

/* A bundle and its deletion leave nothing behind when they meet: no row, no tombstone. */
static void a_drained_bundle_leaves_nothing(void **state) {
  struct fixture *fixture = *state;
  struct hb_rocks *engine = fixture->store->engine;
  struct hb_err err;
  for (uint64_t i = 1; i <= 20; i++) {
    put_bundle(fixture, (struct hb_bundle_id){1, i, 0}, 1, 2);
    apply(fixture);
  }
  must(hb_rocks_flush(engine, HB_FAMILY_HELD, &err), &err);
  assert_true(hb_rocks_number(engine, HB_FAMILY_HELD, "rocksdb.total-sst-files-size") > 0);
  for (uint64_t i = 1; i <= 20; i++) {
    hb_write_delete_bundle(fixture->write, (struct hb_bundle_id){1, i, 0});
  }
  apply(fixture);
  must(hb_rocks_flush(engine, HB_FAMILY_HELD, &err), &err);
  hb_rocks_compact(engine, HB_FAMILY_HELD, hb_slice_text("\0"), hb_slice_text("\xFF"));
  assert_int_equal(hb_rocks_number(engine, HB_FAMILY_HELD, "rocksdb.total-sst-files-size"), 0);
}

/* ---- gaps, unprocessed, peers */

struct gaps {
  int count;
  struct hb_gap items[8];
};

static bool take_gap(void *context, const struct hb_gap *gap) {
  struct gaps *gaps = context;
  gaps->items[gaps->count++] = *gap;
  return true;
}

/* Gaps ascend by start, negative ones first; a deleted one is gone. */
static void gaps_come_back(void **state) {
  struct fixture *fixture = *state;
  struct hb_gap gaps[3] = {{5, 6, 10, 1000}, {INT64_MIN, -7, 11, 1001}, {-3, INT64_MAX, 12, 1002}};
  struct gaps back = {0};
  struct hb_err err;
  for (int i = 0; i < 3; i++) hb_write_put_gap(fixture->write, 1, &gaps[i]);
  hb_write_put_gap(fixture->write, 2, &gaps[0]);
  apply(fixture);
  hb_write_delete_gap(fixture->write, 1, 5);
  apply(fixture);
  must(hb_gap_each(fixture->store, 1, take_gap, &back, &err), &err);
  assert_int_equal(back.count, 2);
  assert_memory_equal(&back.items[0], &gaps[1], sizeof gaps[1]);
  assert_memory_equal(&back.items[1], &gaps[2], sizeof gaps[2]);
}

struct rows {
  int count;
  struct hb_unprocessed items[4];
  char frames[4][16];
};

static bool take_row(void *context, const struct hb_unprocessed *row) {
  struct rows *rows = context;
  rows->items[rows->count] = *row;
  snprintf(rows->frames[rows->count++], 16, "%.*s", (int)row->frame.size, row->frame.data);
  return true;
}

static struct rows read_rows(struct fixture *fixture) {
  struct rows rows = {0};
  struct hb_err err;
  must(hb_unprocessed_each(fixture->store, 1, take_row, &rows, &err), &err);
  return rows;
}

static void put_refusal(struct fixture *fixture, int64_t sequence, uint64_t hash, const char *frame,
                        uint64_t seen) {
  hb_write_put_unprocessed(fixture->write, 1, HB_OUTCOME_CONFLICT, sequence, hash,
                           hb_slice_text(frame), seen, 9);
}

static void check_merged(struct fixture *fixture) {
  struct rows rows = read_rows(fixture);
  assert_int_equal(rows.count, 2);
  assert_int_equal(rows.items[0].sequence, -4);
  assert_int_equal(rows.items[0].content_hash, 77);
  assert_int_equal(rows.items[0].outcome, HB_OUTCOME_CONFLICT);
  assert_int_equal(rows.items[0].count, 5);
  assert_int_equal(rows.items[0].first_seen_wall_ms, 100);
  assert_int_equal(rows.items[0].last_seen_wall_ms, 104);
  assert_int_equal(rows.items[0].peer, 9);
  assert_string_equal(rows.frames[0], "first 0");
  assert_int_equal(rows.items[1].content_hash, 78);
  assert_int_equal(rows.items[1].count, 1);
}

/* The same refusal again is one row that counts: in one commit, over commits, after flushes, after
 * a restart and after a compaction; the frame of the first stays. */
static void the_same_refusal_counts(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  make_stream(fixture, 1, "one"); /* else its rows are dropped at start */
  for (int i = 0; i < 5; i++) {
    char frame[16];
    snprintf(frame, sizeof frame, "first %d", i);
    put_refusal(fixture, -4, 77, frame, 100 + (uint64_t)i);
    if (i == 1) continue; /* two of them in one commit */
    apply(fixture);
    if (i == 3) must(hb_rocks_flush(fixture->store->engine, HB_FAMILY_UNPROCESSED, &err), &err);
  }
  put_refusal(fixture, -4, 78, "other", 100);
  apply(fixture);
  check_merged(fixture);
  reopen_store(fixture);
  check_merged(fixture);
  hb_rocks_compact(fixture->store->engine, HB_FAMILY_UNPROCESSED, hb_slice_text("\0"),
                   hb_slice_text("\xFF"));
  check_merged(fixture);
}

struct peers {
  int count;
  uint32_t ids[4];
  char texts[4][32];
};

static bool take_peer(void *context, uint32_t peer, struct hb_slice text) {
  struct peers *peers = context;
  peers->ids[peers->count] = peer;
  snprintf(peers->texts[peers->count++], 32, "%.*s", (int)text.size, text.data);
  return true;
}

/* Senders come back in the order of their numbers. */
static void peers_come_back(void **state) {
  struct fixture *fixture = *state;
  struct peers peers = {0};
  struct hb_err err;
  hb_write_put_peer(fixture->write, 256, hb_slice_text("ipv4:10.0.0.1"));
  hb_write_put_peer(fixture->write, 1, hb_slice_text(""));
  hb_write_put_peer(fixture->write, 255, hb_slice_text("feed-b"));
  apply(fixture);
  reopen_store(fixture);
  must(hb_peer_each(fixture->store, take_peer, &peers, &err), &err);
  assert_int_equal(peers.count, 3);
  assert_int_equal(peers.ids[0], 1);
  assert_string_equal(peers.texts[0], "");
  assert_int_equal(peers.ids[2], 256);
  assert_string_equal(peers.texts[2], "ipv4:10.0.0.1");
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown)
  const struct CMUnitTest tests[] = {
      ONE(streams_come_back),
      ONE(the_last_record_counts),
      ONE(a_visit_can_stop),
      ONE(a_mark_replaces_the_stream),
      ONE(half_a_stream_is_damage),
      ONE(a_cleared_write_has_nothing),
      ONE(writes_say_which_commit_they_are),
      ONE(bundles_come_in_order),
      ONE(a_bundle_is_read_by_name),
      ONE(a_drained_bundle_leaves_nothing),
      ONE(gaps_come_back),
      ONE(the_same_refusal_counts),
      ONE(peers_come_back),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
