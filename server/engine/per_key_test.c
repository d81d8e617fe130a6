/* PER_KEY streams on a real store: what is released, what survives opening it again, copies found
 * wherever they lie, lists of keys, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "server/engine/testing.h"
#include "storage/keys.h"

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

static struct hb_stream *keyed_stream(struct rig *rig, const char *name, enum hb_ack ack) {
  struct hb_job job = {.kind = HB_JOB_CREATE_STREAM,
                       .config = {.mode = HB_MODE_PER_KEY, .first_sequence = 1, .ack = ack}};
  (void)snprintf(job.config.name, sizeof job.config.name, "%s", name);
  if (rig_job(rig, &job) != HB_OK) fail_msg("create: %s", job.error.message);
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, name);
  assert_non_null(stream);
  return stream;
}

static struct hb_stream *found_stream(struct rig *rig, const char *name) {
  struct hb_stream *stream = hb_engine_find_stream(rig->engine, name);
  assert_non_null(stream);
  return stream;
}

/* The log as text, in order of positions: "a1 b1 a2". */
static void expect_log(struct rig *rig, struct hb_stream *stream, const char *expected) {
  char text[512] = "";
  int64_t position = 0;
  for (;;) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = stream, .position = position, .bytes_max = 1 << 20};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    for (uint32_t i = 0; i < read.blocks_count; i++) {
      struct hb_block block;
      assert_int_equal(hb_block_decode(hb_bytes_view(read.blocks[i]), &block, NULL), HB_OK);
      for (uint32_t k = 0; k < block.count; k++, position++) {
        struct hb_event event;
        assert_int_equal(hb_block_sequence(&block, k), position);
        assert_int_equal(hb_scan_frame(hb_block_frame(&block, k), &event, NULL), HB_OK);
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s%.*s%lld", at ? " " : "",
                       (int)event.key_size, (const char *)hb_event_key(&event).data,
                       (long long)event.sequence);
      }
    }
    bool any = read.blocks_count > 0;
    hb_read_done(&read);
    if (!any) break;
  }
  assert_string_equal(text, expected);
}

/* Each key in its own order; what waits and what is known of keys survives. */
static void test_order_and_reopen(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  assert_int_equal(rig_put(rig, stream, 2, "a", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 1, "b", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 4, "a", NULL), HB_OUTCOME_STORED);
  expect_log(rig, stream, "b1");
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = found_stream(rig, "s");
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.held_events, 2);
  assert_int_equal(status.gaps_total, 2);
  assert_int_equal(status.record.frontier, 1);
  assert_int_equal(rig_put(rig, stream, 1, "a", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 2, "b", NULL), HB_OUTCOME_STORED);
  expect_log(rig, stream, "b1 a1 a2 b2");
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = found_stream(rig, "s");
  assert_int_equal(rig_put(rig, stream, 3, "a", NULL), HB_OUTCOME_STORED);
  expect_log(rig, stream, "b1 a1 a2 b2 a3 a4");
  hb_stream_unref(stream);
}

enum { KEYS = 4, PER_KEY = 700, ALL = KEYS * PER_KEY };

/* All events of all keys, in an order that scatters each key over the log. */
static void put_all(struct rig *rig, struct hb_stream *stream, int outcome, const char *payload) {
  static struct ev events[ALL];
  static char names[ALL][8];
  size_t count = 0;
  for (int round = 0; round < PER_KEY; round++) {
    for (int key = 0; key < KEYS; key++) {
      (void)snprintf(names[count], sizeof names[count], "k%d", key);
      events[count] = (struct ev){.sequence = 1 + round, .key = names[count], .payload = payload};
      count++;
    }
  }
  for (size_t at = 0; at < count;) {
    size_t piece = count - at < 100 ? count - at : 100;
    struct sent *sent = rig_send(rig, stream, 0, events + at, piece);
    rig_wait(sent);
    if (sent->append.batch.error.code) fail_msg("%s", sent->append.batch.error.message);
    for (size_t i = 0; i < piece; i++) {
      assert_int_equal(sent->append.batch.decisions[i].outcome, outcome);
    }
    rig_free(sent);
    at += piece;
  }
}

