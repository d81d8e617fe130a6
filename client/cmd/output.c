/* Decides what a failed write means. */
#include "client/cmd/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum output_result output_write(struct hb_slice bytes) {
  size_t done = 0;
  while (done < bytes.size) {
    ssize_t wrote = write(STDOUT_FILENO, bytes.data + done, bytes.size - done);
    if (wrote >= 0) {
      done += (size_t)wrote;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) return OUTPUT_CLOSED;
    fprintf(stderr, "holdback: standard output: %s\n", strerror(errno));
    return OUTPUT_FAILED;
  }
  return OUTPUT_WRITTEN;
}
