#include "storage/index.h"

#include <dirent.h>

#include "storage/engine_internal.h"
#include "storage/folder_internal.h"
#include "storage/index_sort_internal.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

static struct hb_index_entry make_entry(struct hb_slice key, int64_t position) {
  return (struct hb_index_entry){.key = key,
                                 .position = position,
                                 .block = position / 2,
                                 .offset = (uint32_t)position,
                                 .length = 7};
}

static struct hb_index_entry entry_of(const char *key, int64_t position) {
  return make_entry(hb_slice_text(key), position);
}

struct found {
  int count;
  int most;
  int64_t positions[64];
};

static bool take_entry(void *context, const struct hb_index_entry *entry) {
  struct found *found = context;
  assert_int_equal(entry->block, entry->position / 2);
  assert_int_equal(entry->offset, (uint32_t)entry->position);
  assert_int_equal(entry->length, 7);
  assert_true(found->count < 64);
  found->positions[found->count++] = entry->position;
  return found->count < found->most;
}

static struct found list_of(struct fixture *fixture, struct hb_slice key, int64_t from,
                            int64_t end) {
  struct found found = {.most = 64};
  struct hb_err err;
  must(hb_index_each(fixture->store, 1, key, from, end, take_entry, &found, &err), &err);
  return found;
}

static void ingest(struct fixture *fixture, uint64_t stream, struct hb_index_entry *entries,
                   size_t count) {
  struct hb_err err;
  must(hb_index_ingest(fixture->store, stream, entries, count, &err), &err);
}

static int compare_entries(const struct hb_index_entry *a, const struct hb_index_entry *b) {
  int order = hb_slice_compare(a->key, b->key);
  return order ? order : (a->position > b->position) - (a->position < b->position);
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return *state >> 33;
}

/* Entries in any order, with keys of any kind, come out ascending, each once, equal ones in the
 * order they had. The seed is printed where it fails. */
static void entries_are_sorted(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    enum { COUNT = 3000 };
    uint64_t random = seed;
    struct hb_index_entry *entries = hb_calloc(COUNT, sizeof *entries);
    uint8_t *keys = hb_calloc(COUNT, 16);
    bool *seen = hb_calloc(COUNT, 1);
    unsigned letters = seed % 3 ? 2 : 200; /* few keys, or nearly all of them different */
    for (int i = 0; i < COUNT; i++) {
      size_t size = next_random(&random) % 13;
      for (size_t k = 0; k < size; k++)
        keys[i * 16 + k] = (uint8_t)(next_random(&random) % letters);
      int64_t position = seed % 2 ? i : (int64_t)(next_random(&random) % 50) - 25;
      entries[i] = make_entry(hb_slice_of(keys + i * 16, size), position);
    }
    uint32_t *order = hb_index_sort(entries, COUNT);
    for (int i = 0; i < COUNT; i++) {
      bool same = order[i] & HB_INDEX_SAME_KEY;
      order[i] &= ~HB_INDEX_SAME_KEY;
      assert_int_equal(same, i && hb_slice_equal(entries[order[i - 1]].key, entries[order[i]].key));
      if (seen[order[i]]) fail_msg("seed %d: entry %u twice", (int)seed, order[i]);
      seen[order[i]] = true;
      int step = i ? compare_entries(&entries[order[i - 1]], &entries[order[i]]) : -1;
      if (step > 0 || (step == 0 && order[i - 1] > order[i])) {
        fail_msg("seed %d: place %d is not in order", (int)seed, i);
      }
    }
    free(order);
    free(entries);
    free(keys);
    free(seen);
  }
}

/* One key's list ascends, has what was ingested for it in several bundles, and nothing of others;
 * bounds hold. */
static void a_list_ascends_over_bundles(void **state) {
  struct fixture *fixture = *state;
  struct hb_index_entry first[] = {entry_of("b", 3), entry_of("a", 9), entry_of("a", 1),
                                   entry_of("aa", 2), entry_of("", 4)};
  struct hb_index_entry second[] = {entry_of("a", INT64_MIN), entry_of("a", 20), entry_of("b", 10)};
  struct hb_index_entry other[] = {entry_of("a", 5)};
  make_stream(fixture, 1, "one"); /* else their rows are not for a start to find */
  make_stream(fixture, 2, "two");
  ingest(fixture, 1, first, 5);
  ingest(fixture, 1, second, 3);
  ingest(fixture, 2, other, 1);
  reopen_store(fixture);
  struct found found = list_of(fixture, hb_slice_text("a"), INT64_MIN, INT64_MAX);
  assert_int_equal(found.count, 4);
  assert_true(found.positions[0] == INT64_MIN);
  assert_int_equal(found.positions[1], 1);
  assert_int_equal(found.positions[2], 9);
  assert_int_equal(found.positions[3], 20);
  assert_int_equal(list_of(fixture, hb_slice_text("a"), 1, 20).count, 2);
  assert_int_equal(list_of(fixture, hb_slice_text("a"), 2, 9).count, 0);
  assert_int_equal(list_of(fixture, hb_slice_text("a"), 9, 9).count, 0);
  assert_int_equal(list_of(fixture, hb_slice_text(""), 0, 100).count, 1);
  assert_int_equal(list_of(fixture, hb_slice_text("aaa"), 0, 100).count, 0);
}