/* The same events again are duplicates, others under their numbers conflicts: found in the log's
 * tail while nothing is indexed, in the keys' lists afterwards, and by records that were read. */
static void copies(struct rig *rig, enum hb_ack ack) {
  rig->limits.key_cache_max = 1 << 20;
  rig->tuning.index_entries = 700;
  rig->tuning.index_file_entries = 50;
  rig->tuning.index_age_ms = rig->tuning.index_idle_ms = 600000; /* not before it is full */
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", ack);
  put_all(rig, stream, HB_OUTCOME_STORED, NULL);
  rig_until(rig, stream, rig_frontier_at_least, ALL);
  put_all(rig, stream, HB_OUTCOME_DUPLICATE, NULL);
  put_all(rig, stream, HB_OUTCOME_CONFLICT, "other");
  hb_stream_unref(stream);
  rig->tuning.index_age_ms = rig->tuning.index_idle_ms = 10;
  rig_reopen(rig);
  stream = found_stream(rig, "s");
  rig_until(rig, stream, rig_indexed_at_least, ALL);
  put_all(rig, stream, HB_OUTCOME_DUPLICATE, NULL);
  put_all(rig, stream, HB_OUTCOME_CONFLICT, "other");
  assert_int_equal(rig_put(rig, stream, PER_KEY + 1, "k3", NULL), HB_OUTCOME_STORED);
  assert_int_equal(rig_put(rig, stream, 17, "k3", NULL), HB_OUTCOME_DUPLICATE);
  hb_stream_unref(stream);
}

static void test_copies(void **state) { copies(*state, HB_ACK_DURABLE); }
static void test_copies_async(void **state) { copies(*state, HB_ACK_ASYNC); }

/* ---- more is held than memory has room for */

enum { SPILL_KEYS = 40, SPILL_PER = 30, SPILL_PAYLOAD = 500 };

/* Events [from, SPILL_PER) of each key, round by round; every one must have that outcome. */
static void put_rounds(struct rig *rig, struct hb_stream *stream, int from, int outcome,
                       char letter) {
  static char payload[SPILL_PAYLOAD + 1];
  static char names[SPILL_KEYS][8];
  memset(payload, letter, SPILL_PAYLOAD);
  for (int round = from; round < SPILL_PER; round++) {
    struct ev events[SPILL_KEYS];
    for (int key = 0; key < SPILL_KEYS; key++) {
      (void)snprintf(names[key], sizeof names[key], "k%d", key);
      events[key] = (struct ev){.sequence = 1 + round, .key = names[key], .payload = payload};
    }
    struct sent *sent = rig_send(rig, stream, 0, events, SPILL_KEYS);
    rig_wait(sent);
    if (sent->append.batch.error.code) fail_msg("%s", sent->append.batch.error.message);
    for (size_t i = 0; i < SPILL_KEYS; i++) {
      assert_int_equal(sent->append.batch.decisions[i].outcome, outcome);
    }
    rig_free(sent);
  }
}

/* The log has each key's events in order; returns how many. */
static int64_t check_keys_ascend(struct rig *rig, struct hb_stream *stream) {
  int64_t next[SPILL_KEYS] = {0};
  int64_t position = 0;
  for (bool any = true; any;) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = stream, .position = position, .bytes_max = 1 << 20};
    assert_int_equal(rig_read(rig, &read), HB_OK);
    any = read.blocks_count > 0;
    for (uint32_t i = 0; i < read.blocks_count; i++) {
      struct hb_block block;
      assert_int_equal(hb_block_decode(hb_bytes_view(read.blocks[i]), &block, NULL), HB_OK);
      for (uint32_t k = 0; k < block.count; k++, position++) {
        struct hb_event event;
        assert_int_equal(hb_scan_frame(hb_block_frame(&block, k), &event, NULL), HB_OK);
        char name[8] = "";
        memcpy(name, hb_event_key(&event).data, event.key_size);
        long number = strtol(name + 1, NULL, 10);
        assert_in_range(number, 0, SPILL_KEYS - 1);
        assert_int_equal(event.sequence, ++next[number]);
      }
    }
    hb_read_done(&read);
  }
  return position;
}

