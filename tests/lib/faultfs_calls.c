/* The calls themselves: each is numbered, may fail or crash, and is noted in the model. One at a
 * time, so that what a sync makes durable is what was there when it began. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/faultfs_internal.h"

/* The program is built with hidden symbols; these must be seen by RocksDB's library. */
#define INTERPOSED __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the real calls */

static int real_open(const char *path, int flags, mode_t mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
static ssize_t real_pwrite(int fd, const void *data, size_t size, off_t at) {
  return syscall(SYS_pwrite64, fd, data, size, at);
}
static ssize_t real_write(int fd, const void *data, size_t size) {
  return syscall(SYS_write, fd, data, size);
}
int faultfs_real_unlink(const char *path) { return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }
int faultfs_real_link(const char *from, const char *to) {
  return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int faultfs_real_rename(const char *from, const char *to) {
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int faultfs_real_truncate(const char *path, off_t size) {
  return (int)syscall(SYS_truncate, path, size);
}

/* ---- deciding */

enum verdict { GO_ON, FAIL, HALF };

static void say_hit(const char *call, const char *path, int fd) {
  char link[32];
  char of_fd[FAULTFS_PATH] = "";
  if (!path) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, of_fd, sizeof of_fd - 1) > 0) path = of_fd;
  }
  size_t skip = strlen(faultfs->root);
  if (path && strncmp(path, faultfs->root, skip) == 0) path += skip;
  snprintf(faultfs->hit_text, sizeof faultfs->hit_text, "%s %.300s", call, path ? path : "?");
}

/* Numbers the call. FAIL: errno is set. May not return. */
static enum verdict begin(const char *call, const char *path, int fd, bool is_write) {
  const struct hb_fault_plan *plan = &faultfs->plan;
  uint64_t number = ++faultfs->calls;
  bool from = plan->fault == HB_FAULT_FAIL_FROM && number > plan->at;
  if (plan->fault == HB_FAULT_NONE || (number != plan->at && !from)) return GO_ON;
  if (plan->fault == HB_FAULT_SHORT_WRITE && !is_write) return GO_ON;
  if (!faultfs->hit) say_hit(call, path, fd);
  faultfs->hit = true;
  switch (plan->fault) {
    case HB_FAULT_FAIL_ONCE:
    case HB_FAULT_FAIL_FROM:
      errno = plan->error;
      return FAIL;
    case HB_FAULT_SHORT_WRITE:
      return HALF;
    case HB_FAULT_CRASH_HALF:
      if (is_write) return HALF;
      _exit(HB_FAULT_EXIT);
    case HB_FAULT_CRASH_BEFORE:
      _exit(HB_FAULT_EXIT);
    case HB_FAULT_CRASH_AFTER:
    case HB_FAULT_NONE:
      break;
  }
  return GO_ON;
}

static void end(void) {
  const struct hb_fault_plan *plan = &faultfs->plan;
  if (!faultfs->hit || faultfs->calls != plan->at) return;
  if (plan->fault == HB_FAULT_CRASH_AFTER || plan->fault == HB_FAULT_CRASH_HALF) {
    _exit(HB_FAULT_EXIT);
  }
}

static void take(void) { pthread_mutex_lock(&lock); }

/* Keeps errno. */
static void give(void) {
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
}

/* Whether the descriptor is that of a watched file. */
static bool is_watched(int fd, struct stat *out) {
  if (!faultfs || fstat(fd, out) || !S_ISREG(out->st_mode)) return false;
  return faultfs_find(out->st_ino, false) != NULL;
}

/* ---- bytes */

static ssize_t write_some(int fd, const void *data, size_t size, off_t at, bool has_at) {
  ssize_t done = -1;
  struct stat stat_of;
  if (!is_watched(fd, &stat_of)) {
    return has_at ? real_pwrite(fd, data, size, at) : real_write(fd, data, size);
  }
  take();
  enum verdict verdict = begin(has_at ? "pwrite" : "write", NULL, fd, true);
  if (verdict == HALF) size = (size + 1) / 2;
  if (verdict != FAIL) {
    done = has_at ? real_pwrite(fd, data, size, at) : real_write(fd, data, size);
    end();
  }
  give();
  return done;
}

INTERPOSED ssize_t write(int fd, const void *data, size_t size) {
  return write_some(fd, data, size, 0, false);
}

INTERPOSED ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  return write_some(fd, data, size, at, true);
}

INTERPOSED ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
  return write_some(fd, data, size, at, true);
}

/* ---- syncs */

static void note_failed_sync(ino_t inode) {
  struct faultfs_file *file = faultfs_find(inode, false);
  if (file) file->lost_sync = true;
}

