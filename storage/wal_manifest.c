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
#include "storage/folder_internal.h"
#include "storage/wal_batch_internal.h"
#include "storage/wal_read_internal.h"

/* Families are numbered by RocksDB as they are made; ours are made once, with the store. */
enum { FAMILIES_MAX = 64 };

struct edits {
  bool used[FAMILIES_MAX];
  uint64_t log[FAMILIES_MAX]; /* WAL files below it hold nothing of the family any more */
  uint64_t min_log;           /* of all */
  bool counted;               /* the edit before said how many families there are, no more */
  uint64_t opened_log;        /* a store was opened: each family's `log` is as much; 0: not known */
};

/* Tags of a VersionEdit. What is not here and has IGNORABLE set is a string to step over. */
enum tag {
  COMPARATOR = 1,
  LOG_NUMBER = 2,
  NEXT_FILE = 3,
  LAST_SEQUENCE = 4,
  COMPACT_CURSOR = 5,
  DELETED_FILE = 6,
  NEW_FILE = 7,
  PREVIOUS_LOG = 9,
  MIN_LOG = 10,
  NEW_FILE_2 = 100,
  NEW_FILE_3 = 102,
  NEW_FILE_4 = 103,
  FAMILY = 200,
  FAMILY_ADD = 201,
  FAMILY_DROP = 202,
  MAX_FAMILY = 203,
  IN_ATOMIC_GROUP = 300,
  BLOB_FILE = 400,
  BLOB_GARBAGE = 401,
  IGNORABLE = 1 << 13
};

enum { NEW_FILE_FIELDS_END = 1, BLOB_FIELDS_END = 0 };

struct edit {
  uint64_t family;
  bool has_log;
  uint64_t log;
  bool has_min_log;
  uint64_t min_log;
  bool has_max_family;
  bool add;
  bool drop;
  uint64_t group_left; /* edits of its group that follow it; they count only together */
};

/* 'n' a number, 's' a string, 'f' and 'b' the fields that end what describes a file. */
static const char *shape_of(uint64_t tag) {
  switch (tag) {
    case COMPARATOR:
    case FAMILY_ADD:
      return "s";
    case LOG_NUMBER:
    case NEXT_FILE:
    case LAST_SEQUENCE:
    case PREVIOUS_LOG:
    case MIN_LOG:
    case FAMILY:
    case MAX_FAMILY:
    case IN_ATOMIC_GROUP:
      return "n";
    case COMPACT_CURSOR:
      return "ns";
    case DELETED_FILE:
      return "nn";
    case NEW_FILE:
      return "nnnss";
    case NEW_FILE_2:
      return "nnnssnn";
    case NEW_FILE_3:
      return "nnnnssnn";
    case NEW_FILE_4:
      return "nnnssnnf";
    case BLOB_FILE:
      return "nnnssb";
    case BLOB_GARBAGE:
      return "nnnb";
    case FAMILY_DROP:
      return "";
    default:
      return tag & IGNORABLE ? "s" : NULL;
  }
}

static bool take_fields(struct hb_slice *bytes, uint64_t end) {
  for (;;) {
    uint64_t tag;
    struct hb_slice text;
    if (!hb_wal_take_varint(bytes, &tag)) return false;
    if (tag == end) return true;
    if (!hb_wal_take_string(bytes, &text)) return false;
  }
}

static bool take_one(struct hb_slice *bytes, char shape, uint64_t *out_number) {
  struct hb_slice text;
  switch (shape) {
    case 'n':
      return hb_wal_take_varint(bytes, out_number);
    case 's':
      return hb_wal_take_string(bytes, &text);
    case 'f':
      return take_fields(bytes, NEW_FILE_FIELDS_END);
    default:
      return take_fields(bytes, BLOB_FIELDS_END);
  }
}

