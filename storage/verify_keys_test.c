/* Verification of a PER_KEY stream: a sound one has no finding, and each thing that can be wrong
 * with rows of keys, log and bundles is told. */
#include "base/frame/wire.h"
#include "storage/key_internal.h"
#include "storage/test_sound_internal.h"
#include "storage/verify_internal.h"

enum { STREAM = 5, GLOBAL_STREAM = 6 };

struct ev {
  const char *key;
  int64_t sequence;
};

static struct hb_bytes *block_of(int64_t from, const struct ev *events, size_t count) {
  struct hb_block_entry entries[16] = {0};
  struct hb_buf frames[16] = {{0}};
  for (size_t i = 0; i < count; i++) {
    struct hb_buf body = {0};
    hb_wire_append_varint(&body, 1, (uint64_t)events[i].sequence);
    hb_wire_append_bytes(&body, 2, hb_slice_text(events[i].key));
    hb_wire_append_bytes(&frames[i], 1, hb_buf_view(&body));
    hb_buf_done(&body);
    entries[i] = (struct hb_block_entry){.sequence = from + (int64_t)i,
                                         .frame = frames[i].data,
                                         .frame_size = (uint32_t)frames[i].size};
  }
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, from, from + (int64_t)count,
                                           (struct hb_time){0}, entries, count);
  for (size_t i = 0; i < count; i++) hb_buf_done(&frames[i]);
  return block;
}

