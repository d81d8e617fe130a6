/* What the cache of states keeps, gives back, undoes, and asks the store for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processing/cache_internal.h"

/* A store with the states "stored 0" to "stored <count - 1>", which counts how often it is asked.
 */
struct source {
  int count;
  int gets;
  int next_keys;
};

static const struct hb_slice NO_NAME = {NULL, 0};

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  (void)err;
  struct source *source = context;
  source->gets++;
  *out_found = name.size == 0 && key.size > 7 && memcmp(key.data, "stored ", 7) == 0 &&
               key.data[7] < '0' + source->count;
  if (*out_found) hb_buf_append(out, key.data, key.size);
  return HB_OK;
}

static enum hb_code next_key(void *context, bool has_after, struct hb_slice after, bool *out_found,
                             struct hb_buf *out, struct hb_err *err) {
  (void)has_after;
  (void)after;
  (void)err;
  struct source *source = context;
  source->next_keys++;
  *out_found = source->count > 0;
  if (*out_found) hb_buf_append(out, (const uint8_t *)"stored 0", 8);
  return HB_OK;
}

struct bench {
  struct source source;
  struct hb_state_source calls;
  struct hb_cache cache;
};

static void begin(struct bench *bench, int stored, size_t budget) {
  bench->source = (struct source){.count = stored};
  bench->calls =
      (struct hb_state_source){.context = &bench->source, .get = get, .next_key = next_key};
  hb_cache_init(&bench->cache, &bench->calls, budget);
}

static struct hb_state *look(struct bench *bench, const char *key) {
  struct hb_state *state = NULL;
  struct hb_err err = {0};
  enum hb_code code = hb_cache_get(&bench->cache, hb_slice_text(key), NO_NAME, &state, &err);
  assert_int_equal(code, HB_OK);
  return state;
}

static void put(struct bench *bench, const char *key, struct hb_slice value) {
  hb_cache_put(&bench->cache, hb_slice_text(key), NO_NAME, true, value);
}

static void check(struct bench *bench, const char *key, struct hb_slice value) {
  const struct hb_state *state = look(bench, key);
  assert_true(state->present);
  assert_true(hb_slice_equal(hb_state_value(state), value));
}

static const size_t SIZES[] = {0, 1, 8, 16, 24, 25, 48, 200, 249, 5000};
enum { SIZES_COUNT = sizeof SIZES / sizeof *SIZES };

/* A value of any size may follow one of any other, within the state or apart, and an undo gives
 * back what was there before the call, whatever was put in it. */
static void test_sizes(void **unused) {
  (void)unused;
  uint8_t bytes[3][5000];
  for (size_t i = 0; i < 3; i++) memset(bytes[i], (int)('a' + i), sizeof bytes[i]);
  struct bench bench;
  begin(&bench, 0, 1 << 20);
  size_t empty = bench.cache.bytes;
  for (size_t a = 0; a < SIZES_COUNT; a++) {
    for (size_t b = 0; b < SIZES_COUNT; b++) {
      struct hb_slice first = hb_slice_of(bytes[0], SIZES[a]);
      put(&bench, "key", first);
      hb_cache_keep(&bench.cache);
      size_t before = bench.cache.bytes;
      put(&bench, "key", hb_slice_of(bytes[1], SIZES[b]));
      put(&bench, "key", hb_slice_of(bytes[2], SIZES[SIZES_COUNT - 1 - b]));
      check(&bench, "key", hb_slice_of(bytes[2], SIZES[SIZES_COUNT - 1 - b]));
      put(&bench, "other", hb_slice_of(bytes[1], SIZES[b]));
      hb_cache_undo(&bench.cache);
      check(&bench, "key", first);
      assert_int_equal(bench.cache.bytes, before);
      assert_int_equal(bench.cache.count, 1);
      assert_int_equal(bench.cache.dirty_count, 1);
      put(&bench, "key", hb_slice_of(bytes[1], SIZES[b]));
      hb_cache_keep(&bench.cache);
      check(&bench, "key", hb_slice_of(bytes[1], SIZES[b]));
    }
  }
  assert_true(bench.cache.bytes > empty);
  hb_cache_done(&bench.cache);
}

/* What is put may be a part of what is there: a processor may shorten a state in place. */
static void test_part_of_itself(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 0, 1 << 20);
  char text[400];
  memset(text, 'x', sizeof text);
  memcpy(text, "0123456789", 10);
  for (size_t size = 10; size <= sizeof text; size += 130) {
    put(&bench, "key", hb_slice_of(text, size));
    hb_cache_keep(&bench.cache);
    for (size_t skip = 1; skip < 4; skip++) {
      struct hb_slice had = hb_state_value(look(&bench, "key"));
      put(&bench, "key", hb_slice_of(had.data + 1, had.size - 1));
      check(&bench, "key", hb_slice_of(text + skip, size - skip));
      hb_cache_keep(&bench.cache);
    }
  }
  hb_cache_done(&bench.cache);
}

