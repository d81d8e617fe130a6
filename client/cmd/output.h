/* Bytes to standard output, whole or not at all, past stdio: each message is there at once. */
#ifndef HB_CLIENT_CMD_OUTPUT_H
#define HB_CLIENT_CMD_OUTPUT_H

#include "base/slice.h"

enum output_result {
  OUTPUT_WRITTEN,
  OUTPUT_CLOSED, /* whoever reads it has read enough (EPIPE) */
  OUTPUT_FAILED  /* said on stderr */
};

enum output_result output_write(struct hb_slice bytes);

#endif
