/* A walk over everything that is kept: order, reasons, places to go on from. */
#include "storage/kept.h"

#include "storage/processor.h"
#include "storage/test_store_internal.h"

static const struct hb_processor_id ID = {.stream = 1, .processor = 7};

static struct hb_slice text(const char *bytes) { return hb_slice_text(bytes); }

static void refuse(struct fixture *fixture, uint64_t stream, enum hb_outcome outcome,
                   int64_t sequence, uint64_t hash, const char *frame) {
  hb_write_put_unprocessed(fixture->write, stream, outcome, sequence, hash, text(frame), 1000, 3);
}

static void fail_at(struct fixture *fixture, int64_t position, const char *frame) {
  struct hb_failure_row row = {
      .position = position, .frame = text(frame), .explanation = text("no number")};
  hb_write_put_failure(fixture->write, ID, &row, 2000);
}

struct seen {
  int max; /* rows in one walk */
  int count;
  char frames[64]; /* one letter each */
  struct hb_kept last;
  char explanation[32];
};

static bool see(void *context, const struct hb_kept *row) {
  struct seen *seen = context;
  seen->frames[seen->count++] = (char)row->frame.data[0];
  seen->last = *row;
  if (row->explanation.size) {
    memcpy(seen->explanation, row->explanation.data, row->explanation.size);
  }
  seen->explanation[row->explanation.size] = '\0';
  return seen->count < seen->max;
}

static struct seen walk(struct fixture *fixture, uint8_t reason, const struct hb_kept_place *after,
                        int max) {
  struct seen seen = {.max = max};
  struct hb_err err;
  must(hb_kept_each(fixture->store, 1, reason, after, see, &seen, &err), &err);
  return seen;
}

static void some_rows(struct fixture *fixture) {
  make_stream(fixture, 1, "one");
  make_stream(fixture, 2, "two");
  refuse(fixture, 1, HB_OUTCOME_BEFORE_FIRST, INT64_MIN, 1, "d");
  refuse(fixture, 1, HB_OUTCOME_CONFLICT, -1, UINT64_MAX, "a");
  refuse(fixture, 1, HB_OUTCOME_CONFLICT, 5, 1, "b");
  refuse(fixture, 1, HB_OUTCOME_CONFLICT, 5, 2, "c");
  refuse(fixture, 2, HB_OUTCOME_CONFLICT, 1, 1, "z");
  fail_at(fixture, -3, "e");
  fail_at(fixture, INT64_MAX, "f");
  apply(fixture);
}

/* By reason, then by number, of this stream alone; or of one reason alone. */
static void test_order(void **state) {
  struct fixture *fixture = *state;
  some_rows(fixture);
  assert_string_equal(walk(fixture, HB_KEPT_ANY, NULL, 60).frames, "abcdef");
  assert_string_equal(walk(fixture, HB_OUTCOME_CONFLICT, NULL, 60).frames, "abc");
  assert_string_equal(walk(fixture, HB_OUTCOME_BEFORE_FIRST, NULL, 60).frames, "d");
  assert_string_equal(walk(fixture, HB_OUTCOME_LATE, NULL, 60).frames, "");
  assert_string_equal(walk(fixture, HB_KEPT_FAILED, NULL, 60).frames, "ef");
}

/* From any row's place the walk goes on with the next one. */
static void test_places(void **state) {
  struct fixture *fixture = *state;
  some_rows(fixture);
  for (int size = 1; size <= 6; size++) {
    char all[64] = "";
    struct seen seen = walk(fixture, HB_KEPT_ANY, NULL, size);
    for (int pages = 0; seen.count > 0; pages++) {
      assert_in_range(pages, 0, 6);
      strcat(all, seen.frames);
      struct hb_kept_place after = seen.last.place;
      seen = walk(fixture, HB_KEPT_ANY, &after, size);
    }
    assert_string_equal(all, "abcdef");
  }
  struct hb_kept_place last = {.reason = HB_OUTCOME_CONFLICT, .position = 5, .hash = 2};
  assert_int_equal(walk(fixture, HB_OUTCOME_CONFLICT, &last, 60).count, 0);
}

/* What is told of each kind; the same one again is counted in its row. */
static void test_contents(void **state) {
  struct fixture *fixture = *state;
  some_rows(fixture);
  hb_write_put_unprocessed(fixture->write, 1, HB_OUTCOME_CONFLICT, -1, UINT64_MAX, text("a"), 1500,
                           4);
  apply(fixture);
  struct seen first = walk(fixture, HB_KEPT_ANY, NULL, 1);
  assert_int_equal(first.last.place.reason, HB_OUTCOME_CONFLICT);
  assert_true(first.last.place.position == -1);
  assert_int_equal(first.last.count, 2);
  assert_int_equal(first.last.first_seen_wall_ms, 1000);
  assert_int_equal(first.last.last_seen_wall_ms, 1500);
  assert_int_equal(first.last.peer, 3);
  assert_int_equal(first.last.processor, 0);
  struct seen failed = walk(fixture, HB_KEPT_FAILED, NULL, 1);
  assert_int_equal(failed.last.place.reason, HB_KEPT_FAILED);
  assert_true(failed.last.place.position == -3);
  assert_int_equal(failed.last.processor, 7);
  assert_string_equal(failed.explanation, "no number");
  assert_int_equal(failed.last.first_seen_wall_ms, 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_order, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_places, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_contents, setup_store, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
