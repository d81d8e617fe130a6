/* Decides where lines end, and what happens to one that does not: it is told, then skipped. */
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
  bool too_long = end - lines->start > LINE_BYTES_MAX;
  *out = hb_slice_of(lines->buf.data + lines->start, end - lines->start);
  lines->offset += end + skip - lines->start;
  lines->start = lines->looked = end + skip;
  lines->number++;
  return too_long ? LINES_TOO_LONG : LINES_LINE;
}

/* Up to `end` it is the rest of a line that was told already. */
static void drop(struct lines *lines, size_t end) {
  lines->offset += end - lines->start;
  lines->start = lines->looked = end;
}

static const uint8_t *find_feed(const struct lines *lines) {
  size_t left = lines->buf.size - lines->looked;
  return left ? memchr(lines->buf.data + lines->looked, '\n', left) : NULL;
}

/* The rest of a line that is too long: false while its end has not come. */
static bool skip_rest(struct lines *lines) {
  const uint8_t *feed = find_feed(lines);
  lines->skipping = !feed && !lines->at_end;
  drop(lines, feed ? (size_t)(feed + 1 - lines->buf.data) : lines->buf.size);
  return !lines->skipping;
}

/* Whether there is something to tell: a complete line, one that is too long already, the end. */
static bool find_line(struct lines *lines, enum lines_result *out_result, struct hb_slice *out) {
  if (lines->skipping && !skip_rest(lines)) return false;
  const uint8_t *feed = find_feed(lines);
  if (feed) {
    *out_result = hand_out(lines, (size_t)(feed - lines->buf.data), 1, out);
    return true;
  }
  lines->looked = lines->buf.size;
  if (lines->at_end) { /* the last one has no line feed */
    bool none = lines->start == lines->buf.size;
    *out_result = none ? LINES_END : hand_out(lines, lines->buf.size, 0, out);
    return true;
  }
  if (lines->buf.size - lines->start <= LINE_BYTES_MAX) return false;
  *out_result = hand_out(lines, lines->buf.size, 0, out); /* it may never end: tell it now */
  lines->skipping = true;
  return true;
}

/* Room for more: what was handed out goes. */
static void make_room(struct lines *lines) {
  size_t kept = lines->buf.size - lines->start;
  if (kept && lines->start) memmove(lines->buf.data, lines->buf.data + lines->start, kept);
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
    if (lines->skipping && got) return LINES_IDLE; /* others have their turn: it may never end */
  }
  return result;
}
