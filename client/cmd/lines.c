/* Decides where lines end, and what happens to one that does not: it is skipped, and counted. */
#include "client/cmd/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 256 << 10 };

void lines_done(struct lines *lines) { hb_buf_done(&lines->buf); }

/* Hand out [start, end), which is followed by `skip` bytes of line feed. */
static enum lines_result hand_out(struct lines *lines, size_t end, size_t skip,
                                  struct hb_slice *out) {
  bool too_long = lines->skipping || end - lines->start > LINE_BYTES_MAX;
  *out = hb_slice_of(lines->buf.data + lines->start, end - lines->start);
  lines->offset += end + skip - lines->start;
  lines->start = lines->looked = end + skip;
  lines->skipping = false;
  lines->number++;
  return too_long ? LINES_TOO_LONG : LINES_LINE;
}

/* Whether a line stands complete in the buffer. */
static bool find_line(struct lines *lines, enum lines_result *out_result, struct hb_slice *out) {
  const uint8_t *data = lines->buf.data;
  size_t left = lines->buf.size - lines->looked;
  const uint8_t *feed = left ? memchr(data + lines->looked, '\n', left) : NULL;
  if (feed) {
    *out_result = hand_out(lines, (size_t)(feed - data), 1, out);
    return true;
  }
  lines->looked = lines->buf.size;
  if (!lines->at_end) return false;
  if (lines->start == lines->buf.size && !lines->skipping) {
    *out_result = LINES_END;
  } else {
    *out_result = hand_out(lines, lines->buf.size, 0, out); /* the last one has no line feed */
  }
  return true;
}

/* Room for more: what was handed out goes, and a line that is too long as it is read. */
static void make_room(struct lines *lines) {
  size_t kept = lines->buf.size - lines->start;
  if (kept > LINE_BYTES_MAX || lines->skipping) {
    lines->offset += kept;
    lines->skipping = true;
    kept = 0;
  } else if (kept && lines->start) {
    memmove(lines->buf.data, lines->buf.data + lines->start, kept);
  }
  lines->buf.size = kept;
  lines->start = 0;
  lines->looked = kept;
}

static enum lines_result wait_readable(struct lines *lines, int wait_ms) {
  struct pollfd entry = {.fd = lines->fd, .events = POLLIN};
  int ready = poll(&entry, 1, wait_ms);
  if (ready > 0) return LINES_LINE;
  return ready == 0 || errno == EINTR ? LINES_IDLE : LINES_FAILED;
}

enum lines_result lines_next(struct lines *lines, int wait_ms, struct hb_slice *out) {
  enum lines_result result;
  while (!find_line(lines, &result, out)) {
    result = wait_readable(lines, wait_ms);
    if (result != LINES_LINE) return result;
    make_room(lines);
    uint8_t *at = hb_buf_reserve(&lines->buf, READ_SIZE);
    ssize_t got = read(lines->fd, at, READ_SIZE);
    if (got < 0 && errno == EINTR) return LINES_IDLE;
    if (got < 0) return LINES_FAILED;
    lines->at_end = got == 0;
    lines->buf.size += (size_t)got;
  }
  return result;
}
