/* What a power loss leaves. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/faultfs_internal.h"

enum { PAGE = 4096 };

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t limit) { return next_random(state) % limit; }

/* ---- names */

static void put_back(const struct faultfs_op *op, const char *path) {
  char backup[FAULTFS_PATH + 16];
  if (!op->backup) return;
  faultfs_backup_path(op->backup, backup);
  faultfs_real_link(backup, path);
}

static void undo(const struct faultfs_op *op) {
  switch (op->kind) {
    case OP_CREATE:
    case OP_LINK:
      faultfs_real_unlink(op->path);
      break;
    case OP_UNLINK:
      put_back(op, op->path);
      break;
    case OP_RENAME:
      faultfs_real_rename(op->to, op->path);
      put_back(op, op->to);
      break;
    case OP_MKDIR:
      rmdir(op->path); /* not while something durable is in it */
      break;
  }
}

static void undo_folder(ino_t folder, uint64_t keep) {
  uint64_t number = 0;
  for (unsigned i = 0; i < faultfs->ops_count; i++) {
    struct faultfs_op *op = &faultfs->ops[i];
    if (op->folder == folder && !op->durable && number++ < keep) op->durable = true;
  }
}

static uint64_t open_ops(ino_t folder) {
  uint64_t count = 0;
  for (unsigned i = 0; i < faultfs->ops_count; i++) {
    count += faultfs->ops[i].folder == folder && !faultfs->ops[i].durable;
  }
  return count;
}

/* Of each folder the first few changes stay; what follows is undone, over all folders from the last
 * to the first. */
static void lose_names(uint64_t *random) {
  for (unsigned i = 0; i < faultfs->ops_count; i++) {
    ino_t folder = faultfs->ops[i].folder;
    bool seen = false;
    for (unsigned j = 0; j < i && !seen; j++) seen = faultfs->ops[j].folder == folder;
    if (seen) continue;
    uint64_t count = open_ops(folder);
    uint64_t keep = below(random, 3) ? below(random, count + 1) : 0;
    undo_folder(folder, keep);
  }
  for (unsigned i = faultfs->ops_count; i > 0; i--) {
    if (!faultfs->ops[i - 1].durable) undo(&faultfs->ops[i - 1]);
  }
}

/* ---- bytes */

static void overwrite(int fd, off_t from, off_t to, bool zeros, uint64_t *random) {
  uint8_t bytes[PAGE] = {0};
  while (from < to) {
    off_t size = to - from < PAGE ? to - from : PAGE;
    for (off_t i = 0; !zeros && i < size; i++) bytes[i] = (uint8_t)next_random(random);
    if (pwrite(fd, bytes, (size_t)size, from) != size) abort();
    from += size;
  }
}

/* Pages are written back in any order. */
static void lose_pages(int fd, off_t from, off_t to, uint64_t *random) {
  while (from < to) {
    off_t page_end = (from / PAGE + 1) * PAGE;
    if (page_end > to) page_end = to;
    if (below(random, 2)) overwrite(fd, from, page_end, true, random);
    from = page_end;
  }
}

static void lose_bytes(const char *path, off_t synced, off_t size, uint64_t *random) {
  off_t lost_from = synced + (off_t)below(random, (uint64_t)(size - synced) + 1);
  uint64_t how = below(random, 8);
  if (how < 3) { /* everything that was not synced */
    faultfs_real_truncate(path, synced);
    return;
  }
  if (how == 3) { /* a part of it */
    faultfs_real_truncate(path, lost_from);
    return;
  }
  if (how == 4) return; /* nothing: it happened to be written */
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  if (how == 7) {
    lose_pages(fd, synced, size, random);
  } else {
    overwrite(fd, lost_from, size, how == 5, random);
  }
  close(fd);
}

static void lose_in_folder(const char *path, uint64_t *random) {
  DIR *folder = opendir(path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char name[2 * FAULTFS_PATH];
    struct stat stat_of;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(name, sizeof name, "%s/%.255s", path, entry->d_name);
    if (lstat(name, &stat_of)) continue;
    if (S_ISDIR(stat_of.st_mode)) lose_in_folder(name, random);
    if (!S_ISREG(stat_of.st_mode)) continue;
    const struct faultfs_file *file = faultfs_find(stat_of.st_ino, false);
    if (file && stat_of.st_size > file->synced) {
      lose_bytes(name, file->synced, stat_of.st_size, random);
    }
  }
  closedir(folder);
}

void hb_faultfs_power_loss(uint64_t seed) {
  struct hb_fault_plan none = {.fault = HB_FAULT_NONE};
  uint64_t random = seed;
  faultfs->plan = none; /* this process's own writes are no calls of the test */
  lose_names(&random);
  lose_in_folder(faultfs->root, &random);
  faultfs_forget_all();
}
