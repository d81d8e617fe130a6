/* holdback unprocessed: a table of one command. */
#include "client/cmd/command.h"
#include "client/cmd/exit.h"

static const struct command *const commands[] = {&unprocessed_ls, &unprocessed_retry,
                                                 &unprocessed_skip, NULL};

static const char doc[] =
    "Shows events that are kept aside, refused ones and those that a processor's code failed at, "
    "and "
    "looks after the keys that wait at such a failed event.\v"
    "Commands:\n"
    "  ls     list what is kept aside, and why\n"
    "  retry  try the keys again that wait at such an event\n"
    "  skip   let a key go on without such an event\n"
    "\n"
    "Examples:\n"
    "  holdback unprocessed ls -S orders\n"
    "  holdback unprocessed retry -S orders\n"
    "  holdback unprocessed skip totals ORD 17 -S orders\n\n" EXIT_CODES_HELP;

static int run(const struct common *before, int argc, char **argv) {
  return command_dispatch(commands, doc, before, argc, argv);
}

const struct command command_unprocessed = {"unprocessed", "events that are kept aside, and why",
                                            run};
