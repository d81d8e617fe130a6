/* What is kept in `unprocessed`, in pages: refusals of both kinds, events that user code gave up;
 * of one reason, key or processor alone; none before it is durable. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <poll.h>

#include "server/engine/processors.h"
#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

/* ---- helpers */

static void attach(struct rig *rig, const char *name) {
  struct hb_processor_request request = {.processor = "sum"};
  snprintf(request.name, sizeof request.name, "%s", name);
  struct hb_job job = {
      .kind = HB_JOB_ATTACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  if (rig_job(rig, &job) != HB_OK) fail_msg("attach: %s", job.error.message);
}

static void detach(struct rig *rig, const char *name) {
  struct hb_processor_request request = {.keep_state = false};
  snprintf(request.name, sizeof request.name, "%s", name);
  struct hb_job job = {
      .kind = HB_JOB_DETACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  if (rig_job(rig, &job) != HB_OK) fail_msg("detach: %s", job.error.message);
}

static uint64_t id_of(struct rig *rig, struct hb_stream *stream, const char *name) {
  struct hb_processor_info info;
  assert_true(hb_engine_get_processor(rig->engine, stream, name, &info));
  hb_processor_info_done(&info);
  return info.id;
}

static void wait_position(struct rig *rig, struct hb_stream *stream, const char *name,
                          int64_t position) {
  for (;;) {
    struct hb_processor_info info;
    assert_true(hb_engine_get_processor(rig->engine, stream, name, &info));
    bool there = info.begun && info.position >= position;
    hb_processor_info_done(&info);
    if (there) return;
    (void)poll(NULL, 0, 1);
  }
}

static void add_text(char *out, struct hb_slice text) {
  strncat(out, (const char *)text.data, text.size);
}

/* "reason:position:payload:count:processor:explanation;" for each entry of a page; of an
 * explanation what stands before its colon. */
static void add_page(char *out, const struct hb_read *read) {
  for (size_t i = 0; i < read->unprocessed_count; i++) {
    const struct hb_unprocessed_entry *entry = &read->unprocessed[i];
    struct hb_event event;
    assert_int_equal(hb_scan_frame(entry->frame, &event, NULL), HB_OK);
    assert_true(entry->first_seen_wall_ms > 0);
    assert_true(entry->last_seen_wall_ms >= entry->first_seen_wall_ms);
    sprintf(out + strlen(out), "%d:%lld:", entry->reason, (long long)entry->position);
    add_text(out, hb_event_payload(&event));
    sprintf(out + strlen(out), ":%llu:", (unsigned long long)entry->count);
    add_text(out, entry->processor);
    strcat(out, ":");
    const uint8_t *more = memchr(entry->explanation.data, ':', entry->explanation.size);
    size_t size = more ? (size_t)(more - entry->explanation.data) : entry->explanation.size;
    add_text(out, hb_slice_of(entry->explanation.data, size));
    strcat(out, ";");
  }
}

/* All pages of `wanted`; *out_pages: how many there were. */
static const char *list(struct rig *rig, const struct hb_read *wanted, int *out_pages) {
  static char text[4096];
  struct hb_buf token = {0};
  int pages = 0;
  text[0] = '\0';
  do {
    struct hb_read read = *wanted;
    read.kind = HB_READ_UNPROCESSED;
    read.token = hb_buf_view(&token);
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    assert_true(read.unprocessed_count <= read.page_size);
    add_page(text, &read);
    hb_buf_clear(&token);
    hb_buf_append(&token, read.next_token.data, read.next_token.size);
    hb_read_done(&read);
    assert_in_range(++pages, 1, 100);
  } while (token.size);
  hb_buf_done(&token);
  if (out_pages) *out_pages = pages;
  return text;
}

/* A stream with 1..4 of keys a and b, two of them no numbers; and three refusals. */
static struct hb_stream *some_stream(struct rig *rig) {
  struct hb_stream *stream = rig_stream(rig, "s");
  attach(rig, "p");
  assert_int_equal(rig_put(rig, stream, 1, "a", "10"), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 2, "b", "bad"), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 3, "a", "worse"), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 4, "b", "1"), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 4, "b", "2"), HB_OUTCOME_CONFLICT);
  assert_int_equal(rig_put(rig, stream, 1, "a", "3"), HB_OUTCOME_CONFLICT);
  assert_int_equal(rig_put(rig, stream, 1, "a", "3"), HB_OUTCOME_CONFLICT);
  assert_int_equal(rig_put(rig, stream, 0, "a", "0"), HB_OUTCOME_BEFORE_FIRST);
  wait_position(rig, stream, "p", 5);
  return stream;
}

