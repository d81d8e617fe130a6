/* Verification of what is kept of processors: each thing that can be wrong is told, with its place.
 */
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/record_processor_internal.h"
#include "storage/test_damage_internal.h"
#include "storage/test_sound_internal.h"
#include "storage/verify_internal.h"

static void put_results(struct edit *edit, uint64_t processor, int64_t at, int64_t from,
                        int64_t to) {
  struct hb_bytes *block = sound_results(from, to);
  struct hb_processor_id id = {.stream = 1, .processor = processor};
  put(edit, HB_FAMILY_RESULTS, hb_key_result(id, at), hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void results_checksum(struct edit *edit) {
  flip(edit, HB_FAMILY_RESULTS, hb_key_result(sound_processor(), 0), 3000);
}
static void results_hole(struct edit *edit) {
  erase(edit, HB_FAMILY_RESULTS, hb_key_result(sound_processor(), 0));
}
static void results_end(struct edit *edit) {
  erase(edit, HB_FAMILY_RESULTS, hb_key_result(sound_processor(), 10));
}
static void results_all_gone(struct edit *edit) {
  results_hole(edit);
  results_end(edit);
}
static void results_twice(struct edit *edit) { put_results(edit, 5, 5, 5, 10); }
static void results_above(struct edit *edit) { put_results(edit, 5, 20, 20, 25); }
static void results_misplaced(struct edit *edit) { put_results(edit, 5, 10, 11, 20); }
static void results_of_nobody(struct edit *edit) {
  put_results(edit, 3, 0, 0, 5);
  put_results(edit, 3, 5, 5, 9);
}
static void results_other(struct edit *edit) {
  struct hb_buf frame = {0};
  struct hb_block_entry entries[10];
  sound_frame(&frame, 13); /* in the place of all ten */
  for (int i = 0; i < 10; i++) {
    entries[i] = (struct hb_block_entry){
        .sequence = 10 + i, .frame = frame.data, .frame_size = (uint32_t)frame.size};
  }
  struct hb_bytes *block =
      hb_block_encode(HB_BLOCK_EVENTS, 10, 20, (struct hb_time){0}, entries, 10);
  put(edit, HB_FAMILY_RESULTS, hb_key_result(sound_processor(), 10), hb_bytes_view(block));
  hb_bytes_unref(block);
  hb_buf_done(&frame);
}
static void place_junk(struct edit *edit) {
  put(edit, HB_FAMILY_STREAMS, hb_key_processor_row(sound_processor(), HB_PART_PLACE),
      hb_slice_text("\1junk"));
}
static void place_lost(struct edit *edit) {
  erase(edit, HB_FAMILY_STREAMS, hb_key_processor_row(sound_processor(), HB_PART_PLACE));
}
static void processor_lost(struct edit *edit) {
  erase(edit, HB_FAMILY_STREAMS, hb_key_processor_row(sound_processor(), HB_PART_CONFIG));
  place_lost(edit);
}
static void attempt_junk(struct edit *edit) {
  put(edit, HB_FAMILY_STREAMS, hb_key_processor_row(sound_processor(), HB_PART_ATTEMPT),
      hb_slice_text("\1junk"));
}
static void state_junk(struct edit *edit) {
  struct hb_buf row = {0};
  hb_key_state(&row, sound_processor(), hb_slice_text("k1"), hb_slice_text("n"));
  hb_rocks_put(edit->batch, HB_FAMILY_STATES, hb_buf_view(&row), (struct hb_slice){0});
  hb_buf_done(&row);
}
static void timer_key(struct edit *edit) {
  struct hb_key key = hb_key_processor(sound_processor());
  put(edit, HB_FAMILY_TIMERS, key, hb_slice_text("\1t"));
}
static void failure_other(struct edit *edit) {
  struct hb_buf value = {0};
  struct hb_buf parts = {0};
  struct hb_buf frame = {0};
  sound_frame(&frame, 8);
  struct hb_failure_row row = {.frame = hb_buf_view(&frame)};
  hb_record_put_failure(&parts, 5, &row);
  struct hb_unprocessed kept = {.count = 1, .frame = hb_buf_view(&parts)};
  hb_record_put_unprocessed(&value, &kept);
  put(edit, HB_FAMILY_UNPROCESSED, hb_key_failure(1, 8, 9), hb_buf_view(&value));
  hb_buf_done(&value);
  hb_buf_done(&parts);
  hb_buf_done(&frame);
}

static void statuses_end(struct edit *edit) {
  struct hb_key key = hb_key_result(hb_statuses_id(sound_processor()), 0);
  erase(edit, HB_FAMILY_RESULTS, key);
}
static void status_junk(struct edit *edit) {
  struct hb_buf row = {0};
  hb_key_state(&row, hb_statuses_id(sound_processor()), hb_slice_text("k1"), (struct hb_slice){0});
  hb_rocks_put(edit->batch, HB_FAMILY_STATES, hb_buf_view(&row), hb_slice_text("\1junk"));
  hb_buf_done(&row);
}

static void blocked_junk(struct edit *edit) {
  struct hb_buf row = {0};
  hb_key_state(&row, hb_statuses_id(sound_processor()), hb_slice_text("k1"), (struct hb_slice){0});
  hb_rocks_put(edit->batch, HB_FAMILY_TIMERS, hb_buf_view(&row), hb_slice_text("\1junk"));
  hb_buf_done(&row);
}
static void blocked_named(struct edit *edit) {
  struct hb_buf row = {0};
  hb_key_state(&row, hb_statuses_id(sound_processor()), hb_slice_text("k1"), hb_slice_text("n"));
  hb_rocks_put(edit->batch, HB_FAMILY_TIMERS, hb_buf_view(&row), hb_slice_text("\1junk"));
  hb_buf_done(&row);
}

static const struct damage DAMAGE[] = {
    {"results: a flipped bit",
     results_checksum,
     {"stream 'one' (id 1), results [0, 1): processor 5: block: checksum is wrong"},
     0},
    {"results: a block is missing",
     results_hole,
     {"results [0, 10): processor 5: no block accounts for these positions"},
     0},
    {"results: the last one",
     results_end,
     {"results [10, 20): processor 5: the results end before the processor's place"},
     0},
    {"results: none left",
     results_all_gone,
     {"results [0, 20): processor 5: the results end before the processor's place"},
     0},
    {"results: two for a position",
     results_twice,
     {"results [5, 10): processor 5: two blocks account for these positions"},
     0},
    {"results: above the place",
     results_above,
     {"results [20, 21): processor 5: a block is above the processor's place"},
     0},
    {"results: misplaced",
     results_misplaced,
     {"results [10, 11): processor 5: the block there starts at 11"},
     0},
    {"results: of no processor", results_of_nobody, {"of a processor that is not known"}, 0},
    {"results: others",
     results_other,
     {"results [10, 11): processor 5: the result there has another position"},
     9},
    {"processors: a place that is none", place_junk, {"processor's place"}, 0},
    {"processors: no place", place_lost, {"streams: processor 5 has no place"}, 0},
    {"processors: no rows but results and states",
     processor_lost,
     {"results: row", "states: row", "timers: row"},
     6}, /* all of them twice: statuses have theirs */
    {"processors: junk for an attempt", attempt_junk, {"processor's attempt"}, 0},
    {"states: junk", state_junk, {"states: row"}, 0},
    {"timers: no key", timer_key, {"timers: row"}, 0},
    {"unprocessed: a failure of another event",
     failure_other,
     {"unprocessed: row", "another content"},
     1},
    {"statuses: the log is gone",
     statuses_end,
     {"results [0, 5): processor 6: the results end before the processor's place"},
     0},
    {"statuses: junk", status_junk, {"states: row"}, 0},
    {"keys that wait: junk", blocked_junk, {"key that waits: wrong size"}, 0},
    {"keys that wait: no key", blocked_named, {"timers: row"}, 0},
};

static void damage_is_told(void **state) {
  check_damage(*state, DAMAGE, sizeof DAMAGE / sizeof *DAMAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(damage_is_told, setup_store, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
