/* Pages of what is missing, as a running engine tells it: in either mode, after a start, with what
 * waits out of memory, and never what a crash could take back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "server/engine/gaps.h"
#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = hb_calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static struct hb_stream *stream_of(struct rig *rig, enum hb_mode mode, enum hb_ack ack) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.name = "s", .mode = mode, .first_sequence = 1, .ack = ack}};
  if (rig_job(rig, &job) != HB_OK) fail_msg("create: %s", job.error.message);
  return hb_engine_find_stream(rig->engine, "s");
}

static enum hb_code ask(struct rig *rig, struct hb_gap_request *request, const char **out_reason) {
  static char reason[64];
  struct hb_job job = {.kind = HB_JOB_LIST_GAPS, .gaps = request, .config = {.name = "s"}};
  enum hb_code code = rig_job(rig, &job);
  (void)snprintf(reason, sizeof reason, "%s", job.error.reason ? job.error.reason : "");
  if (out_reason) *out_reason = reason;
  return code;
}

/* "2-4 7-9" of all pages. */
static const char *gaps_of(struct rig *rig, const char *key, uint32_t page_size) {
  static char text[512];
  struct hb_buf token = {0};
  text[0] = '\0';
  do {
    struct hb_gap_request request = {.has_key = key != NULL,
                                     .key = hb_slice_text(key ? key : ""),
                                     .token = hb_buf_view(&token),
                                     .page_size = page_size};
    assert_int_equal(ask(rig, &request, NULL), HB_OK);
    assert_in_range(request.count, 0, page_size);
    for (size_t i = 0; i < request.count; i++) {
      size_t at = strlen(text);
      (void)snprintf(text + at, sizeof text - at, "%s%lld-%lld", at ? " " : "",
                     (long long)request.gaps[i].start, (long long)request.gaps[i].end);
      assert_int_equal(request.gaps[i].first_seen_wall_ms > 0, key == NULL);
    }
    hb_buf_clear(&token);
    hb_buf_append(&token, request.next_token.data, request.next_token.size);
    hb_gap_request_done(&request);
  } while (token.size > 0);
  hb_buf_done(&token);
  return text;
}

/* How many keys are told in how many pages; each is to be "key<i>", told once, with what it has. */
static size_t check_keys(struct rig *rig, const char *prefix, uint32_t page_size, int count) {
  int times[100] = {0};
  size_t pages = 0;
  struct hb_buf token = {0};
  do {
    struct hb_gap_request request = {.of_keys = true,
                                     .key = hb_slice_text(prefix),
                                     .token = hb_buf_view(&token),
                                     .page_size = page_size};
    assert_int_equal(ask(rig, &request, NULL), HB_OK);
    for (size_t i = 0; i < request.count; i++) {
      const struct hb_key_gaps *key = &request.keys[i];
      int number = 0;
      for (size_t k = 3; k < key->key.size; k++) number = number * 10 + key->key.data[k] - '0';
      times[number]++;
      assert_true(key->begun && key->has_gap);
      assert_int_equal(key->complete_to, 1);
      assert_int_equal(key->highest, 5);
      assert_int_equal(key->held, 2);
      assert_int_equal(key->gaps, 2);
      assert_int_equal(key->gap.start, 1);
      assert_int_equal(key->gap.end, 3);
    }
    hb_buf_clear(&token);
    hb_buf_append(&token, request.next_token.data, request.next_token.size);
    hb_gap_request_done(&request);
    pages++;
  } while (token.size > 0);
  for (int i = 0; i < count; i++) assert_int_equal(times[i], 1);
  for (int i = count; i < 100; i++) assert_int_equal(times[i], 0);
  hb_buf_done(&token);
  return pages;
}

static void put_keys(struct rig *rig, struct hb_stream *stream, int count) {
  static const char PAYLOAD[] = "a payload that takes some room in a bundle, so that it has to go";
  for (int i = 0; i < count; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "key%d", i);
    assert_int_equal(rig_put(rig, stream, 3, name, PAYLOAD), HB_OUTCOME_STORED);
    assert_int_equal(rig_put(rig, stream, 5, name, PAYLOAD), HB_OUTCOME_STORED);
  }
}

/* All gaps of a stream, not the lowest sixteen only. */
static void test_global(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = stream_of(rig, HB_MODE_GLOBAL, HB_ACK_DURABLE);
  assert_string_equal(gaps_of(rig, NULL, 5), "");
  for (int64_t i = 1; i <= 20; i++) (void)rig_put(rig, stream, 3 * i, "k", NULL);
  const char *all =
      "1-3 4-6 7-9 10-12 13-15 16-18 19-21 22-24 25-27 28-30 31-33 34-36 37-39 40-42 43-45 46-48 "
      "49-51 52-54 55-57 58-60";
  assert_string_equal(gaps_of(rig, NULL, 3), all);
  assert_string_equal(gaps_of(rig, NULL, 1000), all);
  struct hb_gap_request request = {.has_key = true, .page_size = 1};
  const char *reason;
  assert_int_equal(ask(rig, &request, &reason), HB_PRECONDITION);
  assert_string_equal(reason, "MODE_MISMATCH");
  request = (struct hb_gap_request){.of_keys = true, .page_size = 1};
  assert_int_equal(ask(rig, &request, &reason), HB_PRECONDITION);
  assert_string_equal(reason, "MODE_MISMATCH");
  hb_stream_unref(stream);
}