#define CONFLICTS "3:1:3:2::;3:4:2:1::;"
#define BEFORE "5:0:0:1::;"
#define BAD "64:2:bad:1:p:payload 'bad' is no number;"
#define WORSE "64:3:worse:1:p:payload 'worse' is no number;"

/* ---- tests */

/* By reason and number, whatever the size of the pages, and so again after a start. */
static void test_pages(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = some_stream(rig);
  for (int start = 0; start < 2; start++) {
    for (uint32_t size = 1; size <= 6; size++) {
      struct hb_read read = {.stream = stream, .page_size = size};
      int pages;
      assert_string_equal(list(rig, &read, &pages), CONFLICTS BEFORE BAD WORSE);
      assert_int_equal(pages, (5 + size - 1) / size);
    }
    hb_stream_unref(stream);
    if (start == 0) rig_reopen(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
  }
  hb_stream_unref(stream);
}

/* Of one reason, of one key, of one processor; where a step looks at little, pages are empty, and
 * nothing is left out. */
static void test_some(void **state) {
  struct rig *rig = *state;
  for (uint32_t step = 0; step < 2; step++) {
    rig->tuning.read_step_bytes = step; /* 0: the default */
    rig_open(rig);
    struct hb_stream *stream = step ? hb_engine_find_stream(rig->engine, "s") : some_stream(rig);
    struct hb_read read = {.stream = stream, .page_size = 10, .reason = HB_OUTCOME_CONFLICT};
    assert_string_equal(list(rig, &read, NULL), CONFLICTS);
    read.reason = HB_OUTCOME_BEFORE_FIRST;
    assert_string_equal(list(rig, &read, NULL), BEFORE);
    read.reason = HB_OUTCOME_LATE;
    assert_string_equal(list(rig, &read, NULL), "");
    read.reason = HB_UNPROCESSED_EXCEPTION;
    assert_string_equal(list(rig, &read, NULL), BAD WORSE);
    read.reason = 0;
    read.has_key = true;
    read.key = hb_slice_text("b");
    int pages;
    assert_string_equal(list(rig, &read, &pages), "3:4:2:1::;" BAD);
    assert_int_equal(pages, step ? 5 : 1);
    read.key = hb_slice_text("");
    assert_string_equal(list(rig, &read, NULL), "");
    read.has_key = false;
    read.processor = id_of(rig, stream, "p");
    assert_string_equal(list(rig, &read, NULL), BAD WORSE);
    read.processor += 1000;
    assert_string_equal(list(rig, &read, NULL), "");
    hb_stream_unref(stream);
    rig_close(rig);
  }
}

/* What a processor gave up stays when it is gone; only its name is not known any more. */
static void test_processor_gone(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = some_stream(rig);
  detach(rig, "p");
  struct hb_read read = {.stream = stream, .page_size = 10, .reason = HB_UNPROCESSED_EXCEPTION};
  assert_string_equal(list(rig, &read, NULL),
                      "64:2:bad:1::payload 'bad' is no number;"
                      "64:3:worse:1::payload 'worse' is no number;");
  hb_stream_unref(stream);
}

/* A page holds so many bytes, but always one event, however large. */
static void test_bytes(void **state) {
  struct rig *rig = *state;
  rig->tuning.key_page_bytes = 1;
  rig_open(rig);
  struct hb_stream *stream = some_stream(rig);
  struct hb_read read = {.stream = stream, .page_size = 10};
  int pages;
  assert_string_equal(list(rig, &read, &pages), CONFLICTS BEFORE BAD WORSE);
  assert_int_equal(pages, 5);
  hb_stream_unref(stream);
}

static void expect_invalid(struct rig *rig, struct hb_read read, struct hb_slice token) {
  read.kind = HB_READ_UNPROCESSED;
  read.token = token;
  assert_int_equal(rig_read(rig, &read), HB_INVALID);
  assert_string_equal(read.error.reason, "PAGE_TOKEN_INVALID");
  hb_read_done(&read);
}

/* A token goes with the request that it was given for, whole. */
static void test_tokens(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = some_stream(rig);
  struct hb_stream *other = rig_stream(rig, "t");
  struct hb_read first = {.kind = HB_READ_UNPROCESSED, .stream = stream, .page_size = 1};
  assert_int_equal(rig_read(rig, &first), HB_OK);
  struct hb_slice token = hb_buf_view(&first.next_token);
  assert_true(token.size > 0);
  struct hb_read read = {.stream = stream, .page_size = 1};
  expect_invalid(rig, read, hb_slice_of(token.data, token.size - 1));
  expect_invalid(rig, read, hb_slice_text("x"));
  read.has_key = true;
  expect_invalid(rig, read, token);
  read = (struct hb_read){.stream = stream, .page_size = 1, .reason = HB_OUTCOME_CONFLICT};
  expect_invalid(rig, read, token);
  read = (struct hb_read){.stream = stream, .page_size = 1, .processor = 2};
  expect_invalid(rig, read, token);
  read = (struct hb_read){.stream = other, .page_size = 1};
  expect_invalid(rig, read, token);
  hb_read_done(&first);
  /* One that leads out of its reason was never given. */
  first = (struct hb_read){
      .kind = HB_READ_UNPROCESSED, .stream = stream, .page_size = 1, .reason = HB_OUTCOME_CONFLICT};
  assert_int_equal(rig_read(rig, &first), HB_OK);
  read = (struct hb_read){.stream = stream, .page_size = 1, .reason = HB_OUTCOME_CONFLICT};
  assert_int_equal(first.next_token.data[9], HB_OUTCOME_CONFLICT);
  first.next_token.data[9] = 200;
  expect_invalid(rig, read, hb_buf_view(&first.next_token));
  hb_read_done(&first);
  hb_stream_unref(other);
  hb_stream_unref(stream);
}

/* Who sent is told with what was refused. */
static void test_producer(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_buf text = {0};
  hb_peers_text(&rig->engine->peers, hb_engine_intern_peer(rig->engine, hb_slice_text("alice")),
                &text);
  assert_true(hb_slice_equal(hb_buf_view(&text), hb_slice_text("alice")));
  hb_peers_text(&rig->engine->peers, 0, &text);
  hb_peers_text(&rig->engine->peers, 77, &text);
  assert_int_equal(text.size, 5);
  hb_buf_done(&text);
  hb_stream_unref(stream);
}

/* ---- nothing before its fsync (I2) */

static _Atomic bool hold_syncs;
static _Atomic int held_writes;

/* Written, and for a while not durable: as a power cut would find it. */
static enum hb_code slow_write(struct hb_store *store, struct hb_write *write, uint64_t commit,
                               bool sync, struct hb_err *err) {
  enum hb_code code = hb_store_write(store, write, commit, false, err);
  if (code != HB_OK || !sync) return code;
  atomic_fetch_add(&held_writes, 1);
  while (atomic_load(&hold_syncs)) sched_yield();
  return hb_store_sync(store, err);
}

static void read_is_done(struct hb_read *read) {
  atomic_store((_Atomic bool *)read->context, true);
}

/* A refusal whose row is in the store already is shown when it is fsynced, no sooner. */
static void test_durable_first(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  assert_int_equal(rig_put(rig, stream, 1, "a", "1"), HB_OUTCOME_STORED);
  atomic_store(&hold_syncs, true);
  atomic_store(&held_writes, 0);
  atomic_store(&rig->engine->store_write, slow_write);
  struct sent *sent = rig_send(rig, stream, 0, &(struct ev){1, "a", "2", 0}, 1);
  while (atomic_load(&held_writes) == 0) sched_yield();
  _Atomic bool done = false;
  struct hb_read read = {.kind = HB_READ_UNPROCESSED,
                         .stream = stream,
                         .page_size = 10,
                         .done = read_is_done,
                         .context = &done};
  hb_engine_read(rig->engine, &read);
  (void)poll(NULL, 0, 20); /* it may only be late, never early */
  assert_false(atomic_load(&done));
  atomic_store(&hold_syncs, false);
  while (!atomic_load(&done)) sched_yield();
  assert_int_equal(read.error.code, HB_OK);
  assert_int_equal(read.unprocessed_count, 1);
  hb_read_done(&read);
  rig_wait(sent);
  rig_free(sent);
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_pages, setup, teardown),
      cmocka_unit_test_setup_teardown(test_some, setup, teardown),
      cmocka_unit_test_setup_teardown(test_processor_gone, setup, teardown),
      cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
      cmocka_unit_test_setup_teardown(test_producer, setup, teardown),
      cmocka_unit_test_setup_teardown(test_durable_first, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