static void put_log(struct fixture *fixture, const struct ev *events, size_t count) {
  struct hb_bytes *block = block_of(0, events, count);
  hb_write_put_block(fixture->write, STREAM, 0, hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void put_held(struct fixture *fixture, uint64_t commit, const struct ev *events,
                     size_t count) {
  struct hb_bytes *block = block_of(0, events, count);
  struct hb_bundle_id id = {STREAM, commit, 0};
  hb_write_put_bundle(fixture->write, id, hb_bytes_view(block));
  hb_bytes_unref(block);
}

static void put_row(struct fixture *fixture, const char *key, int64_t next, int64_t first_position,
                    int64_t last_position) {
  struct hb_key_record record = {.begun = true,
                                 .first = 1,
                                 .next = next,
                                 .first_position = first_position,
                                 .last_position = last_position};
  hb_write_put_key(fixture->write, STREAM, hb_slice_text(key), &record);
}

static void put_record(struct fixture *fixture, int64_t frontier, uint64_t stored) {
  struct hb_frontier record = {.frozen = true,
                               .complete_to = frontier,
                               .frontier = frontier,
                               .any = true,
                               .highest = frontier - 1,
                               .counters = {.stored = stored},
                               .commit = fixture->commit + 1};
  hb_write_put_frontier(fixture->write, STREAM, &record);
}

/* a1 b1 a2 are released; a4 b3 b5 wait, beside a2, which is released. */
static int setup_keyed(void **state) {
  static const struct ev RELEASED[] = {{"a", 1}, {"b", 1}, {"a", 2}};
  static const struct ev HELD[] = {{"a", 4}, {"a", 2}, {"b", 3}, {"b", 5}};
  if (setup_store(state)) return -1;
  struct fixture *fixture = *state;
  struct hb_stream_config config = some_config("keyed");
  config.mode = HB_MODE_PER_KEY;
  hb_write_put_config(fixture->write, STREAM, &config);
  hb_write_put_next_stream(fixture->write, 9);
  put_log(fixture, RELEASED, 3);
  put_held(fixture, 1, HELD, 4);
  put_row(fixture, "a", 3, 0, 2);
  put_row(fixture, "b", 2, 1, 1);
  put_record(fixture, 3, 6);
  apply(fixture);
  make_stream(fixture, GLOBAL_STREAM, "global");
  return 0;
}

static struct found found;

static void look(struct fixture *fixture) {
  (void)verify_store(fixture->store, 0, false, 1 << 20, &found);
}

/* Whatever the size of the steps, beside a writer and without. */
static void sound_has_no_findings(void **state) {
  struct fixture *fixture = *state;
  for (size_t step = 1; step < 100000; step *= 7) {
    struct hb_verify_counts counts = verify_store(fixture->store, 0, step % 2, step, &found);
    print_findings(&found);
    assert_int_equal(counts.findings, 0);
    assert_int_equal(counts.events, 3);
    assert_int_equal(counts.held_events, 3);
    assert_int_equal(counts.bundles, 1);
  }
}

/* Exactly one finding, with this text in it. */
static void expect(struct fixture *fixture, const char *text) {
  apply(fixture);
  look(fixture);
  print_findings(&found);
  assert_int_equal(found.count, 1);
  char line[HB_FINDING_LINE_SIZE];
  if (!strstr(hb_finding_line(&found.items[0], line), text)) {
    fail_msg("'%s' is not in '%s'", text, line);
  }
}

/* A row that says less, or more, than the log has. */
static void rows_and_log_disagree(void **state) {
  struct fixture *fixture = *state;
  put_row(fixture, "a", 2, 0, 0); /* a2 was released: held in the bundle it waits */
  put_record(fixture, 3, 7);
  expect(fixture, "the rows say that");
}

/* The same number of events, but not the same. */
static void log_has_others(void **state) {
  struct fixture *fixture = *state;
  static const struct ev OTHERS[] = {{"a", 1}, {"b", 1}, {"a", 9}};
  put_log(fixture, OTHERS, 3);
  expect(fixture, "and not the same ones");
}

/* A position that the log does not have. */
static void position_above_the_frontier(void **state) {
  struct fixture *fixture = *state;
  put_row(fixture, "b", 2, 3, 3);
  expect(fixture, "its last position is at or above the frontier");
}

/* More events than the log: nobody counts them one by one. */
static void more_than_the_log(void **state) {
  struct fixture *fixture = *state;
  put_row(fixture, "b", INT64_MAX, 0, INT64_MAX - 1);
  apply(fixture);
  look(fixture);
  assert_true(found.count >= 1);
  assert_non_null(strstr(found.items[0].text, "more was released than the log has"));
}

/* A key that begins elsewhere than the stream says. */
static void another_first_sequence(void **state) {
  struct fixture *fixture = *state;
  struct hb_key_record record = {.begun = true, .first = 7, .next = 7};
  hb_write_put_key(fixture->write, STREAM, hb_slice_text("c"), &record);
  expect(fixture, "its first sequence is not that of the stream");
}

/* An event that waits lies in two bundles; one that is released may. */
static void held_twice(void **state) {
  struct fixture *fixture = *state;
  static const struct ev AGAIN[] = {{"b", 3}, {"a", 1}};
  put_held(fixture, 2, AGAIN, 2);
  put_record(fixture, 3, 7);
  expect(fixture, "1 events that wait lie in two bundles");
}

/* The same, where the table of hashes has room for few and several passes are made. */
static void held_twice_in_passes(void **state) {
  struct fixture *fixture = *state;
  static const struct ev AGAIN[] = {{"b", 3}, {"c", 3}, {"d", 3}, {"e", 3}, {"f", 3}};
  put_held(fixture, 2, AGAIN, 5);
  put_record(fixture, 3, 11);
  apply(fixture);
  found = (struct found){.count = 0};
  struct hb_verify_options options = {
      .store = fixture->store, .found = note_finding, .context = &found};
  struct hb_verify *verify = hb_verify_create(&options);
  verify->held_runs_max = 3;
  while (hb_verify_step(verify, 50)) continue;
  hb_verify_destroy(verify);
  print_findings(&found);
  assert_int_equal(found.count, 1);
  assert_non_null(strstr(found.items[0].text, "1 events that wait lie in two bundles"));
}

/* Fewer events are there than were counted. */
static void an_event_is_lost(void **state) {
  struct fixture *fixture = *state;
  put_record(fixture, 3, 7);
  expect(fixture, "7 events were stored, but 3 are in the log and 3 held");
}

/* A bundle whose events are numbered like GLOBAL ones. */
static void a_bundle_of_another_mode(void **state) {
  struct fixture *fixture = *state;
  put_bundle(fixture, (struct hb_bundle_id){STREAM, 2, 0}, 4, 6);
  expect(fixture, "not a block of events that are numbered from 0");
}

/* Numbers of a frontier record that only a GLOBAL stream can have. */
static void numbers_of_another_mode(void **state) {
  struct fixture *fixture = *state;
  struct hb_frontier record = {.frozen = true,
                               .complete_to = 4,
                               .frontier = 3,
                               .any = true,
                               .highest = 9,
                               .counters = {.stored = 6},
                               .commit = fixture->commit + 1};
  hb_write_put_frontier(fixture->write, STREAM, &record);
  expect(fixture, "its numbers can't be those of a PER_KEY stream");
}

/* A row of a key under a GLOBAL stream. */
static void a_row_of_another_mode(void **state) {
  struct fixture *fixture = *state;
  struct hb_key_record record = {.begun = true, .first = 1, .next = 1};
  hb_write_put_key(fixture->write, GLOBAL_STREAM, hb_slice_text("c"), &record);
  expect(fixture, "the record of a key, though the stream is GLOBAL");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_keyed, teardown)
  const struct CMUnitTest tests[] = {
      T(sound_has_no_findings),
      T(rows_and_log_disagree),
      T(log_has_others),
      T(position_above_the_frontier),
      T(more_than_the_log),
      T(another_first_sequence),
      T(held_twice),
      T(held_twice_in_passes),
      T(an_event_is_lost),
      T(a_bundle_of_another_mode),
      T(numbers_of_another_mode),
      T(a_row_of_another_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
