/* A store in which everything is as it should be, with something in each family that this version
 * uses, and a way to verify it. What tests damage.
 *
 *   1 "one"    log [1, 301) in blocks of 100; held 301..320 and, behind a gap, 340..349, in two
 *              bundles of which one is large enough for a file of its own; indexed to 251
 *   2 "two"    log [-50, 50) in one block, all of it indexed; nothing held
 *   3 "three"  no first event yet
 *   4          being deleted
 *   5          a processor of stream 1: 20 results in two blocks, states, timers, a failure
 *   6          its statuses by key: 5 were told, one is kept; a key that waits */
#ifndef HB_STORAGE_TEST_SOUND_INTERNAL_H
#define HB_STORAGE_TEST_SOUND_INTERNAL_H

#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "storage/index.h"
#include "storage/processor.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"
#include "storage/verify.h"

enum { SOUND_PAYLOAD = 600 };

/* The event of a sequence: key "k0".."k9", time 1000 + sequence seconds for each third. */
MAYBE_UNUSED static void sound_frame(struct hb_buf *out, int64_t sequence) {
  struct hb_buf event = {0};
  struct hb_buf time = {0};
  char key[8];
  uint8_t payload[SOUND_PAYLOAD];
  snprintf(key, sizeof key, "k%d", (int)(((sequence % 10) + 10) % 10));
  memset(payload, 'a' + (int)(((sequence % 26) + 26) % 26), sizeof payload);
  if (sequence) hb_wire_append_varint(&event, 1, (uint64_t)sequence);
  hb_wire_append_bytes(&event, 2, hb_slice_text(key));
  if (sequence % 3 == 0) {
    hb_wire_append_varint(&time, 1, (uint64_t)(1000 + sequence));
    hb_wire_append_bytes(&event, 3, hb_buf_view(&time));
  }
  hb_wire_append_bytes(&event, 5, hb_slice_of(payload, sizeof payload));
  hb_wire_append_bytes(out, 1, hb_buf_view(&event));
  hb_buf_done(&event);
  hb_buf_done(&time);
}

/* A block of the sequences in the ranges (ended by an empty one), with a running maximum. */
MAYBE_UNUSED static struct hb_bytes *sound_block(const struct hb_range *ranges,
                                                 struct hb_time max_time) {
  struct hb_buf frames = {0};
  struct hb_block_entry entries[400];
  size_t offsets[401] = {0};
  size_t count = 0;
  int64_t to = 0;
  for (const struct hb_range *range = ranges; range->start < range->end; range++) {
    for (int64_t sequence = range->start; sequence < range->end; sequence++) {
      sound_frame(&frames, sequence);
      entries[count] = (struct hb_block_entry){.sequence = sequence};
      offsets[++count] = frames.size;
    }
    to = range->end;
  }
  for (size_t i = 0; i < count; i++) {
    entries[i].frame = frames.data + offsets[i];
    entries[i].frame_size = (uint32_t)(offsets[i + 1] - offsets[i]);
  }
  struct hb_bytes *block =
      hb_block_encode(HB_BLOCK_EVENTS, ranges[0].start, to, max_time, entries, count);
  hb_buf_done(&frames);
  return block;
}

MAYBE_UNUSED static struct hb_time sound_time(int64_t below) {
  int64_t sequence = below - 1;
  while (sequence % 3) sequence--;
  return (struct hb_time){.seconds = 1000 + sequence, .present = true};
}

MAYBE_UNUSED static struct hb_bytes *sound_log_block(int64_t from, int64_t to) {
  struct hb_range ranges[2] = {{from, to}, {0, 0}};
  return sound_block(ranges, sound_time(to));
}