/* A hundred times what memory may hold waits: copies are exact, a start comes up with it, and when
 * the gaps are filled everything comes, each key in its order. */
static void test_spills(void **state) {
  struct rig *rig = *state;
  rig->limits.key_held_memory_max = 8 << 10;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  put_rounds(rig, stream, 1, HB_OUTCOME_STORED, 'x');
  put_rounds(rig, stream, 1, HB_OUTCOME_DUPLICATE, 'x');
  hb_stream_unref(stream);
  rig_reopen(rig);
  stream = found_stream(rig, "s");
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.held_events, SPILL_KEYS * (SPILL_PER - 1));
  assert_int_equal(status.gaps_total, SPILL_KEYS);
  put_rounds(rig, stream, 1, HB_OUTCOME_CONFLICT, 'y');
  for (int key = SPILL_KEYS; key > 0; key--) {
    char name[8];
    (void)snprintf(name, sizeof name, "k%d", key - 1);
    assert_int_equal(rig_put(rig, stream, 1, name, "first"), HB_OUTCOME_STORED);
  }
  rig_until(rig, stream, rig_frontier_at_least, SPILL_KEYS * SPILL_PER);
  assert_int_equal(check_keys_ascend(rig, stream), SPILL_KEYS * SPILL_PER);
  hb_stream_get_status(stream, &status);
  assert_int_equal(status.held_events, 0);
  assert_int_equal(status.held_bytes, 0);
  hb_stream_unref(stream);
}

/* ---- the list of a key */

static char list[512];

/* All pages: released ones with their position, "1@0 2@3 5held". */
static const char *read_list(struct rig *rig, struct hb_stream *stream, const char *key,
                             uint32_t page_size, bool released_only) {
  struct hb_buf token = {0};
  bool end = false;
  list[0] = 0;
  while (!end) {
    struct hb_read read = {.kind = HB_READ_KEY,
                           .stream = stream,
                           .key = hb_slice_text(key),
                           .page_size = page_size,
                           .released_only = released_only,
                           .token = hb_buf_view(&token)};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    for (size_t i = 0; i < read.entries_count; i++) {
      struct hb_event event;
      assert_int_equal(hb_scan_frame(read.entries[i].frame, &event, NULL), HB_OK);
      size_t at = strlen(list);
      const char *space = at ? " " : "";
      if (read.entries[i].released) {
        (void)snprintf(list + at, sizeof list - at, "%s%lld@%lld", space, (long long)event.sequence,
                       (long long)read.entries[i].position);
      } else {
        (void)snprintf(list + at, sizeof list - at, "%s%lldheld", space, (long long)event.sequence);
      }
    }
    end = read.next_token.size == 0;
    hb_buf_clear(&token);
    hb_buf_append(&token, read.next_token.data, read.next_token.size);
    hb_read_done(&read);
  }
  hb_buf_done(&token);
  return list;
}

/* Released entries by position, then held ones by sequence, in pages of any size, from tail and
 * index. Events of other keys with the same numbers don't show. */
static void test_key_list(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  const struct ev events[] = {{2, "a", NULL, 0}, {1, "b", NULL, 0}, {9, "a", NULL, 0},
                              {7, "a", NULL, 0}, {7, "b", NULL, 0}, {5, "a", NULL, 0}};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    rig_put(rig, stream, events[i].sequence, events[i].key, NULL);
  }
  rig_put(rig, stream, 1, "a", NULL);
  for (uint32_t size = 1; size <= 6; size++) {
    assert_string_equal(read_list(rig, stream, "a", size, false), "1@1 2@2 5held 7held 9held");
    assert_string_equal(read_list(rig, stream, "a", size, true), "1@1 2@2");
    assert_string_equal(read_list(rig, stream, "b", size, false), "1@0 7held");
    assert_string_equal(read_list(rig, stream, "c", size, false), "");
  }
  rig_until(rig, stream, rig_indexed_at_least, 3);
  rig_put(rig, stream, 3, "a", NULL);
  rig_put(rig, stream, 4, "a", NULL);
  assert_string_equal(read_list(rig, stream, "a", 2, false), "1@1 2@2 3@3 4@4 5@5 7held 9held");
  hb_stream_unref(stream);
}

