/* Decides who owns a data folder. The lock belongs to the open file (OFD), not to the process: a
 * second open in one process is refused too, and closing some other descriptor of LOCK does not
 * lose it. The number in the file is for messages only. */
#include "storage/lock_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/folder_internal.h"

static enum hb_code refuse(int fd, const char *folder, struct hb_err *err) {
  char holder[32] = "";
  ssize_t size = pread(fd, holder, sizeof holder - 1, 0);
  long pid = size > 0 ? strtol(holder, NULL, 10) : 0;
  if (pid <= 0) {
    return hb_err_set(err, HB_LOCKED, NULL,
                      "data folder: '%s' is in use by another process; stop it, or name another "
                      "folder",
                      folder);
  }
  return hb_err_set(err, HB_LOCKED, NULL,
                    "data folder: '%s' is in use by process %ld; stop it, or name another folder",
                    folder, pid);
}

/* Who is refused reads it. It may fail: then the message has no number. */
static void write_holder(int fd) {
  char text[32];
  int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0)) return;
  (void)!pwrite(fd, text, (size_t)size, 0);
}

enum hb_code hb_lock_take(const char *folder, int *out_fd, struct hb_err *err) {
  char *path = hb_folder_join(folder, HB_FILE_LOCK);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  enum hb_code code = fd < 0 ? hb_folder_errno(errno, "open", path, err) : HB_OK;
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (!code && fcntl(fd, F_OFD_SETLK, &whole)) {
    bool taken = errno == EAGAIN || errno == EACCES;
    code = taken ? refuse(fd, folder, err) : hb_folder_errno(errno, "lock", path, err);
  }
  free(path);
  if (code) {
    if (fd >= 0) (void)close(fd); /* nothing was written */
    return code;
  }
  write_holder(fd);
  *out_fd = fd;
  return HB_OK;
}

void hb_lock_release(int fd) { (void)close(fd); /* its content is of no use from here on */ }
