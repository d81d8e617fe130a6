#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

/* Output, errors and the exit code of a child come back whole, input included. */
static void test_run_gives_all_back(void **state) {
  (void)state;
  const char *const arguments[] = {"/bin/sh", "-c", "cat; echo oops >&2; exit 7", NULL};
  struct hbt_run run = hbt_run(arguments, "one\ntwo\n", 8, 10000);
  assert_int_equal(run.code, 7);
  assert_string_equal(run.out, "one\ntwo\n");
  assert_string_equal(run.err, "oops\n");
  hbt_run_done(&run);
}

/* More output than a pipe holds blocks nobody. */
static void test_much_output(void **state) {
  (void)state;
  const char *const arguments[] = {"/bin/sh", "-c", "head -c 3000000 /dev/zero", NULL};
  struct hbt_run run = hbt_run(arguments, NULL, 0, 20000);
  assert_int_equal(run.code, 0);
  assert_int_equal(run.out_size, 3000000);
  hbt_run_done(&run);
}

/* A child that does not end is killed at the deadline and reported so. */
static void test_deadline(void **state) {
  (void)state;
  const char *const arguments[] = {"/bin/sh", "-c", "exec tail -f /dev/null", NULL};
  struct hbt_run run = hbt_run(arguments, NULL, 0, 50);
  assert_int_equal(run.code, -1);
  hbt_run_done(&run);
}

/* A line is found when it is whole; a signal's end is told from an exit. */
static void test_wait_line_and_signal(void **state) {
  (void)state;
  const char *const arguments[] = {"/bin/sh", "-c", "echo a=1 ready >&2; exec tail -f /dev/null",
                                   NULL};
  struct hbt_child *child = hbt_child_start(arguments, NULL, 0);
  char line[64];
  int code = -1;
  assert_true(hbt_child_wait_line(child, HBT_ERR, "ready", 10000, line, sizeof line));
  assert_string_equal(line, "a=1 ready");
  assert_false(hbt_child_wait_line(child, HBT_ERR, "never", 20, line, sizeof line));
  hbt_child_signal(child, SIGKILL);
  assert_true(hbt_child_wait(child, 10000, &code));
  assert_int_equal(code, 128 + SIGKILL);
  hbt_child_destroy(child);
}

/* Values of a log line, quoted or not; a name is matched whole. */
static void test_log_value(void **state) {
  (void)state;
  const char *line = "event=ready xlisten=no listen=unix:/a text=\"say \\\"hi\\\" now\" last=1";
  char value[32];
  assert_true(hbt_log_value(line, "listen", value, sizeof value));
  assert_string_equal(value, "unix:/a");
  assert_true(hbt_log_value(line, "text", value, sizeof value));
  assert_string_equal(value, "say \"hi\" now");
  assert_false(hbt_log_value(line, "lis", value, sizeof value));
}

/* The same seed gives the same order; each number comes once, within the displacement. */
static void test_displace(void **state) {
  (void)state;
  enum { COUNT = 1000, DISORDER = 50 };
  uint32_t first[COUNT];
  uint32_t second[COUNT];
  struct hbt_rng rng = {42};
  hbt_rng_displace(&rng, first, COUNT, DISORDER);
  rng.state = 42;
  hbt_rng_displace(&rng, second, COUNT, DISORDER);
  assert_memory_equal(first, second, sizeof first);
  unsigned char seen[COUNT] = {0};
  for (int i = 0; i < COUNT; i++) {
    assert_in_range(first[i], 0, COUNT - 1);
    assert_true((int)first[i] - i < DISORDER && i - (int)first[i] < DISORDER);
    assert_int_equal(seen[first[i]]++, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run_gives_all_back), cmocka_unit_test(test_much_output),
      cmocka_unit_test(test_deadline),           cmocka_unit_test(test_wait_line_and_signal),
      cmocka_unit_test(test_log_value),          cmocka_unit_test(test_displace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
