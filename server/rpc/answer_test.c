/* Answers to batches, decoded by protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "holdback/v1/ingest.pb-c.h"
#include "server/rpc/answer.h"

enum { EVENTS_MAX = 65536 };

struct made {
  struct hb_append append;
  struct hb_event *events;
  struct hb_decision *decisions;
};

static struct made make(uint32_t count) {
  struct made made = {.events = calloc(count, sizeof *made.events),
                      .decisions = calloc(count, sizeof *made.decisions)};
  for (uint32_t i = 0; i < count; i++) {
    made.events[i].sequence = INT64_MIN + (int64_t)i; /* ten bytes each: the worst case */
    made.decisions[i].outcome = HB_OUTCOME_STORED;
  }
  made.append.batch.events = made.events;
  made.append.batch.decisions = made.decisions;
  made.append.batch.count = count;
  return made;
}

static void free_made(struct made *made) {
  free(made->events);
  free(made->decisions);
}

static Holdback__V1__AppendResult *encode_in(const struct made *made, bool per_key,
                                             size_t *out_size) {
  static const uint8_t incarnation[HB_INCARNATION_SIZE] = "abcdefghijklmnopqrstuvw";
  const struct hb_answer_stream stream = {
      .incarnation = incarnation,
      .limits = {.ahead_max = 55, .held_bytes_max = 111, .held_events_max = 222, .gaps_max = 333},
      .held_index_max = 444,
      .per_key = per_key};
  struct hb_buf bytes = {0};
  hb_answer_encode(&made->append, &stream, &bytes);
  if (out_size) *out_size = bytes.size;
  Holdback__V1__AppendResult *result =
      holdback__v1__append_result__unpack(NULL, bytes.size, bytes.data);
  assert_non_null(result);
  hb_buf_done(&bytes);
  return result;
}

static Holdback__V1__AppendResult *encode(const struct made *made, size_t *out_size) {
  return encode_in(made, false, out_size);
}

/* 65,536 runs, the most there can be, stay under 2 MiB and cover every event. */
static void most_runs_fit(void **state) {
  (void)state;
  struct made made = make(EVENTS_MAX);
  for (uint32_t i = 1; i < EVENTS_MAX; i += 2) {
    made.decisions[i].outcome = HB_OUTCOME_WINDOW_FULL;
    made.decisions[i].reason = HB_REASON_HELD_EVENTS;
  }
  size_t size;
  Holdback__V1__AppendResult *result = encode(&made, &size);
  assert_true(size < (size_t)2 << 20);
  assert_int_equal(result->n_runs, EVENTS_MAX);
  assert_int_equal(result->stored, EVENTS_MAX / 2);
  uint32_t next = 0;
  size_t texts = 0;
  for (size_t i = 0; i < result->n_runs; i++) {
    const Holdback__V1__OutcomeRun *run = result->runs[i];
    assert_int_equal(run->first_index, next);
    assert_true(run->first_sequence == made.events[next].sequence);
    next += run->count;
    texts += run->text[0] != '\0';
  }
  assert_int_equal(next, EVENTS_MAX);
  assert_int_equal(texts, 16);
  holdback__v1__append_result__free_unpacked(result, NULL);
  free_made(&made);
}

/* Neighbours alike are one run; the text names the sequence; usual outcomes have none. */
static void neighbours_are_one_run(void **state) {
  (void)state;
  struct made made = make(6);
  for (int i = 0; i < 6; i++) made.events[i].sequence = 10 + i;
  made.decisions[2].outcome = made.decisions[3].outcome = HB_OUTCOME_CONFLICT;
  made.decisions[4].outcome = HB_OUTCOME_DUPLICATE;
  made.decisions[5].outcome = HB_OUTCOME_DUPLICATE;
  made.decisions[5].reason = HB_REASON_UNVERIFIED;
  Holdback__V1__AppendResult *result = encode(&made, NULL);
  assert_int_equal(result->n_runs, 4);
  assert_int_equal(result->runs[0]->count, 2);
  assert_string_equal(result->runs[0]->text, "");
  assert_int_equal(result->runs[1]->count, 2);
  assert_string_equal(result->runs[1]->text, "sequence 12 is stored with other content");
  assert_int_equal(result->runs[3]->reason,
                   HOLDBACK__V1__OUTCOME_REASON__OUTCOME_REASON_UNVERIFIED);
  assert_string_equal(result->runs[3]->text, "");
  holdback__v1__append_result__free_unpacked(result, NULL);
  free_made(&made);
}