static int sync_some(int fd, const char *call, long number) {
  struct stat stat_of;
  bool folder = faultfs && fstat(fd, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
  if (!folder && !is_watched(fd, &stat_of)) return (int)syscall(number, fd);
  take();
  int result = -1;
  if (begin(call, NULL, fd, false) == FAIL) {
    if (!folder) note_failed_sync(stat_of.st_ino);
  } else {
    /* Not passed on: the model decides what is durable, and a test has no time for the disk. */
    result = fstat(fd, &stat_of);
    if (folder) {
      faultfs_sync_folder(stat_of.st_ino);
    } else {
      faultfs_sync_file(stat_of.st_ino, stat_of.st_size);
    }
    end();
  }
  give();
  return result;
}

INTERPOSED int fsync(int fd) { return sync_some(fd, "fsync", SYS_fsync); }
INTERPOSED int fdatasync(int fd) { return sync_some(fd, "fdatasync", SYS_fdatasync); }

/* It makes nothing durable. Of no bytes it is a question: whether there is such a call. */
INTERPOSED int sync_file_range(int fd, off_t from, off_t size, unsigned flags) {
  struct stat stat_of;
  if (!size || !is_watched(fd, &stat_of)) {
    return (int)syscall(SYS_sync_file_range, fd, from, size, flags);
  }
  take();
  int result = begin("sync_file_range", NULL, fd, false) == FAIL ? -1 : 0;
  if (result == 0) end();
  give();
  return result;
}

/* ---- sizes */

static void note_size(ino_t inode, off_t size) {
  struct faultfs_file *file = faultfs_find(inode, false);
  if (file && file->synced > size) file->synced = size;
}

INTERPOSED int ftruncate(int fd, off_t size) {
  struct stat stat_of;
  if (!is_watched(fd, &stat_of)) return (int)syscall(SYS_ftruncate, fd, size);
  take();
  int result = -1;
  if (begin("ftruncate", NULL, fd, false) != FAIL) {
    result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0) note_size(stat_of.st_ino, size);
    end();
  }
  give();
  return result;
}

INTERPOSED int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

INTERPOSED int fallocate(int fd, int mode, off_t at, off_t size) {
  struct stat stat_of;
  if (!is_watched(fd, &stat_of)) return (int)syscall(SYS_fallocate, fd, mode, at, size);
  take();
  int result = -1;
  if (begin("fallocate", NULL, fd, false) != FAIL) {
    result = (int)syscall(SYS_fallocate, fd, mode, at, size);
    end();
  }
  give();
  return result;
}

/* ---- names */

/* After a successful open for writing. */
static void note_open(int fd, const char *path, int flags, bool existed) {
  struct stat stat_of;
  if (fstat(fd, &stat_of) || !S_ISREG(stat_of.st_mode)) return;
  bool known = faultfs_find(stat_of.st_ino, false) != NULL;
  struct faultfs_file *file = faultfs_find(stat_of.st_ino, true);
  if (!file) return;
  if (!existed) {
    *file = (struct faultfs_file){.inode = stat_of.st_ino};
    faultfs_add_op(OP_CREATE, path, NULL);
  } else if (flags & O_TRUNC) {
    file->synced = 0;
  } else if (!known) {
    file->synced = stat_of.st_size;
  }
}

static int open_some(const char *path, int flags, mode_t mode) {
  bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
  if (!faultfs || !writes || !faultfs_watches(path)) return real_open(path, flags, mode);
  take();
  int fd = -1;
  if (begin("open", path, -1, false) != FAIL) {
    struct stat stat_of;
    bool existed = stat(path, &stat_of) == 0;
    fd = real_open(path, flags, mode);
    if (fd >= 0) note_open(fd, path, flags, existed);
    end();
  }
  give();
  return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(arguments, int) : 0;
}

INTERPOSED int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_some(path, flags, mode);
}

INTERPOSED int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_some(path, flags, mode);
}

INTERPOSED int rename(const char *from, const char *to) {
  if (!faultfs || !faultfs_watches(to)) return faultfs_real_rename(from, to);
  take();
  int result = -1;
  if (begin("rename", to, -1, false) != FAIL) {
    struct faultfs_op *op = faultfs_add_op(OP_RENAME, from, to);
    faultfs_back_up(op, to);
    result = faultfs_real_rename(from, to);
    if (result) op->durable = true; /* nothing to undo */
    end();
  }
  give();
  return result;
}

INTERPOSED int link(const char *from, const char *to) {
  if (!faultfs || !faultfs_watches(to)) return faultfs_real_link(from, to);
  take();
  int result = -1;
  if (begin("link", to, -1, false) != FAIL) {
    result = faultfs_real_link(from, to);
    if (result == 0) faultfs_add_op(OP_LINK, to, NULL);
    end();
  }
  give();
  return result;
}

static int unlink_path(const char *path) {
  take();
  int result = -1;
  if (begin("unlink", path, -1, false) != FAIL) {
    struct faultfs_op *op = faultfs_add_op(OP_UNLINK, path, NULL);
    faultfs_back_up(op, path);
    result = faultfs_real_unlink(path);
    if (result) op->durable = true;
    end();
  }
  give();
  return result;
}

INTERPOSED int unlink(const char *path) {
  if (!faultfs || !faultfs_watches(path)) return faultfs_real_unlink(path);
  return unlink_path(path);
}

INTERPOSED int unlinkat(int folder, const char *name, int flags) {
  char link[32];
  char path[FAULTFS_PATH] = "";
  if (faultfs && !flags && folder != AT_FDCWD && name[0] != '/') {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size > 0) snprintf(path + size, sizeof path - (size_t)size, "/%s", name);
  }
  if (path[0] && faultfs_watches(path)) return unlink_path(path);
  return (int)syscall(SYS_unlinkat, folder, name, flags);
}

INTERPOSED int mkdir(const char *path, mode_t mode) {
  if (!faultfs || !faultfs_watches(path)) {
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  }
  take();
  int result = -1;
  if (begin("mkdir", path, -1, false) != FAIL) {
    result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (result == 0) faultfs_add_op(OP_MKDIR, path, NULL);
    end();
  }
  give();
  return result;
}
