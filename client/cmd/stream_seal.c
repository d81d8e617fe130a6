/* holdback stream seal: states the last sequence that a stream will have. */
#include <inttypes.h>
#include <stdio.h>

#include "client/cmd/exit.h"
#include "client/cmd/stream_options.h"

struct options {
  struct common common; /* first */
  const char *name;
  bool has_last;
  int64_t last;
};

enum { KEY_LAST = 256 };

static const struct argp_option argp_options[] = {
    {"last", KEY_LAST, "N", 0, "the last sequence (default: the highest one that is stored)", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &options->common;
  if (key == KEY_LAST) {
    options->has_last = true;
    options->last = command_parse_sequence(arg, "--last", state);
    if (options->last == INT64_MAX) argp_error(state, "--last: '%s' is no valid sequence", arg);
    return 0;
  }
  return stream_parse_name(key, arg, state, &options->name);
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "States the end of a stream, for good: nothing above its last sequence is stored any "
        "more. Gaps below are still waited for. When all of it is delivered, tail ends by itself "
        "and processors do their end-of-input work.\v"
        "Examples:\n"
        "  holdback stream seal orders\n"
        "  holdback stream seal orders --last 1000000\n\n" EXIT_CODES_HELP,
    .children = common_children};

/* One past the last sequence. */
static int find_end(struct holdback_client *client, const struct options *options, int64_t *out) {
  if (options->has_last) {
    *out = options->last + 1;
    return EXIT_OK;
  }
  struct holdback_stream_status status;
  struct holdback_error error;
  if (holdback_stream_get(client, options->name, NULL, &status, &error))
    return command_fail(&error);
  *out = status.sealed        ? status.seal_end
         : status.has_highest ? status.highest + 1
                              : status.first_sequence;
  return EXIT_OK;
}

static int seal(struct holdback_client *client, const struct options *options) {
  int64_t end = 0;
  int code = find_end(client, options, &end);
  if (code) return code;
  struct holdback_error error;
  if (holdback_stream_seal(client, options->name, end, &error)) return command_fail(&error);
  if (options->common.json) {
    (void)command_print_json(
        json_pack("{s:s,s:I}", "stream", options->name, "seal_end", (json_int_t)end));
  } else {
    printf("%s ends before %" PRId64 "\n", options->name, end);
  }
  return EXIT_OK;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  int code = seal(client, &options);
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command stream_seal = {"seal", "state the end of a stream", run};