/* A text for a person has the number that the event ran into. */
static void texts_name_the_limit(void **state) {
  (void)state;
  static const struct {
    enum hb_outcome outcome;
    enum hb_reason reason;
    const char *text;
  } rows[] = {
      {HB_OUTCOME_CONFLICT, HB_REASON_NONE, "sequence 7 is stored with other content"},
      {HB_OUTCOME_CONFLICT, HB_REASON_QUOTA,
       "sequence 7 is stored with other content; this copy was not kept"},
      {HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE, "sequence 7 is below first_sequence 9"},
      {HB_OUTCOME_OUT_OF_RANGE, HB_REASON_NONE,
       "sequence 7 is no sequence: the highest is 9223372036854775806"},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_AHEAD, "sequence 7 is at or above window_end 5: "},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_HELD_BYTES, "sequence 7 would pass held_bytes_max 111: "},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_HELD_EVENTS,
       "sequence 7 would pass held_events_max 222: "},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_GAPS, "sequence 7 would pass gaps_max 333: "},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_SERVER_MEMORY,
       "sequence 7 would pass the server's held_index_max 444: "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct made made = make(1);
    made.events[0].sequence = 7;
    made.decisions[0].outcome = (uint8_t)rows[i].outcome;
    made.decisions[0].reason = (uint8_t)rows[i].reason;
    made.append.status.record.first_sequence = 9;
    made.append.status.window_end = 5;
    Holdback__V1__AppendResult *result = encode(&made, NULL);
    assert_memory_equal(result->runs[0]->text, rows[i].text, strlen(rows[i].text));
    holdback__v1__append_result__free_unpacked(result, NULL);
    free_made(&made);
  }
}

/* In PER_KEY mode the window is a key's: texts say so, and window_end is not told. */
static void per_key_has_no_window_end(void **state) {
  (void)state;
  static const struct {
    enum hb_outcome outcome;
    enum hb_reason reason;
    const char *text;
  } rows[] = {
      {HB_OUTCOME_BEFORE_FIRST, HB_REASON_NONE, "sequence 7 is below where its key begins"},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_AHEAD,
       "sequence 7 is ahead_max 55 or more above its key's next: "},
      {HB_OUTCOME_WINDOW_FULL, HB_REASON_SERVER_MEMORY,
       "sequence 7 would pass the server's held_index_max 444: "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct made made = make(1);
    made.events[0].sequence = 7;
    made.decisions[0].outcome = (uint8_t)rows[i].outcome;
    made.decisions[0].reason = (uint8_t)rows[i].reason;
    made.append.status.record.frozen = true;
    made.append.status.window_end = INT64_MAX;
    Holdback__V1__AppendResult *result = encode_in(&made, true, NULL);
    assert_memory_equal(result->runs[0]->text, rows[i].text, strlen(rows[i].text));
    assert_int_equal(result->window_end_presence_case, 0);
    assert_int_not_equal(result->frontier_presence_case, 0);
    holdback__v1__append_result__free_unpacked(result, NULL);
    free_made(&made);
  }
}

/* Numbers are absent until they exist; zero is told as zero. */
static void numbers_have_presence(void **state) {
  (void)state;
  struct made made = make(1);
  Holdback__V1__AppendResult *result = encode(&made, NULL);
  assert_int_equal(result->frontier_presence_case, 0);
  assert_int_equal(result->highest_presence_case, 0);
  holdback__v1__append_result__free_unpacked(result, NULL);
  struct hb_stream_status *status = &made.append.status;
  status->record.frozen = true;
  status->record.any = true;
  status->window_end = 9;
  status->gaps_count = 1;
  status->gaps[0] = (struct hb_gap){.start = -3, .end = 0};
  result = encode(&made, NULL);
  assert_int_equal(result->frontier_presence_case,
                   HOLDBACK__V1__APPEND_RESULT__FRONTIER_PRESENCE_FRONTIER);
  assert_int_equal(result->frontier, 0);
  assert_int_equal(result->complete_to_presence_case,
                   HOLDBACK__V1__APPEND_RESULT__COMPLETE_TO_PRESENCE_COMPLETE_TO);
  assert_int_equal(result->highest_presence_case,
                   HOLDBACK__V1__APPEND_RESULT__HIGHEST_PRESENCE_HIGHEST);
  assert_int_equal(result->window_end, 9);
  assert_int_equal(result->n_lowest_gaps, 1);
  assert_int_equal(result->lowest_gaps[0]->start, -3);
  assert_int_equal(result->lowest_gaps[0]->end, 0);
  assert_memory_equal(result->incarnation.data, "abcdefghijklmnopqrstuvw", 24);
  holdback__v1__append_result__free_unpacked(result, NULL);
  free_made(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(most_runs_fit), cmocka_unit_test(neighbours_are_one_run),
      cmocka_unit_test(texts_name_the_limit), cmocka_unit_test(per_key_has_no_window_end),
      cmocka_unit_test(numbers_have_presence)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
