/* Damage to real logs, written by hb_store_write, and what opening the store answers. */
#include "storage/wal_check_internal.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/endian.h"
#include "storage/crc32c_internal.h"
#include "storage/engine_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"
#include "storage/wal_manifest_internal.h"
#include "storage/wal_read_internal.h"

/* Commit 1 makes the stream, commit 1 + r puts row r into `unprocessed`; the rows are what is
 * looked for after opening. */
enum { COMMITS = 60, PER_FILE = 20, STREAM = 1 };

/* Where a commit's record lies, seen from outside: the file's size before and after its write. */
struct place {
  char file[32];
  off_t begin;
  off_t end;
};

struct wal {
  struct fixture *fixture;
  size_t bytes; /* of a row */
  struct place commits[COMMITS + 1];
};

/* ---- files */

static void path_of(const struct wal *wal, const char *name, char out[400]) {
  snprintf(out, 400, "%.300s/db/%.60s", wal->fixture->path, name);
}

static off_t size_of(const struct wal *wal, const char *name) {
  char path[400];
  struct stat stat_of;
  path_of(wal, name, path);
  return stat(path, &stat_of) ? 0 : stat_of.st_size;
}

static bool is_log(const char *name) {
  size_t size = strlen(name);
  return size == 10 && strcmp(name + 6, ".log") == 0;
}

static void newest_log(const struct wal *wal, char out[32]) {
  char path[400];
  path_of(wal, ".", path);
  DIR *folder = opendir(path);
  assert_non_null(folder);
  out[0] = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (is_log(entry->d_name) && strcmp(entry->d_name, out) > 0) {
      snprintf(out, 32, "%.30s", entry->d_name);
    }
  }
  closedir(folder);
  assert_true(out[0]);
}

static int open_log(const struct wal *wal, const char *name, int flags) {
  char path[400];
  path_of(wal, name, path);
  int fd = open(path, flags, 0600);
  assert_true(fd >= 0);
  return fd;
}

static void overwrite(const struct wal *wal, const char *name, off_t at, const void *bytes,
                      size_t size) {
  int fd = open_log(wal, name, O_RDWR);
  assert_int_equal(pwrite(fd, bytes, size, at), size);
  close(fd);
}

