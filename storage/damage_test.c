/* Damaged files. Whatever is flipped, cut, exchanged or taken away: the store is refused with a
 * clear message and left as it is, or it opens and verification tells what is wrong, or nothing is
 * missing. It never looks sound with less in it. */
#include <dirent.h>
#include <fcntl.h>
#include <xxhash.h>

#include "base/clock.h"
#include "storage/compact.h"
#include "storage/delete.h"
#include "storage/engine_internal.h"
#include "storage/folder_internal.h"
#include "storage/format_file_internal.h"
#include "storage/read.h"
#include "storage/test_sound_internal.h"

enum { FILES_MAX = 128 };

/* ---- folders of files */

struct file {
  char name[80];
  long size;
};

struct files {
  struct file items[FILES_MAX];
  size_t count;
};

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* LOCK changes at each start, RocksDB's text log too. */
static bool is_of_no_interest(const char *name) {
  return name[0] == '.' || strcmp(name, "LOCK") == 0 || strncmp(name, "LOG", 3) == 0;
}

static void list_into(const char *folder, const char *prefix, struct files *files) {
  DIR *open_folder = opendir(folder);
  if (!open_folder) return;
  for (struct dirent *entry; (entry = readdir(open_folder));) {
    char path[700];
    struct stat stat_of;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (is_of_no_interest(entry->d_name) || stat(path, &stat_of) || !S_ISREG(stat_of.st_mode)) {
      continue;
    }
    assert_true(files->count < FILES_MAX);
    struct file *file = &files->items[files->count++];
    snprintf(file->name, sizeof file->name, "%s%.60s", prefix, entry->d_name);
    file->size = (long)stat_of.st_size;
  }
  closedir(open_folder);
}

static struct files list(const struct fixture *fixture, const char *store) {
  struct files files = {.count = 0};
  char path[400];
  snprintf(path, sizeof path, "%s/%s", fixture->folder, store);
  list_into(path, "", &files);
  snprintf(path, sizeof path, "%s/%s/db", fixture->folder, store);
  list_into(path, "db/", &files);
  qsort(files.items, files.count, sizeof *files.items, by_name);
  return files;
}

/* The n-th file whose name has `kind` in it; NULL: there are fewer. */
static const struct file *pick(const struct files *files, const char *kind, int n) {
  for (size_t i = 0; i < files->count; i++) {
    if (strstr(files->items[i].name, kind) && n-- == 0) return &files->items[i];
  }
  return NULL;
}

static void path_of(const struct fixture *fixture, const char *store, const char *name,
                    char out[600]) {
  snprintf(out, 600, "%s/%s/%s", fixture->folder, store, name);
}

static void copy_file(const char *from, const char *to) {
  FILE *in = fopen(from, "rb");
  FILE *out = fopen(to, "wb");
  assert_non_null(in);
  assert_non_null(out);
  char bytes[65536];
  for (size_t got; (got = fread(bytes, 1, sizeof bytes, in)) > 0;) {
    assert_int_equal(fwrite(bytes, 1, got, out), got);
  }
  assert_int_equal(fclose(in), 0);
  assert_int_equal(fclose(out), 0);
}

