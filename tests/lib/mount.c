/* Decides how a test gets a disk of its own, and how that is filled. */
#include "tests/lib/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  return close(fd) == 0 && written;
}

/* For who isn't root: root of a namespace of one's own, in which a tmpfs may be mounted. */
static bool become_root(void) {
  char map[64];
  unsigned uid = getuid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return false;
  (void)snprintf(map, sizeof map, "0 %u 1", uid);
  return write_file("/proc/self/uid_map", map);
}

bool hbt_mount_allowed(char *why, size_t size) {
  const char *what = "unshare";
  bool own = unshare(CLONE_NEWNS) == 0 || become_root();
  if (own) {
    what = "mount / as private";
    own = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  }
  if (own) {
    what = "mount a tmpfs on /mnt";
    own = mount("hb", "/mnt", "tmpfs", 0, "size=1m") == 0;
  }
  if (own) (void)umount("/mnt");
  if (!own) (void)snprintf(why, size, "%s: %s", what, strerror(errno));
  return own;
}

bool hbt_mount(const char *path, uint64_t bytes) {
  char options[64];
  (void)snprintf(options, sizeof options, "size=%llu,mode=0700", (unsigned long long)bytes);
  if (mount("hb", path, "tmpfs", 0, options) == 0) return true;
  perror(path);
  return false;
}

void hbt_unmount(const char *path) {
  if (umount(path)) perror(path);
}

uint64_t hbt_disk_free(const char *path) {
  struct statvfs disk;
  if (statvfs(path, &disk)) {
    perror(path);
    abort();
  }
  return (uint64_t)disk.f_bavail * disk.f_frsize;
}

/* Blocks one by one where there is no room for all: so it ends with the last one. */
static void fill_up(int fd) {
  static const char zeros[4096];
  while (write(fd, zeros, sizeof zeros) > 0) continue;
  if (errno != ENOSPC) perror("fill_up");
}

void hbt_disk_fill(const char *file, uint64_t free_bytes) {
  int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) {
    perror(file);
    abort();
  }
  for (;;) {
    struct statvfs disk;
    if (fstatvfs(fd, &disk)) abort();
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left <= free_bytes) break;
    if (posix_fallocate(fd, lseek(fd, 0, SEEK_END), (off_t)(left - free_bytes))) break;
  }
  if (!free_bytes) fill_up(fd);
  (void)close(fd);
}
