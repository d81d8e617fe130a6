/* Decides the shape of a log line: `ts=... level=... event=... key=value`, written by one write(2)
 * so that lines of several threads never mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic int log_level = HB_LOG_INFO;
static const char *const level_names[] = {"error", "warn", "info", "debug"};

void hb_log_set_level(enum hb_log_level level) { log_level = (int)level; }
enum hb_log_level hb_log_get_level(void) { return (enum hb_log_level)log_level; }

int hb_log_parse_level(const char *text) {
  for (int level = 0; level < 4; level++) {
    if (strcmp(text, level_names[level]) == 0) return level;
  }
  return -1;
}

static size_t put_prefix(char *line, size_t size, enum hb_log_level level, const char *event) {
  uint64_t now_ms = hb_clock_wall_ms();
  time_t seconds = (time_t)(now_ms / 1000);
  struct tm utc;
  char stamp[32] = "";
  if (gmtime_r(&seconds, &utc)) (void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
  int used = snprintf(line, size, "ts=%s.%03uZ level=%s event=%s ", stamp,
                      (unsigned)(now_ms % 1000), level_names[level], event);
  return used < 0 ? 0 : (size_t)used;
}

void hb_log(enum hb_log_level level, const char *event, const char *format, ...) {
  if ((int)level > log_level) return;
  char line[2048];
  size_t room = sizeof line - 1; /* the newline's */
  size_t at = put_prefix(line, room, level, event);
  va_list args;
  va_start(args, format);
  int used = at < room ? vsnprintf(line + at, room - at, format, args) : 0;
  va_end(args);
  if (used > 0) at += (size_t)used;
  if (at >= room) at = room - 1;
  while (at > 0 && line[at - 1] == ' ') at--;
  line[at++] = '\n';
  ssize_t written = write(STDERR_FILENO, line, at);
  (void)written; /* nowhere is left to say that the log is gone */
}

/* Control characters could end the line, or steer the terminal that shows it. */
static bool is_control(char c) { return (unsigned char)c < 0x20 || c == 0x7f; }

static bool needs_quotes(const char *text) {
  for (const char *at = text; *at; at++) {
    if (is_control(*at) || strchr(" \"=\\", *at)) return true;
  }
  return !text[0];
}

const char *hb_log_quote(const char *text, char *out, unsigned long size) {
  if (!needs_quotes(text)) {
    (void)snprintf(out, size, "%s", text);
    return out;
  }
  unsigned long at = 0;
  if (size < 4) return "";
  out[at++] = '"';
  for (; *text && at + 4 < size; text++) {
    if (*text == '"' || *text == '\\') out[at++] = '\\';
    out[at++] = is_control(*text) ? ' ' : *text;
  }
  out[at++] = '"';
  out[at] = 0;
  return out;
}