/* A state that is cleared is absent, and an undo brings it back. */
static void test_clear(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 0, 1 << 20);
  put(&bench, "key", hb_slice_text("value"));
  hb_cache_keep(&bench.cache);
  hb_cache_put(&bench.cache, hb_slice_text("key"), NO_NAME, false, NO_NAME);
  assert_false(look(&bench, "key")->present);
  hb_cache_undo(&bench.cache);
  check(&bench, "key", hb_slice_text("value"));
  hb_cache_done(&bench.cache);
}

static void fill(struct bench *bench, int count) {
  for (int i = 0; i < count; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%d", i);
    put(bench, key, hb_slice_text("value"));
    hb_cache_keep(&bench->cache);
  }
}

/* A store without states is asked for none, as long as nothing was dropped. */
static void test_knows_all(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 0, 4000);
  for (int i = 0; i < 20; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "absent %d", i);
    assert_false(look(&bench, key)->present);
  }
  fill(&bench, 10);
  hb_cache_committed(&bench.cache);
  assert_false(look(&bench, "another")->present);
  assert_int_equal(bench.source.next_keys, 1);
  assert_int_equal(bench.source.gets, 0);
  fill(&bench, 1000);
  hb_cache_committed(&bench.cache);
  assert_true(bench.cache.bytes <= 4000);
  assert_false(look(&bench, "yet another")->present);
  assert_int_equal(bench.source.gets, 1);
  hb_cache_done(&bench.cache);
}

/* A store with states is asked for each that is not in memory, once. */
static void test_knows_some(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 3, 1 << 20);
  for (int i = 0; i < 2; i++) {
    assert_false(look(&bench, "absent")->present);
    check(&bench, "stored 0", hb_slice_text("stored 0"));
    check(&bench, "stored 2", hb_slice_text("stored 2"));
    assert_false(look(&bench, "stored 3")->present);
  }
  assert_int_equal(bench.source.gets, 4);
  assert_int_equal(bench.source.next_keys, 1);
  hb_cache_done(&bench.cache);
}

/* Dropping what the store does not have either leaves everything known. */
static void test_dropping_the_absent(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 0, 1000);
  for (int i = 0; i < 1000; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "absent %d", i);
    assert_false(look(&bench, key)->present);
    hb_cache_keep(&bench.cache);
  }
  assert_true(bench.cache.bytes <= 1000);
  assert_int_equal(bench.source.gets, 0);
  hb_cache_done(&bench.cache);
}

/* What the store does not have yet stays, whatever the budget says. */
static void test_dirty_stays(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 0, 100);
  fill(&bench, 500);
  assert_int_equal(bench.cache.count, 500);
  for (int i = 0; i < 500; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%d", i);
    check(&bench, key, hb_slice_text("value"));
  }
  assert_int_equal(bench.cache.misses, 0);
  hb_cache_committed(&bench.cache);
  assert_true(bench.cache.bytes <= 100);
  hb_cache_done(&bench.cache);
}

/* What is used again and again stays while others come and go. */
static void test_used_stays(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 9, 20000);
  for (int i = 0; i < 5000; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "passing %d", i);
    (void)look(&bench, key);
    check(&bench, "stored 5", hb_slice_text("stored 5"));
    hb_cache_keep(&bench.cache);
  }
  assert_true(bench.cache.bytes <= 20000);
  assert_int_equal(bench.source.gets, 5001);
  hb_cache_done(&bench.cache);
}

/* To expect a key changes nothing, whether it is there or not. */
static void test_expect(void **unused) {
  (void)unused;
  struct bench bench;
  begin(&bench, 2, 1 << 20);
  for (int i = 0; i < 1000; i++) {
    hb_cache_expect(&bench.cache, hb_slice_text(i % 2 ? "stored 1" : "absent"));
  }
  assert_int_equal(bench.cache.count, 0);
  assert_int_equal(bench.source.gets + bench.source.next_keys, 0);
  check(&bench, "stored 1", hb_slice_text("stored 1"));
  hb_cache_done(&bench.cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),       cmocka_unit_test(test_part_of_itself),
      cmocka_unit_test(test_clear),       cmocka_unit_test(test_knows_all),
      cmocka_unit_test(test_knows_some),  cmocka_unit_test(test_dropping_the_absent),
      cmocka_unit_test(test_dirty_stays), cmocka_unit_test(test_used_stays),
      cmocka_unit_test(test_expect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
