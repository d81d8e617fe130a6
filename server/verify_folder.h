/* holdbackd --verify: a closed store, looked at as a whole. */
#ifndef HB_SERVER_VERIFY_FOLDER_H
#define HB_SERVER_VERIFY_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

struct hb_verify_folder_options {
  const char *path;
  bool json;
  FILE *out; /* findings and a summary */
  FILE *bar; /* a terminal to draw a progress bar on; NULL: none */
};

/* *out_sound: nothing was found. Errors: those of hb_store_open, which say that nothing could be
 * looked at; HB_IO: `out` can't be written. */
HB_MUST_CHECK enum hb_code hb_verify_folder(const struct hb_verify_folder_options *options,
                                            bool *out_sound, struct hb_err *err);

#endif
