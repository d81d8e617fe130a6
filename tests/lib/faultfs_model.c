/* What is durable: of each file how much, of each folder which changes. Strict: only a sync of the
 * file makes its bytes durable, only a sync of the folder its entries; but a folder's entries
 * become durable in order, as every journal has it. A cut of a file counts as durable at once. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/faultfs_internal.h"

struct faultfs *faultfs;

static void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "faultfs: %s\n", what);
  abort();
}

void hb_faultfs_start(const char *root) {
  must(!faultfs, "started twice");
  struct faultfs *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  must(made != MAP_FAILED, "no memory");
  must(strlen(root) < FAULTFS_PATH - 64, "the folder's name is too long");
  strcpy(made->root, root);
  snprintf(made->undo, sizeof made->undo, "%.300s.undo", root);
  must(mkdir(made->undo, 0700) == 0, "can't make the undo folder");
  faultfs = made;
}

static void clear_undo(void) {
  DIR *folder = opendir(faultfs->undo);
  must(folder != NULL, "the undo folder is gone");
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[FAULTFS_PATH + 300];
    snprintf(path, sizeof path, "%s/%s", faultfs->undo, entry->d_name);
    if (entry->d_name[0] != '.') faultfs_real_unlink(path);
  }
  closedir(folder);
}

void faultfs_forget_all(void) {
  must(!faultfs->overflow, "more files or changes than it has room for");
  clear_undo();
  memset(faultfs->files, 0, sizeof faultfs->files);
  faultfs->ops_count = 0;
}

void hb_faultfs_reset(void) {
  faultfs_forget_all();
  hb_faultfs_plan((struct hb_fault_plan){.fault = HB_FAULT_NONE});
}

void hb_faultfs_stop(void) {
  clear_undo();
  rmdir(faultfs->undo);
  munmap(faultfs, sizeof *faultfs);
  faultfs = NULL;
}

void hb_faultfs_plan(struct hb_fault_plan plan) {
  faultfs->plan = plan;
  faultfs->calls = 0;
  faultfs->hit = false;
  faultfs->hit_text[0] = 0;
}

uint64_t hb_faultfs_calls(void) { return faultfs->calls; }
bool hb_faultfs_hit(void) { return faultfs->hit; }
const char *hb_faultfs_hit_text(void) { return faultfs->hit_text; }

bool faultfs_watches(const char *path) {
  size_t size = strlen(faultfs->root);
  return strncmp(path, faultfs->root, size) == 0 && path[size] == '/' &&
         strlen(path) < FAULTFS_PATH;
}

struct faultfs_file *faultfs_find(ino_t inode, bool add) {
  for (size_t i = 0; i < FAULTFS_FILES; i++) {
    struct faultfs_file *file = &faultfs->files[(inode + i) % FAULTFS_FILES];
    if (file->inode == inode) return file;
    if (file->inode) continue;
    if (!add) return NULL;
    *file = (struct faultfs_file){.inode = inode};
    return file;
  }
  faultfs->overflow = true;
  return NULL;
}

static ino_t folder_of(const char *path) {
  char folder[FAULTFS_PATH];
  struct stat stat_of;
  strcpy(folder, path);
  *strrchr(folder, '/') = 0;
  return stat(folder, &stat_of) ? 0 : stat_of.st_ino;
}

/* Durable ones at the end of the table are of no use any more: only what is undone is needed. */
static void drop_durable(void) {
  unsigned kept = 0;
  for (unsigned i = 0; i < faultfs->ops_count; i++) {
    if (!faultfs->ops[i].durable) faultfs->ops[kept++] = faultfs->ops[i];
  }
  faultfs->ops_count = kept;
}

struct faultfs_op *faultfs_add_op(enum faultfs_kind kind, const char *path, const char *to) {
  if (faultfs->ops_count == FAULTFS_OPS) drop_durable();
  if (faultfs->ops_count == FAULTFS_OPS) {
    faultfs->overflow = true;
    faultfs->ops_count--;
  }
  struct faultfs_op *op = &faultfs->ops[faultfs->ops_count];
  *op = (struct faultfs_op){.kind = kind, .folder = folder_of(to ? to : path)};
  strcpy(op->path, path);
  if (to) strcpy(op->to, to);
  faultfs->ops_count++;
  return op;
}

void faultfs_backup_path(unsigned backup, char out[FAULTFS_PATH + 16]) {
  snprintf(out, FAULTFS_PATH + 16, "%s/%u", faultfs->undo, backup);
}

void faultfs_back_up(struct faultfs_op *op, const char *path) {
  char backup[FAULTFS_PATH + 16];
  faultfs_backup_path(++faultfs->backups, backup);
  if (faultfs_real_link(path, backup) == 0) op->backup = faultfs->backups;
}

void faultfs_sync_file(ino_t inode, off_t size) {
  struct faultfs_file *file = faultfs_find(inode, false);
  if (file && !file->lost_sync) file->synced = size;
}

void faultfs_sync_folder(ino_t inode) {
  for (unsigned i = 0; i < faultfs->ops_count; i++) {
    struct faultfs_op *op = &faultfs->ops[i];
    if (op->folder != inode || op->durable) continue;
    op->durable = true;
    if (!op->backup) continue;
    char backup[FAULTFS_PATH + 16];
    faultfs_backup_path(op->backup, backup);
    faultfs_real_unlink(backup);
    op->backup = 0;
  }
}