/* Small bundles as rows of a commit and large ones as files are one list; doing a bundle again
 * changes nothing. */
static void rows_and_files_are_one_list(void **state) {
  struct fixture *fixture = *state;
  for (int round = 0; round < 3; round++) {
    struct hb_index_entry file[] = {entry_of("k", 1), entry_of("k", 4), entry_of("k", 4)};
    struct hb_index_entry row = entry_of("k", 2);
    struct hb_index_entry last = entry_of("k", 7);
    hb_write_put_index_entry(fixture->write, 1, &row);
    hb_write_put_index_entry(fixture->write, 1, &last);
    apply(fixture);
    ingest(fixture, 1, file, 3); /* overlaps with rows that are in memory */
  }
  struct found found = list_of(fixture, hb_slice_text("k"), INT64_MIN, INT64_MAX);
  assert_int_equal(found.count, 4);
  const int64_t expected[] = {1, 2, 4, 7};
  assert_memory_equal(found.positions, expected, sizeof expected);
}

/* An empty bundle is none. */
static void an_empty_bundle_is_none(void **state) {
  struct fixture *fixture = *state;
  ingest(fixture, 1, NULL, 0);
  assert_int_equal(list_of(fixture, hb_slice_text(""), INT64_MIN, INT64_MAX).count, 0);
}

/* A visitor pages: it stops, and goes on from the position after. */
static void a_list_is_paged(void **state) {
  struct fixture *fixture = *state;
  struct hb_index_entry entries[10];
  for (int i = 0; i < 10; i++) entries[i] = entry_of("k", i * 3);
  ingest(fixture, 1, entries, 10);
  int64_t from = INT64_MIN;
  int pages = 0;
  int count = 0;
  for (;;) {
    struct found found = {.most = 4};
    struct hb_err err;
    must(hb_index_each(fixture->store, 1, hb_slice_text("k"), from, INT64_MAX, take_entry, &found,
                       &err),
         &err);
    if (!found.count) break;
    pages++;
    count += found.count;
    from = found.positions[found.count - 1] + 1;
  }
  assert_int_equal(count, 10);
  assert_int_equal(pages, 3);
}

/* ---- keys */

struct keys {
  int count;
  int most;
  struct hb_buf items[64];
};

static bool take_key(void *context, struct hb_slice key) {
  struct keys *keys = context;
  assert_true(keys->count < 64);
  hb_buf_append(&keys->items[keys->count++], key.data, key.size);
  return keys->count < keys->most;
}

static void free_keys(struct keys *keys) {
  for (int i = 0; i < keys->count; i++) hb_buf_done(&keys->items[i]);
}

static const struct {
  const char *bytes;
  size_t size;
} AWKWARD[] = {{"", 0},     {"\0", 1},  {"\0\0", 2}, {"\0\xFF", 2}, {"a", 1},    {"a\0", 2},
               {"a\0b", 3}, {"a\1", 2}, {"ab", 2},   {"b", 1},      {"\xFF", 1}, {"\xFF\xFF", 2}};
enum { AWKWARD_COUNT = sizeof AWKWARD / sizeof *AWKWARD };

static struct hb_slice awkward(int i) { return hb_slice_of(AWKWARD[i].bytes, AWKWARD[i].size); }

static void put_awkward(struct fixture *fixture) {
  struct hb_index_entry entries[AWKWARD_COUNT * 3];
  for (int i = 0; i < AWKWARD_COUNT * 3; i++) {
    entries[i] = make_entry(awkward(AWKWARD_COUNT - 1 - i / 3), i % 3);
  }
  ingest(fixture, 1, entries, AWKWARD_COUNT * 3);
  struct hb_index_entry other[] = {entry_of("a", 1), entry_of("zz", 1)};
  ingest(fixture, 0, other, 2);
  ingest(fixture, 2, other, 2);
}

/* For each prefix and each key to start after: exactly the keys that a walk over all finds, in
 * byte order, each once however many events it has. */
