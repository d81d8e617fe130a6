/* Decides how limits and ack modes are written on a command line. */
#include "client/cmd/stream_options.h"

#include <string.h>

#include "client/cmd/describe.h"
#include "client/cmd/exit.h"

enum { KEY_ACK = 512, KEY_AHEAD, KEY_HELD_BYTES, KEY_HELD_EVENTS, KEY_GAPS, KEY_EVENT_BYTES };

static const struct argp_option options[] = {
    {"ack", KEY_ACK, "durable|async", 0,
     "acknowledge after the sync, or before it (survives SIGKILL, not power loss)", 2},
    {"ahead-max", KEY_AHEAD, "N", 0, "how far above complete_to a sequence may be", 2},
    {"held-bytes-max", KEY_HELD_BYTES, "SIZE", 0, "bytes held on disk (such as 4GiB)", 2},
    {"held-events-max", KEY_HELD_EVENTS, "N", 0, "how many events may wait at once", 2},
    {"gaps-max", KEY_GAPS, "N", 0, "how many gaps there may be at once", 2},
    {"event-bytes-max", KEY_EVENT_BYTES, "SIZE", 0, "one encoded event (such as 1MiB)", 2},
    {0}};

static int parse_ack(const char *text, struct argp_state *state) {
  if (strcmp(text, "durable") == 0) return 1;
  if (strcmp(text, "async") != 0)
    argp_error(state, "--ack: '%s' is neither durable nor async", text);
  return 2;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct stream_settings *settings = state->input;
  uint64_t value;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &settings->common;
      return 0;
    case KEY_ACK:
      settings->ack = parse_ack(arg, state);
      settings->config.async_ack = settings->ack == 2;
      break;
    case KEY_AHEAD:
      settings->config.ahead_max = command_parse_limit(arg, "--ahead-max", state);
      break;
    case KEY_HELD_BYTES:
      settings->config.held_bytes_max = command_parse_limit(arg, "--held-bytes-max", state);
      break;
    case KEY_HELD_EVENTS:
      settings->config.held_events_max = command_parse_limit(arg, "--held-events-max", state);
      break;
    case KEY_GAPS:
      settings->config.gaps_max = command_parse_limit(arg, "--gaps-max", state);
      break;
    case KEY_EVENT_BYTES:
      value = command_parse_limit(arg, "--event-bytes-max", state);
      if (value > UINT32_MAX) argp_error(state, "--event-bytes-max: '%s' is too large", arg);
      settings->config.event_bytes_max = (uint32_t)value;
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  settings->given = true;
  return 0;
}

static const struct argp settings_argp = {
    .options = options, .parser = parse, .children = common_children};
const struct argp_child stream_settings_children[] = {{.argp = &settings_argp}, {0}};

error_t stream_parse_name(int key, char *arg, struct argp_state *state, const char **name) {
  if (key == ARGP_KEY_ARG) {
    if (*name) argp_error(state, "only one NAME can be given");
    *name = arg;
    return 0;
  }
  if (key != ARGP_KEY_END) return ARGP_ERR_UNKNOWN;
  if (!*name) argp_error(state, "NAME is missing");
  return 0;
}

int stream_print_info(struct holdback_client *client, const char *name, bool json) {
  struct holdback_stream_config config;
  struct holdback_error error;
  if (holdback_stream_get(client, name, &config, NULL, &error)) return command_fail(&error);
  if (json) {
    (void)command_print_json(describe_config_json(&config));
  } else {
    describe_config(stdout, &config);
  }
  return EXIT_OK;
}
