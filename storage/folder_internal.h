/* The data folder: what lies in it, making it, and small files that have to survive a crash. */
#ifndef HB_STORAGE_FOLDER_INTERNAL_H
#define HB_STORAGE_FOLDER_INTERNAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

/* Names in the data folder. RocksDB has a folder of its own, for it has its own file LOCK. */
#define HB_FILE_LOCK "LOCK"
#define HB_FILE_FORMAT "FORMAT"
#define HB_FILE_FORMAT_NEW "FORMAT.new" /* as long as a store is being made */
#define HB_FILE_DAMAGED "DAMAGED"       /* a table can't be read: none is compacted */
#define HB_FILE_STOPPED "STOPPED"       /* and "-", numbers: a mark that was left by no crash */
#define HB_FOLDER_ROCKSDB "db"
#define HB_FOLDER_INDEX "index-tmp"

enum hb_folder_state {
  HB_FOLDER_EMPTY,      /* nothing, or a LOCK alone: a store may be made here */
  HB_FOLDER_UNFINISHED, /* making a store was interrupted: nothing was ever stored */
  HB_FOLDER_STORE,      /* has a FORMAT */
};

/* An errno of a system call on `path` as an error. `doing` is "open", "create", ... */
enum hb_code hb_folder_errno(int error, const char *doing, const char *path, struct hb_err *err);
/* "folder/name", free() it. */
char *hb_folder_join(const char *folder, const char *name);
/* Make `path` (mode 0700, not its parents) where it is not there; HB_PERMISSION where it is
 * something else than a folder. The parent is synced, so that it stays. */
HB_MUST_CHECK enum hb_code hb_folder_make(const char *path, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_folder_sync(const char *path, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_folder_sync_parent(const char *path, struct hb_err *err);
/* What an earlier process wrote into folder/name, and may not have synced. */
HB_MUST_CHECK enum hb_code hb_folder_sync_file(const char *folder, const char *name,
                                               struct hb_err *err);
/* Changes nothing. HB_VERSION names what lies in a folder that is not ours. */
HB_MUST_CHECK enum hb_code hb_folder_look(const char *path, enum hb_folder_state *out,
                                          struct hb_err *err);
/* Remove the files in folder/name (no folders in it), and nothing else; no error where it is not
 * there. The folder itself stays. */
HB_MUST_CHECK enum hb_code hb_folder_clear(const char *folder, const char *name,
                                           struct hb_err *err);
/* Write folder/name and sync it; the entry is durable after hb_folder_sync(folder). */
HB_MUST_CHECK enum hb_code hb_folder_write_file(const char *folder, const char *name,
                                                struct hb_slice bytes, struct hb_err *err);

#endif
