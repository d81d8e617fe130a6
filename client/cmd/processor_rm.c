/* holdback processor rm: what becomes of its state must be said. */
#include "client/cmd/exit.h"
#include "client/cmd/stream_options.h"

struct options {
  struct common common; /* first */
  const char *name;
  bool keep;
  bool drop;
};

enum { KEY_KEEP = 256, KEY_DROP };

static const struct argp_option argp_options[] = {
    {"keep", KEY_KEEP, NULL, 0, "its state and results stay; add goes on where it was", 1},
    {"drop", KEY_DROP, NULL, 0, "its state and results go", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return ARGP_ERR_UNKNOWN;
    case KEY_KEEP:
      options->keep = true;
      return 0;
    case KEY_DROP:
      options->drop = true;
      return 0;
    case ARGP_KEY_END:
      if (options->keep == options->drop)
        argp_error(state, "one of --keep and --drop must be given");
      return stream_parse_name(key, arg, state, &options->name);
    default:
      return stream_parse_name(key, arg, state, &options->name);
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "Detaches a processor.\v"
        "Examples:\n"
        "  holdback processor rm totals -S orders --keep\n"
        "  holdback processor rm totals -S orders --drop\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_processor_detach(client, options.common.stream, options.name, options.keep, &error))
    code = command_fail(&error);
  holdback_client_destroy(client);
  return code;
}

const struct command processor_rm = {"rm", "detach a processor", run};
