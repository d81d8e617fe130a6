/* holdback stream set: limits and ack mode; what is not given stays as it is. */
#include "client/cmd/exit.h"
#include "client/cmd/stream_options.h"

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct stream_settings *settings = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = settings;
  if (key == ARGP_KEY_END && !settings->given) argp_error(state, "nothing is to be changed");
  return stream_parse_name(key, arg, state, &settings->config.name);
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "Changes limits or ack mode of a stream; the rest stays as it is.\v"
        "Examples:\n"
        "  holdback stream set orders --ahead-max 1000000\n"
        "  holdback stream set orders --ack durable --json\n\n" EXIT_CODES_HELP,
    .children = stream_settings_children};

static int run(const struct common *before, int argc, char **argv) {
  struct stream_settings settings = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &settings);
  struct holdback_client *client = command_connect(&settings.common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_stream_update(client, &settings.config, settings.ack, &error)) {
    code = command_fail(&error);
  } else if (settings.common.json) {
    code = stream_print_info(client, settings.config.name, true);
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command stream_set = {"set", "change limits or ack mode", run};
