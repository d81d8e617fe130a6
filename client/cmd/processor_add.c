/* holdback processor add: which code, with which parameters, from where. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/cmd/command.h"
#include "client/cmd/exit.h"

struct options {
  struct common common; /* first */
  struct holdback_processor_config config;
  struct holdback_parameter *parameters; /* owned, names too */
  size_t parameters_cap;
  bool from_now;
};

enum { KEY_ON_ERROR = 256, KEY_STATUS };

static const struct argp_option argp_options[] = {
    {"param", 'p', "NAME=VALUE", 0, "a parameter of the processor; repeatable", 1},
    {"from", 'f', "start|now", 0, "from the earliest event (default), or only what comes", 1},
    {"on-error", KEY_ON_ERROR, "continue|suspend|wait", 0,
     "an event at which the code fails: keep it aside and go on (default), stop there, or let its "
     "key "
     "wait for a good one of the same sequence (default in per-key mode)",
     1},
    {"key-status", KEY_STATUS, "off|kept|event|TIME", 0,
     "keep how each key stands (keys --processor), and tell it after each event, or so often (5s), "
     "to tail --key-statuses; default off",
     1},
    {0}};

static void add_parameter(struct options *options, const char *text, struct argp_state *state) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text) argp_error(state, "--param: '%s' is not NAME=VALUE", text);
  struct holdback_processor_config *config = &options->config;
  hb_reserve((void **)&options->parameters, &options->parameters_cap, config->parameters_count + 1,
             sizeof *options->parameters);
  char *name = hb_strdup(text);
  name[equals - text] = '\0';
  options->parameters[config->parameters_count++] =
      (struct holdback_parameter){.name = name, .value = {equals + 1, strlen(equals + 1)}};
}

static bool parse_choice(const char *what, const char *text, const char *no, const char *yes,
                         struct argp_state *state) {
  if (strcmp(text, yes) == 0) return true;
  if (strcmp(text, no) != 0)
    argp_error(state, "%s: '%s' is neither %s nor %s", what, text, no, yes);
  return false;
}

static int parse_on_error(const char *text, struct argp_state *state) {
  if (strcmp(text, "continue") == 0) return HOLDBACK_ON_ERROR_CONTINUE;
  if (strcmp(text, "suspend") == 0) return HOLDBACK_ON_ERROR_SUSPEND;
  if (strcmp(text, "wait") == 0) return HOLDBACK_ON_ERROR_WAIT_KEY;
  argp_error(state, "--on-error: '%s' is none of continue, suspend and wait", text);
  return HOLDBACK_ON_ERROR_DEFAULT;
}

static void parse_key_status(struct options *options, const char *text, struct argp_state *state) {
  struct holdback_processor_config *config = &options->config;
  if (strcmp(text, "off") == 0) {
    config->key_status = HOLDBACK_KEY_STATUS_OFF;
  } else if (strcmp(text, "kept") == 0) {
    config->key_status = HOLDBACK_KEY_STATUS_KEPT;
  } else if (strcmp(text, "event") == 0) {
    config->key_status = HOLDBACK_KEY_STATUS_EVERY_EVENT;
  } else {
    config->key_status = HOLDBACK_KEY_STATUS_PERIODIC;
    config->key_status_interval_ms = command_parse_duration_ms(text, "--key-status", state);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case 'p':
      add_parameter(options, arg, state);
      return 0;
    case 'f':
      options->from_now = parse_choice("--from", arg, "start", "now", state);
      return 0;
    case KEY_ON_ERROR:
      options->config.on_error = parse_on_error(arg, state);
      return 0;
    case KEY_STATUS:
      parse_key_status(options, arg, state);
      return 0;
    case ARGP_KEY_ARG:
      if (state->arg_num == 0) options->config.name = arg;
      if (state->arg_num == 1) options->config.processor = arg;
      if (state->arg_num > 1) argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    case ARGP_KEY_END:
      if (state->arg_num < 2) argp_error(state, "NAME and PROCESSOR must be given");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "NAME PROCESSOR",
    .doc =
        "Attaches a processor to a stream. The same again is fine. One that was detached with its "
        "state goes on where it was.\v"
        "Examples:\n"
        "  holdback processor add totals sum -S orders\n"
        "  holdback processor add log concat -S orders -p separator=, -p emit=end\n"
        "  holdback processor add new count -S orders --from now\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static void done(struct options *options) {
  for (size_t i = 0; i < options->config.parameters_count; i++)
    free((char *)(uintptr_t)options->parameters[i].name);
  free(options->parameters);
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  options.config.parameters = options.parameters;
  struct holdback_client *client = command_connect(&options.common);
  int code = client ? EXIT_OK : EXIT_OWN;
  struct holdback_error error;
  if (client && holdback_processor_attach(client, options.common.stream, &options.config,
                                          options.from_now, &error))
    code = command_fail(&error);
  holdback_client_destroy(client);
  done(&options);
  return code;
}

const struct command processor_add = {"add", "attach a processor", run};
