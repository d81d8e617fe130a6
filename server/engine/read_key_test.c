/* Lists of one key, and lists of keys: from index, log tail and bundles, in pages, while events are
 * released between the pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/endian.h"
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

static void put_range(struct rig *rig, struct hb_stream *stream, int64_t from, int64_t to,
                      int keys) {
  struct sent *sent = rig_send_range(rig, stream, 0, from, to, keys);
  rig_wait(sent);
  assert_int_equal(sent->append.batch.error.code, HB_OK);
  rig_free(sent);
}

/* A reader of pages. */
struct pages {
  struct rig *rig;
  struct hb_read read;
  struct hb_buf token;
  int64_t positions[4096];
  bool released[4096];
  size_t count;
  size_t pages;
  bool end;
};

static void pages_init(struct pages *pages, struct rig *rig, struct hb_stream *stream,
                       const char *key, uint32_t page_size) {
  memset(pages, 0, sizeof *pages);
  pages->rig = rig;
  pages->read = (struct hb_read){
      .kind = HB_READ_KEY, .stream = stream, .key = hb_slice_text(key), .page_size = page_size};
}

static void pages_next(struct pages *pages) {
  struct hb_read *read = &pages->read;
  read->token = hb_buf_view(&pages->token);
  if (rig_read(pages->rig, read) != HB_OK) fail_msg("read: %s", read->error.message);
  assert_true(read->entries_count <= read->page_size);
  for (size_t i = 0; i < read->entries_count; i++) {
    const struct hb_key_entry *entry = &read->entries[i];
    struct hb_event event;
    assert_int_equal(hb_scan_frame(entry->frame, &event, NULL), HB_OK);
    assert_int_equal(event.sequence, entry->position);
    assert_true(hb_slice_equal(hb_event_key(&event), read->key));
    assert_true(pages->count == 0 || pages->positions[pages->count - 1] < entry->position);
    pages->positions[pages->count] = entry->position;
    pages->released[pages->count++] = entry->released;
  }
  pages->pages++;
  pages->end = read->next_token.size == 0;
  hb_buf_clear(&pages->token);
  hb_buf_append(&pages->token, read->next_token.data, read->next_token.size);
  hb_read_done(read);
  memset(&read->next_token, 0, sizeof read->next_token);
}

static void pages_all(struct pages *pages) {
  while (!pages->end) pages_next(pages);
  hb_buf_done(&pages->token);
}

/* Released entries come from the index (small bundles are rows, a large one a file) and from the
 * tail above it; held ones from bundles; together ascending, each marked. */
static void test_from_everywhere(void **state) {
  struct rig *rig = *state;
  rig->tuning.index_file_entries = 500;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 1001, 10); /* a file */
  rig_until(rig, stream, rig_indexed_at_least, 1001);
  put_range(rig, stream, 1001, 1101, 10); /* rows */
  rig_until(rig, stream, rig_indexed_at_least, 1101);
  put_range(rig, stream, 1101, 1201, 10); /* tail, perhaps */
  put_range(rig, stream, 1301, 1401, 10); /* held */
  for (uint32_t page_size = 1; page_size <= 1000; page_size = page_size * 3 + 4) {
    struct pages pages;
    pages_init(&pages, rig, stream, "k3", page_size);
    pages_all(&pages);
    assert_int_equal(pages.count, 130);
    for (int64_t i = 0; i < 130; i++) {
      assert_int_equal(pages.positions[i], 3 + 10 * (i < 120 ? i : i + 10));
      assert_int_equal(pages.released[i], i < 120);
    }
  }
  struct pages pages;
  pages_init(&pages, rig, stream, "k3", 7);
  pages.read.released_only = true;
  pages.read.has_from = true;
  pages.read.from_position = 994;
  pages_all(&pages);
  assert_int_equal(pages.count, 20);
  assert_int_equal(pages.positions[0], 1003);
  hb_stream_unref(stream);
}

/* Between any two pages the gap is filled a bit further: every entry that was there at the start
 * comes exactly once, wherever it is when its turn comes. */
