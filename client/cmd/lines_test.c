/* Lines out of a pipe, whatever the pieces they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cmd/lines.h"

static int pipe_ends[2];

static int set_up(void **state) {
  (void)state;
  return pipe(pipe_ends);
}

static int tear_down(void **state) {
  (void)state;
  return close(pipe_ends[0]);
}

static void put(const char *text) {
  assert_int_equal(write(pipe_ends[1], text, strlen(text)), strlen(text));
}

static void assert_line(struct lines *lines, const char *expected) {
  struct hb_slice text;
  assert_int_equal(lines_next(lines, 0, &text), LINES_LINE);
  assert_true(hb_slice_equal(text, hb_slice_text(expected)));
}

/* Lines are handed out one by one, numbered; the last needs no line feed. */
static void one_by_one(void **state) {
  (void)state;
  struct lines lines = {.fd = pipe_ends[0]};
  struct hb_slice text;
  put("first\n\nthi");
  assert_line(&lines, "first");
  assert_line(&lines, "");
  assert_int_equal(lines_next(&lines, 0, &text), LINES_IDLE);
  put("rd\nfourth");
  assert_line(&lines, "third");
  assert_int_equal(lines.number, 3);
  assert_int_equal(lines_next(&lines, 0, &text), LINES_IDLE);
  close(pipe_ends[1]);
  assert_line(&lines, "fourth");
  assert_int_equal(lines.number, 4);
  assert_int_equal(lines.offset, 19);
  assert_int_equal(lines_next(&lines, 0, &text), LINES_END);
  assert_int_equal(lines_next(&lines, 0, &text), LINES_END);
  lines_done(&lines);
}

/* An empty input has no line. */
static void empty(void **state) {
  (void)state;
  struct lines lines = {.fd = pipe_ends[0]};
  struct hb_slice text;
  close(pipe_ends[1]);
  assert_int_equal(lines_next(&lines, 0, &text), LINES_END);
  assert_int_equal(lines.number, 0);
  lines_done(&lines);
}

/* A line that is too long is told once and skipped; memory stays bounded; the next line is fine. */
static void too_long(void **state) {
  (void)state;
  FILE *file = tmpfile();
  static char piece[1 << 20];
  memset(piece, 'x', sizeof piece);
  for (int i = 0; i < 20; i++) fwrite(piece, 1, sizeof piece, file);
  fputs("\nnext\n", file);
  fflush(file);
  rewind(file);
  struct lines lines = {.fd = fileno(file)};
  struct hb_slice text;
  assert_int_equal(lines_next(&lines, 0, &text), LINES_TOO_LONG);
  assert_int_equal(lines.number, 1);
  assert_true(lines.offset < 10 << 20); /* told before it was read to its end */
  enum lines_result result;
  while ((result = lines_next(&lines, 0, &text)) == LINES_IDLE) continue;
  assert_int_equal(result, LINES_LINE);
  assert_true(hb_slice_equal(text, hb_slice_text("next")));
  assert_int_equal(lines.number, 2);
  assert_true(lines.buf.cap < 2 * LINE_BYTES_MAX + (1 << 20));
  assert_int_equal(lines_next(&lines, 0, &text), LINES_END);
  assert_int_equal(lines.offset, 20 * sizeof piece + 6);
  lines_done(&lines);
  fclose(file);
  close(pipe_ends[1]);
}

/* One that never ends is told, and whoever reads it has a turn after each piece: it can stop. */
static void endless(void **state) {
  (void)state;
  int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  struct lines lines = {.fd = fd};
  struct hb_slice text;
  assert_int_equal(lines_next(&lines, 0, &text), LINES_TOO_LONG);
  for (int i = 0; i < 50; i++) assert_int_equal(lines_next(&lines, 0, &text), LINES_IDLE);
  assert_int_equal(lines.number, 1);
  assert_true(lines.buf.cap < 2 * LINE_BYTES_MAX + (1 << 20));
  lines_done(&lines);
  close(fd);
  close(pipe_ends[1]);
}

/* A line of the greatest length is handed out whole. */
static void longest(void **state) {
  (void)state;
  FILE *file = tmpfile();
  char *line = malloc(LINE_BYTES_MAX + 1);
  memset(line, 'y', LINE_BYTES_MAX);
  line[LINE_BYTES_MAX] = '\n';
  fwrite(line, 1, LINE_BYTES_MAX + 1, file);
  rewind(file);
  struct lines lines = {.fd = fileno(file)};
  struct hb_slice text;
  assert_int_equal(lines_next(&lines, 0, &text), LINES_LINE);
  assert_int_equal(text.size, LINE_BYTES_MAX);
  assert_int_equal(lines_next(&lines, 0, &text), LINES_END);
  lines_done(&lines);
  fclose(file);
  free(line);
  close(pipe_ends[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(one_by_one), TEST(empty), TEST(too_long), TEST(endless),
                                     TEST(longest)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
