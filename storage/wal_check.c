/* Decides whether a store may be opened, by its WAL. RocksDB can't tell a torn tail from damage:
 * each of its recovery modes either refuses a plain torn write or drops everything behind one
 * flipped bit without a word. Here a tail is torn only if nothing behind it says otherwise. */
#include "storage/wal_check_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/folder_internal.h"
#include "storage/wal_manifest_internal.h"
#include "storage/wal_scan_internal.h"

#define WAY_OUT "restore the data folder from a backup"

struct wal_files {
  uint64_t *numbers; /* owned; ascending */
  size_t count;
  size_t cap;
};

static int compare_numbers(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a;
  uint64_t right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

/* "000012.log" */
static bool parse_name(const char *name, uint64_t *out) {
  size_t digits = strspn(name, "0123456789");
  if (!digits || digits > 19 || strcmp(name + digits, ".log") != 0) return false;
  *out = strtoull(name, NULL, 10);
  return true;
}

/* Those that are still needed. */
static enum hb_code list_files(const char *folder, uint64_t from, struct wal_files *files,
                               struct hb_err *err) {
  DIR *open_folder = opendir(folder);
  if (!open_folder) return hb_folder_errno(errno, "read", folder, err);
  errno = 0;
  for (struct dirent *entry; (entry = readdir(open_folder));) {
    uint64_t number;
    if (!parse_name(entry->d_name, &number) || number < from) continue;
    hb_reserve((void **)&files->numbers, &files->cap, files->count + 1, sizeof number);
    files->numbers[files->count++] = number;
  }
  int error = errno;
  (void)closedir(open_folder); /* it was only read */
  if (error) return hb_folder_errno(error, "read", folder, err);
  if (files->count) qsort(files->numbers, files->count, sizeof *files->numbers, compare_numbers);
  return HB_OK;
}

static char *file_path(const char *folder, uint64_t number) {
  char name[32];
  (void)snprintf(name, sizeof name, "%06" PRIu64 ".log", number);
  return hb_folder_join(folder, name);
}

static enum hb_code scan_file(const char *folder, uint64_t number, bool first,
                              struct hb_wal_scan *scan, struct hb_err *err) {
  char *path = file_path(folder, number);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  enum hb_code code = HB_OK;
  if (fd < 0) {
    code = hb_folder_errno(errno, "open", path, err);
  } else {
    code = hb_wal_scan_file(scan, number, fd, first, err);
    if (code) hb_err_wrap(err, "'%s'", path);
    (void)close(fd); /* it was only read */
  }
  free(path);
  return code;
}

static enum hb_code refuse_missing(const char *folder, uint64_t number, struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "data folder: '%s': the log file %06" PRIu64
                    ".log, or one after it, is missing; commits that were durable may have been "
                    "in it; put it back, or " WAY_OUT,
                    folder, number);
}

static enum hb_code refuse(const char *folder, const struct hb_wal_scan *scan, struct hb_err *err) {
  const struct hb_wal_hole *hole = &scan->hole;
  char *path = file_path(folder, hole->file);
  hb_err_set(err, HB_CORRUPT, NULL,
             "data folder: '%s': damaged at offset %" PRIu64 " (%s); commits %" PRIu64
             " to %" PRIu64 " of run %" PRIu64 " are at risk, those up to %" PRIu64
             " were durable; " WAY_OUT,
             path, hole->offset, hole->why, hole->lost_from, scan->behind.commit, scan->run,
             scan->behind.synced);
  free(path);
  return HB_CORRUPT;
}

/* Synced, so that a crash can't bring the content back beside what is written from now on. */
static enum hb_code empty_file(const char *folder, uint64_t number, struct hb_err *err) {
  char *path = file_path(folder, number);
  int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
  int error = fd < 0 || fsync(fd) ? errno : 0;
  if (fd >= 0 && close(fd) && !error) error = errno;
  enum hb_code code = error ? hb_folder_errno(error, "empty", path, err) : HB_OK;
  free(path);
  return code;
}

/* A tail that was cut between two records is no damage to RocksDB, so it would replay the files
 * behind it, and the commits in between would be missing. From the last one on: a crash in between
 * leaves nothing but a shorter tail. */
