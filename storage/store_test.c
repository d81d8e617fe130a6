#include "storage/store.h"

#include <signal.h>
#include <sys/wait.h>

#include "storage/engine_internal.h"
#include "storage/folder_internal.h"
#include "storage/format_file_internal.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

static void rename_in(struct fixture *fixture, const char *from, const char *to) {
  char *old_path = hb_folder_join(fixture->path, from);
  char *new_path = hb_folder_join(fixture->path, to);
  assert_int_equal(rename(old_path, new_path), 0);
  free(old_path);
  free(new_path);
}

static bool exists_in(struct fixture *fixture, const char *name) {
  char *path = hb_folder_join(fixture->path, name);
  bool exists = access(path, F_OK) == 0;
  free(path);
  return exists;
}

static void refused(struct fixture *fixture, enum hb_code expected, const char *said) {
  struct hb_err err;
  enum hb_code code = try_open(fixture, &err);
  assert_int_equal(code, expected);
  if (!strstr(err.message, said)) fail_msg("'%s' does not say '%s'", err.message, said);
  if (!strstr(err.message, fixture->path)) fail_msg("'%s' names no path", err.message);
}

/* A new store has ids, run 1, and nothing in it; its folder is its owner's alone. */
static void a_store_is_made(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  const struct hb_store_info *info = hb_store_info(fixture->store);
  const uint8_t zeros[HB_STORE_ID_SIZE] = {0};
  assert_true(info->created);
  assert_int_equal(info->run, 1);
  assert_int_equal(info->served_ms, 0);
  assert_int_equal(info->next_stream, 1);
  assert_int_equal(info->last_commit, 0);
  assert_memory_not_equal(info->store_id, zeros, sizeof zeros);
  assert_memory_not_equal(info->incarnation, zeros, sizeof zeros);
  assert_memory_not_equal(info->incarnation, info->store_id, sizeof zeros);
  struct stat stat_of;
  assert_int_equal(stat(fixture->path, &stat_of), 0);
  assert_int_equal(stat_of.st_mode & 0777, 0700);
}

/* Opening again keeps the ids and raises the run; `created` ends with the first stream. */
static void opening_again_raises_the_run(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  struct hb_store_info before = *hb_store_info(fixture->store);
  reopen_store(fixture);
  assert_true(hb_store_info(fixture->store)->created);
  hb_write_put_next_stream(fixture->write, 2);
  hb_write_put_served_ms(fixture->write, 12345);
  apply(fixture);
  reopen_store(fixture);
  const struct hb_store_info *info = hb_store_info(fixture->store);
  assert_int_equal(info->run, 3);
  assert_false(info->created);
  assert_int_equal(info->next_stream, 2);
  assert_int_equal(info->served_ms, 12345);
  assert_memory_equal(info->store_id, before.store_id, HB_STORE_ID_SIZE);
  assert_memory_equal(info->incarnation, before.incarnation, HB_STORE_ID_SIZE);
}

/* Commit numbers go on above frontier records and names of bundles, whichever is higher, also
 * after their rows are gone. */
static void commit_numbers_go_on(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  make_stream(fixture, 1, "one");
  make_stream(fixture, 2, "two");
  reopen_store(fixture);
  assert_int_equal(fixture->commit, 2);
  put_bundle(fixture, (struct hb_bundle_id){1, 70, 0}, 5, 6);
  put_bundle(fixture, (struct hb_bundle_id){2, 40, 3}, 5, 6);
  apply(fixture);
  reopen_store(fixture);
  assert_int_equal(fixture->commit, 70);
  hb_write_delete_bundle(fixture->write, (struct hb_bundle_id){1, 70, 0});
  hb_write_delete_bundle(fixture->write, (struct hb_bundle_id){2, 40, 3});
  apply(fixture);
  reopen_store(fixture);
  assert_int_equal(fixture->commit, 70);
}

/* A second open is refused while the first lives, in this process and from another, and says who
 * has the folder; the first one does not notice. */
static void a_second_open_is_refused(void **state) {
  struct fixture *fixture = *state;
  char said[64];
  snprintf(said, sizeof said, "in use by process %ld", (long)getpid());
  open_store(fixture);
  struct fixture second = *fixture;
  refused(&second, HB_LOCKED, said);
  make_stream(fixture, 1, "one");
}

/* The lock of a process that ended, however it ended, is free. RocksDB is not touched before the
 * fork: the child only takes the lock. */
