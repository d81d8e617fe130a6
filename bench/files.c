/* Decides how files leave the page cache: synced first, for what is dirty stays. */
#include "bench/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { CHUNK = 1 << 20 };

/* nftw has no argument of the caller's. */
static _Thread_local struct {
  uint64_t bytes;
  bool without_wal;
  uint8_t *chunk;
} walk;

static bool is_wal(const char *path) {
  size_t size = strlen(path);
  return size > 4 && strcmp(path + size - 4, ".log") == 0;
}

static int add_size(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)place;
  if (type == FTW_F && !(walk.without_wal && is_wal(path))) walk.bytes += (uint64_t)info->st_size;
  return 0;
}

static int drop(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)info;
  (void)place;
  if (type != FTW_F) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  int failed = fdatasync(fd);
  failed |= posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  (void)close(fd);
  return failed;
}

static int read_file(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)info;
  (void)place;
  if (type != FTW_F) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  ssize_t got;
  while ((got = read(fd, walk.chunk, CHUNK)) > 0) walk.bytes += (uint64_t)got;
  (void)close(fd);
  return got < 0;
}

uint64_t hb_files_bytes(const char *folder, bool without_wal) {
  walk.bytes = 0;
  walk.without_wal = without_wal;
  return nftw(folder, add_size, 16, FTW_PHYS) == 0 ? walk.bytes : 0;
}

bool hb_files_drop(const char *folder) { return nftw(folder, drop, 16, FTW_PHYS) == 0; }

uint64_t hb_files_read(const char *folder) {
  walk.bytes = 0;
  walk.chunk = hb_alloc(CHUNK);
  int failed = nftw(folder, read_file, 16, FTW_PHYS);
  free(walk.chunk);
  return failed ? 0 : walk.bytes;
}