static void flip(const struct wal *wal, const char *name, off_t at) {
  int fd = open_log(wal, name, O_RDWR);
  uint8_t byte;
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 0x10;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static void cut(const struct wal *wal, const char *name, off_t size) {
  char path[400];
  path_of(wal, name, path);
  assert_int_equal(truncate(path, size), 0);
}

static void delete_file(const struct wal *wal, const char *name) {
  char path[400];
  path_of(wal, name, path);
  assert_int_equal(unlink(path), 0);
}

/* ---- a store with a log */

static void row_text(const struct wal *wal, uint32_t row, char *out) {
  memset(out, 'a' + row % 26, wal->bytes);
  snprintf(out, 12, "%u", row);
  out[strlen(out)] = '.';
  out[wal->bytes] = 0;
}

static void write_commit(struct fixture *fixture, bool sync) {
  struct hb_err err;
  must(hb_store_write(fixture->store, fixture->write, ++fixture->commit, sync, &err), &err);
  hb_write_clear(fixture->write);
}

/* RocksDB begins a new file when it flushes a family; the old one stays for the others' sake. */
static void next_file(struct fixture *fixture) {
  struct hb_err err;
  hb_write_put_served_ms(fixture->write, fixture->commit);
  write_commit(fixture, true);
  must(hb_rocks_flush(fixture->store->engine, HB_FAMILY_META, &err), &err);
}

static void put_unprocessed(struct fixture *fixture, uint32_t row, struct hb_slice bytes) {
  hb_write_put_unprocessed(fixture->write, STREAM, HB_OUTCOME_CONFLICT, row, 0, bytes, 0, 0);
}

static void put_row(struct wal *wal, uint32_t row, bool sync) {
  struct place *place = &wal->commits[row];
  char before[32];
  newest_log(wal, before);
  place->begin = size_of(wal, before);
  char *text = hb_alloc(wal->bytes + 16);
  row_text(wal, row, text);
  put_unprocessed(wal->fixture, row, hb_slice_text(text));
  free(text);
  write_commit(wal->fixture, sync);
  newest_log(wal, place->file);
  assert_string_equal(before, place->file);
  place->end = size_of(wal, place->file);
  /* Where no header fits before the end of a block, the record begins with the next. */
  off_t left = HB_WAL_BLOCK_SIZE - place->begin % HB_WAL_BLOCK_SIZE;
  if (left < HB_WAL_HEADER_SIZE) place->begin += left;
}

static void write_rows(struct wal *wal, struct fixture *fixture, size_t bytes, bool files,
                       bool sync) {
  *wal = (struct wal){.fixture = fixture, .bytes = bytes};
  open_store(fixture);
  make_stream(fixture, STREAM, "s");
  for (uint32_t row = 1; row <= COMMITS; row++) {
    put_row(wal, row, sync);
    if (files && row % PER_FILE == 0 && row < COMMITS) next_file(fixture);
  }
  close_store(fixture);
}

/* ---- what is there after opening */

struct seen {
  struct wal *wal;
  uint32_t rows;
};

static bool see_row(void *context, const struct hb_unprocessed *found) {
  struct seen *seen = context;
  uint32_t row = (uint32_t)found->sequence;
  char *expected = hb_alloc(seen->wal->bytes + 16);
  row_text(seen->wal, row, expected);
  assert_int_equal(row, seen->rows + 1);
  assert_true(hb_slice_equal(found->frame, hb_slice_text(expected)));
  free(expected);
  seen->rows = row;
  return true;
}

/* Rows 1 to `kept`, whole, and no other. */
static void opens_with(struct wal *wal, uint32_t kept, const char *what) {
  struct hb_err err;
  enum hb_code code = try_open(wal->fixture, &err);
  if (code) fail_msg("%s, %zu bytes: %s", what, wal->bytes, err.message);
  struct seen seen = {.wal = wal};
  must(hb_unprocessed_each(wal->fixture->store, STREAM, see_row, &seen, &err), &err);
  if (seen.rows != kept) {
    fail_msg("%s, %zu bytes: %u rows, not %u", what, wal->bytes, seen.rows, kept);
  }
  close_store(wal->fixture);
}

static void is_refused(struct wal *wal, const char *what, const char *names) {
  struct hb_err err;
  enum hb_code code = try_open(wal->fixture, &err);
  close_store(wal->fixture);
  if (code != HB_CORRUPT) {
    fail_msg("%s, %zu bytes: %s, not refused", what, wal->bytes, hb_code_text(code));
  }
  if (!strstr(err.message, names)) {
    fail_msg("%s, %zu bytes: '%s' does not name %s", what, wal->bytes, err.message, names);
  }
}

/* ---- the table */

enum damage {
  CUT,         /* the file ends within the commit's record */
  CUT_AFTER,   /* the file ends with it */
  HALF_ZERO,   /* the second half of its record is zeros, and so is what follows */
  ZEROS_AFTER, /* zeros behind the last byte of its file */
  GARBAGE_AFTER,
  FLIP,        /* a bit in the middle of its record */
  FLIP_LENGTH, /* a bit of its record's length */
  ZERO_HEADER, /* the header of its record is zeros */
  REMOVE       /* its file is gone */
};

static void zero(const struct wal *wal, const char *name, off_t from, off_t to) {
  uint8_t *zeros = hb_calloc(1, (size_t)(to - from) + 1);
  overwrite(wal, name, from, zeros, (size_t)(to - from));
  free(zeros);
}

static void garbage(const struct wal *wal, const char *name, off_t from, off_t to) {
  uint32_t state = 12345;
  uint8_t *bytes = hb_alloc((size_t)(to - from));
  for (off_t i = 0; i < to - from; i++) {
    state = state * 1664525U + 1013904223U;
    bytes[i] = (uint8_t)(state >> 24);
  }
  overwrite(wal, name, from, bytes, (size_t)(to - from));
  free(bytes);
}

static void apply_damage(const struct wal *wal, enum damage damage, uint32_t commit) {
  const struct place *place = &wal->commits[commit];
  off_t middle = place->begin + (place->end - place->begin) / 2;
  off_t end = size_of(wal, place->file);
  switch (damage) {
    case CUT:
      cut(wal, place->file, middle);
      break;
    case CUT_AFTER:
      cut(wal, place->file, place->end);
      break;
    case HALF_ZERO:
      zero(wal, place->file, middle, end);
      break;
    case ZEROS_AFTER:
      zero(wal, place->file, end, end + 100000);
      break;
    case GARBAGE_AFTER:
      garbage(wal, place->file, end, end + 100000);
      break;
    case FLIP:
      flip(wal, place->file, middle);
      break;
    case FLIP_LENGTH:
      flip(wal, place->file, place->begin + 4);
      break;
    case ZERO_HEADER:
      zero(wal, place->file, place->begin, place->begin + HB_WAL_HEADER_SIZE);
      break;
    case REMOVE:
      delete_file(wal, place->file);
      break;
  }
}

struct row {
  const char *what;
  enum damage damage;
  uint32_t commit;
  bool refused;
  uint32_t kept; /* else */
};

enum { LAST_ROW = COMMITS };

/* Commits 1 to 20 are in the first file, to 40 in the second, to 60 in the third; all synced. */
static const struct row THREE_FILES[] = {
    {"last record cut", CUT, LAST_ROW, false, LAST_ROW - 1},
    {"its second half zeros", HALF_ZERO, LAST_ROW, false, LAST_ROW - 1},
    {"a bit of the last commit flipped", FLIP, LAST_ROW, false, LAST_ROW - 1},
    {"its length flipped", FLIP_LENGTH, LAST_ROW, false, LAST_ROW - 1},
    {"zeros after the end", ZEROS_AFTER, LAST_ROW, false, LAST_ROW},
    {"garbage after the end", GARBAGE_AFTER, LAST_ROW, false, LAST_ROW},
    {"zeros after an earlier file", ZEROS_AFTER, 25, false, LAST_ROW},
    {"garbage after an earlier file", GARBAGE_AFTER, 5, false, LAST_ROW},
    {"cut at the end of the file", CUT_AFTER, LAST_ROW, false, LAST_ROW},
    {"a bit in the middle of the last file", FLIP, 50, true, 0},
    {"a bit of the last but one", FLIP, LAST_ROW - 1, true, 0},
    {"a bit of the first commit of a file", FLIP, 41, true, 0},
    {"a bit in an earlier file", FLIP, 30, true, 0},
    {"a bit in the first file", FLIP, 1, true, 0},
    {"a bit of the last record of a file", FLIP, 40, true, 0},
    {"length flipped 5 before the end", FLIP_LENGTH, LAST_ROW - 5, true, 0},
    {"header zeroed 5 before the end", ZERO_HEADER, LAST_ROW - 5, true, 0},
    {"length flipped in an earlier file", FLIP_LENGTH, 10, true, 0},
    {"header zeroed in an earlier file", ZERO_HEADER, 21, true, 0},
    {"zeros from the middle of an earlier file on", HALF_ZERO, 30, true, 0},
    {"the first file missing", REMOVE, 1, true, 0},
    {"a file in the middle missing", REMOVE, 21, true, 0},
    {"the last file missing", REMOVE, 41, true, 0},
    {"an earlier file cut within a record", CUT, 30, true, 0},
    {"an earlier file cut between records", CUT_AFTER, 30, true, 0},
    {"an earlier file cut by its last record", CUT, 20, true, 0},
};

/* The same, all in one file. */
static const struct row ONE_FILE[] = {
    {"one file: last record cut", CUT, LAST_ROW, false, LAST_ROW - 1},
    {"one file: garbage after the end", GARBAGE_AFTER, LAST_ROW, false, LAST_ROW},
    {"one file: a bit of the first commit", FLIP, 1, true, 0},
    {"one file: header zeroed 5 before the end", ZERO_HEADER, LAST_ROW - 5, true, 0},
    {"one file: it is missing", REMOVE, 1, true, 0},
};

static void copy_store(const struct fixture *fixture, const char *from, const char *to) {
  char command[1200];
  snprintf(command, sizeof command, "rm -rf '%s/%s' && cp -a '%s/%s' '%s/%s'", fixture->folder, to,
           fixture->folder, from, fixture->folder, to);
  assert_int_equal(system(command), 0);
}

static void run_rows(struct fixture *fixture, size_t bytes, bool files, const struct row *rows,
                     size_t count) {
  struct wal wal;
  write_rows(&wal, fixture, bytes, files, true);
  copy_store(fixture, "data", "kept");
  for (size_t i = 0; i < count; i++) {
    copy_store(fixture, "kept", "data");
    apply_damage(&wal, rows[i].damage, rows[i].commit);
    if (rows[i].refused) {
      is_refused(&wal, rows[i].what, ".log");
    } else {
      opens_with(&wal, rows[i].kept, rows[i].what);
      opens_with(&wal, rows[i].kept, rows[i].what);
    }
  }
}

static void run_table(struct fixture *fixture, size_t bytes) {
  run_rows(fixture, bytes, true, THREE_FILES, sizeof THREE_FILES / sizeof *THREE_FILES);
  copy_store(fixture, "kept", "three"); /* for a look, if what follows fails */
  char command[1200];
  snprintf(command, sizeof command, "rm -rf '%s'", fixture->path);
  assert_int_equal(system(command), 0);
  run_rows(fixture, bytes, false, ONE_FILE, sizeof ONE_FILE / sizeof *ONE_FILE);
}

/* Torn tails open and lose nothing that was durable below them; everything else is refused. Small
 * commits: many lie in one block, so what is behind damage is in the damaged block. */
static void many_commits_in_a_block(void **state) { run_table(*state, 20); }

static void a_few_commits_in_a_block(void **state) { run_table(*state, 5000); }

static void commits_of_several_blocks(void **state) { run_table(*state, 50000); }

/* A refusal says where the damage is, and which commits it puts at risk. */
static void a_refusal_names_offset_and_commits(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 5000, false, true);
  apply_damage(&wal, FLIP_LENGTH, 11);
  char expected[64];
  snprintf(expected, sizeof expected, "damaged at offset %ld ", (long)wal.commits[11].begin);
  is_refused(&wal, "length", expected);
  is_refused(&wal, "length", "commits 12 to 61 of run 1 are at risk, those up to 60 were durable");
  is_refused(&wal, "length", "restore the data folder from a backup");
}

