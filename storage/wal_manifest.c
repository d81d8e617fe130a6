/* Decides which WAL files RocksDB still needs, from its own notes. Without them a file that was no
 * longer needed, left behind by a crash between its last use and its removal, could not be told
 * from a damaged one; nor one that is missing from one that was removed. */
#include "storage/wal_manifest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/slice.h"
#include "storage/engine_internal.h"
#include "storage/folder_internal.h"
#include "storage/wal_edit_internal.h"
#include "storage/wal_hole_internal.h"
#include "storage/wal_read_internal.h"

struct edits {
  bool used[HB_WAL_FAMILIES_MAX];
  uint64_t log[HB_WAL_FAMILIES_MAX]; /* WAL files below it hold nothing of the family any more */
  uint64_t min_log;                  /* of all */
  bool counted;                      /* the edit before said how many families there are, no more */
  uint64_t opened_log; /* a store was opened: each family's `log` is as much; 0: not known */
  bool made; /* the store was made with this MANIFEST: families were added after it began */
};

static bool is_of_none(const struct hb_wal_edit *edit) {
  return !edit->family && !edit->has_log && !edit->has_min_log;
}

static void apply(struct edits *edits, const struct hb_wal_edit *edit) {
  if (edit->add) edits->used[edit->family] = true;
  if (edit->add && edit->has_log) edits->made = true; /* where it begins, these are two edits */
  if (edit->drop) edits->used[edit->family] = false;
  if (edit->has_log) edits->log[edit->family] = edit->log;
  if (edit->has_min_log && edit->min_log > edits->min_log) edits->min_log = edit->min_log;
  if (edits->counted && !edit->family && edit->has_log) edits->opened_log = edit->log;
  edits->counted = edit->has_max_family && is_of_none(edit);
}

/* The default family, of which nothing is ever written, has no log in the MANIFEST that a store is
 * made with. */
static struct hb_wal_needed sum(const struct edits *edits) {
  struct hb_wal_needed needed = {.from = UINT64_MAX};
  for (int i = 0; i < HB_WAL_FAMILIES_MAX; i++) {
    if (!edits->used[i] || (i == 0 && !edits->log[i])) continue;
    if (edits->log[i] < needed.from) needed.from = edits->log[i];
    if (edits->log[i] > needed.to) needed.to = edits->log[i];
  }
  if (needed.from == UINT64_MAX) needed.from = 0;
  if (edits->min_log > needed.from) needed.from = edits->min_log;
  return needed;
}

/* No end is torn, something in the middle is lost. RocksDB would not see it where the length of the
 * lost edit reaches to the end of the file: it would open an older state and remove what is newer.
 */
static enum hb_code lost_edit(const struct hb_wal_reader *reader, struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "MANIFEST is damaged at offset %" PRIu64
                    " (%s), and edits behind that can be read; restore the folder from a backup",
                    reader->damage.offset, reader->damage.why);
}

/* A MANIFEST begins with the state before it and with the edits that it is begun for, all synced
 * before CURRENT names it. Begun by opening, these are: one of no family that says how many there
 * are, then one for each family, the default one first, with the number of the log to come. A
 * MANIFEST that ends within them was cut later. (One that RocksDB begins because it could not write
 * to the one before has that first edit too, but nothing of the default family behind it.) */
static bool is_cut_in_its_beginning(const struct edits *edits) {
  for (int i = 0; i < HB_WAL_FAMILIES_MAX; i++) {
    if (edits->used[i] && edits->log[i] < edits->opened_log) return true;
  }
  return false;
}

/* A family is added or dropped, and a MANIFEST begun, with a sync of its own. */
static bool may_be_behind(const struct edits *edits, struct hb_slice bytes) {
  struct hb_wal_edit edit = {0};
  if (!hb_wal_edit_read(bytes, &edit, NULL) || edit.add || edit.drop) return false;
  return !edit.has_max_family && edits->used[edit.family];
}

/* Up to the damage; what is behind it is looked at, no more. */
static enum hb_code read_edits(struct hb_wal_reader *reader, struct edits *edits, bool *out_known,
                               bool *out_hole, struct hb_err *err) {
  struct edits draft = *edits;
  for (;;) {
    bool any = false;
    struct hb_slice bytes;
    struct hb_wal_edit edit = {0};
    enum hb_code code = hb_wal_reader_next(reader, &any, &bytes, err);
    if (code || !any) return code;
    if (reader->damage.any) {
      if (!*out_known || !may_be_behind(edits, bytes)) return lost_edit(reader, err);
      *out_hole = true;
      continue;
    }
    *out_known = *out_known && hb_wal_edit_read(bytes, &edit, NULL);
    if (!*out_known) continue;
    apply(&draft, &edit);
    if (!edit.group_left) *edits = draft;
  }
}

