/* Rules of base/alloc.h and base/assert.h: what can't go on ends the process, with a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Size 0 gives something that can be freed. */
static void nothing_can_be_allocated(void **state) {
  (void)state;
  void *memory[] = {hb_alloc(0), hb_calloc(0, 8), hb_calloc(8, 0), hb_memdup(NULL, 0)};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
    assert_non_null(memory[i]);
    free(memory[i]);
  }
}

/* calloc's memory is zeroed; copies are equal and separate. */
static void memory_is_as_promised(void **state) {
  (void)state;
  static const uint8_t zeroes[64];
  uint8_t *zeroed = hb_calloc(16, 4);
  assert_memory_equal(zeroed, zeroes, 64);
  free(zeroed);
  char *text = hb_strdup("holdback");
  assert_string_equal(text, "holdback");
  text = hb_realloc(text, 100);
  assert_string_equal(text, "holdback");
  free(text);
}

/* An array grows to what is needed, keeps its content, and is left alone when it is large enough.
 */
static void reserve_grows_by_doubling(void **state) {
  (void)state;
  int *array = NULL;
  size_t cap = 0;
  size_t growths = 0;
  for (size_t i = 0; i < 10000; i++) {
    size_t before = cap;
    hb_reserve((void **)&array, &cap, i + 1, sizeof *array);
    growths += cap != before;
    array[i] = (int)i;
  }
  for (size_t i = 0; i < 10000; i++) assert_int_equal(array[i], i);
  assert_true(growths < 16);
  int *same = array;
  hb_reserve((void **)&array, &cap, cap, sizeof *array);
  assert_ptr_equal(array, same);
  free(array);
}

static void reserve_too_much(void) {
  void *array = NULL;
  size_t cap = 0;
  hb_reserve(&array, &cap, SIZE_MAX / 4, 8);
}

static void fail_an_assertion(void) { HB_ASSERT(1 + 1 == 3); }

/* Run `act` in a child; its stderr goes to `out`. Returns the signal that ended it. */
static int run_in_child(void (*act)(void), char *out, size_t size) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL); /* not cmocka's */
    dup2(ends[1], STDERR_FILENO);
    act();
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got; (got = read(ends[0], out + used, size - 1 - used)) > 0;) used += (size_t)got;
  out[used] = 0;
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A size that overflows is not allocated as something smaller: the process ends and says why. */
static void overflow_ends_the_process(void **state) {
  (void)state;
  char text[4096];
  assert_int_equal(run_in_child(reserve_too_much, text, sizeof text), SIGABRT);
  assert_non_null(strstr(text, "event=out_of_memory"));
}

/* A false assertion ends the process in every build, naming the condition and its place. */
static void assertions_stay_on(void **state) {
  (void)state;
  char text[4096];
  assert_int_equal(run_in_child(fail_an_assertion, text, sizeof text), SIGABRT);
  assert_non_null(strstr(text, "event=assertion_failed condition=\"1 + 1 == 3\" place="));
  assert_non_null(strstr(text, "alloc_test.c:"));
  HB_ASSERT(1 + 1 == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_can_be_allocated),  cmocka_unit_test(memory_is_as_promised),
      cmocka_unit_test(reserve_grows_by_doubling), cmocka_unit_test(overflow_ends_the_process),
      cmocka_unit_test(assertions_stay_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
