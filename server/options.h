/* The command line of holdbackd. */
#ifndef HB_SERVER_OPTIONS_H
#define HB_SERVER_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "server/config.h"

/* What the process is to do. */
struct hb_options_wish {
  bool print;  /* the settings in effect, and end */
  bool verify; /* look at the closed store, and end */
  bool json;   /* the findings as JSON */
};

/* Flags over file over defaults. --help and --version print and end the process; so does a flag
 * that does not exist (exit 64). HB_INVALID: a value does not fit, the file is wrong. On success
 * `config` is the caller's to free. */
HB_MUST_CHECK enum hb_code hb_options_parse(int argc, char **argv, struct hb_config *out_config,
                                            struct hb_options_wish *out_wish, struct hb_err *err);

#endif
