/* Preloaded into a server (LD_PRELOAD): calls on files of its RocksDB fail when a test says so.
 *
 * A test says so by files in the folder HB_FAULTY_DIR:
 *
 *   sync_eio, sync_enospc  every fsync and fdatasync fails with that, as long as the file is there
 *   write_enospc           the next write to the write-ahead log fails; the file goes
 *   statvfs_plenty         a disk has room, whatever is on it, as long as the file is there */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

#define EXPORTED __attribute__((visibility("default")))

static bool trigger(const char *name, char out[PATH_SIZE]) {
  const char *folder = getenv("HB_FAULTY_DIR");
  if (!folder) return false;
  return snprintf(out, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE;
}

static bool is_set(const char *name) {
  char path[PATH_SIZE];
  int before = errno;
  bool set = trigger(name, path) && access(path, F_OK) == 0;
  errno = before;
  return set;
}

/* True for exactly one caller. */
static bool take(const char *name) {
  char path[PATH_SIZE];
  int before = errno;
  bool taken = trigger(name, path) && access(path, F_OK) == 0 && unlink(path) == 0;
  errno = before;
  return taken;
}

/* Whether the file lies in a folder db/ and its name ends so. */
static bool is_file(int fd, const char *end) {
  char link[64];
  char path[PATH_SIZE];
  int before = errno;
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  errno = before;
  if (size < 0) return false;
  path[size] = 0;
  size_t end_size = strlen(end);
  return strstr(path, "/db/") && (size_t)size >= end_size &&
         strcmp(path + (size_t)size - end_size, end) == 0;
}

static int sync_error(int fd) {
  if (!is_file(fd, "")) return 0;
  if (is_set("sync_eio")) return EIO;
  return is_set("sync_enospc") ? ENOSPC : 0;
}

typedef int sync_fn(int fd);

static int sync_by(const char *name, int fd) {
  int error = sync_error(fd);
  if (error) {
    errno = error;
    return -1;
  }
  sync_fn *next = (sync_fn *)(intptr_t)dlsym(RTLD_NEXT, name);
  return next(fd);
}

EXPORTED int fsync(int fd);
EXPORTED int fsync(int fd) { return sync_by("fsync", fd); }

EXPORTED int fdatasync(int fd);
EXPORTED int fdatasync(int fd) { return sync_by("fdatasync", fd); }

typedef ssize_t write_fn(int fd, const void *bytes, size_t size);

EXPORTED ssize_t write(int fd, const void *bytes, size_t size);
EXPORTED ssize_t write(int fd, const void *bytes, size_t size) {
  write_fn *next = (write_fn *)(intptr_t)dlsym(RTLD_NEXT, "write");
  if (is_set("write_enospc") && is_file(fd, ".log") && take("write_enospc")) {
    (void)!next(fd, bytes, size / 2); /* what a disk with little room takes: a torn record */
    errno = ENOSPC;
    return -1;
  }
  return next(fd, bytes, size);
}

typedef int statvfs_fn(const char *path, struct statvfs *out);

EXPORTED int statvfs(const char *path, struct statvfs *out) {
  statvfs_fn *next = (statvfs_fn *)(intptr_t)dlsym(RTLD_NEXT, "statvfs");
  int failed = next(path, out);
  if (!failed && is_set("statvfs_plenty")) out->f_bavail = out->f_blocks = (fsblkcnt_t)1 << 30;
  return failed;
}