static void copy_store(const struct fixture *fixture, const char *from, const char *to) {
  char path[600];
  char target[600];
  path_of(fixture, to, "db", path);
  path_of(fixture, to, "", target);
  nftw(target, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  assert_int_equal(mkdir(target, 0700), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  struct files files = list(fixture, from);
  for (size_t i = 0; i < files.count; i++) {
    path_of(fixture, from, files.items[i].name, path);
    path_of(fixture, to, files.items[i].name, target);
    copy_file(path, target);
  }
}

static void flip(const struct fixture *fixture, const char *name, long at) {
  char path[600];
  path_of(fixture, "data", name, path);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, at, SEEK_SET);
  fputc(byte ^ 0x04, file);
  assert_int_equal(fclose(file), 0);
}

static void cut(const struct fixture *fixture, const char *name, long size) {
  char path[600];
  path_of(fixture, "data", name, path);
  assert_int_equal(truncate(path, size), 0);
}

static void take_away(const struct fixture *fixture, const char *name) {
  char path[600];
  path_of(fixture, "data", name, path);
  assert_int_equal(unlink(path), 0);
}

/* ---- what is in a store */

/* Rows that a start may change: the run, how far the index goes, which it may do again, and what
 * belongs to a stream that is being deleted. */
static bool is_changing(int family, struct hb_slice key) {
  if (family == HB_FAMILY_META) return hb_slice_equal(key, hb_slice_text("run"));
  if (family == HB_FAMILY_LOG && key.data[7] == 4) return true;
  return family == HB_FAMILY_STREAMS && key.size == 9 && key.data[8] == 'i';
}

/* Every row of every family, whatever their order. */
static uint64_t content_of(struct hb_store *store, uint64_t *out_rows) {
  uint64_t sum = 0;
  *out_rows = 0;
  for (int family = 0; family < HB_FAMILY_COUNT; family++) {
    struct hb_slice none = {0};
    struct hb_rocks_iter *iter =
        hb_rocks_iter_create(store->engine, (enum hb_family)family, none, none);
    for (hb_rocks_iter_first(iter); hb_rocks_iter_valid(iter); hb_rocks_iter_next(iter)) {
      struct hb_slice key = hb_rocks_iter_key(iter);
      struct hb_slice value = hb_rocks_iter_value(iter);
      if (is_changing(family, key)) continue;
      uint64_t seed = XXH3_64bits_withSeed(key.data, key.size, (XXH64_hash_t)family);
      sum += XXH3_64bits_withSeed(value.data, value.size, seed);
      ++*out_rows;
    }
    hb_rocks_iter_destroy(iter);
  }
  return sum;
}

struct sound {
  uint64_t content;
  uint64_t rows;
  struct files files;
};

/* "sound" becomes a store with everything in files, nothing in RocksDB's log. */
static void make_sound(struct fixture *fixture, struct sound *out) {
  reopen_store(fixture); /* what the log had is written to files */
  close_store(fixture);
  copy_store(fixture, "data", "sound");
  open_store(fixture);
  out->content = content_of(fixture->store, &out->rows);
  close_store(fixture);
  out->files = list(fixture, "sound");
}

/* ---- what becomes of damage */

enum verdict { REFUSED, TOLD, HARMLESS, HIDDEN };
static const char *const VERDICTS[] = {"refused", "told", "harmless", "HIDDEN"};

struct outcome {
  enum verdict verdict;
  enum hb_code code; /* of a refusal */
  char text[HB_FINDING_LINE_SIZE];
};

static struct outcome look(struct fixture *fixture, const struct sound *sound, bool read_only) {
  struct outcome outcome = {.verdict = REFUSED};
  struct hb_store_options options = {.path = fixture->path, .read_only = read_only};
  struct hb_err err = {0};
  outcome.code = hb_store_open(&options, &fixture->store, &err);
  if (outcome.code) {
    snprintf(outcome.text, sizeof outcome.text, "%s", err.message);
    return outcome;
  }
  struct found found;
  uint64_t rows;
  verify_store(fixture->store, 0, false, 1 << 20, &found);
  uint64_t content = content_of(fixture->store, &rows);
  if (found.count) {
    outcome.verdict = TOLD;
    hb_finding_line(&found.items[0], outcome.text);
  } else {
    outcome.verdict = content == sound->content ? HARMLESS : HIDDEN;
    snprintf(outcome.text, sizeof outcome.text, "%llu of %llu rows", (unsigned long long)rows,
             (unsigned long long)sound->rows);
  }
  close_store(fixture);
  return outcome;
}

/* ---- what is done to files */

static void make_longer(const struct fixture *fixture, const char *name) {
  char path[600];
  path_of(fixture, "data", name, path);
  FILE *file = fopen(path, "ab");
  assert_non_null(file);
  fputc('x', file);
  assert_int_equal(fclose(file), 0);
}

static void overwrite(const struct fixture *fixture, const char *name, const void *bytes,
                      size_t size) {
  char folder[600];
  path_of(fixture, "data", "", folder);
  make_file(folder, name, bytes, size);
}

enum deed { TAKEN_AWAY, HALVED, EMPTIED, LONGER };
static const char *const DEEDS[] = {"taken away", "cut to a half", "emptied", "made longer"};

static void do_to_file(const struct fixture *fixture, const struct file *file, enum deed deed) {
  switch (deed) {
    case TAKEN_AWAY:
      take_away(fixture, file->name);
      return;
    case HALVED:
      cut(fixture, file->name, file->size / 2);
      return;
    case EMPTIED:
      cut(fixture, file->name, 0);
      return;
    case LONGER:
      make_longer(fixture, file->name);
  }
}

static bool holds_events(const char *name) {
  return strstr(name, ".sst") || strstr(name, ".blob") || strcmp(name, "FORMAT") == 0;
}

/* A refusal leaves every table and blob file as it was. (RocksDB, once it has opened, has a new
 * MANIFEST and log; what was in the old ones is in tables then.) */
static bool is_untouched(const struct fixture *fixture, const struct files *before) {
  struct files after = list(fixture, "data");
  for (size_t i = 0; i < before->count; i++) {
    const struct file *file = &before->items[i];
    if (!holds_events(file->name)) continue;
    const struct file *now = pick(&after, file->name, 0);
    if (!now || now->size != file->size) return false;
  }
  return true;
}

static bool expect(struct fixture *fixture, const struct sound *sound, const char *what,
                   enum verdict least, const char *text) {
  struct files before = list(fixture, "data");
  struct outcome outcome = look(fixture, sound, false);
  bool good = outcome.verdict != HIDDEN && outcome.verdict <= least;
  if (outcome.verdict == REFUSED) {
    bool known = outcome.code == HB_CORRUPT || outcome.code == HB_VERSION;
    if (!known) print_error("%s: a refusal for another reason\n", what);
    if (!is_untouched(fixture, &before)) {
      print_error("%s: refused, but not left as it was\n", what);
      good = false;
    }
    good = good && known;
  }
  if (text && !strstr(outcome.text, text)) good = false;
  if (!good) {
    print_error("%s: %s (%s): %s\n", what, VERDICTS[outcome.verdict], hb_code_text(outcome.code),
                outcome.text);
  }
  return good;
}

/* ---- the table */

/* `least`: the mildest verdict that is right. SST and blob files hold acknowledged events: each
 * that is missing or has another size is refused at once, whoever would have read it. */
static const struct {
  const char *kind; /* in the names of the files that are meant, each in turn */
  enum deed deed;
  enum verdict least;
  const char *text;
} FILES[] = {
    {"FORMAT", TAKEN_AWAY, REFUSED, "no FORMAT"},
    {"FORMAT", HALVED, REFUSED, "18 bytes, expected 36"},
    {"FORMAT", EMPTIED, REFUSED, "0 bytes, expected 36"},
    {"FORMAT", LONGER, REFUSED, "37 bytes, expected 36"},
    {".sst", TAKEN_AWAY, REFUSED, "No such file"},
    {".sst", HALVED, REFUSED, ".sst"},
    {".sst", EMPTIED, REFUSED, ".sst"},
    {".sst", LONGER, REFUSED, ".sst"},
    {".blob", TAKEN_AWAY, REFUSED, ".blob"},
    {".blob", HALVED, REFUSED, NULL},
    {".blob", EMPTIED, REFUSED, NULL},
    {"CURRENT", TAKEN_AWAY, REFUSED, "CURRENT"},
    {"CURRENT", HALVED, REFUSED, "CURRENT"},
    {"CURRENT", EMPTIED, REFUSED, "CURRENT"},
    {"MANIFEST", TAKEN_AWAY, REFUSED, "MANIFEST"},
    {"MANIFEST", HALVED, REFUSED, NULL},
    {"MANIFEST", EMPTIED, REFUSED, "MANIFEST"},
    {"MANIFEST", LONGER, HARMLESS, NULL}, /* a torn end */
    {".log", TAKEN_AWAY, REFUSED, ".log"},
    {"OPTIONS", TAKEN_AWAY, HARMLESS, NULL}, /* nobody reads them */
    {"OPTIONS", HALVED, HARMLESS, NULL},
    {"IDENTITY", TAKEN_AWAY, HARMLESS, NULL},
    {"IDENTITY", EMPTIED, HARMLESS, NULL},
};

static void files_that_are_gone_or_cut(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  int failed = 0;
  make_sound(fixture, &sound);
  for (size_t row = 0; row < sizeof FILES / sizeof *FILES; row++) {
    const struct file *file = NULL;
    for (int n = 0; (file = pick(&sound.files, FILES[row].kind, n)); n++) {
      char what[160];
      snprintf(what, sizeof what, "%s %s", file->name, DEEDS[FILES[row].deed]);
      copy_store(fixture, "sound", "data");
      do_to_file(fixture, file, FILES[row].deed);
      failed += !expect(fixture, &sound, what, FILES[row].least, FILES[row].text);
    }
    if (!pick(&sound.files, FILES[row].kind, 0)) fail_msg("no file like %s", FILES[row].kind);
  }
  assert_int_equal(failed, 0);
}

/* ---- files that are not what they were */

static void exchange(const struct fixture *fixture, const char *one, const char *other) {
  char a[600];
  char b[600];
  char aside[600];
  path_of(fixture, "data", one, a);
  path_of(fixture, "data", other, b);
  path_of(fixture, "data", "aside", aside);
  assert_int_equal(rename(a, aside), 0);
  assert_int_equal(rename(b, a), 0);
  assert_int_equal(rename(aside, b), 0);
}

/* A format of the future, with a checksum that is right. */
static void a_format_of_the_future(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  struct hb_format format = {.version = HB_FORMAT_VERSION + 1};
  uint8_t bytes[HB_FORMAT_SIZE + 10] = {0};
  hb_format_encode(&format, bytes);
  copy_store(fixture, "sound", "data");
  overwrite(fixture, "FORMAT", bytes, sizeof bytes);
  assert_true(expect(fixture, &sound, "format 2", REFUSED, "format 2, this program knows 1"));
}

/* RocksDB's folder of another store, or none, or an empty one. */
static void a_folder_of_another_store(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  char path[600];
  char other[600];
  make_sound(fixture, &sound);
  copy_store(fixture, "sound", "data");
  path_of(fixture, "data", "db", path);
  path_of(fixture, "", "kept", other);
  assert_int_equal(rename(path, other), 0);
  assert_true(expect(fixture, &sound, "no db", REFUSED, "db/CURRENT"));
  assert_int_equal(mkdir(path, 0700), 0);
  assert_true(expect(fixture, &sound, "an empty db", REFUSED, "db/CURRENT"));
  nftw(fixture->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  open_store(fixture); /* a new one: another store id */
  sound_fill(fixture);
  close_store(fixture);
  char from[600];
  path_of(fixture, "sound", "FORMAT", from);
  path_of(fixture, "data", "FORMAT", path);
  copy_file(from, path);
  assert_true(expect(fixture, &sound, "another db", REFUSED, "two different stores"));
}

/* Two tables exchanged: each is whole, and none is what it should be. */
static void tables_exchanged(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  int failed = 0;
  for (int n = 1; pick(&sound.files, ".sst", n); n++) {
    copy_store(fixture, "sound", "data");
    exchange(fixture, pick(&sound.files, ".sst", n - 1)->name, pick(&sound.files, ".sst", n)->name);
    failed += !expect(fixture, &sound, "exchanged", REFUSED, NULL);
  }
  assert_int_equal(failed, 0);
}

/* Copies `name` from "sound" into "data", over what is there. */
static void put_back(const struct fixture *fixture, const char *name) {
  char from[600];
  char to[600];
  path_of(fixture, "sound", name, from);
  path_of(fixture, "data", name, to);
  copy_file(from, to);
}

/* CURRENT and MANIFEST of an earlier time put back together, as a careless copy would, the tables
 * that they name among them: RocksDB would open that state and remove what is newer. With fewer or
 * more runs in between, and whether the newer state has anything in its log or not. */
static void an_older_manifest(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  int failed = 0;
  for (int runs = 1; runs <= 4; runs++) {
    copy_store(fixture, "sound", "data");
    for (int i = 0; i < runs; i++) {
      open_store(fixture);
      sound_put_log(fixture, 2, 50 + 10 * i, 60 + 10 * i);
      sound_put_record(fixture, 2, -50, 60 + 10 * i, 60 + 10 * i, 59 + 10 * i,
                       (uint64_t)(110 + 10 * i));
      apply(fixture);
      close_store(fixture);
    }
    put_back(fixture, "db/CURRENT");
    put_back(fixture, pick(&sound.files, "MANIFEST", 0)->name);
    for (int n = 0; pick(&sound.files, ".sst", n); n++) {
      put_back(fixture, pick(&sound.files, ".sst", n)->name);
    }
    char what[40];
    snprintf(what, sizeof what, "older MANIFEST, %d runs", runs);
    failed += !expect(fixture, &sound, what, REFUSED, "CURRENT names MANIFEST-");
  }
  assert_int_equal(failed, 0);
}

/* CURRENT that names a file which is not there. */
static void a_current_that_names_nothing(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  copy_store(fixture, "sound", "data");
  overwrite(fixture, "db/CURRENT", "MANIFEST-000001\n", 16);
  assert_true(expect(fixture, &sound, "CURRENT", REFUSED, "No such file"));
}

/* ---- bits */

static uint64_t seed_of(void) {
  const char *given = getenv("HOLDBACK_SEED");
  uint64_t seed = given ? strtoull(given, NULL, 10) : hb_clock_mono_ns();
  print_message("seed: HOLDBACK_SEED=%llu\n", (unsigned long long)seed);
  return seed;
}

static uint64_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* One bit flipped, anywhere: never is less there without a word. Tables, MANIFEST and the others
 * get each their share, whatever their sizes. */
static void a_flipped_bit_anywhere(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  uint64_t dice = seed_of();
  const char *count = getenv("HOLDBACK_FLIPS");
  long flips = count ? strtol(count, NULL, 10) : 120;
  int failed = 0;
  for (long i = 0; i < flips; i++) {
    const struct file *file = &sound.files.items[draw(&dice) % sound.files.count];
    if (i % 4 == 0) file = pick(&sound.files, "MANIFEST", 0);
    long at = (long)(draw(&dice) % (uint64_t)file->size);
    if (i % 3 == 0 && file->size > 1500) at = file->size - 1500 + at % 1500; /* index, footer */
    char what[160];
    snprintf(what, sizeof what, "%s, a bit at %ld", file->name, at);
    copy_store(fixture, "sound", "data");
    flip(fixture, file->name, at);
    failed += !expect(fixture, &sound, what, HARMLESS, NULL);
  }
  assert_int_equal(failed, 0);
}

/* ---- where it is told */

/* A bit in the middle of a table: the store opens, verification names stream and positions, and
 * everything else can still be read: the blocks before and after, and the other stream. */
static void damage_is_told_where_it_is(void **state) {
  struct fixture *fixture = *state;
  struct sound sound;
  make_sound(fixture, &sound);
  const struct file *table = NULL;
  for (size_t i = 0; i < sound.files.count; i++) {
    if (!table || sound.files.items[i].size > table->size) table = &sound.files.items[i];
  }
  copy_store(fixture, "sound", "data");
  flip(fixture, table->name, table->size * 3 / 8); /* in [101, 201) of "one" */
  open_store(fixture);
  struct found found;
  struct hb_verify_counts counts = verify_store(fixture->store, 0, false, 1000, &found);
  print_findings(&found);
  assert_int_equal(found.count, 1);
  assert_true(is_found(&found, "stream 'one' (id 1), log [101, 201): "));
  assert_int_equal(counts.events, 300);
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *block = NULL;
  struct hb_err err;
  must(hb_log_reader_open(fixture->store, 1, 1, &reader, &err), &err);
  must(hb_log_reader_next(reader, &block, &err), &err);
  hb_bytes_unref(block);
  block = NULL;
  assert_int_equal(hb_log_reader_next(reader, &block, &err), HB_CORRUPT);
  assert_null(block);
  assert_non_null(strstr(err.message, "log of stream 1 at position 101"));
  hb_log_reader_close(reader);
}

/* ---- going on */

static bool exists(const struct fixture *fixture, const char *name) {
  char path[600];
  path_of(fixture, "data", name, path);
  return access(path, F_OK) == 0;
}

/* "data" with a bit flipped in [101, 201) of "one", opened. */
static void open_damaged(struct fixture *fixture) {
  struct sound sound;
  make_sound(fixture, &sound);
  const struct file *table = NULL;
  for (size_t i = 0; i < sound.files.count; i++) {
    if (!table || sound.files.items[i].size > table->size) table = &sound.files.items[i];
  }
  copy_store(fixture, "sound", "data");
  flip(fixture, table->name, table->size * 3 / 8);
  open_store(fixture);
}

/* One more block of "two", in a table of its own. */
static enum hb_code extend(struct fixture *fixture, int64_t from) {
  struct hb_err err;
  sound_put_log(fixture, 2, from, from + 10);
  sound_put_record(fixture, 2, -50, from + 10, from + 10, from + 9, (uint64_t)(from + 60));
  enum hb_code code = hb_store_write(fixture->store, fixture->write, ++fixture->commit, true, &err);
  hb_write_clear(fixture->write);
  if (!code) code = hb_rocks_flush(fixture->store->engine, HB_FAMILY_LOG, &err);
  return code;
}

/* Damage that was met is kept away from compactions, which would end all writing: many more tables
 * than it takes for one are written, and all is well, in this run and the next. */
static void writing_goes_on_beside_damage(void **state) {
  struct fixture *fixture = *state;
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *block = NULL;
  struct hb_err err;
  open_damaged(fixture);
  must(hb_log_reader_open(fixture->store, 1, 1, &reader, &err), &err);
  must(hb_log_reader_next(reader, &block, &err), &err);
  hb_bytes_unref(block);
  assert_int_equal(hb_log_reader_next(reader, &block, &err), HB_CORRUPT);
  hb_log_reader_close(reader);
  for (int64_t from = 50; from < 150; from += 10) assert_int_equal(extend(fixture, from), HB_OK);
  assert_true(exists(fixture, "DAMAGED"));
  reopen_store(fixture);
  assert_true(hb_store_info(fixture->store)->damaged);
  for (int64_t from = 150; from < 250; from += 10) assert_int_equal(extend(fixture, from), HB_OK);
  assert_int_equal(hb_store_compact(fixture->store, &err), HB_CORRUPT);
  hb_write_mark_deleting(fixture->write, 3);
  apply(fixture);
  must(hb_store_reclaim(fixture->store, 3, &err), &err);
  assert_int_equal(extend(fixture, 250), HB_OK);
}

/* A compaction that meets damage first ends this run, and the next one knows. */
static void a_compaction_that_meets_damage_ends_one_run(void **state) {
  struct fixture *fixture = *state;
  struct hb_slice none = {0};
  open_damaged(fixture);
  assert_int_equal(extend(fixture, 50), HB_OK);
  hb_rocks_compact(fixture->store->engine, HB_FAMILY_LOG, none, none);
  assert_int_equal(extend(fixture, 60), HB_CORRUPT);
  assert_true(exists(fixture, "DAMAGED"));
  reopen_store(fixture);
  for (int64_t from = 60; from < 160; from += 10) assert_int_equal(extend(fixture, from), HB_OK);
}

int main(void) {
#define SOUND(name) cmocka_unit_test_setup_teardown(name, setup_sound, teardown)
  const struct CMUnitTest tests[] = {
      SOUND(files_that_are_gone_or_cut),
      SOUND(a_format_of_the_future),
      SOUND(a_folder_of_another_store),
      SOUND(tables_exchanged),
      SOUND(an_older_manifest),
      SOUND(a_current_that_names_nothing),
      SOUND(a_flipped_bit_anywhere),
      SOUND(damage_is_told_where_it_is),
      SOUND(writing_goes_on_beside_damage),
      SOUND(a_compaction_that_meets_damage_ends_one_run),
  };
#undef SOUND
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
