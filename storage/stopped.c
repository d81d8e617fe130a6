/* Decides what a mark of an attempt says that is found at a start. Where the store took no writes
 * any more when the server was stopped, marks stay in it that no crash left; the file STOPPED says
 * so. It is empty, for that needs no room on a full disk. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/folder_internal.h"
#include "storage/processor.h"

bool hb_stopped_is_noted(const char *path) {
  char *file = hb_folder_join(path, HB_FILE_STOPPED);
  bool there = access(file, F_OK) == 0;
  free(file);
  return there;
}

void hb_stopped_note(const char *path) {
  struct hb_slice nothing = {NULL, 0};
  /* Where it can't be made, the next start counts one attempt too many, as after a crash. */
  (void)!hb_folder_write_file(path, HB_FILE_STOPPED, nothing, NULL);
}

enum hb_code hb_stopped_forget(const char *path, struct hb_err *err) {
  char *file = hb_folder_join(path, HB_FILE_STOPPED);
  enum hb_code code = HB_OK;
  if (unlink(file) != 0 && errno != ENOENT) code = hb_folder_errno(errno, "remove", file, err);
  free(file);
  return code;
}
