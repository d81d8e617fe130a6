/* Decides what a mark of an attempt says that is found at a start. Where the store took no writes
 * any more when the server was stopped, marks stay in it that no crash left; a file says so for
 * each of them. It is empty and says whose the mark is by its name, for that needs no room on a
 * full disk. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/folder_internal.h"
#include "storage/processor.h"

enum { NAME_SIZE = 64 };

static void name_of(struct hb_processor_id id, char name[NAME_SIZE]) {
  (void)snprintf(name, NAME_SIZE, HB_FILE_STOPPED "-%" PRIu64 "-%" PRIu64, id.stream, id.processor);
}

bool hb_stopped_is_noted(const char *path, struct hb_processor_id id) {
  char name[NAME_SIZE];
  name_of(id, name);
  char *file = hb_folder_join(path, name);
  bool there = access(file, F_OK) == 0;
  free(file);
  return there;
}

void hb_stopped_note(const char *path, struct hb_processor_id id) {
  char name[NAME_SIZE];
  struct hb_slice nothing = {NULL, 0};
  name_of(id, name);
  /* Where it can't be made, the next start counts one attempt too many, as after a crash. */
  (void)!hb_folder_write_file(path, name, nothing, NULL);
}

enum hb_code hb_stopped_forget(const char *path, struct hb_err *err) {
  DIR *folder = opendir(path);
  if (!folder) return hb_folder_errno(errno, "read", path, err);
  enum hb_code code = HB_OK;
  for (struct dirent *entry; !code && (entry = readdir(folder));) {
    if (strncmp(entry->d_name, HB_FILE_STOPPED, strlen(HB_FILE_STOPPED)) != 0) continue;
    if (unlinkat(dirfd(folder), entry->d_name, 0) != 0 && errno != ENOENT) {
      code = hb_folder_errno(errno, "remove a file 'STOPPED...' in", path, err);
    }
  }
  (void)closedir(folder); /* it was only read */
  return code;
}