/* Pages stay exact while what is held is released between them. */
static void test_key_list_moves(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  for (int64_t i = 2; i <= 6; i++) rig_put(rig, stream, i, "a", NULL);
  struct hb_read first = {
      .kind = HB_READ_KEY, .stream = stream, .key = hb_slice_text("a"), .page_size = 2};
  assert_int_equal(rig_read(rig, &first), HB_OK);
  assert_int_equal(first.entries_count, 2);
  rig_put(rig, stream, 1, "a", NULL);
  struct hb_read next = {.kind = HB_READ_KEY,
                         .stream = stream,
                         .key = hb_slice_text("a"),
                         .page_size = 100,
                         .token = hb_buf_view(&first.next_token)};
  assert_int_equal(rig_read(rig, &next), HB_OK);
  assert_true(next.entries_count >= 3); /* each event that was not given yet, released now */
  struct hb_event event;
  const struct hb_key_entry *last = &next.entries[next.entries_count - 1];
  assert_int_equal(hb_scan_frame(last->frame, &event, NULL), HB_OK);
  assert_int_equal(event.sequence, 6);
  assert_true(last->released);
  hb_read_done(&first);
  hb_read_done(&next);
  hb_stream_unref(stream);
}

/* ---- a store that does not agree with itself */

static enum hb_code open_again(struct rig *rig, struct hb_err *err) {
  struct hb_engine_options options = {.data_dir = rig->path, .limits = rig->limits};
  struct hb_engine *engine = NULL;
  enum hb_code code = hb_engine_open(&options, &engine, err);
  if (code == HB_OK) {
    hb_engine_stop(engine);
    hb_engine_close(engine);
  }
  return code;
}

/* A frontier record that counts more events than are there: refused, as in GLOBAL mode. */
static void test_lost_event_is_refused(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  rig_put(rig, stream, 1, "a", NULL);
  rig_put(rig, stream, 5, "a", NULL);
  uint64_t id = stream->id;
  hb_stream_unref(stream);
  rig_close(rig);
  struct hb_store *store;
  struct hb_err err = {0};
  struct hb_store_options options = {.path = rig->path};
  assert_int_equal(hb_store_open(&options, &store, &err), HB_OK);
  struct hb_write *write = hb_write_create(store);
  struct hb_key_record record = {.begun = true, .first = 1, .next = 6, .last_position = 9};
  hb_write_put_key(write, id, hb_slice_text("a"), &record); /* hides what is held */
  assert_int_equal(hb_store_write(store, write, hb_store_info(store)->last_commit + 1, true, &err),
                   HB_OK);
  hb_write_destroy(write);
  hb_store_close(store);
  assert_int_equal(open_again(rig, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "2 events were stored, but 1 are released and 0 held"));
}

/* A deleted stream leaves nothing of its keys to its successor. */
static void test_deleted_stream_is_forgotten(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  rig_put(rig, stream, 1, "a", NULL);
  uint64_t id = stream->id;
  hb_stream_unref(stream);
  assert_int_equal(rig_delete(rig, "s"), HB_OK);
  hb_engine_wait_deletions(rig->engine);
  bool found = true;
  struct hb_key_record record;
  assert_int_equal(
      hb_key_record_read(rig->engine->store, id, hb_slice_text("a"), &found, &record, NULL), HB_OK);
  assert_false(found);
  stream = keyed_stream(rig, "s", HB_ACK_DURABLE);
  assert_int_equal(rig_put(rig, stream, 1, "a", "other"), HB_OUTCOME_STORED);
  hb_stream_unref(stream);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_order_and_reopen),
      T(test_copies),
      T(test_copies_async),
      T(test_spills),
      T(test_key_list),
      T(test_key_list_moves),
      T(test_lost_event_is_refused),
      T(test_deleted_stream_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
