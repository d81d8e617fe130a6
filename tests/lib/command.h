/* The `holdback` command, run against one server. */
#ifndef TESTS_LIB_COMMAND_H
#define TESTS_LIB_COMMAND_H

#include "tests/lib/child.h"

struct hbt_command {
  const char *binary; /* borrowed */
  const char *server; /* borrowed */
};

enum { HBT_COMMAND_MS = 40000, HBT_COMMAND_ARGUMENTS = 24 };

/* holdback --server SERVER ARGUMENTS..., ended by NULL; `input` (may be NULL) is its stdin. */
struct hbt_run hbt_command(const struct hbt_command *command, const char *input, ...)
    __attribute__((sentinel));
/* The same, and its exit code must be `code`: else all it said is printed and the test fails.
 * Returns its stdout; free() it. */
char *hbt_command_expect(const struct hbt_command *command, int code, const char *input, ...)
    __attribute__((sentinel));

#endif
