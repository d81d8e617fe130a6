/* Lines as `holdback send` reads them. What is an event is written as `holdback tail` would write
 * it, and that must be read as the same event. No line is lost on the way out of the file. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "client/cmd/event_json.h"
#include "client/cmd/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(struct holdback_bytes a, struct holdback_bytes b) {
  return hb_slice_equal(hb_slice_of(a.data, a.size), hb_slice_of(b.data, b.size));
}

static void compare(const struct holdback_event *a, const struct holdback_event *b) {
  HB_ASSERT(a->sequence == b->sequence);
  HB_ASSERT(is_same(a->key, b->key) && is_same(a->payload, b->payload));
  HB_ASSERT(a->has_event_time == b->has_event_time);
  HB_ASSERT(a->event_time_seconds == b->event_time_seconds);
  HB_ASSERT(a->event_time_nanos == b->event_time_nanos);
  HB_ASSERT(a->headers_count == b->headers_count);
  for (size_t i = 0; i < a->headers_count; i++) {
    HB_ASSERT(is_same(a->headers[i].name, b->headers[i].name));
    HB_ASSERT(is_same(a->headers[i].value, b->headers[i].value));
  }
}

static void read_line(struct hb_slice text) {
  struct event_line line = {0};
  struct event_line again_line = {0};
  struct holdback_event event;
  struct holdback_event again;
  char wrong[200] = "";
  if (event_line_read(&line, text, &event, wrong, sizeof wrong)) {
    struct hb_buf out = {0};
    event_line_write(&out, &event, NULL);
    HB_ASSERT(out.data[out.size - 1] == '\n');
    HB_ASSERT(!memchr(out.data, '\n', out.size - 1));
    HB_ASSERT(event_line_read(&again_line, hb_slice_of(out.data, out.size - 1), &again, wrong,
                              sizeof wrong));
    compare(&event, &again);
    hb_buf_done(&out);
  } else {
    HB_ASSERT(wrong[0] && memchr(wrong, '\0', sizeof wrong));
  }
  event_line_done(&line);
  event_line_done(&again_line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  HB_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
  struct lines lines = {.fd = fd};
  struct hb_slice line;
  const uint8_t *at = data;
  while (lines_next(&lines, 0, &line) == LINES_LINE) {
    HB_ASSERT(hb_slice_equal(line, hb_slice_of(at, line.size)));
    at += line.size;
    HB_ASSERT(at == data + size || *at == '\n');
    if (at < data + size) at++;
    read_line(line);
  }
  HB_ASSERT(at == data + size && lines.offset == size);
  lines_done(&lines);
  close(fd);
  return 0;
}
