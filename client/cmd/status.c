/* holdback status: what is delivered, what waits, and for what. */
#include <stdlib.h>
#include <unistd.h>

#include "client/cmd/command.h"
#include "client/cmd/describe.h"
#include "client/cmd/exit.h"

static error_t parse(int key, char *arg, struct argp_state *state) {
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = state->input;
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s' is one argument too many: streams are named with --stream", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .parser = parse,
    .doc =
        "Shows what of a stream is delivered, what is held, and which gaps it waits for.\v"
        "With --json one object: stream, mode, first_sequence, frontier, complete_to,\n"
        "highest, held_events, held_bytes, gaps [{start, end, age_ms}] (the lowest\n"
        "16), gaps_total, max_event_time, earliest, indexed_to; null where there is\n"
        "none yet.\n"
        "\n"
        "Examples:\n"
        "  holdback status -S flights\n"
        "  holdback status --json | jq .gaps\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static bool wants_colour(void) {
  const char *no_colour = getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && !(no_colour && no_colour[0]);
}

static int run(const struct common *before, int argc, char **argv) {
  struct common common = *before;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &common);
  struct holdback_client *client = command_connect(&common);
  if (!client) return EXIT_OWN;
  struct holdback_stream_config config;
  struct holdback_stream_status status;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_stream_get(client, common.stream, &config, &status, &error)) {
    code = command_fail(&error);
  } else if (common.json) {
    (void)command_print_json(describe_status_json(&config, &status));
  } else {
    describe_status(stdout, &config, &status, wants_colour());
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command command_status = {"status", "what waits, and for what", run};
