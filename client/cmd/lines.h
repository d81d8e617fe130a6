/* Lines of a file or a pipe, one at a time, each at most LINE_BYTES_MAX long. */
#ifndef HB_CLIENT_CMD_LINES_H
#define HB_CLIENT_CMD_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* A 3 MiB payload in base64, or with many escapes, still fits. */
enum { LINE_BYTES_MAX = 8 << 20 };

struct lines {
  int fd;            /* borrowed */
  struct hb_buf buf; /* read and not handed out: [start, buf.size) */
  size_t start;
  size_t looked;   /* no line feed before it */
  bool skipping;   /* the rest of a line that is too long */
  bool at_end;     /* of the file */
  uint64_t number; /* of the last line handed out, from 1 */
  uint64_t offset; /* bytes handed out */
};

enum lines_result {
  LINES_LINE,
  LINES_IDLE,     /* nothing came within the time, or more of a line that is skipped */
  LINES_TOO_LONG, /* that line is skipped; told before its end has come */
  LINES_END,
  LINES_FAILED /* errno says why */
};

/* Zeroed but for fd = at the start. */
void lines_done(struct lines *lines);
/* `out` (without its line feed) lives until the next call. Waits up to `wait_ms` for input. */
enum lines_result lines_next(struct lines *lines, int wait_ms, struct hb_slice *out);

#endif
