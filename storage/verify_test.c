/* Verification: a sound store has no finding, and each thing that can be wrong is told, with its
 * place, while the rest is looked at all the same. The damage here is made by writing what no
 * server writes; damaged files are damage_test.c's. */
#include <xxhash.h>

#include "base/endian.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/test_damage_internal.h"
#include "storage/test_sound_internal.h"
#include "storage/verify_internal.h"

/* ---- sound */

static void expect_sound(struct fixture *fixture, bool live, size_t step) {
  struct found found;
  struct hb_verify_counts counts = verify_store(fixture->store, 0, live, step, &found);
  print_findings(&found);
  assert_int_equal(counts.findings, 0);
  assert_int_equal(counts.streams, 3);
  assert_int_equal(counts.blocks, 4);
  assert_int_equal(counts.events, 400);
  assert_int_equal(counts.bundles, 2);
  assert_int_equal(counts.held_events, 30);
  assert_int_equal(counts.index_entries, 350);
  assert_true(counts.bytes > 400 * SOUND_PAYLOAD);
  assert_int_equal(counts.done, counts.total);
}

/* Whatever the size of the steps, and whether it is open for writing or not. */
static void a_sound_store_has_no_findings(void **state) {
  struct fixture *fixture = *state;
  expect_sound(fixture, false, 1 << 30);
  expect_sound(fixture, true, 1);
  expect_sound(fixture, false, 70000);
  close_store(fixture);
  struct hb_err err;
  struct hb_store_options options = {.path = fixture->path, .read_only = true};
  must(hb_store_open(&options, &fixture->store, &err), &err);
  expect_sound(fixture, false, 70000);
}

/* One stream alone: nothing else is counted. */
static void one_stream_alone(void **state) {
  struct fixture *fixture = *state;
  struct found found;
  struct hb_verify_counts counts = verify_store(fixture->store, 2, true, 1000, &found);
  assert_int_equal(counts.findings, 0);
  assert_int_equal(counts.streams, 1);
  assert_int_equal(counts.events, 100);
  assert_int_equal(counts.index_entries, 100);
}

/* An empty store is sound. */
static void a_new_store_is_sound(void **state) {
  struct fixture *fixture = *state;
  struct found found;
  struct hb_verify_counts counts = verify_store(fixture->store, 0, false, 1000, &found);
  print_findings(&found);
  assert_int_equal(counts.findings, 0);
  assert_int_equal(counts.rows, 5);
}

/* What a writer adds while it is looked at is no finding, and neither is a stream that goes. */
static void a_writer_beside_is_no_damage(void **state) {
  struct fixture *fixture = *state;
  struct found found = {.count = 0};
  struct hb_verify_options options = {
      .store = fixture->store, .live = true, .found = note_finding, .context = &found};
  struct hb_verify *verify = hb_verify_create(&options);
  int64_t next = 50;
  int steps = 0;
  for (; hb_verify_step(verify, 1); steps++) {
    sound_put_log(fixture, 2, next, next + 20);
    next += 20;
    sound_put_record(fixture, 2, -50, next, next, next - 1, (uint64_t)(next + 50));
    apply(fixture);
    sound_put_index(fixture, 2, next - 20, next, next, false);
    if (steps != 30) continue;
    hb_write_mark_deleting(fixture->write, 1); /* while its log is being looked at */
    apply(fixture);
    struct hb_batch_writer *batch = hb_rocks_batch_create(fixture->store->engine);
    struct hb_key start = hb_key_stream(1);
    struct hb_key end = hb_key_stream_end(1);
    hb_rocks_delete_range(batch, HB_FAMILY_LOG, hb_key_view(&start), hb_key_view(&end));
    hb_rocks_delete_range(batch, HB_FAMILY_LISTS, hb_key_view(&start), hb_key_view(&end));
    struct hb_err err;
    must(hb_rocks_write(fixture->store->engine, batch, true, &err), &err);
    hb_rocks_batch_destroy(batch);
  }
  hb_verify_destroy(verify);
  print_findings(&found);
  assert_true(steps > 40);
  assert_int_equal(found.count, 0);
}

