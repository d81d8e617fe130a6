/* holdback stream info: a stream's settings. */
#include "client/cmd/exit.h"
#include "client/cmd/stream_options.h"

struct options {
  struct common common; /* first */
  const char *name;
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &options->common;
  return stream_parse_name(key, arg, state, &options->name);
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "Shows the settings of a stream. What it holds and waits for: holdback status.\v"
        "Examples:\n"
        "  holdback stream info orders\n"
        "  holdback stream info orders --json\n\n" EXIT_CODES_HELP,
    .children = common_children};

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  int code = stream_print_info(client, options.name, options.common.json);
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command stream_info = {"info", "show a stream's settings", run};