static enum hb_code refuse_cut(const struct hb_wal_reader *reader, struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "MANIFEST ends at offset %" PRIu64
                    ", within what was written before it was put to use; restore the folder from "
                    "a backup",
                    reader->damage.any ? reader->damage.offset : reader->block_offset + reader->at);
}

static bool has_all_families(const struct edits *edits) {
  for (int i = 0; i <= HB_FAMILY_COUNT; i++) { /* the default one before ours */
    if (!edits->used[i]) return false;
  }
  return true;
}

/* What a MANIFEST begins with has to be before the hole: a whole state. */
static enum hb_code check_hole(const struct hb_wal_reader *reader, const struct edits *edits,
                               struct hb_err *err) {
  bool torn = false;
  enum hb_code code = hb_wal_hole_look(reader->fd, reader->damage.offset, &torn, err);
  if (code) return code;
  bool begun = has_all_families(edits) && (edits->made || edits->opened_log);
  return torn && begun ? HB_OK : lost_edit(reader, err);
}

static enum hb_code sum_up(struct hb_wal_reader *reader, struct hb_wal_manifest *out,
                           struct hb_err *err) {
  struct edits edits = {.used = {true}}; /* the default family is never added */
  bool known = true;
  bool hole = false;
  enum hb_code code = read_edits(reader, &edits, &known, &hole, err);
  if (code) return code;
  *out = (struct hb_wal_manifest){0};
  if (!known) return HB_OK;
  if (is_cut_in_its_beginning(&edits)) return refuse_cut(reader, err);
  if (hole) code = check_hole(reader, &edits, err);
  if (code) return code;
  out->needed = sum(&edits);
  out->torn = reader->damage.any && reader->damage.offset; /* without one edit it is none */
  out->size = reader->damage.offset;
  out->hole = hole;
  out->behind = reader->block_offset + reader->block_size - out->size;
  return HB_OK;
}

enum hb_code hb_wal_manifest_read(int fd, struct hb_wal_manifest *out, struct hb_err *err) {
  struct hb_wal_reader reader;
  hb_wal_reader_init(&reader, fd);
  enum hb_code code = sum_up(&reader, out, err);
  hb_wal_reader_done(&reader);
  return code;
}

/* CURRENT is "MANIFEST-000005\n". NULL: it is not. free() it. */
static char *current_path(const char *folder) {
  char name[32];
  char *path = hb_folder_join(folder, "CURRENT");
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  free(path);
  if (fd < 0) return NULL;
  ssize_t size = pread(fd, name, sizeof name - 1, 0);
  (void)close(fd); /* it was only read */
  if (size < 1 || name[size - 1] != '\n') return NULL;
  name[size - 1] = 0;
  bool named = strncmp(name, "MANIFEST-", 9) == 0 && !strchr(name, '/');
  return named ? hb_folder_join(folder, name) : NULL;
}

/* ".../MANIFEST-000005" */
static uint64_t number_of(const char *path) {
  const char *digits = strrchr(path, '-');
  return digits ? strtoull(digits + 1, NULL, 10) : 0;
}

enum hb_code hb_wal_manifest_find(const char *folder, struct hb_wal_manifest *out,
                                  struct hb_err *err) {
  char *path = current_path(folder);
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  enum hb_code code = HB_OK;
  *out = (struct hb_wal_manifest){0}; /* where it is not there, RocksDB refuses by itself */
  if (fd >= 0) {
    code = hb_wal_manifest_read(fd, out, err);
    if (code) {
      hb_err_wrap(err, "'%s'", path);
    } else {
      out->number = number_of(path);
    }
    (void)close(fd); /* it was only read */
  }
  free(path);
  return code;
}

enum hb_code hb_wal_manifest_check_hole(const char *folder, const struct hb_wal_manifest *manifest,
                                        struct hb_err *err) {
  if (!manifest->hole) return HB_OK;
  char *path = current_path(folder);
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  bool there = false;
  enum hb_code code = fd < 0 ? HB_OK : hb_wal_hole_tables(fd, folder, &there, err);
  if (fd >= 0) (void)close(fd); /* it was only read */
  if (!code && !there) {
    code = hb_err_set(err, HB_CORRUPT, NULL,
                      "data folder: '%s': MANIFEST is damaged at offset %" PRIu64
                      ", and of what is needed without the edits behind that, a table is gone; "
                      "restore the folder from a backup",
                      path ? path : folder, manifest->size);
  }
  free(path);
  return code;
}

enum hb_code hb_wal_manifest_cut(const char *folder, const struct hb_wal_manifest *manifest,
                                 struct hb_err *err) {
  if (!manifest->torn) return HB_OK;
  char *path = current_path(folder);
  if (!path) return HB_OK; /* as above */
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  int error = fd < 0 || ftruncate(fd, (off_t)manifest->size) || fsync(fd) ? errno : 0;
  if (fd >= 0 && close(fd) && !error) error = errno;
  enum hb_code code = error ? hb_folder_errno(error, "cut", path, err) : HB_OK;
  free(path);
  return code;
}