/* ---- what is wrong */

static void put_log(struct edit *edit, uint64_t stream, int64_t at, int64_t from, int64_t to) {
  struct hb_bytes *block = sound_log_block(from, to);
  put(edit, HB_FAMILY_LOG, hb_key_position(stream, at), hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void log_checksum(struct edit *edit) {
  flip(edit, HB_FAMILY_LOG, hb_key_position(1, 101), 5000);
}
static void log_hole(struct edit *edit) { erase(edit, HB_FAMILY_LOG, hb_key_position(1, 101)); }
static void log_start(struct edit *edit) { erase(edit, HB_FAMILY_LOG, hb_key_position(1, 1)); }
static void log_end(struct edit *edit) { erase(edit, HB_FAMILY_LOG, hb_key_position(1, 201)); }
static void log_overlap(struct edit *edit) { put_log(edit, 1, 150, 150, 160); }
static void log_above(struct edit *edit) { put_log(edit, 2, 50, 50, 60); }
static void log_misplaced(struct edit *edit) { put_log(edit, 1, 101, 102, 201); }
static void log_unexpected(struct edit *edit) { put_log(edit, 3, 0, 0, 5); }
static void log_key(struct edit *edit) {
  struct hb_key key = hb_key_position(1, 150);
  key.size--;
  put(edit, HB_FAMILY_LOG, key, hb_slice_text("x"));
}

static void log_cut(struct edit *edit) {
  struct hb_bytes *block = sound_log_block(101, 201);
  put(edit, HB_FAMILY_LOG, hb_key_position(1, 101), hb_slice_of(block->data, block->size - 100));
  hb_bytes_unref(block);
}

/* The frames of other sequences: every checksum is right. */
static void log_wrong_events(struct edit *edit) {
  struct hb_block_entry entries[100];
  struct hb_buf frames[100] = {{0}};
  for (int i = 0; i < 100; i++) {
    sound_frame(&frames[i], i == 7 ? 105 : 101 + i);
    entries[i] = (struct hb_block_entry){
        .sequence = 101 + i, .frame = frames[i].data, .frame_size = (uint32_t)frames[i].size};
  }
  struct hb_bytes *block =
      hb_block_encode(HB_BLOCK_EVENTS, 101, 201, sound_time(201), entries, 100);
  put(edit, HB_FAMILY_LOG, hb_key_position(1, 101), hb_bytes_view(block));
  hb_bytes_unref(block);
  for (int i = 0; i < 100; i++) hb_buf_done(&frames[i]);
}

static void log_fewer_events(struct edit *edit) {
  struct hb_range ranges[] = {{101, 150}, {155, 201}, {0, 0}};
  struct hb_bytes *block = sound_block(ranges, sound_time(201));
  put(edit, HB_FAMILY_LOG, hb_key_position(1, 101), hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void log_no_frame(struct edit *edit) {
  uint8_t frame[] = {0x0A, 2, 0xFF, 0xFF};
  struct hb_block_entry entry = {.sequence = 50, .frame = frame, .frame_size = sizeof frame};
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, 50, 51, sound_time(50), &entry, 1);
  put(edit, HB_FAMILY_LOG, hb_key_position(2, 50), hb_bytes_view(block));
  hb_bytes_unref(block);
  struct hb_buf value = {0};
  struct hb_frontier record = {.frozen = true,
                               .first_sequence = -50,
                               .earliest = -50,
                               .frontier = 51,
                               .complete_to = 51,
                               .any = true,
                               .highest = 50,
                               .max_event_time = sound_time(50),
                               .counters = {.stored = 101}};
  hb_record_put_frontier(&value, &record);
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(2, HB_KIND_FRONTIER), hb_buf_view(&value));
  hb_buf_done(&value);
}

static void log_time(struct edit *edit) {
  struct hb_range ranges[] = {{101, 201}, {0, 0}};
  struct hb_bytes *block = sound_block(ranges, (struct hb_time){.seconds = 1150, .present = true});
  put(edit, HB_FAMILY_LOG, hb_key_position(1, 101), hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* ---- held */

static struct hb_key bundle(struct edit *edit, uint32_t part) {
  struct hb_bundle_id found = {.part = part};
  struct hb_rocks_iter *iter = hb_store_iter(edit->fixture->store, HB_FAMILY_HELD, 1);
  hb_rocks_iter_first(iter);
  assert_true(hb_key_parse_bundle(hb_rocks_iter_key(iter), &found));
  hb_rocks_iter_destroy(iter);
  found.part = part;
  return hb_key_bundle(found);
}

static void put_held(struct edit *edit, uint64_t commit, int64_t from, int64_t to) {
  struct hb_range ranges[] = {{from, to}, {0, 0}};
  struct hb_bytes *block = sound_block(ranges, (struct hb_time){0});
  put(edit, HB_FAMILY_HELD, hb_key_bundle((struct hb_bundle_id){1, commit, 0}),
      hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void held_checksum(struct edit *edit) { flip(edit, HB_FAMILY_HELD, bundle(edit, 0), 3000); }
static void held_lost(struct edit *edit) { erase(edit, HB_FAMILY_HELD, bundle(edit, 1)); }
static void held_twice(struct edit *edit) { put_held(edit, 1000, 305, 308); }
static void held_covers_gap(struct edit *edit) { put_held(edit, 1000, 321, 323); }
static void held_below(struct edit *edit) { put_held(edit, 1000, 100, 110); }
static void held_above_lost(struct edit *edit) {
  struct hb_range ranges[] = {{301, 311}, {341, 350}, {0, 0}};
  struct hb_bytes *block = sound_block(ranges, (struct hb_time){0});
  put(edit, HB_FAMILY_HELD, bundle(edit, 0), hb_bytes_view(block));
  hb_bytes_unref(block);
}
static void held_highest_lost(struct edit *edit) {
  struct hb_range ranges[] = {{301, 311}, {340, 349}, {0, 0}};
  struct hb_bytes *block = sound_block(ranges, (struct hb_time){0});
  put(edit, HB_FAMILY_HELD, bundle(edit, 0), hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* ---- lists */

static void put_entry(struct edit *edit, const char *key, int64_t position, int64_t block,
                      uint32_t offset, uint32_t length) {
  struct hb_buf row = {0};
  uint8_t value[HB_RECORD_INDEX_SIZE];
  struct hb_index_entry entry = {.block = block, .offset = offset, .length = length};
  hb_key_list(&row, 1, hb_slice_text(key), position);
  hb_record_put_index(value, &entry);
  hb_rocks_put(edit->batch, HB_FAMILY_LISTS, hb_buf_view(&row), hb_slice_of(value, sizeof value));
  hb_buf_done(&row);
}

static void erase_entry(struct edit *edit, const char *key, int64_t position) {
  struct hb_buf row = {0};
  hb_key_list(&row, 1, hb_slice_text(key), position);
  hb_rocks_delete(edit->batch, HB_FAMILY_LISTS, hb_buf_view(&row));
  hb_buf_done(&row);
}

static void index_missing(struct edit *edit) {
  erase_entry(edit, "k5", 105);
  erase_entry(edit, "k6", 106);
  erase_entry(edit, "k1", 201);
}
static void index_extra(struct edit *edit) { put_entry(edit, "other", 105, 101, 10, 20); }
static void index_wrong(struct edit *edit) { put_entry(edit, "k5", 105, 101, 10, 20); }
static void index_swapped(struct edit *edit) {
  erase_entry(edit, "k5", 105);
  put_entry(edit, "k6", 105, 101, 10, 20);
}
static void index_above(struct edit *edit) { put_entry(edit, "k5", 500, 500, 10, 20); }
static void index_value(struct edit *edit) {
  struct hb_buf row = {0};
  hb_key_list(&row, 1, hb_slice_text("k5"), 105);
  hb_rocks_put(edit->batch, HB_FAMILY_LISTS, hb_buf_view(&row), hb_slice_text("\1junk"));
  hb_buf_done(&row);
}
static void index_all_gone(struct edit *edit) {
  struct hb_key start = hb_key_stream(1);
  struct hb_key end = hb_key_stream_end(1);
  hb_rocks_delete_range(edit->batch, HB_FAMILY_LISTS, hb_key_view(&start), hb_key_view(&end));
}

/* ---- small rows */

static void put_record(struct edit *edit, const struct hb_frontier *record) {
  struct hb_buf value = {0};
  hb_record_put_frontier(&value, record);
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_FRONTIER), hb_buf_view(&value));
  hb_buf_done(&value);
}

static struct hb_frontier record_of_one(void) {
  return (struct hb_frontier){.frozen = true,
                              .first_sequence = 1,
                              .earliest = 1,
                              .frontier = 301,
                              .complete_to = 321,
                              .any = true,
                              .highest = 349,
                              .max_event_time = sound_time(301),
                              .counters = {.stored = 330}};
}

static void record_junk(struct edit *edit) {
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_FRONTIER), hb_slice_text("\1junk"));
}
static void record_lost(struct edit *edit) {
  erase(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_FRONTIER));
}
static void config_lost(struct edit *edit) {
  erase(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_CONFIG));
}
static void record_back(struct edit *edit) { /* as if an older one had come back */
  struct hb_frontier record = record_of_one();
  record.frontier = record.complete_to = 201;
  put_record(edit, &record);
}
static void record_count(struct edit *edit) {
  struct hb_frontier record = record_of_one();
  record.counters.stored = 331;
  put_record(edit, &record);
}
static void record_time(struct edit *edit) {
  struct hb_frontier record = record_of_one();
  record.max_event_time.seconds++;
  put_record(edit, &record);
}
static void record_first(struct edit *edit) {
  struct hb_frontier record = record_of_one();
  record.first_sequence = 0;
  put_record(edit, &record);
}
static void stream_of_the_future(struct edit *edit) {
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_FRONTIER), hb_slice_text("\2"));
}
static void block_of_the_future(struct edit *edit) {
  struct hb_bytes *block = sound_log_block(101, 201);
  uint8_t *copy = hb_memdup(block->data, block->size);
  copy[0] = 2;
  hb_put_u64_le(copy + block->size - 8, XXH3_64bits(copy, block->size - 8));
  put(edit, HB_FAMILY_LOG, hb_key_position(1, 101), hb_slice_of(copy, block->size));
  hb_bytes_unref(block);
  free(copy);
}
static void all_of_a_stream_lost(struct edit *edit) {
  erase(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_CONFIG));
  erase(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_FRONTIER));
  erase(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_INDEXED_TO));
}
static void same_name(struct edit *edit) {
  struct hb_buf value = {0};
  struct hb_stream_config config = some_config("two");
  hb_record_put_config(&value, &config);
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(3, HB_KIND_CONFIG), hb_buf_view(&value));
  hb_buf_done(&value);
}
static void indexed_to_above(struct edit *edit) {
  struct hb_buf value = {0};
  hb_record_put_u64(&value, 302);
  put(edit, HB_FAMILY_STREAMS, hb_key_streams_row(1, HB_KIND_INDEXED_TO), hb_buf_view(&value));
  hb_buf_done(&value);
}
static void gap_junk(struct edit *edit) {
  put(edit, HB_FAMILY_GAPS, hb_key_position(1, 330), hb_slice_text("\1junk"));
}
static void kept_junk(struct edit *edit) {
  put(edit, HB_FAMILY_UNPROCESSED, hb_key_unprocessed(1, HB_OUTCOME_CONFLICT, 5, 6),
      hb_slice_text("\1junk"));
}
static void kept_other(struct edit *edit) {
  struct hb_buf value = {0};
  struct hb_buf frame = {0};
  sound_frame(&frame, 5);
  struct hb_unprocessed row = {.count = 1, .frame = hb_buf_view(&frame)};
  hb_record_put_unprocessed(&value, &row);
  put(edit, HB_FAMILY_UNPROCESSED, hb_key_unprocessed(1, HB_OUTCOME_CONFLICT, 5, 6),
      hb_buf_view(&value));
  hb_buf_done(&value);
  hb_buf_done(&frame);
}
static void peer_junk(struct edit *edit) {
  put(edit, HB_FAMILY_PEERS, hb_key_peer(3), (struct hb_slice){0});
}
static void meta_unknown(struct edit *edit) {
  hb_rocks_put(edit->batch, HB_FAMILY_META, hb_slice_text("colour"), hb_slice_text("\1red"));
}
static void meta_junk(struct edit *edit) {
  hb_rocks_put(edit->batch, HB_FAMILY_META, hb_slice_text("served_ms"), hb_slice_text("\1"));
}
static void next_stream_back(struct edit *edit) {
  struct hb_buf value = {0};
  hb_record_put_u64(&value, 2);
  hb_rocks_put(edit->batch, HB_FAMILY_META, hb_slice_text("next_stream"), hb_buf_view(&value));
  hb_buf_done(&value);
}