/* Refusing changes nothing: with the byte put right, all is there. */
static void a_refused_store_is_left_as_it_is(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, true, true);
  apply_damage(&wal, FLIP, 30);
  is_refused(&wal, "flip", ".log");
  apply_damage(&wal, FLIP, 30);
  opens_with(&wal, COMMITS, "put right");
}

/* Commits that were not synced may be torn off anywhere: nothing behind says they were durable. */
static void what_was_not_synced_may_be_torn_off(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 3000, false, false);
  apply_damage(&wal, FLIP, 30);
  opens_with(&wal, 29, "flip");
}

/* A file that is not needed any more may be anything: it may be left by a crash at its removal. */
static void a_file_no_longer_needed_is_not_looked_at(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, true, true);
  copy_store(*state, "data", "kept");
  opens_with(&wal, COMMITS, "whole");
  char command[1200];
  snprintf(command, sizeof command, "cp '%s/kept/db/%s' '%s/db/'", wal.fixture->folder,
           wal.commits[1].file, wal.fixture->path);
  assert_int_equal(system(command), 0);
  apply_damage(&wal, FLIP, 10);
  opens_with(&wal, COMMITS, "old file");
}

/* ---- MANIFEST */

static void manifest_of(const struct wal *wal, char out[32]) {
  char path[400];
  path_of(wal, "CURRENT", path);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%30s", out), 1);
  fclose(file);
}

