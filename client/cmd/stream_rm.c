/* holdback stream rm: a stream and everything in it. */
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
        "Deletes a stream and all its events, at once and for good. Calls that are open on it "
        "end NOT_FOUND.\v"
        "Examples:\n"
        "  holdback stream rm orders\n\n" EXIT_CODES_HELP,
    .children = common_children};

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_stream_delete(client, options.name, &error)) code = command_fail(&error);
  holdback_client_destroy(client);
  return code;
}

const struct command stream_rm = {"rm", "delete a stream", run};