static void test_moves_between_pages(void **state) {
  struct rig *rig = *state;
  rig->tuning.read_step_bytes = 3000; /* several steps for each pass */
  rig->tuning.core.bundle_bytes = 1000;
  rig->tuning.core.release_stream_bytes = 2000; /* releases take several commits too */
  rig->tuning.core.block_bytes = 500;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  static const int64_t gaps[] = {100, 200, 400, 600, 800};
  for (int round = 0; round < 2; round++) {
    int64_t base = 1 + round * 1000;
    put_range(rig, stream, base, base + 100, 2);
    for (int64_t at = base + 900; at >= base + 300; at -= 200) { /* bundles are not in order */
      put_range(rig, stream, at, at + 100, 2);
    }
    struct pages pages;
    pages_init(&pages, rig, stream, "k1", round == 0 ? 7 : 30);
    pages.read.has_from = true;
    pages.read.from_position = base;
    size_t filled = 0;
    while (!pages.end) {
      pages_next(&pages);
      if (pages.pages % 3 == 0 && filled < 5) {
        put_range(rig, stream, base + gaps[filled], base + gaps[filled] + 100, 2);
        filled++;
      }
    }
    hb_buf_done(&pages.token);
    /* Hundreds 0, 3, 5, 7, 9 were there at the start (that none is repeated is checked above). */
    size_t seen = 0;
    for (size_t i = 0; i < pages.count; i++) {
      int64_t hundred = (pages.positions[i] - base) / 100;
      if (hundred == 0 || (hundred > 1 && hundred % 2 == 1)) seen++;
    }
    assert_int_equal(seen, 5 * 50);
    assert_int_equal(filled, 5);
    rig_until(rig, stream, rig_frontier_at_least, base + 1000);
  }
  hb_stream_unref(stream);
}

/* A token of another key, stream, request or shape is refused. */
static void test_bad_tokens(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 101, 2);
  struct pages pages;
  pages_init(&pages, rig, stream, "k1", 7);
  pages_next(&pages);
  assert_false(pages.end);
  struct hb_read read = {.kind = HB_READ_KEY, .stream = stream, .page_size = 7};
  read.key = hb_slice_text("k0");
  read.token = hb_buf_view(&pages.token);
  assert_int_equal(rig_read(rig, &read), HB_INVALID);
  read.key = hb_slice_text("k1");
  read.released_only = true;
  assert_int_equal(rig_read(rig, &read), HB_INVALID);
  read.released_only = false;
  read.has_from = true; /* from 0 is not the same as from nowhere */
  assert_int_equal(rig_read(rig, &read), HB_INVALID);
  read.has_from = false;
  struct hb_stream *other = rig_stream(rig, "other");
  read.stream = other;
  assert_int_equal(rig_read(rig, &read), HB_INVALID);
  hb_stream_unref(other);
  read.stream = stream;
  for (size_t size = 1; size < pages.token.size; size++) {
    read.token.size = size;
    assert_int_equal(rig_read(rig, &read), HB_INVALID);
  }
  for (size_t i = 0; i < 11; i++) { /* version to purpose */
    pages.token.data[i] ^= 0x40;
    read.token.size = pages.token.size;
    assert_int_equal(rig_read(rig, &read), HB_INVALID);
    pages.token.data[i] ^= 0x40;
  }
  hb_buf_done(&pages.token);
  hb_stream_unref(stream);
}

/* ---- keys */

static size_t list_keys(struct rig *rig, struct hb_stream *stream, const char *prefix,
                        uint32_t page_size, char names[][16], size_t max) {
  struct hb_buf token = {0};
  size_t count = 0;
  do {
    struct hb_read read = {.kind = HB_READ_KEYS,
                           .stream = stream,
                           .key = hb_slice_text(prefix),
                           .page_size = page_size,
                           .token = hb_buf_view(&token)};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    const uint8_t *at = read.keys.data;
    for (size_t i = 0; i < read.keys_count; i++) {
      uint32_t size = hb_get_u32_le(at);
      assert_true(count < max && size < 16);
      memcpy(names[count], at + 4, size);
      names[count++][size] = 0;
      at += 4 + size;
    }
    hb_buf_clear(&token);
    hb_buf_append(&token, read.next_token.data, read.next_token.size);
    hb_read_done(&read);
  } while (token.size > 0);
  hb_buf_done(&token);
  return count;
}

/* Keys that have a released event, in byte order, from index and tail together; keys that only
 * have held ones are not listed. */
static void test_keys(void **state) {
  struct rig *rig = *state;
  rig->tuning.read_step_bytes = 1000;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  put_range(rig, stream, 1, 100, 30);
  rig_until(rig, stream, rig_indexed_at_least, 100);
  put_range(rig, stream, 100, 200, 40);
  put_range(rig, stream, 300, 400, 50);
  for (uint32_t page_size = 1; page_size < 100; page_size = page_size * 2 + 1) {
    static char names[64][16];
    size_t count = list_keys(rig, stream, "k", page_size, names, 64);
    assert_int_equal(count, 40);
    for (size_t i = 1; i < count; i++) assert_true(strcmp(names[i - 1], names[i]) < 0);
    assert_int_equal(list_keys(rig, stream, "k1", page_size, names, 64), 11);
    assert_int_equal(list_keys(rig, stream, "x", page_size, names, 64), 0);
  }
  hb_stream_unref(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_from_everywhere, setup, teardown),
      cmocka_unit_test_setup_teardown(test_moves_between_pages, setup, teardown),
      cmocka_unit_test_setup_teardown(test_bad_tokens, setup, teardown),
      cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
