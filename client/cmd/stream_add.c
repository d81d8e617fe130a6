/* holdback stream add: where the sequence begins must be said; it can't be changed later. */
#include <string.h>

#include "client/cmd/exit.h"
#include "client/cmd/stream_options.h"

struct options {
  struct stream_settings settings; /* first */
  bool has_first;
};

enum { KEY_FIRST = 256, KEY_FIRST_SEEN, KEY_MODE };

static const struct argp_option argp_options[] = {
    {"first", KEY_FIRST, "N", 0, "the sequence begins at N", 1},
    {"first-seen", KEY_FIRST_SEEN, NULL, 0,
     "the sequence begins at the lowest one of the first batch; in mode per-key, each key's at its "
     "event with \"initial\":true",
     1},
    {"mode", KEY_MODE, "global|per-key", 0,
     "one sequence over all keys (default), or one for each key", 1},
    {0}};

static int parse_mode(const char *text, struct argp_state *state) {
  if (strcmp(text, "global") == 0) return HOLDBACK_MODE_GLOBAL;
  if (strcmp(text, "per-key") != 0)
    argp_error(state, "--mode: '%s' is neither global nor per-key", text);
  return HOLDBACK_MODE_PER_KEY;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  struct holdback_stream_config *config = &options->settings.config;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->settings;
      return 0;
    case KEY_FIRST:
      options->has_first = true;
      config->first_sequence = command_parse_sequence(arg, "--first", state);
      return 0;
    case KEY_FIRST_SEEN:
      config->first_seen = true;
      return 0;
    case KEY_MODE:
      config->mode = parse_mode(arg, state);
      return 0;
    case ARGP_KEY_END:
      if (options->has_first == config->first_seen)
        argp_error(state, "one of --first N and --first-seen must be given");
      return stream_parse_name(key, arg, state, &config->name);
    default:
      return stream_parse_name(key, arg, state, &config->name);
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "Makes a stream. The same again is fine; other settings under a name that exists are "
        "not.\v"
        "Examples:\n"
        "  holdback stream add orders --first 1\n"
        "  holdback stream add wal --first-seen --ack async\n"
        "  holdback stream add orders --mode per-key --first 1\n"
        "  holdback stream add small --first 1 --ahead-max 1000 --held-bytes-max 1GiB\n"
        "\n" EXIT_CODES_HELP,
    .children = stream_settings_children};

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.settings = {.common = *before}};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  const struct stream_settings *settings = &options.settings;
  struct holdback_client *client = command_connect(&settings->common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_stream_create(client, &settings->config, &error)) {
    code = command_fail(&error);
  } else if (settings->common.json) {
    code = stream_print_info(client, settings->config.name, true);
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command stream_add = {"add", "make a stream", run};