static void keys_by_prefix_and_after(void **state) {
  struct fixture *fixture = *state;
  put_awkward(fixture);
  int seen = 0;
  for (int prefix = 0; prefix < AWKWARD_COUNT; prefix++) {
    for (int after = -1; after < AWKWARD_COUNT; after++) {
      struct keys keys = {.most = 64};
      struct hb_err err;
      must(hb_index_keys(fixture->store, 1, awkward(prefix), after >= 0,
                         awkward(after < 0 ? 0 : after), take_key, &keys, &err),
           &err);
      int next = 0;
      for (int i = after + 1; i < AWKWARD_COUNT; i++) {
        if (!hb_slice_starts_with(awkward(i), awkward(prefix))) continue;
        assert_true(next < keys.count);
        assert_true(hb_slice_equal(hb_buf_view(&keys.items[next++]), awkward(i)));
      }
      assert_int_equal(next, keys.count);
      seen += keys.count;
      free_keys(&keys);
    }
  }
  assert_true(seen > AWKWARD_COUNT * AWKWARD_COUNT / 2);
}

/* Pages of two, each after the last key of the one before, give every key once. */
static void keys_are_paged(void **state) {
  struct fixture *fixture = *state;
  put_awkward(fixture);
  struct hb_buf after = {0};
  int count = 0;
  for (;;) {
    struct keys keys = {.most = 2};
    struct hb_err err;
    must(hb_index_keys(fixture->store, 1, (struct hb_slice){0}, count > 0, hb_buf_view(&after),
                       take_key, &keys, &err),
         &err);
    if (!keys.count) break;
    for (int i = 0; i < keys.count; i++) {
      assert_true(hb_slice_equal(hb_buf_view(&keys.items[i]), awkward(count++)));
    }
    hb_buf_clear(&after);
    struct hb_buf *last = &keys.items[keys.count - 1];
    hb_buf_append(&after, last->data, last->size);
    free_keys(&keys);
  }
  assert_int_equal(count, AWKWARD_COUNT);
  hb_buf_done(&after);
}

/* A row that is none is reported with family and key. */
static void a_damaged_row_is_named(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  struct hb_batch_writer *batch = hb_rocks_batch_create(fixture->store->engine);
  struct hb_slice row = hb_slice_of("\0\0\0\0\0\0\0\1k\0", 10);
  hb_rocks_put(batch, HB_FAMILY_LISTS, row, hb_slice_text("x"));
  must(hb_rocks_write(fixture->store->engine, batch, true, &err), &err);
  hb_rocks_batch_destroy(batch);
  struct keys keys = {.most = 64};
  assert_int_equal(hb_index_keys(fixture->store, 1, (struct hb_slice){0}, false,
                                 (struct hb_slice){0}, take_key, &keys, &err),
                   HB_CORRUPT);
  assert_non_null(strstr(err.message, "lists row 00000000000000016b00"));
  assert_int_equal(keys.count, 0);
}

/* Gives the newest table of RocksDB the name of the next bundle's file: what an ingest leaves whose
 * last call, the removal of that name, failed. */
static void leave_name_behind(struct fixture *fixture) {
  char folder[320];
  char newest[300] = "";
  char from[700];
  char to[340];
  snprintf(folder, sizeof folder, "%s/db", fixture->path);
  DIR *db = opendir(folder);
  assert_non_null(db);
  for (struct dirent *entry; (entry = readdir(db));) {
    if (strstr(entry->d_name, ".sst") && strcmp(entry->d_name, newest) > 0) {
      snprintf(newest, sizeof newest, "%s", entry->d_name);
    }
  }
  closedir(db);
  snprintf(from, sizeof from, "%s/%s", folder, newest);
  snprintf(to, sizeof to, "%s/%s/bundle.sst", fixture->path, HB_FOLDER_INDEX);
  assert_int_equal(link(from, to), 0);
}

/* A bundle's file that kept its name is a table of RocksDB's by now: the next one does not write
 * over it. */
static void a_file_taken_in_is_not_written_over(void **state) {
  struct fixture *fixture = *state;
  struct hb_index_entry first[] = {entry_of("a", 1), entry_of("a", 2)};
  struct hb_index_entry second[] = {entry_of("a", 3), entry_of("b", 4)};
  struct hb_stream_config config = some_config("s");
  struct hb_frontier record = {.commit = 1};
  hb_write_put_config(fixture->write, 1, &config);
  hb_write_put_frontier(fixture->write, 1, &record);
  hb_write_put_next_stream(fixture->write, 2);
  apply(fixture);
  ingest(fixture, 1, first, 2);
  leave_name_behind(fixture);
  ingest(fixture, 1, second, 2);
  close_store(fixture);
  open_store(fixture);
  struct found found = list_of(fixture, hb_slice_text("a"), INT64_MIN, INT64_MAX);
  assert_int_equal(found.count, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(found.positions[i], 1 + i);
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_are_sorted),
      ONE(a_list_ascends_over_bundles),
      ONE(rows_and_files_are_one_list),
      ONE(an_empty_bundle_is_none),
      ONE(a_list_is_paged),
      ONE(keys_by_prefix_and_after),
      ONE(keys_are_paged),
      ONE(a_damaged_row_is_named),
      ONE(a_file_taken_in_is_not_written_over),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
