/* One process per data folder: a lock on its file LOCK, held until it is released or the process
 * ends, however it ends. */
#ifndef HB_STORAGE_LOCK_INTERNAL_H
#define HB_STORAGE_LOCK_INTERNAL_H

#include "base/err.h"

/* HB_LOCKED names the folder and the process that has it. */
HB_MUST_CHECK enum hb_code hb_lock_take(const char *folder, int *out_fd, struct hb_err *err);
void hb_lock_release(int fd);

#endif
