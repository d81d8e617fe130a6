/* holdback stream: one more table of commands. */
#include "client/cmd/command.h"
#include "client/cmd/exit.h"

static const struct command *const commands[] = {&stream_add,  &stream_ls,  &stream_info,
                                                 &stream_gaps, &stream_set, &stream_seal,
                                                 &stream_rm,   NULL};

static const char doc[] =
    "Makes, lists, shows, changes, ends and deletes streams.\v"
    "Commands:\n"
    "  add NAME   make a stream\n"
    "  ls         list streams\n"
    "  info NAME  show a stream's settings\n"
    "  gaps NAME  list what is missing\n"
    "  set NAME   change limits or ack mode\n"
    "  seal NAME  state the end of a stream\n"
    "  rm NAME    delete a stream and all its events\n"
    "\n"
    "Examples:\n"
    "  holdback stream add orders --first 1\n"
    "  holdback stream ls\n"
    "  holdback stream set orders --ahead-max 1000000\n\n" EXIT_CODES_HELP;

static int run(const struct common *before, int argc, char **argv) {
  return command_dispatch(commands, doc, before, argc, argv);
}

const struct command command_stream = {"stream", "make, list, change, delete streams", run};
