/* holdback: the command. Decides which sub-command runs; each has a file of its own. */
#include <argp.h>
#include <signal.h>

#include "client/cmd/command.h"
#include "client/cmd/exit.h"

/* Visible to libc, which looks for it by name. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "holdback " HOLDBACK_VERSION;

static const struct command *const commands[] = {
    &command_stream,  &command_send,      &command_tail,        &command_status,
    &command_key,     &command_keys,      &command_ping,        &command_verify,
    &command_compact, &command_processor, &command_unprocessed, NULL};

static const char doc[] =
    "Talks to a Holdback server: events in in any order, out in order.\n"
    "\v"
    "Commands:\n"
    "  stream add|ls|info|set|seal|rm\n"
    "                              make, list, show, change, end, delete streams\n"
    "  processor add|ls|info|rm    run code over a stream's events, in order\n"
    "  unprocessed retry           try again what user code failed at\n"
    "  send [FILE|-]               append events, JSON lines\n"
    "  tail                        print events in order, as the same JSON lines\n"
    "  status                      what is delivered, what waits, and for what\n"
    "  key KEY                     one key's events in order\n"
    "  keys                        the keys of a stream\n"
    "  ping                        is the server there\n"
    "  verify                      is everything that it stores as it should be\n"
    "  compact                     give back now what nothing needs any more\n"
    "\n"
    "Each has its own --help with examples.\n"
    "\n"
    "Examples:\n"
    "  holdback stream add orders --first 1\n"
    "  echo '{\"sequence\":1,\"payload\":\"hello\"}' | holdback send -S orders\n"
    "  holdback tail -S orders --until-caught-up\n"
    "  holdback status -S orders\n"
    "\n" EXIT_CODES_HELP;

int main(int argc, char **argv) {
  argp_err_exit_status = EXIT_USAGE;
  (void)signal(SIGPIPE, SIG_IGN); /* a reader that goes away is seen as EPIPE */
  char name[] = "holdback";
  argv[0] = name;
  struct common none = {.stream = "default"};
  return command_dispatch(commands, doc, &none, argc, argv);
}