static enum hb_code empty_stale(const char *folder, const struct wal_files *files,
                                const struct hb_wal_scan *scan, struct hb_err *err) {
  if (!scan->behind.any || scan->behind.file < scan->hole.stale_from) return HB_OK;
  enum hb_code code = HB_OK;
  for (size_t i = files->count; !code && i && files->numbers[i - 1] >= scan->hole.stale_from; i--) {
    code = empty_file(folder, files->numbers[i - 1], err);
  }
  return code;
}

static enum hb_code judge(const char *folder, const struct wal_files *files,
                          struct hb_wal_needed needed, const struct hb_wal_scan *scan,
                          struct hb_err *err) {
  uint64_t highest = files->count ? files->numbers[files->count - 1] : 0;
  if (!files->count || highest < needed.to) return refuse_missing(folder, needed.to, err);
  switch (hb_wal_scan_verdict(scan, needed.to)) {
    case HB_WAL_WHOLE:
      return HB_OK;
    case HB_WAL_TORN:
      return empty_stale(folder, files, scan, err);
    case HB_WAL_DAMAGED:
    default:
      return refuse(folder, scan, err);
  }
}

/* Opening numbers its first log, then its MANIFEST, and begins a run when both are in use. So the
 * one in use is never older than a log in which a run begins. (RocksDB would open the older state,
 * and remove what is newer.) */
static enum hb_code check_age(const char *folder, const struct hb_wal_manifest *manifest,
                              const struct hb_wal_scan *scan, struct hb_err *err) {
  if (!manifest->number || scan->begun_in < manifest->number) return HB_OK;
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "data folder: '%s': CURRENT names MANIFEST-%06" PRIu64 ", but %06" PRIu64
                    ".log was written when there was a newer one; " WAY_OUT,
                    folder, manifest->number, scan->begun_in);
}

/* A log is removed when the edit that makes it needless was synced. Where that edit is lost, the
 * log that was the first one is missing; what is left tells by its records, if it has any. One that
 * is empty is the first only if it is the one that the store was opened with. */
static enum hb_code check_first(const char *folder, const struct wal_files *files,
                                const struct hb_wal_manifest *manifest,
                                const struct hb_wal_scan *scan, struct hb_err *err) {
  uint64_t from = manifest->needed.from;
  if (!from || !manifest->number || !files->count || scan->any) return HB_OK;
  uint64_t first = files->numbers[0];
  return first == from || first < manifest->number ? HB_OK : refuse_missing(folder, from, err);
}

/* An edit that takes an index file in has more bytes than these. */
enum { INDEX_EDIT_MIN = 64 };

static uint64_t lost_edits(const struct hb_wal_manifest *manifest) {
  if (!manifest->torn) return 0;
  return manifest->hole ? 1 + manifest->behind / INDEX_EDIT_MIN : 1;
}

/* Where MANIFEST can't tell, no file is asked to be the first. */
static bool is_first(uint64_t number, struct hb_wal_needed needed) {
  return !needed.from || number == needed.from;
}

enum hb_code hb_wal_check(const char *folder, uint64_t *out_lost, struct hb_err *err) {
  struct hb_wal_manifest manifest = {0};
  struct wal_files files = {0};
  struct hb_wal_scan scan = {0};
  enum hb_code code = hb_wal_manifest_find(folder, &manifest, err);
  if (!code) code = list_files(folder, manifest.needed.from, &files, err);
  for (size_t i = 0; !code && i < files.count; i++) {
    bool first = i == 0 && is_first(files.numbers[i], manifest.needed);
    code = scan_file(folder, files.numbers[i], first, &scan, err);
  }
  if (!code) code = check_age(folder, &manifest, &scan, err);
  if (!code) code = check_first(folder, &files, &manifest, &scan, err);
  if (!code) code = hb_wal_manifest_check_hole(folder, &manifest, err);
  if (!code) code = judge(folder, &files, manifest.needed, &scan, err);
  if (!code) code = hb_wal_manifest_cut(folder, &manifest, err);
  if (!code) *out_lost = lost_edits(&manifest);
  free(files.numbers);
  return code;
}
