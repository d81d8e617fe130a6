/* Decides how much is read from the socket at once, and what is a malformed answer. */
#include "bench/peers/resp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

enum { READ_BYTES = 256 << 10 };

static bool fail(struct hb_resp *resp, const char *what) {
  (void)snprintf(resp->problem, sizeof resp->problem, "%s", what);
  return false;
}

bool hb_resp_connect(struct hb_resp *resp, uint16_t port) {
  *resp = (struct hb_resp){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int on = 1;
  if (resp->fd < 0 || connect(resp->fd, (struct sockaddr *)&address, sizeof address) != 0) {
    return fail(resp, strerror(errno));
  }
  (void)setsockopt(resp->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  resp->cap = (size_t)2 * READ_BYTES;
  resp->buffer = hb_alloc(resp->cap);
  return true;
}

void hb_resp_done(struct hb_resp *resp) {
  if (resp->fd >= 0) (void)close(resp->fd);
  free(resp->buffer);
}

/* ---- sending */

static void put_length(struct hb_buf *out, char type, size_t length) {
  uint8_t digits[24];
  size_t at = sizeof digits;
  digits[--at] = '\n';
  digits[--at] = '\r';
  do {
    digits[--at] = (uint8_t)('0' + length % 10);
    length /= 10;
  } while (length);
  digits[--at] = (uint8_t)type;
  hb_buf_append(out, digits + at, sizeof digits - at);
}

void hb_resp_put_array(struct hb_buf *out, size_t count) { put_length(out, '*', count); }

void hb_resp_put(struct hb_buf *out, const void *data, size_t size) {
  put_length(out, '$', size);
  hb_buf_append(out, data, size);
  hb_buf_append(out, "\r\n", 2);
}

bool hb_resp_send(struct hb_resp *resp, const struct hb_buf *bytes) {
  for (size_t sent = 0; sent < bytes->size;) {
    ssize_t now = send(resp->fd, bytes->data + sent, bytes->size - sent, MSG_NOSIGNAL);
    if (now <= 0) return fail(resp, "the connection broke while sending");
    sent += (size_t)now;
  }
  return true;
}

/* ---- receiving */

/* More bytes behind those that are there; what was taken already makes room. */
static bool read_more(struct hb_resp *resp) {
  if (resp->start) {
    memmove(resp->buffer, resp->buffer + resp->start, resp->end - resp->start);
    resp->end -= resp->start;
    resp->start = 0;
  }
  if (resp->cap - resp->end < READ_BYTES) {
    resp->cap *= 2;
    resp->buffer = hb_realloc(resp->buffer, resp->cap);
  }
  ssize_t got = recv(resp->fd, resp->buffer + resp->end, resp->cap - resp->end, 0);
  if (got <= 0) return fail(resp, "the connection broke while receiving");
  resp->end += (size_t)got;
  return true;
}

/* "T123\r\n": the type and the number, or the text of a status or an error. */
static bool take_line(struct hb_resp *resp, char *out_type, char *out_text, size_t size) {
  for (;;) {
    char *line = resp->buffer + resp->start;
    char *newline = memchr(line, '\n', resp->end - resp->start);
    if (newline) {
      size_t length = (size_t)(newline - line);
      if (length < 2) return fail(resp, "a line without a type");
      *out_type = line[0];
      length = length - 2 < size - 1 ? length - 2 : size - 1;
      memcpy(out_text, line + 1, length);
      out_text[length] = 0;
      resp->start = (size_t)(newline + 1 - resp->buffer);
      if (*out_type == '-') return fail(resp, out_text);
      return true;
    }
    if (!read_more(resp)) return false;
  }
}

bool hb_resp_array(struct hb_resp *resp, int64_t *out_count) {
  char type;
  char text[128];
  if (!take_line(resp, &type, text, sizeof text)) return false;
  if (type != '*') return fail(resp, "no array where one was due");
  *out_count = strtoll(text, NULL, 10);
  return true;
}

static bool take_bulk(struct hb_resp *resp, const char *text, struct hb_slice *out) {
  size_t size = strtoull(text, NULL, 10);
  while (resp->end - resp->start < size + 2) {
    if (!read_more(resp)) return false;
  }
  *out = hb_slice_of(resp->buffer + resp->start, size);
  resp->start += size + 2;
  return true;
}

bool hb_resp_string(struct hb_resp *resp, struct hb_slice *out) {
  char type;
  char text[128];
  if (!take_line(resp, &type, text, sizeof text)) return false;
  if (type != '$' || text[0] == '-') return fail(resp, "no string where one was due");
  return take_bulk(resp, text, out);
}

bool hb_resp_skip(struct hb_resp *resp) {
  char type;
  char text[128];
  struct hb_slice ignored;
  if (!take_line(resp, &type, text, sizeof text)) return false;
  return type != '$' || take_bulk(resp, text, &ignored);
}
