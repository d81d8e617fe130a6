/* Decides what a store still does that met a full disk: it reads, says how much room it needs to be
 * opened again, and gets ready to be closed. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/folder_internal.h"
#include "storage/store_internal.h"

static bool is_log(const char *name) {
  size_t size = strlen(name);
  return size > 4 && strcmp(name + size - 4, ".log") == 0;
}

/* Read from the folder: RocksDB counts its log for itself only. A file that goes meanwhile counts
 * or not, as it comes. */
uint64_t hb_store_wal_bytes(const struct hb_store *store) {
  char *path = hb_folder_join(store->path, HB_FOLDER_ROCKSDB);
  DIR *folder = opendir(path);
  free(path);
  if (!folder) return 0;
  uint64_t bytes = 0;
  struct dirent *entry;
  struct stat stat;
  while ((entry = readdir(folder)) != NULL) {
    if (!is_log(entry->d_name) || fstatat(dirfd(folder), entry->d_name, &stat, 0)) continue;
    bytes += (uint64_t)stat.st_size;
  }
  (void)closedir(folder);
  return bytes;
}

void hb_store_end_background(struct hb_store *store) { hb_rocks_end_background(store->engine); }