static void a_killed_holder_frees_the_lock(void **state) {
  struct fixture *fixture = *state;
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct hb_store *store;
    struct hb_store_options options = {.path = fixture->path};
    bool opened = hb_store_open(&options, &store, NULL) == HB_OK;
    if (write(ready[1], opened ? "y" : "n", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char answer = 0;
  assert_int_equal(read(ready[0], &answer, 1), 1);
  assert_int_equal(answer, 'y');
  char said[64];
  snprintf(said, sizeof said, "in use by process %ld", (long)child);
  refused(fixture, HB_LOCKED, said);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  open_store(fixture);
  assert_int_equal(hb_store_info(fixture->store)->run, 2);
  close(ready[0]);
  close(ready[1]);
}

/* A folder with something else in it is left as it is. */
static void a_foreign_folder_is_left_alone(void **state) {
  struct fixture *fixture = *state;
  assert_int_equal(mkdir(fixture->path, 0700), 0);
  make_file(fixture->path, "notes.txt", "mine", 4);
  refused(fixture, HB_VERSION, "notes.txt");
  assert_false(exists_in(fixture, HB_FILE_LOCK));
  assert_false(exists_in(fixture, HB_FILE_FORMAT_NEW));
}

/* So is a RocksDB folder without a FORMAT: it is nobody's we know. */
static void a_lost_format_is_not_made_anew(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  char *format = hb_folder_join(fixture->path, HB_FILE_FORMAT);
  assert_int_equal(unlink(format), 0);
  free(format);
  refused(fixture, HB_VERSION, "'db'");
  assert_true(exists_in(fixture, "db/CURRENT"));
}

/* An empty folder is taken, and one that a file system of its own made. */
static void an_empty_folder_is_taken(void **state) {
  struct fixture *fixture = *state;
  assert_int_equal(mkdir(fixture->path, 0700), 0);
  char *found = hb_folder_join(fixture->path, "lost+found");
  assert_int_equal(mkdir(found, 0700), 0);
  free(found);
  open_store(fixture);
  assert_true(hb_store_info(fixture->store)->created);
}

/* What is no folder, or can't be made, is a matter of permission. */
static void what_is_no_folder_is_refused(void **state) {
  struct fixture *fixture = *state;
  make_file(fixture->folder, "data", "x", 1);
  refused(fixture, HB_PERMISSION, "not a folder");
  snprintf(fixture->path, sizeof fixture->path, "%s/data/below", fixture->folder);
  refused(fixture, HB_PERMISSION, "can't create");
  snprintf(fixture->path, sizeof fixture->path, "%s/no/such/parent", fixture->folder);
  refused(fixture, HB_PERMISSION, "can't create");
}

/* FORMAT: another program's, a newer one, a cut one. */
static void a_wrong_format_is_refused(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  make_file(fixture->path, HB_FILE_FORMAT, "SOMETHING ELSE", 14);
  refused(fixture, HB_VERSION, "another program");
  uint8_t bytes[HB_FORMAT_SIZE];
  hb_format_encode(&(struct hb_format){.version = 9}, bytes);
  make_file(fixture->path, HB_FILE_FORMAT, bytes, sizeof bytes);
  refused(fixture, HB_VERSION, "newer holdbackd");
  make_file(fixture->path, HB_FILE_FORMAT, bytes, sizeof bytes - 1);
  refused(fixture, HB_CORRUPT, "backup");
}

/* FORMAT of one store beside the RocksDB of another is damage. */
static void parts_of_two_stores_are_refused(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  uint8_t bytes[HB_FORMAT_SIZE];
  hb_format_encode(&(struct hb_format){.version = HB_FORMAT_VERSION}, bytes);
  make_file(fixture->path, HB_FILE_FORMAT, bytes, sizeof bytes);
  refused(fixture, HB_CORRUPT, "two different stores");
}

/* With FORMAT there, a RocksDB that is not is damage: nothing is made anew over it. */
static void a_lost_rocksdb_is_damage(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  rename_in(fixture, "db/CURRENT", "db/CURRENT.lost");
  refused(fixture, HB_CORRUPT, "db/CURRENT");
  rename_in(fixture, "db", "index-tmp/db");
  refused(fixture, HB_CORRUPT, "db/CURRENT");
}

/* What RocksDB finds damaged is damage. */
static void a_damaged_rocksdb_is_damage(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  make_file(fixture->path, "db/CURRENT", "MANIFEST-000000", 15);
  refused(fixture, HB_CORRUPT, "Corruption");
}

/* A creation that was cut short is finished by the next open, whatever step it had reached. */
static void an_interrupted_creation_is_finished(void **state) {
  struct fixture *fixture = *state;
  /* Only LOCK. */
  assert_int_equal(mkdir(fixture->path, 0700), 0);
  make_file(fixture->path, HB_FILE_LOCK, "", 0);
  open_store(fixture);
  assert_true(hb_store_info(fixture->store)->created);
  close_store(fixture);
  /* All but the last step. */
  rename_in(fixture, HB_FILE_FORMAT, HB_FILE_FORMAT_NEW);
  open_store(fixture);
  assert_true(hb_store_info(fixture->store)->created);
  assert_int_equal(hb_store_info(fixture->store)->run, 1);
  assert_false(exists_in(fixture, HB_FILE_FORMAT_NEW));
  close_store(fixture);
  /* RocksDB half made. */
  rename_in(fixture, HB_FILE_FORMAT, HB_FILE_FORMAT_NEW);
  make_file(fixture->path, "db/CURRENT", "", 0);
  open_store(fixture);
  assert_int_equal(hb_store_info(fixture->store)->run, 1);
}

/* A FORMAT.new that was cut while being written stands alone; beside a RocksDB it is not ours. */
static void a_cut_format_new_is_written_again(void **state) {
  struct fixture *fixture = *state;
  assert_int_equal(mkdir(fixture->path, 0700), 0);
  make_file(fixture->path, HB_FILE_FORMAT_NEW, "HOLD", 4);
  open_store(fixture);
  assert_true(hb_store_info(fixture->store)->created);
  close_store(fixture);
  rename_in(fixture, HB_FILE_FORMAT, HB_FILE_FORMAT_NEW);
  make_file(fixture->path, HB_FILE_FORMAT_NEW, "HOLD", 4);
  refused(fixture, HB_CORRUPT, "FORMAT.new");
  assert_true(exists_in(fixture, "db/CURRENT"));
}

/* A file that an interrupted ingestion left is removed. */
static void the_index_folder_is_emptied(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  close_store(fixture);
  make_file(fixture->path, HB_FOLDER_INDEX "/bundle.sst", "half", 4);
  open_store(fixture);
  assert_false(exists_in(fixture, HB_FOLDER_INDEX "/bundle.sst"));
}

static bool count_stream(void *context, const struct hb_stored_stream *stream) {
  (void)stream;
  ++*(int *)context;
  return true;
}

static bool count_bundle(void *context, struct hb_bundle_id id, struct hb_slice block) {
  (void)id;
  (void)block;
  ++*(int *)context;
  return true;
}

static bool count_gap(void *context, const struct hb_gap *gap) {
  (void)gap;
  ++*(int *)context;
  return true;
}

static int count_data(struct fixture *fixture, uint64_t stream) {
  struct hb_err err;
  int count = 0;
  bool any = false;
  struct hb_range range;
  must(hb_bundle_each(fixture->store, stream, NULL, count_bundle, &count, &err), &err);
  must(hb_gap_each(fixture->store, stream, count_gap, &count, &err), &err);
  must(hb_log_last(fixture->store, stream, &any, &range, &err), &err);
  return count + any;
}

static void put_data(struct fixture *fixture, uint64_t stream) {
  struct hb_gap gap = {.start = 3, .end = 5};
  put_block(fixture, stream, 1, 3);
  put_bundle(fixture, (struct hb_bundle_id){stream, fixture->commit + 1, 0}, 5, 6);
  hb_write_put_gap(fixture->write, stream, &gap);
  apply(fixture);
}

static void put_gap(struct fixture *fixture, uint64_t stream) {
  struct hb_gap gap = {.start = 3, .end = 5};
  hb_write_put_gap(fixture->write, stream, &gap);
  apply(fixture);
}

/* Small rows of a stream with neither configuration nor mark are dropped at start; those of a
 * stream that is, or is being deleted, stay. */
static void orphans_are_dropped_at_start(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  make_stream(fixture, 2, "two");
  make_stream(fixture, 4, "four");
  put_data(fixture, 2);
  put_data(fixture, 4);
  for (uint64_t stream = 1; stream <= 5; stream += 2) put_gap(fixture, stream);
  hb_write_put_indexed_to(fixture->write, 3, 9);
  hb_write_put_next_stream(fixture->write, 6);
  hb_write_mark_deleting(fixture->write, 4);
  apply(fixture);
  reopen_store(fixture);
  int streams = 0;
  struct hb_err err;
  must(hb_stream_each(fixture->store, count_stream, &streams, &err), &err);
  assert_int_equal(streams, 2);
  assert_int_equal(count_data(fixture, 1), 0);
  assert_int_equal(count_data(fixture, 2), 3);
  assert_int_equal(count_data(fixture, 3), 0);
  assert_int_equal(count_data(fixture, 4), 3);
  assert_int_equal(count_data(fixture, 5), 0);
}

/* A deletion leaves no events behind: those of a stream that is not known are not dropped, for the
 * loss is elsewhere. */
static void events_without_their_stream_are_damage(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  open_store(fixture);
  make_stream(fixture, 2, "two");
  hb_write_put_next_stream(fixture->write, 4);
  put_bundle(fixture, (struct hb_bundle_id){3, fixture->commit + 1, 0}, 5, 6);
  apply(fixture);
  close_store(fixture);
  assert_int_equal(try_open(fixture, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "rows in held of stream id 3"));
  assert_int_equal(try_open(fixture, &err), HB_CORRUPT); /* still there */
}

/* Nor are rows of an id that was never given. */
static void rows_of_an_id_never_given_are_damage(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  open_store(fixture);
  hb_write_put_next_stream(fixture->write, 2);
  put_gap(fixture, 7);
  close_store(fixture);
  assert_int_equal(try_open(fixture, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "rows in gaps of stream id 7"));
}

/* Rows that are none are reported with family and key, by whoever reads them. */
static void damaged_rows_are_named(void **state) {
  struct fixture *fixture = *state;
  open_store(fixture);
  make_stream(fixture, 1, "one");
  struct hb_batch_writer *batch = hb_rocks_batch_create(fixture->store->engine);
  struct hb_key gap = hb_key_position(1, 5);
  struct hb_key bundle = hb_key_bundle((struct hb_bundle_id){1, 1, 0});
  struct hb_key record = hb_key_streams_row(1, HB_KIND_FRONTIER);
  struct hb_slice junk = hb_slice_text("\1junk");
  hb_rocks_put(batch, HB_FAMILY_GAPS, hb_key_view(&gap), junk);
  hb_rocks_put(batch, HB_FAMILY_HELD, hb_key_view(&bundle), junk);
  hb_rocks_put(batch, HB_FAMILY_STREAMS, hb_key_view(&record), junk);
  struct hb_err err;
  must(hb_rocks_write(fixture->store->engine, batch, true, &err), &err);
  hb_rocks_batch_destroy(batch);
  int count = 0;
  assert_int_equal(hb_gap_each(fixture->store, 1, count_gap, &count, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "gaps row 00000000000000018000000000000005"));
  assert_int_equal(hb_bundle_each(fixture->store, 1, NULL, count_bundle, &count, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "held row 0000000000000001"));
  assert_int_equal(hb_stream_each(fixture->store, count_stream, &count, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "streams row 000000000000000166"));
  assert_int_equal(count, 0);
  close_store(fixture);
  assert_int_equal(try_open(fixture, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "streams row 000000000000000166"));
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown)
  const struct CMUnitTest tests[] = {
      ONE(a_killed_holder_frees_the_lock), /* first: it forks before RocksDB has threads */
      ONE(a_store_is_made),
      ONE(opening_again_raises_the_run),
      ONE(commit_numbers_go_on),
      ONE(a_second_open_is_refused),
      ONE(a_foreign_folder_is_left_alone),
      ONE(a_lost_format_is_not_made_anew),
      ONE(an_empty_folder_is_taken),
      ONE(what_is_no_folder_is_refused),
      ONE(a_wrong_format_is_refused),
      ONE(parts_of_two_stores_are_refused),
      ONE(a_lost_rocksdb_is_damage),
      ONE(a_damaged_rocksdb_is_damage),
      ONE(an_interrupted_creation_is_finished),
      ONE(a_cut_format_new_is_written_again),
      ONE(the_index_folder_is_emptied),
      ONE(orphans_are_dropped_at_start),
      ONE(events_without_their_stream_are_damage),
      ONE(rows_of_an_id_never_given_are_damage),
      ONE(damaged_rows_are_named),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
