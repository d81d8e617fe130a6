/* holdback processor ls, info: how processors stand. */
#include <inttypes.h>
#include <stdio.h>

#include "base/utf8.h"
#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"
#include "client/cmd/rfc3339.h"
#include "client/cmd/stream_options.h"

struct options {
  struct common common; /* first */
  const char *name;     /* NULL: all */
};

/* ---- as JSON */

static json_t *parameters_json(const struct holdback_processor_config *config) {
  json_t *object = json_object();
  for (size_t i = 0; i < config->parameters_count; i++) {
    const struct holdback_parameter *parameter = &config->parameters[i];
    bool text = hb_utf8_valid(hb_slice_of(parameter->value.data, parameter->value.size));
    json_object_set_new(
        object, parameter->name,
        text ? json_stringn(parameter->value.data, parameter->value.size) : json_null());
  }
  return object;
}

static json_t *number_or_null(bool has, int64_t number) {
  return has ? json_integer((json_int_t)number) : json_null();
}

static json_t *watermark_json(const struct holdback_processor_status *status) {
  if (!status->has_watermark) return json_null();
  char text[RFC3339_SIZE];
  rfc3339_format(status->watermark_seconds, status->watermark_nanos, text);
  return json_string(text);
}

static const char *on_error_of(const struct holdback_processor_config *config) {
  if (config->on_error == HOLDBACK_ON_ERROR_SUSPEND) return "suspend";
  return config->on_error == HOLDBACK_ON_ERROR_WAIT_KEY ? "wait" : "continue";
}

static json_t *processor_json(const struct holdback_processor_config *config,
                              const struct holdback_processor_status *status) {
  bool stopped = status->reason[0] != '\0';
  return json_pack(
      "{s:s,s:s,s:o,s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:s,s:o,s:s}", "name",
      config->name, "processor", config->processor, "parameters", parameters_json(config),
      "on_error", on_error_of(config), "state", holdback_processor_state_name(status->state),
      "position", number_or_null(status->has_position, status->position), "lag",
      (json_int_t)status->lag, "results", (json_int_t)status->results, "events",
      (json_int_t)status->events, "failed", (json_int_t)status->failed, "blocked_keys",
      (json_int_t)status->blocked_keys, "timers", (json_int_t)status->timers, "timers_fired",
      (json_int_t)status->timers_fired, "state_cache_bytes", (json_int_t)status->state_cache_bytes,
      "call_ms", (json_int_t)status->call_ms, "watermark", watermark_json(status), "stopped_at",
      number_or_null(stopped, status->stopped_at), "reason", status->reason,
      "last_failure_position",
      number_or_null(status->has_last_failure, status->last_failure_position), "last_failure",
      status->last_failure);
}

/* ---- as text */

static void print_text(const struct holdback_processor_config *config,
                       const struct holdback_processor_status *status) {
  printf("%-20s %-12s %-10s lag %-10" PRIu64 " results %-10" PRId64 " failed %" PRIu64 "\n",
         config->name, config->processor, holdback_processor_state_name(status->state), status->lag,
         status->results, status->failed);
  if (status->reason[0])
    printf("  stopped at %" PRId64 ": %s\n", status->stopped_at, status->reason);
  if (status->blocked_keys)
    printf("  %" PRIu64 " keys wait at an event that failed\n", status->blocked_keys);
  if (status->has_last_failure)
    printf("  last failure at %" PRId64 ": %s\n", status->last_failure_position,
           status->last_failure);
}

static bool print_one(void *context, const struct holdback_processor_config *config,
                      const struct holdback_processor_status *status) {
  const struct options *options = context;
  if (options->common.json) return command_print_json(processor_json(config, status));
  print_text(config, status);
  return true;
}

static int print_all(const struct options *options) {
  struct holdback_client *client = command_connect(&options->common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_processor_list(client, options->common.stream, options->name, print_one,
                              (void *)(uintptr_t)options, &error))
    code = command_fail(&error);
  holdback_client_destroy(client);
  return command_finish(code);
}

/* ---- ls */

static error_t parse_ls(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &options->common;
  if (key == ARGP_KEY_ARG) argp_error(state, "'%s' is one argument too many", arg);
  return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp argp_ls = {
    .parser = parse_ls,
    .doc =
        "Lists a stream's processors by name; with --json one object a line.\v"
        "Examples:\n"
        "  holdback processor ls -S orders\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static int run_ls(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp_ls, argc, argv, 0, NULL, &options);
  return print_all(&options);
}

const struct command processor_ls = {"ls", "list processors", run_ls};

/* ---- info */

static error_t parse_info(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &options->common;
  return stream_parse_name(key, arg, state, &options->name);
}

static const struct argp argp_info = {
    .parser = parse_info,
    .args_doc = "NAME",
    .doc =
        "Shows how a processor stands: what it has processed, how far it is behind, what failed.\v"
        "Examples:\n"
        "  holdback processor info totals -S orders --json\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static int run_info(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp_info, argc, argv, 0, NULL, &options);
  return print_all(&options);
}

const struct command processor_info = {"info", "how a processor stands", run_info};