static const struct damage DAMAGE[] = {
    {"log: a flipped bit",
     log_checksum,
     {"stream 'one' (id 1), log [101, 201): block: checksum is wrong"},
     0},
    {"log: a cut block", log_cut, {"stream 'one' (id 1), log [101, 201): block: checksum"}, 0},
    {"log: a block is missing",
     log_hole,
     {"stream 'one' (id 1), log [101, 201): no block accounts for these positions"},
     0},
    {"log: the first one", log_start, {"log [1, 101): no block accounts"}, 0},
    {"log: the last one", log_end, {"log [201, 301): the log ends before the frontier"}, 0},
    {"log: two for a position",
     log_overlap,
     {"log [150, 160): two blocks account", "log [160, 201): no block accounts",
      "lists [150, 160): the index points to another place"},
     4},
    {"log: above the frontier", log_above, {"log [50, 60): a block is above the frontier"}, 0},
    {"log: in another's place",
     log_misplaced,
     {"log [101, 201): the block there starts at 102"},
     0},
    {"log: of a stream without an event",
     log_unexpected,
     {"stream 'three' (id 3), log: a block at 0, though nothing was released"},
     0},
    {"log: a strange key", log_key, {"log: row 0000000000000001"}, 0},
    {"log: other events in it",
     log_wrong_events,
     {"log [108, 109): the event there has sequence 105",
      "lists [108, 109): the index has no entry", "lists [108, 109): an entry under a key"},
     0},
    {"log: events missing in a block",
     log_fewer_events,
     {"log [150, 155): the block has no event", "lists [150, 151): an entry for a position",
      "lists [155, 201): the index points to another"},
     1 + 5 + 1},
    {"log: a frame that is none", log_no_frame, {"stream 'two' (id 2), log [50, 51): "}, 0},
    {"log: a wrong running maximum",
     log_time,
     {
         "log [101, 201): the largest event time",
     },
     0},
    {"log: a version of the future",
     block_of_the_future,
     {"log [101, 201): block: version is 2, this program reads version 1"},
     0},
    {"held: a flipped bit",
     held_checksum,
     {"stream 'one' (id 1), held: bundle", "held [301, 311): no bundle has these sequences",
      "the highest sequence that is there is 320"},
     0},
    {"held: a bundle is missing",
     held_lost,
     {"held [311, 321): no bundle has these sequences, though complete_to is 321"},
     0},
    {"held: twice", held_twice, {"held [305, 308): in two bundles"}, 0},
    {"held: in the first gap", held_covers_gap, {"held [321, 323): complete_to 321 is covered"}, 0},
    {"held: one lost behind a gap",
     held_above_lost,
     {"streams: 330 events were stored, but 300 are in the log and 29 held"},
     0},
    {"held: the highest lost",
     held_highest_lost,
     {"held: the highest sequence that is there is 348, the frontier record says 349"},
     0},
    {"lists: missing entries",
     index_missing,
     {"lists [105, 107): the index has no entry", "lists [201, 202): the index has no entry"},
     0},
    {"lists: one too many", index_extra, {"lists [105, 106): an entry under a key"}, 0},
    {"lists: to a wrong place", index_wrong, {"lists [105, 106): the index points to another"}, 0},
    {"lists: under a wrong key",
     index_swapped,
     {"lists [105, 106): the index has no entry", "lists [105, 106): an entry under a key"},
     0},
    {"lists: above the frontier",
     index_above,
     {"lists [500, 501): 1 entries above the frontier"},
     0},
    {"lists: a value that is none", index_value, {"lists [105, 106): row 0000000000000001"}, 0},
    {"lists: nothing left", index_all_gone, {"lists [1, 251): the index has no entry"}, 0},
    {"record: junk",
     record_junk,
     {"stream id 1, streams: frontier record", "its frontier record is missing or can't be used"},
     0},
    {"record: missing", record_lost, {"its frontier record is missing"}, 0},
    {"configuration: missing",
     config_lost,
     {"stream id 1, streams: its configuration is missing", "log: rows of a stream that is not"},
     10},
    {"both: missing",
     all_of_a_stream_lost,
     {"stream id 1, log: rows of a stream that is not known",
      "stream id 1, held: rows of a stream"},
     10},
    {"record: an older one",
     record_back,
     {"indexed_to 251 is above the frontier 201", "log [201, 301): a block is above the frontier",
      "lists [201, 251): 50 entries above the frontier"},
     0},
    {"record: stored",
     record_count,
     {"331 events were stored, but 300 are in the log and 30 held"},
     0},
    {"record: time", record_time, {"max_event_time is not that of the log"}, 0},
    {"record: first", record_first, {"first_sequence is 0 in the frontier record, 1 in the"}, 0},
    {"record: a version of the future",
     stream_of_the_future,
     {"stream id 1, streams: frontier record: version", "can't be used"},
     0},
    {"two of one name", same_name, {"stream id 3, streams: another stream has its name"}, 0},
    {"indexed_to above the frontier",
     indexed_to_above,
     {"indexed_to 302 is above the frontier", "lists [251, 301): the index has no entry"},
     0},
    {"gaps: junk", gap_junk, {"stream 'one' (id 1), gaps: row 0000000000000001"}, 0},
    {"unprocessed: junk", kept_junk, {"stream 'one' (id 1), unprocessed: row 0000000000000001"}, 0},
    {"unprocessed: another content", kept_other, {"its event has another content"}, 0},
    {"peers: junk", peer_junk, {"peers: row 00000003"}, 0},
    {"meta: unknown", meta_unknown, {"meta: row colour: not known"}, 0},
    {"meta: junk", meta_junk, {"meta: row served_ms"}, 0},
    {"an id that was not given", next_stream_back, {"its id was not given by this store"}, 0},
};