/* A key's gaps are its own. What waits may have left memory, and a start changes nothing. */
static void test_per_key(void **state) {
  struct rig *rig = *state;
  rig->limits.key_held_memory_max = 1;
  rig_open(rig);
  struct hb_stream *stream = stream_of(rig, HB_MODE_PER_KEY, HB_ACK_DURABLE);
  (void)rig_put(rig, stream, 1, "a", NULL);
  (void)rig_put(rig, stream, 3, "a", NULL);
  (void)rig_put(rig, stream, 7, "a", NULL);
  (void)rig_put(rig, stream, 8, "a", NULL);
  (void)rig_put(rig, stream, 2, "", NULL);
  put_keys(rig, stream, 40);
  for (int i = 0; i < 2; i++) {
    assert_string_equal(gaps_of(rig, "a", 1), "2-3 4-7");
    assert_string_equal(gaps_of(rig, "", 10), "1-2");
    assert_string_equal(gaps_of(rig, "nobody", 10), "");
    assert_true(check_keys(rig, "key", 7, 40) >= 6);
    assert_true(check_keys(rig, "key", 1000, 40) >= 1);
    hb_stream_unref(stream);
    rig_reopen(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
  }
  (void)rig_put(rig, stream, 2, "a", NULL);
  assert_string_equal(gaps_of(rig, "a", 10), "4-7");
  for (int64_t i = 4; i < 7; i++) (void)rig_put(rig, stream, i, "a", NULL);
  assert_string_equal(gaps_of(rig, "a", 10), "");
  hb_stream_unref(stream);
}

/* Where it is not known where a key begins, that is said instead of a gap. */
static void test_initial_missing(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.name = "s", .mode = HB_MODE_PER_KEY, .first_seen = true}};
  assert_int_equal(rig_job(rig, &job), HB_OK);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, "s");
  (void)rig_put(rig, stream, 5, "a", NULL);
  (void)rig_put(rig, stream, 8, "a", NULL);
  struct hb_gap_request request = {.has_key = true, .key = hb_slice_text("a"), .page_size = 10};
  assert_int_equal(ask(rig, &request, NULL), HB_OK);
  assert_true(request.initial_missing);
  assert_int_equal(request.count, 1);
  assert_int_equal(request.gaps[0].start, 6);
  assert_int_equal(request.gaps[0].end, 8);
  hb_gap_request_done(&request);
  request = (struct hb_gap_request){.of_keys = true, .page_size = 10};
  assert_int_equal(ask(rig, &request, NULL), HB_OK);
  assert_int_equal(request.count, 1);
  assert_false(request.keys[0].begun);
  assert_int_equal(request.keys[0].gaps, 2);
  hb_gap_request_done(&request);
  hb_stream_unref(stream);
}

/* A token of another request, or of nobody's, is refused; so is a PER_KEY stream without a key, and
 * one that is not there. */
static void test_refusals(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  const char *reason;
  struct hb_gap_request request = {.has_key = true, .page_size = 1};
  assert_int_equal(ask(rig, &request, &reason), HB_NOT_FOUND);
  struct hb_stream *stream = stream_of(rig, HB_MODE_PER_KEY, HB_ACK_DURABLE);
  request = (struct hb_gap_request){.page_size = 1};
  assert_int_equal(ask(rig, &request, &reason), HB_INVALID);
  assert_string_equal(reason, "KEY_MISSING");
  static const char *const TOKENS[] = {"x", "g1234567", "o12345678", "k12345678", "g123456789"};
  for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++) {
    request =
        (struct hb_gap_request){.has_key = true, .token = hb_slice_text(TOKENS[i]), .page_size = 1};
    assert_int_equal(ask(rig, &request, &reason), HB_INVALID);
    assert_string_equal(reason, "PAGE_TOKEN_INVALID");
  }
  request =
      (struct hb_gap_request){.of_keys = true, .token = hb_slice_text("g12345678"), .page_size = 1};
  assert_int_equal(ask(rig, &request, &reason), HB_INVALID);
  hb_stream_unref(stream);
}

/* What fills a gap is fsynced before the gap is told to be gone, also where its answer was not. */
static void test_async(void **state) {
  struct rig *rig = *state;
  rig->async_sync_ms = 3600000;
  rig_open(rig);
  struct hb_stream *stream = stream_of(rig, HB_MODE_PER_KEY, HB_ACK_ASYNC);
  (void)rig_put(rig, stream, 3, "a", NULL);
  (void)rig_put(rig, stream, 1, "a", NULL);
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.record.frontier, 0);
  assert_string_equal(gaps_of(rig, "a", 10), "2-3");
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.record.frontier, 1);
  hb_stream_unref(stream);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_global), TEST(test_per_key),
                                     TEST(test_initial_missing), TEST(test_refusals),
                                     TEST(test_async)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