/* Offset and end of its last edit. */
static void last_edit(const struct wal *wal, const char *name, off_t *out_begin, off_t *out_end) {
  int fd = open_log(wal, name, O_RDONLY);
  struct hb_wal_reader reader;
  hb_wal_reader_init(&reader, fd);
  for (bool any = true; any;) {
    struct hb_slice record;
    struct hb_err err;
    must(hb_wal_reader_next(&reader, &any, &record, &err), &err);
    if (any) *out_begin = (off_t)reader.record_offset;
  }
  assert_false(reader.damage.any);
  hb_wal_reader_done(&reader);
  close(fd);
  *out_end = size_of(wal, name);
}

/* A power loss may leave the last edit cut, or with zeros or garbage in it. The edit was not
 * synced, so nothing that it says was done: the logs that it would have made needless are there. */
static void a_torn_manifest_is_cut(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, true, true);
  copy_store(*state, "data", "kept");
  for (int how = 0; how < 4; how++) {
    char name[32];
    off_t begin = 0;
    off_t end = 0;
    copy_store(*state, "kept", "data");
    manifest_of(&wal, name);
    last_edit(&wal, name, &begin, &end);
    if (how == 0) cut(&wal, name, (begin + end) / 2);
    if (how == 1) zero(&wal, name, (begin + end) / 2, end);
    if (how == 2) garbage(&wal, name, (begin + end) / 2, end + 5000);
    if (how == 3) garbage(&wal, name, end, end + 5000);
    opens_with(&wal, COMMITS, "MANIFEST");
  }
}