/* Each is told where it is, and nothing else is said to be wrong. */
static void damage_is_told(void **state) {
  check_damage(*state, DAMAGE, sizeof DAMAGE / sizeof *DAMAGE);
}

/* Entries of a bundle below the frontier are ignored (I10). */
static void what_was_released_may_still_lie_in_a_bundle(void **state) {
  struct fixture *fixture = *state;
  struct edit edit = {fixture, hb_rocks_batch_create(fixture->store->engine)};
  struct hb_err err;
  held_below(&edit);
  must(hb_rocks_write(fixture->store->engine, edit.batch, true, &err), &err);
  hb_rocks_batch_destroy(edit.batch);
  struct found found;
  verify_store(fixture->store, 0, false, 5000, &found);
  assert_int_equal(found.count, 0);
}

/* Many findings of one kind are cut short, and the rest is looked at all the same. */
static void many_findings_are_cut_short(void **state) {
  struct fixture *fixture = *state;
  struct edit edit = {fixture, hb_rocks_batch_create(fixture->store->engine)};
  struct hb_err err;
  for (int i = 0; i < 5000; i++) {
    char key[32];
    snprintf(key, sizeof key, "other%d", i);
    put_entry(&edit, key, 5, 1, 0, 1);
  }
  gap_junk(&edit);
  must(hb_rocks_write(fixture->store->engine, edit.batch, true, &err), &err);
  hb_rocks_batch_destroy(edit.batch);
  struct found *found = hb_calloc(1, sizeof *found);
  struct hb_verify_counts counts = verify_store(fixture->store, 0, false, 5000, found);
  free(found);
  assert_int_equal(counts.findings, 1000 + 1 + 1);
  assert_int_equal(counts.index_entries, 350 + 5000);
}

