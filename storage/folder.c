/* Decides what a folder is by the names in it. Ours has FORMAT, or FORMAT.new while it is being
 * made, or nothing at all; everything else belongs to somebody else and is left as it is. */
#include "storage/folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/planted.h"

static enum hb_code code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return HB_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return HB_PERMISSION;
    default:
      return HB_IO;
  }
}

enum hb_code hb_folder_errno(int error, const char *doing, const char *path, struct hb_err *err) {
  return hb_err_set(err, code_of(error), NULL, "data folder: can't %s '%s': %s", doing, path,
                    strerror(error));
}

char *hb_folder_join(const char *folder, const char *name) {
  size_t size = strlen(folder) + 1 + strlen(name) + 1;
  char *path = hb_alloc(size);
  (void)snprintf(path, size, "%s/%s", folder, name);
  return path;
}

static enum hb_code sync_path(const char *path, int flags, struct hb_err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) return hb_folder_errno(errno, "open", path, err);
  int error = fsync(fd) ? errno : 0;
  (void)close(fd); /* it was only read */
  return error ? hb_folder_errno(error, "sync", path, err) : HB_OK;
}

enum hb_code hb_folder_sync(const char *path, struct hb_err *err) {
  if (HB_PLANTED(DIRECTORY_SYNC)) return HB_OK;
  return sync_path(path, O_DIRECTORY, err);
}

enum hb_code hb_folder_sync_parent(const char *path, struct hb_err *err) {
  char *parent = hb_folder_join(path, "..");
  enum hb_code code = hb_folder_sync(parent, err);
  free(parent);
  return code;
}

enum hb_code hb_folder_sync_file(const char *folder, const char *name, struct hb_err *err) {
  char *path = hb_folder_join(folder, name);
  enum hb_code code = sync_path(path, 0, err);
  free(path);
  return code;
}

enum hb_code hb_folder_make(const char *path, struct hb_err *err) {
  if (mkdir(path, 0700) == 0) return hb_folder_sync_parent(path, err);
  int error = errno;
  struct stat stat_of;
  if (error != EEXIST) return hb_folder_errno(error, "create", path, err);
  if (stat(path, &stat_of)) return hb_folder_errno(errno, "look at", path, err);
  if (S_ISDIR(stat_of.st_mode)) return HB_OK;
  return hb_err_set(err, HB_PERMISSION, NULL, "data folder: '%s' is not a folder; name another one",
                    path);
}

/* lost+found: a file system of its own for the data has it. */
static bool means_nothing(const char *name) {
  static const char *const NAMES[] = {".", "..", HB_FILE_LOCK, "lost+found", HB_FOLDER_INDEX};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strcmp(name, NAMES[i]) == 0) return true;
  }
  return false;
}

struct look {
  bool format;
  bool format_new;
  bool rocksdb;
  char foreign[256]; /* one name, "" = none */
};

static void look_at(struct look *look, const char *name) {
  if (strcmp(name, HB_FILE_FORMAT) == 0) {
    look->format = true;
  } else if (strcmp(name, HB_FILE_FORMAT_NEW) == 0) {
    look->format_new = true;
  } else if (strcmp(name, HB_FOLDER_ROCKSDB) == 0) {
    look->rocksdb = true;
  } else if (!means_nothing(name)) {
    (void)snprintf(look->foreign, sizeof look->foreign, "%s", name);
  }
}

static enum hb_code look_into(const char *path, struct look *look, struct hb_err *err) {
  DIR *folder = opendir(path);
  if (!folder) return hb_folder_errno(errno, "read", path, err);
  errno = 0;
  for (struct dirent *entry; (entry = readdir(folder));) look_at(look, entry->d_name);
  int error = errno;
  (void)closedir(folder); /* it was only read */
  return error ? hb_folder_errno(error, "read", path, err) : HB_OK;
}

enum hb_code hb_folder_look(const char *path, enum hb_folder_state *out, struct hb_err *err) {
  struct look look = {0};
  enum hb_code code = look_into(path, &look, err);
  if (code) return code;
  if (look.format) {
    *out = HB_FOLDER_STORE;
    return HB_OK;
  }
  if (look.rocksdb && !look.format_new) {
    (void)snprintf(look.foreign, sizeof look.foreign, "%s", HB_FOLDER_ROCKSDB);
  }
  if (look.foreign[0]) {
    return hb_err_set(err, HB_VERSION, NULL,
                      "data folder: '%s' has '%s' in it but no FORMAT: it is not a store of "
                      "Holdback; name an empty folder, or one that does not exist",
                      path, look.foreign);
  }
  *out = look.format_new ? HB_FOLDER_UNFINISHED : HB_FOLDER_EMPTY;
  return HB_OK;
}

enum hb_code hb_folder_clear(const char *folder, const char *name, struct hb_err *err) {
  char *path = hb_folder_join(folder, name);
  enum hb_code code = HB_OK;
  DIR *open_folder = opendir(path);
  if (!open_folder && errno != ENOENT) code = hb_folder_errno(errno, "read", path, err);
  for (struct dirent *entry; !code && open_folder && (entry = readdir(open_folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(open_folder), entry->d_name, 0)) {
      code = hb_folder_errno(errno, "empty", path, err);
    }
  }
  if (open_folder) (void)closedir(open_folder); /* it was only read */
  free(path);
  return code;
}

static int write_all(int fd, struct hb_slice bytes) {
  while (bytes.size) {
    ssize_t written = write(fd, bytes.data, bytes.size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = hb_slice_of(bytes.data + written, bytes.size - (size_t)written);
  }
  return fsync(fd) ? errno : 0;
}

enum hb_code hb_folder_write_file(const char *folder, const char *name, struct hb_slice bytes,
                                  struct hb_err *err) {
  char *path = hb_folder_join(folder, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int error = fd < 0 ? errno : write_all(fd, bytes);
  if (fd >= 0 && close(fd) && !error) error = errno;
  enum hb_code code = error ? hb_folder_errno(error, "write", path, err) : HB_OK;
  free(path);
  return code;
}
