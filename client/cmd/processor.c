/* holdback processor: one more table of commands. */
#include "client/cmd/command.h"
#include "client/cmd/exit.h"

static const struct command *const commands[] = {&processor_add, &processor_ls, &processor_info,
                                                 &processor_rm, NULL};

static const char doc[] =
    "Attaches, lists, shows and detaches processors: code that sees each event of a stream exactly "
    "once, in order, and emits results.\v"
    "Commands:\n"
    "  add NAME PROCESSOR  attach one\n"
    "  ls                  list a stream's\n"
    "  info NAME           how one stands\n"
    "  rm NAME             detach one\n"
    "\n"
    "Built in: passthrough, count, sum, min, max, mean, last, distinct, concat.\n"
    "\n"
    "Examples:\n"
    "  holdback processor add totals sum -S orders\n"
    "  holdback tail -S orders --processor totals\n"
    "  holdback processor ls -S orders\n\n" EXIT_CODES_HELP;

static int run(const struct common *before, int argc, char **argv) {
  return command_dispatch(commands, doc, before, argc, argv);
}

const struct command command_processor = {"processor", "run code over a stream's events", run};