static size_t verify_with_runs(struct fixture *fixture, size_t runs_max, struct found *found) {
  struct hb_verify_options options = {
      .store = fixture->store, .found = note_finding, .context = found};
  found->count = 0;
  struct hb_verify *verify = hb_verify_create(&options);
  verify->held_runs_max = runs_max;
  while (hb_verify_step(verify, 2000)) continue;
  size_t held = hb_verify_counts(verify)->held_events;
  hb_verify_destroy(verify);
  return held;
}

static void hold(struct fixture *fixture, uint64_t commit, int64_t first, int64_t step, int count) {
  struct hb_range ranges[400] = {{0, 0}};
  for (int i = 0; i < count; i++) {
    ranges[i] = (struct hb_range){first + i * step, first + i * step + 1};
  }
  struct hb_bytes *block = sound_block(ranges, (struct hb_time){0});
  hb_write_put_bundle(fixture->write, (struct hb_bundle_id){2, commit, 0}, hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* However little fits the table of coverage: what is covered, missing and there twice is told the
 * same. 50..349 lie scattered over three bundles; 200 is missing, 210 there twice. */
static void coverage_is_judged_in_passes(void **state) {
  struct fixture *fixture = *state;
  for (int i = 0; i < 3; i++) hold(fixture, 1000 + (uint64_t)i, 50 + i, 3, i == 0 ? 50 : 100);
  hold(fixture, 1010, 203, 3, 49);
  hold(fixture, 1020, 210, 1, 1);
  struct hb_frontier record = {.frozen = true,
                               .first_sequence = -50,
                               .earliest = -50,
                               .frontier = 50,
                               .complete_to = 350,
                               .any = true,
                               .highest = 349,
                               .max_event_time = sound_time(50),
                               .counters = {.stored = 400},
                               .commit = fixture->commit + 1};
  hb_write_put_frontier(fixture->write, 2, &record);
  apply(fixture);
  static const size_t MAXIMA[] = {4, 7, 100, 0};
  for (size_t i = 0; i < sizeof MAXIMA / sizeof *MAXIMA; i++) {
    struct found found;
    assert_int_equal(verify_with_runs(fixture, MAXIMA[i], &found), 30 + 300);
    bool good = found.count == 2 && is_found(&found, "held [200, 201): no bundle has") &&
                is_found(&found, "held [210, 211): in two bundles: 1001/0 and 1020/0");
    if (!good) print_findings(&found);
    assert_true(good);
  }
}

int main(void) {
#define SOUND(name) cmocka_unit_test_setup_teardown(name, setup_sound, teardown)
  const struct CMUnitTest tests[] = {
      SOUND(a_sound_store_has_no_findings),
      SOUND(one_stream_alone),
      cmocka_unit_test_setup_teardown(a_new_store_is_sound, setup_store, teardown),
      SOUND(a_writer_beside_is_no_damage),
      SOUND(damage_is_told),
      SOUND(what_was_released_may_still_lie_in_a_bundle),
      SOUND(many_findings_are_cut_short),
      SOUND(coverage_is_judged_in_passes),
  };
#undef SOUND
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