/* In the middle it is no torn end: RocksDB refuses it, and it is left as it is. */
static void a_damaged_manifest_is_refused(void **state) {
  struct wal wal;
  char name[32];
  write_rows(&wal, *state, 100, true, true);
  manifest_of(&wal, name);
  off_t size = size_of(&wal, name);
  flip(&wal, name, size / 2);
  is_refused(&wal, "MANIFEST", "MANIFEST");
  assert_int_equal(size_of(&wal, name), size);
}

/* ---- logs put together by hand */

static void append_piece(int fd, uint8_t type, const uint8_t *data, size_t size) {
  uint8_t *bytes = hb_alloc(HB_WAL_HEADER_SIZE + size);
  bytes[4] = (uint8_t)size;
  bytes[5] = (uint8_t)(size >> 8);
  bytes[6] = type;
  if (size) memcpy(bytes + HB_WAL_HEADER_SIZE, data, size);
  hb_put_u32_le(bytes, hb_crc32c_mask(hb_crc32c(0, hb_slice_of(bytes + 6, 1 + size))));
  assert_int_equal(write(fd, bytes, HB_WAL_HEADER_SIZE + size), HB_WAL_HEADER_SIZE + size);
  free(bytes);
}

/* Where RocksDB could not write to its MANIFEST and goes on with another, that begins like one that
 * is begun by opening, but no edit of the default family follows. It is whole. */
static void a_manifest_begun_after_a_failure(void **state) {
  struct wal wal;
  char name[32];
  write_rows(&wal, *state, 100, true, true);
  manifest_of(&wal, name);
  int from = open_log(&wal, name, O_RDONLY);
  char path[400];
  path_of(&wal, "resumed", path);
  int to = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(to >= 0);
  struct hb_wal_reader reader;
  hb_wal_reader_init(&reader, from);
  struct hb_wal_manifest manifest;
  struct hb_err err;
  for (bool any = true; any;) {
    struct hb_slice edit;
    must(hb_wal_reader_next(&reader, &any, &edit, &err), &err);
    if (any) append_piece(to, 1, edit.data, edit.size);
  }
  const uint8_t count_of_families[] = {0xCB, 0x01, 13};
  append_piece(to, 1, count_of_families, sizeof count_of_families);
  must(hb_wal_manifest_read(to, &manifest, &err), &err);
  assert_false(manifest.torn);
  assert_true(manifest.needed.from > 0 && manifest.needed.from != UINT64_MAX);
  hb_wal_reader_done(&reader);
  close(from);
  close(to);
}

/* Moves the records of commits after `row` into a file of their own, of one block, as if RocksDB
 * had begun one, and leaves out the records of `lost` commits before it. */
