/* C5 of tests/README.md: an index made anew says what the first one said, with the largest events
 * in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/engine/testing.h"

enum { EVENTS = 120, KEYS = 5, LARGE_EVERY = 12, LARGE = (1 << 20) - 64 };

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  rig->tuning.index_idle_ms = 3600000; /* not in the first run */
  rig->tuning.index_age_ms = 3600000;
  rig_open(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static void put(struct rig *rig, struct hb_stream *stream, int64_t sequence) {
  static char payload[LARGE + 1];
  char key[16];
  size_t size = sequence % LARGE_EVERY ? 20 : LARGE;
  memset(payload, 'a' + (int)(sequence % 26), size);
  payload[size] = '\0';
  (void)snprintf(key, sizeof key, "k%d", (int)(sequence % KEYS));
  assert_int_equal(rig_put(rig, stream, sequence, key, payload), HB_OUTCOME_STORED);
}

/* Positions and frames of one key's list, one after another; how many there are. */
static size_t list(struct rig *rig, struct hb_stream *stream, const char *key, struct hb_buf *out) {
  size_t count = 0;
  struct hb_buf token = {0};
  do {
    struct hb_read read = {.kind = HB_READ_KEY,
                           .stream = stream,
                           .key = hb_slice_text(key),
                           .page_size = 7,
                           .token = hb_buf_view(&token)};
    if (rig_read(rig, &read) != HB_OK) fail_msg("%s", read.error.message);
    for (size_t i = 0; i < read.entries_count; i++) {
      hb_buf_append(out, &read.entries[i].position, sizeof read.entries[i].position);
      hb_buf_append(out, read.entries[i].frame.data, read.entries[i].frame.size);
      count++;
    }
    hb_buf_clear(&token);
    hb_buf_append(&token, read.next_token.data, read.next_token.size);
    hb_read_done(&read);
  } while (token.size);
  hb_buf_done(&token);
  return count;
}

static void lists(struct rig *rig, struct hb_stream *stream, struct hb_buf *out) {
  char key[16];
  for (int i = 0; i < KEYS; i++) {
    (void)snprintf(key, sizeof key, "k%d", i);
    assert_int_equal(list(rig, stream, key, out), EVENTS / KEYS);
  }
}

/* The list from the log is the list from the index, when it is new and after one more start. */
static void check(struct rig *rig, uint32_t file_entries) {
  struct hb_stream *stream = rig_stream(rig, "s");
  for (int64_t i = 1; i <= EVENTS; i++) put(rig, stream, i);
  struct hb_buf before = {0};
  lists(rig, stream, &before);
  rig->tuning.index_idle_ms = 5;
  rig->tuning.index_file_entries = file_entries;
  for (int starts = 0; starts < 2; starts++) {
    hb_stream_unref(stream);
    rig_reopen(rig);
    stream = hb_engine_find_stream(rig->engine, "s");
    rig_until(rig, stream, rig_indexed_at_least, EVENTS + 1);
    struct hb_buf after = {0};
    lists(rig, stream, &after);
    assert_true(hb_slice_equal(hb_buf_view(&before), hb_buf_view(&after)));
    hb_buf_done(&after);
  }
  hb_buf_done(&before);
  hb_stream_unref(stream);
}

/* C5, NATS 4842: made at the next start as rows, it says byte by byte what the log says. */
static void c5_an_index_rebuilt_in_rows(void **state) { check(*state, 1000); }

/* The same in files. */
static void c5_an_index_rebuilt_in_files(void **state) { check(*state, 10); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(c5_an_index_rebuilt_in_rows, setup, teardown),
      cmocka_unit_test_setup_teardown(c5_an_index_rebuilt_in_files, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
