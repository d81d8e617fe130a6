/* Decides where a test's files live and that nothing of them stays. */
#include "tests/lib/tempdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)info;
  (void)type;
  (void)place;
  return remove(path);
}

void hbt_tempdir_init(struct hbt_tempdir *dir, const char *name) {
  int used = snprintf(dir->path, sizeof dir->path, "/tmp/hb-%s-XXXXXX", name);
  if (used < 0 || (size_t)used >= sizeof dir->path || !mkdtemp(dir->path)) {
    perror(dir->path);
    abort();
  }
}

void hbt_tempdir_done(struct hbt_tempdir *dir) {
  if (!dir->path[0]) return;
  if (nftw(dir->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) perror(dir->path);
  dir->path[0] = 0;
}

char *hbt_tempdir_join(const struct hbt_tempdir *dir, const char *name, char *out) {
  int used = snprintf(out, HBT_PATH_SIZE, "%s/%s", dir->path, name);
  if (used < 0 || used >= HBT_PATH_SIZE) {
    (void)fprintf(stderr, "path too long: %s/%s\n", dir->path, name);
    abort();
  }
  return out;
}