static void split_log(const struct wal *wal, uint32_t row, uint32_t lost) {
  const struct place *place = &wal->commits[row];
  int from = open_log(wal, place->file, O_RDWR);
  int to = open_log(wal, "900000.log", O_RDWR | O_CREAT | O_EXCL);
  struct hb_wal_reader reader;
  hb_wal_reader_init(&reader, from);
  for (bool any = true; any;) {
    struct hb_slice record;
    struct hb_err err;
    must(hb_wal_reader_next(&reader, &any, &record, &err), &err);
    if (any && reader.record_offset >= (uint64_t)place->end)
      append_piece(to, 1, record.data, record.size);
  }
  assert_false(reader.damage.any);
  hb_wal_reader_done(&reader);
  assert_int_equal(ftruncate(from, wal->commits[row - lost].end), 0);
  close(from);
  close(to);
}

/* A log in two files is one log. */
static void a_log_goes_on_in_the_next_file(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, false, true);
  split_log(&wal, 30, 0);
  opens_with(&wal, COMMITS, "split");
}

/* Cut between two records, with a file behind: RocksDB would take that up as if nothing were
 * missing. It is a torn tail where nothing was synced, so what is behind goes with it. */
static void what_is_behind_a_torn_tail_is_not_taken_up(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, false, false);
  split_log(&wal, 30, 3);
  opens_with(&wal, 27, "split, three lost");
  assert_int_equal(size_of(&wal, "900000.log"), 0);
}

/* The same with synced commits is damage. */
static void a_cut_below_synced_commits_is_damage(void **state) {
  struct wal wal;
  write_rows(&wal, *state, 100, false, true);
  split_log(&wal, 30, 1);
  is_refused(&wal, "split, one lost", "commits 31 to 61 of run 1 are at risk");
}

/* ---- a producer's bytes are not believed */

/* A record as RocksDB writes it, that says everything was durable. */
static size_t made_up_record(uint8_t *out) {
  uint8_t batch[12 + 2 + HB_LOG_DATA_SIZE] = {0};
  batch[12] = 3; /* log data */
  batch[13] = HB_LOG_DATA_SIZE;
  hb_log_data_put(
      batch + 14,
      (struct hb_log_data){.run = 1, .mark = 1, .commit = 1000, .previous = 999, .synced = 999});
  memcpy(out + HB_WAL_HEADER_SIZE, batch, sizeof batch);
  out[4] = sizeof batch;
  out[5] = 0;
  out[6] = 1;
  struct hb_slice checked = hb_slice_of(out + 6, 1 + sizeof batch);
  hb_put_u32_le(out, hb_crc32c_mask(hb_crc32c(0, checked)));
  return HB_WAL_HEADER_SIZE + sizeof batch;
}

/* Else who sends events could make every torn tail look like damage. */
static void a_record_within_a_payload_is_no_record(void **state) {
  struct wal wal = {.fixture = *state, .bytes = 100};
  open_store(wal.fixture);
  make_stream(wal.fixture, STREAM, "s");
  for (uint32_t row = 1; row < 10; row++) put_row(&wal, row, true);
  uint8_t record[200];
  off_t begin = size_of(&wal, wal.commits[9].file);
  put_unprocessed(wal.fixture, 10, hb_slice_of(record, made_up_record(record)));
  write_commit(wal.fixture, true);
  close_store(wal.fixture);
  zero(&wal, wal.commits[9].file, begin, begin + HB_WAL_HEADER_SIZE);
  opens_with(&wal, 9, "made up");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(many_commits_in_a_block),
      TEST(a_few_commits_in_a_block),
      TEST(commits_of_several_blocks),
      TEST(a_refusal_names_offset_and_commits),
      TEST(a_refused_store_is_left_as_it_is),
      TEST(what_was_not_synced_may_be_torn_off),
      TEST(a_file_no_longer_needed_is_not_looked_at),
      TEST(a_torn_manifest_is_cut),
      TEST(a_damaged_manifest_is_refused),
      TEST(a_manifest_begun_after_a_failure),
      TEST(a_log_goes_on_in_the_next_file),
      TEST(what_is_behind_a_torn_tail_is_not_taken_up),
      TEST(a_cut_below_synced_commits_is_damage),
      TEST(a_record_within_a_payload_is_no_record),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