static bool take_entry(struct hb_slice *bytes, uint64_t *out_tag, uint64_t *out_number) {
  if (!hb_wal_take_varint(bytes, out_tag)) return false;
  const char *shape = shape_of(*out_tag);
  if (!shape) return false;
  for (; *shape; shape++) {
    if (!take_one(bytes, *shape, out_number)) return false;
  }
  return true;
}

static bool read_edit(struct hb_slice bytes, struct edit *edit) {
  while (bytes.size) {
    uint64_t tag;
    uint64_t number = 0;
    if (!take_entry(&bytes, &tag, &number)) return false;
    if (tag == LOG_NUMBER) {
      edit->has_log = true;
      edit->log = number;
    } else if (tag == MIN_LOG) {
      edit->has_min_log = true;
      edit->min_log = number;
    } else if (tag == FAMILY) {
      edit->family = number;
    } else if (tag == MAX_FAMILY) {
      edit->has_max_family = true;
    } else if (tag == FAMILY_ADD) {
      edit->add = true;
    } else if (tag == FAMILY_DROP) {
      edit->drop = true;
    } else if (tag == IN_ATOMIC_GROUP) {
      edit->group_left = number;
    }
  }
  return edit->family < FAMILIES_MAX;
}

static bool is_of_none(const struct edit *edit) {
  return !edit->family && !edit->has_log && !edit->has_min_log;
}

static void apply(struct edits *edits, const struct edit *edit) {
  if (edit->add) edits->used[edit->family] = true;
  if (edit->drop) edits->used[edit->family] = false;
  if (edit->has_log) edits->log[edit->family] = edit->log;
  if (edit->has_min_log && edit->min_log > edits->min_log) edits->min_log = edit->min_log;
  if (edits->counted && !edit->family && edit->has_log) edits->opened_log = edit->log;
  edits->counted = edit->has_max_family && is_of_none(edit);
}

static struct hb_wal_needed sum(const struct edits *edits) {
  struct hb_wal_needed needed = {.from = UINT64_MAX};
  for (int i = 0; i < FAMILIES_MAX; i++) {
    if (!edits->used[i]) continue;
    if (edits->log[i] < needed.from) needed.from = edits->log[i];
    if (edits->log[i] > needed.to) needed.to = edits->log[i];
  }
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
  for (int i = 0; i < FAMILIES_MAX; i++) {
    if (edits->used[i] && edits->log[i] < edits->opened_log) return true;
  }
  return false;
}

static enum hb_code read_edits(struct hb_wal_reader *reader, struct hb_wal_manifest *out,
                               struct hb_err *err) {
  struct edits edits = {.used = {true}}; /* the default family is never added */
  struct edits draft = edits;
  bool known = true;
  for (;;) {
    bool any = false;
    struct hb_slice bytes;
    enum hb_code code = hb_wal_reader_next(reader, &any, &bytes, err);
    if (code) return code;
    if (!any) break;
    struct edit edit = {0};
    if (reader->damage.any) return lost_edit(reader, err);
    known = known && read_edit(bytes, &edit);
    if (!known) continue;
    apply(&draft, &edit);
    if (!edit.group_left) edits = draft;
  }
  *out = (struct hb_wal_manifest){0};
  if (!known) return HB_OK;
  if (is_cut_in_its_beginning(&edits)) {
    return hb_err_set(
        err, HB_CORRUPT, NULL,
        "MANIFEST ends at offset %" PRIu64
        ", within what was written before it was put to use; restore the folder from "
        "a backup",
        reader->damage.any ? reader->damage.offset : reader->block_offset + reader->at);
  }
  out->needed = sum(&edits);
  out->torn = reader->damage.any && reader->damage.offset; /* without one edit it is none */
  out->size = reader->damage.offset;
  return HB_OK;
}

enum hb_code hb_wal_manifest_read(int fd, struct hb_wal_manifest *out, struct hb_err *err) {
  struct hb_wal_reader reader;
  hb_wal_reader_init(&reader, fd);
  enum hb_code code = read_edits(&reader, out, err);
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
