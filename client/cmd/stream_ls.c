/* holdback stream ls: the streams in name order. */
#include <inttypes.h>
#include <stdio.h>

#include "client/cmd/command.h"
#include "client/cmd/describe.h"
#include "client/cmd/exit.h"

struct options {
  struct common common; /* first */
  const char *prefix;
};

enum { KEY_PREFIX = 256 };

static const struct argp_option argp_options[] = {
    {"prefix", KEY_PREFIX, "PREFIX", 0, "only names that begin so", 1}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_PREFIX:
      options->prefix = arg;
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .doc =
        "Lists the streams of the server in name order; with --json one object a line.\v"
        "Examples:\n"
        "  holdback stream ls\n"
        "  holdback stream ls --prefix eu- --json\n\n" EXIT_CODES_HELP,
    .children = common_children};

static bool print_stream(void *context, const struct holdback_stream_config *config) {
  const struct options *options = context;
  if (options->common.json) return command_print_json(describe_config_json(config));
  char first[32] = "first seen";
  if (!config->first_seen) (void)snprintf(first, sizeof first, "%" PRId64, config->first_sequence);
  return printf("%-32s %-8s %-8s %s\n", config->name, describe_mode(config->mode),
                describe_ack(config), first) > 0;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (!options.common.json) printf("%-32s %-8s %-8s %s\n", "STREAM", "MODE", "ACK", "FIRST");
  if (holdback_stream_list(client, options.prefix, print_stream, &options, &error)) {
    (void)fflush(stdout);
    code = command_fail(&error);
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command stream_ls = {"ls", "list streams", run};
