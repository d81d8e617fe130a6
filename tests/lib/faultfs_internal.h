/* What the rooms of faultfs share: the state in memory that survives a process. */
#ifndef HB_TESTS_LIB_FAULTFS_INTERNAL_H
#define HB_TESTS_LIB_FAULTFS_INTERNAL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "tests/lib/faultfs.h"

enum { FAULTFS_FILES = 4096, FAULTFS_OPS = 8192, FAULTFS_PATH = 320 };

struct faultfs_file {
  ino_t inode; /* 0 = free */
  off_t synced;
  bool lost_sync; /* a sync of it failed: later ones prove nothing */
};

enum faultfs_kind { OP_CREATE, OP_RENAME, OP_UNLINK, OP_LINK, OP_MKDIR };

/* A change of a folder that may not be durable yet. */
struct faultfs_op {
  enum faultfs_kind kind;
  bool durable;
  ino_t folder;
  char path[FAULTFS_PATH]; /* what came or went; the old name of a rename */
  char to[FAULTFS_PATH];   /* of a rename */
  unsigned backup;         /* number of the file that went, in the undo folder; 0 = none did */
};

struct faultfs {
  char root[FAULTFS_PATH];
  char undo[FAULTFS_PATH];
  struct hb_fault_plan plan;
  uint64_t calls;
  bool hit;
  char hit_text[FAULTFS_PATH + 32];
  bool overflow; /* a table was too small: results mean nothing */
  unsigned backups;
  unsigned ops_count;
  struct faultfs_file files[FAULTFS_FILES];
  struct faultfs_op ops[FAULTFS_OPS];
};

extern struct faultfs *faultfs; /* NULL = not started */

/* model.c. Under faultfs_lock. */
bool faultfs_watches(const char *path);
struct faultfs_file *faultfs_find(ino_t inode, bool add);
struct faultfs_op *faultfs_add_op(enum faultfs_kind kind, const char *path, const char *to);
/* Keeps what stands at `path` for the operation's undoing. */
void faultfs_back_up(struct faultfs_op *op, const char *path);
void faultfs_sync_file(ino_t inode, off_t size);
void faultfs_sync_folder(ino_t inode);
void faultfs_forget_all(void);
void faultfs_backup_path(unsigned backup, char out[FAULTFS_PATH + 16]);

/* calls.c: the real ones */
int faultfs_real_unlink(const char *path);
int faultfs_real_link(const char *from, const char *to);
int faultfs_real_rename(const char *from, const char *to);
int faultfs_real_truncate(const char *path, off_t size);

#endif