MAYBE_UNUSED static void sound_put_log(struct fixture *fixture, uint64_t stream, int64_t from,
                                       int64_t to) {
  struct hb_bytes *block = sound_log_block(from, to);
  hb_write_put_block(fixture->write, stream, from, hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* The index of the log block [from, to): as a file, or as rows. */
MAYBE_UNUSED static void sound_put_index(struct fixture *fixture, uint64_t stream, int64_t from,
                                         int64_t to, int64_t indexed_to, bool as_file) {
  struct hb_bytes *bytes = sound_log_block(from, to);
  struct hb_block block;
  struct hb_err err;
  must(hb_block_decode(hb_bytes_view(bytes), &block, &err), &err);
  struct hb_index_entry entries[400];
  size_t count = 0;
  for (uint32_t i = 0; i < block.count && hb_block_sequence(&block, i) < indexed_to; i++) {
    struct hb_slice frame = hb_block_frame(&block, i);
    struct hb_event event;
    must(hb_scan_frame(frame, &event, &err), &err);
    entries[count++] = (struct hb_index_entry){.key = hb_event_key(&event),
                                               .position = hb_block_sequence(&block, i),
                                               .block = from,
                                               .offset = (uint32_t)(frame.data - block.frames.data),
                                               .length = (uint32_t)frame.size};
  }
  for (size_t i = 0; !as_file && i < count; i++) {
    hb_write_put_index_entry(fixture->write, stream, &entries[i]);
  }
  if (as_file) must(hb_index_ingest(fixture->store, stream, entries, count, &err), &err);
  hb_write_put_indexed_to(fixture->write, stream, indexed_to);
  apply(fixture);
  hb_bytes_unref(bytes);
}

MAYBE_UNUSED static void sound_put_kept(struct fixture *fixture, uint64_t stream,
                                        int64_t sequence) {
  struct hb_buf frame = {0};
  struct hb_event event;
  struct hb_err err;
  sound_frame(&frame, sequence);
  must(hb_scan_frame(hb_buf_view(&frame), &event, &err), &err);
  hb_write_put_unprocessed(fixture->write, stream, HB_OUTCOME_BEFORE_FIRST, sequence,
                           hb_event_content_hash(&event), hb_buf_view(&frame), 5, 1);
  hb_buf_done(&frame);
}

MAYBE_UNUSED static void sound_put_record(struct fixture *fixture, uint64_t stream, int64_t first,
                                          int64_t frontier, int64_t complete_to, int64_t highest,
                                          uint64_t stored) {
  struct hb_frontier record = {.frozen = true,
                               .first_sequence = first,
                               .complete_to = complete_to,
                               .frontier = frontier,
                               .earliest = first,
                               .any = true,
                               .highest = highest,
                               .max_event_time = sound_time(frontier),
                               .counters = {.stored = stored},
                               .commit = fixture->commit + 1};
  hb_write_put_frontier(fixture->write, stream, &record);
}

MAYBE_UNUSED static void sound_put_bundles(struct fixture *fixture) {
  struct hb_range behind_gap[] = {{301, 311}, {340, 350}, {0, 0}};
  struct hb_range plain[] = {{311, 321}, {0, 0}};
  struct hb_bytes *one = sound_block(behind_gap, (struct hb_time){0});
  struct hb_bytes *two = sound_block(plain, (struct hb_time){0});
  hb_write_put_bundle(fixture->write, (struct hb_bundle_id){1, fixture->commit + 1, 0},
                      hb_bytes_view(one));
  hb_write_put_bundle(fixture->write, (struct hb_bundle_id){1, fixture->commit + 1, 1},
                      hb_bytes_view(two));
  hb_bytes_unref(one);
  hb_bytes_unref(two);
}

MAYBE_UNUSED static void sound_config(struct fixture *fixture, uint64_t stream, const char *name,
                                      int64_t first) {
  struct hb_stream_config config = some_config(name);
  config.first_sequence = first;
  hb_write_put_config(fixture->write, stream, &config);
}

/* Results are frames whose field 1 is their position. */
MAYBE_UNUSED static struct hb_bytes *sound_results(int64_t from, int64_t to) {
  struct hb_range ranges[] = {{from, to}, {0, 0}};
  return sound_block(ranges, sound_time(to));
}

MAYBE_UNUSED static struct hb_processor_id sound_processor(void) {
  return (struct hb_processor_id){.stream = 1, .processor = 5};
}

MAYBE_UNUSED static void sound_put_processor(struct fixture *fixture) {
  struct hb_processor_id id = sound_processor();
  struct hb_processor_config config = {.name = "sums", .processor = "sum"};
  struct hb_processor_place place = {.position = 301, .next_result = 20, .next_status = 5};
  struct hb_buf frame = {0};
  hb_write_put_processor(fixture->write, id, &config);
  hb_write_put_place(fixture->write, id, &place);
  for (int64_t from = 0; from < 20; from += 10) {
    struct hb_bytes *block = sound_results(from, from + 10);
    hb_write_put_results(fixture->write, id, from, hb_bytes_view(block));
    hb_bytes_unref(block);
  }
  struct hb_state_row state = {.key = hb_slice_text("k1"), .name = hb_slice_text("n")};
  state.present = true;
  state.value = hb_slice_text("12");
  hb_write_put_state(fixture->write, id, &state);
  struct hb_timer_row timer = {.time = {.seconds = 5, .present = true},
                               .key = hb_slice_text("k1"),
                               .name = hb_slice_text("t")};
  hb_write_put_timer(fixture->write, id, &timer);
  struct hb_key_status_row status = {.key = hb_slice_text("k1"), .status = {.processed = 3}};
  hb_write_put_key_status(fixture->write, id, &status);
  struct hb_blocked_row blocked = {.key = hb_slice_text("k1"), .sequence = 7, .position = 7};
  hb_write_put_blocked(fixture->write, id, &blocked);
  struct hb_bytes *told = sound_results(0, 5);
  hb_write_put_results(fixture->write, hb_statuses_id(id), 0, hb_bytes_view(told));
  hb_bytes_unref(told);
  sound_frame(&frame, 7);
  struct hb_failure_row failure = {
      .position = 7, .frame = hb_buf_view(&frame), .explanation = hb_slice_text("no number")};
  hb_write_put_failure(fixture->write, id, &failure, 5);
  hb_buf_done(&frame);
}

MAYBE_UNUSED static void sound_fill(struct fixture *fixture) {
  sound_config(fixture, 1, "one", 1);
  sound_config(fixture, 2, "two", -50);
  sound_config(fixture, 3, "three", 0);
  hb_write_put_next_stream(fixture->write, 7);
  for (int64_t from = 1; from < 301; from += 100) sound_put_log(fixture, 1, from, from + 100);
  sound_put_log(fixture, 2, -50, 50);
  sound_put_log(fixture, 4, 1, 5);
  sound_put_bundles(fixture);
  sound_put_record(fixture, 1, 1, 301, 321, 349, 330);
  sound_put_record(fixture, 2, -50, 50, 50, 49, 100);
  struct hb_frontier none = {.commit = fixture->commit + 1};
  hb_write_put_frontier(fixture->write, 3, &none);
  hb_write_mark_deleting(fixture->write, 4);
  struct hb_gap gap = {.start = 321, .end = 340, .first_seen_served_ms = 3};
  hb_write_put_gap(fixture->write, 1, &gap);
  sound_put_kept(fixture, 1, -7);
  sound_put_processor(fixture);
  hb_write_put_peer(fixture->write, 1, hb_slice_text("somebody"));
  apply(fixture);
  sound_put_index(fixture, 1, 1, 101, 101, true);
  sound_put_index(fixture, 1, 101, 201, 201, true);
  sound_put_index(fixture, 1, 201, 301, 251, false);
  sound_put_index(fixture, 2, -50, 50, 50, true);
}

MAYBE_UNUSED static int setup_sound(void **state) {
  if (setup_store(state)) return -1;
  sound_fill(*state);
  return 0;
}

/* ---- verifying */

struct found {
  struct hb_finding items[64];
  size_t count;
};

MAYBE_UNUSED static void note_finding(void *context, const struct hb_finding *finding) {
  struct found *found = context;
  if (found->count < 64) found->items[found->count] = *finding;
  found->count++;
}

MAYBE_UNUSED static struct hb_verify_counts verify_store(struct hb_store *store, uint64_t stream,
                                                         bool live, size_t step,
                                                         struct found *found) {
  struct hb_verify_options options = {
      .store = store, .stream = stream, .live = live, .found = note_finding, .context = found};
  found->count = 0;
  struct hb_verify *verify = hb_verify_create(&options);
  while (hb_verify_step(verify, step)) continue;
  struct hb_verify_counts counts = *hb_verify_counts(verify);
  hb_verify_destroy(verify);
  assert_int_equal(counts.findings, found->count);
  return counts;
}

MAYBE_UNUSED static void print_findings(const struct found *found) {
  for (size_t i = 0; i < found->count && i < 64; i++) {
    char line[HB_FINDING_LINE_SIZE];
    print_error("  %s\n", hb_finding_line(&found->items[i], line));
  }
}

MAYBE_UNUSED static bool is_found(const struct found *found, const char *text) {
  for (size_t i = 0; i < found->count && i < 64; i++) {
    char line[HB_FINDING_LINE_SIZE];
    if (strstr(hb_finding_line(&found->items[i], line), text)) return true;
  }
  return false;
}

#endif
