/* Decides how a test calls the command: server by flag, everything else as given. */
#include "tests/lib/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED = 3 };

static struct hbt_run run(const struct hbt_command *command, const char *input, va_list given) {
  const char *arguments[FIXED + HBT_COMMAND_ARGUMENTS + 1] = {command->binary, "--server",
                                                              command->server};
  size_t count = FIXED;
  const char *argument = NULL;
  while ((argument = va_arg(given, const char *)) != NULL) {
    assert_true(count < FIXED + HBT_COMMAND_ARGUMENTS);
    arguments[count++] = argument;
  }
  return hbt_run(arguments, input, input ? strlen(input) : 0, HBT_COMMAND_MS);
}

struct hbt_run hbt_command(const struct hbt_command *command, const char *input, ...) {
  va_list given;
  va_start(given, input);
  struct hbt_run result = run(command, input, given);
  va_end(given);
  return result;
}

char *hbt_command_expect(const struct hbt_command *command, int code, const char *input, ...) {
  va_list given;
  va_start(given, input);
  struct hbt_run result = run(command, input, given);
  va_end(given);
  if (result.code != code) {
    print_error("exit code %d, expected %d\nstdout: %s\nstderr: %s\n", result.code, code,
                result.out, result.err);
    fail();
  }
  free(result.err);
  return result.out;
}
