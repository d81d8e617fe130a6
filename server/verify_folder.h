/* holdbackd --verify: a closed store, looked at as a whole. */
#ifndef HB_SERVER_VERIFY_FOLDER_H
#define HB_SERVER_VERIFY_FOLDER_H

#include <stdbool.h>

#include "base/err.h"

/* Prints findings and a summary on standard output, and a bar on standard error where that is a
 * terminal. *out_sound: nothing was found. Errors: those of hb_store_open, which say that nothing
 * could be looked at; HB_IO: standard output can't be written. */
HB_MUST_CHECK enum hb_code hb_verify_folder(const char *path, bool json, bool *out_sound,
                                            struct hb_err *err);

#endif
