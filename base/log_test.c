/* Rules of base/log.h; what is written is caught by a pipe in place of stderr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

enum { THREADS = 4, LINES = 50 };

struct capture {
  int read_end;
  int saved_stderr;
};

/* A pipe holds 64 KiB: no test here writes more. */
static void capture_start(struct capture *capture) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  capture->read_end = ends[0];
  capture->saved_stderr = dup(STDERR_FILENO);
  assert_true(capture->saved_stderr >= 0);
  assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
  close(ends[1]);
}

static void capture_stop(struct capture *capture, char *out, size_t size) {
  assert_true(dup2(capture->saved_stderr, STDERR_FILENO) >= 0); /* closes the write end */
  close(capture->saved_stderr);
  size_t used = 0;
  for (ssize_t got; (got = read(capture->read_end, out + used, size - 1 - used)) > 0;) {
    used += (size_t)got;
  }
  out[used] = 0;
  close(capture->read_end);
}

/* One occurrence is one line: time, level, event, then its values. */
static void a_line_has_its_shape(void **state) {
  (void)state;
  struct capture capture;
  char text[4096];
  capture_start(&capture);
  hb_log(HB_LOG_WARN, "ready", "recovery_ms=%u listen=%s", 12u, "127.0.0.1:1");
  capture_stop(&capture, text, sizeof text);
  int year, month, day, hour, minute, second, ms, used = 0;
  int got = sscanf(text, "ts=%d-%d-%dT%d:%d:%d.%3dZ %n", &year, &month, &day, &hour, &minute,
                   &second, &ms, &used);
  assert_int_equal(got, 7);
  assert_string_equal(text + used, "level=warn event=ready recovery_ms=12 listen=127.0.0.1:1\n");
}

/* An event without values has no blank at its end. */
static void no_values_no_blank(void **state) {
  (void)state;
  struct capture capture;
  char text[4096];
  capture_start(&capture);
  hb_log(HB_LOG_INFO, "stopped", "%s", "");
  capture_stop(&capture, text, sizeof text);
  assert_non_null(strstr(text, " event=stopped\n"));
}

/* Lines above the level are dropped; errors never are. */
static void the_level_filters(void **state) {
  (void)state;
  struct capture capture;
  char text[4096];
  enum hb_log_level before = hb_log_get_level();
  assert_int_equal(before, HB_LOG_INFO);
  capture_start(&capture);
  hb_log(HB_LOG_DEBUG, "one", "a=1");
  hb_log_set_level(HB_LOG_ERROR);
  hb_log(HB_LOG_WARN, "two", "a=1");
  hb_log(HB_LOG_ERROR, "three", "a=1");
  hb_log_set_level(before);
  capture_stop(&capture, text, sizeof text);
  assert_null(strstr(text, "event=one"));
  assert_null(strstr(text, "event=two"));
  assert_non_null(strstr(text, "level=error event=three a=1\n"));
}

/* A line that is too long is cut and still ends as a line. */
static void long_lines_are_cut(void **state) {
  (void)state;
  struct capture capture;
  static char text[16384], value[5000];
  memset(value, 'v', sizeof value - 1);
  capture_start(&capture);
  hb_log(HB_LOG_INFO, "long", "value=%s", value);
  hb_log(HB_LOG_INFO, "next", "a=1");
  capture_stop(&capture, text, sizeof text);
  char *newline = strchr(text, '\n');
  assert_non_null(newline);
  assert_true(newline - text > 1000);
  assert_non_null(strstr(newline + 1, "event=next a=1\n"));
  assert_null(strstr(newline + 1, "vv"));
}

static void *log_lines(void *argument) {
  for (int i = 0; i < LINES; i++) hb_log(HB_LOG_INFO, "mixed", "who=%s end", (char *)argument);
  return NULL;
}

/* Lines of several threads never mix. */
static void lines_of_threads_stay_whole(void **state) {
  (void)state;
  struct capture capture;
  static char text[65536];
  static char names[THREADS][2] = {"a", "b", "c", "d"};
  pthread_t threads[THREADS];
  capture_start(&capture);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, log_lines, names[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  capture_stop(&capture, text, sizeof text);
  int lines = 0;
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char who;
    int used = 0;
    assert_int_equal(strncmp(line, "ts=", 3), 0);
    (void)sscanf(line, "ts=%*s level=info event=mixed who=%c end%n", &who, &used);
    assert_int_equal(used, strlen(line));
    lines++;
  }
  assert_int_equal(lines, THREADS * LINES);
}

/* Level names are what flags take. */
static void level_names_are_read(void **state) {
  (void)state;
  assert_int_equal(hb_log_parse_level("error"), HB_LOG_ERROR);
  assert_int_equal(hb_log_parse_level("warn"), HB_LOG_WARN);
  assert_int_equal(hb_log_parse_level("info"), HB_LOG_INFO);
  assert_int_equal(hb_log_parse_level("debug"), HB_LOG_DEBUG);
  assert_true(hb_log_parse_level("INFO") < 0);
  assert_true(hb_log_parse_level("") < 0);
}

/* Whatever a value holds, the line stays one line of key=value. */
static void values_are_quoted(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *quoted;
  } rows[] = {
      {"plain", "plain"},
      {"127.0.0.1:4653", "127.0.0.1:4653"},
      {"", "\"\""},
      {"two words", "\"two words\""},
      {"a=b", "\"a=b\""},
      {"say \"hi\"", "\"say \\\"hi\\\"\""},
      {"back\\slash", "\"back\\\\slash\""},
      {"line\nbreak", "\"line break\""},
      {"carriage\rreturn", "\"carriage return\""},
      {"escape\x1b[31m", "\"escape [31m\""},
      {"del\x7f", "\"del \""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char out[64];
    assert_string_equal(hb_log_quote(rows[i].text, out, sizeof out), rows[i].quoted);
  }
}

/* At every size what comes out fits, and where there is room for quotes they are closed. */
static void quoting_keeps_to_its_room(void **state) {
  (void)state;
  for (unsigned long size = 1; size < 20; size++) {
    char *out = malloc(size); /* so that a sanitizer sees one byte too many */
    const char *quoted = hb_log_quote("a \"\"\"\" b", out, size);
    assert_true(strlen(quoted) < size);
    if (size >= 4) assert_int_equal(quoted[strlen(quoted) - 1], '"');
    free(out);
    out = malloc(size);
    assert_true(strlen(hb_log_quote("plainplainplainplain", out, size)) < size);
    free(out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_line_has_its_shape),        cmocka_unit_test(no_values_no_blank),
      cmocka_unit_test(the_level_filters),           cmocka_unit_test(long_lines_are_cut),
      cmocka_unit_test(lines_of_threads_stay_whole), cmocka_unit_test(level_names_are_read),
      cmocka_unit_test(values_are_quoted),           cmocka_unit_test(quoting_keeps_to_its_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
