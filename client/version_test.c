/* The public header states the version by itself, since it includes nothing of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/version.h"
#include "client/holdback.h"

/* Library, command and server are one release. */
static void library_and_server_say_the_same(void **state) {
  (void)state;
  assert_string_equal(HOLDBACK_VERSION, HB_VERSION_TEXT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(library_and_server_say_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
