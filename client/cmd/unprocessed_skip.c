/* holdback unprocessed skip: which key goes on without which event, and how that is told. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cmd/command.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"

struct options {
  struct common common; /* first */
  bool is_base64;
  const char *processor;
  const char *key;
  bool has_sequence;
  int64_t sequence;
};

enum { KEY_BASE64 = 256 };

static const struct argp_option argp_options[] = {
    {"base64", KEY_BASE64, NULL, 0, "KEY is base64, for keys that are not text", 1}, {0}};

static void take(struct options *options, char *arg, struct argp_state *state) {
  if (!options->processor) {
    options->processor = arg;
  } else if (!options->key) {
    options->key = arg;
  } else if (!options->has_sequence) {
    options->has_sequence = true;
    options->sequence = command_parse_sequence(arg, "SEQUENCE", state);
  } else {
    argp_error(state, "'%s' is one argument too many", arg);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_BASE64:
      options->is_base64 = true;
      return 0;
    case ARGP_KEY_ARG:
      take(options, arg, state);
      return 0;
    case ARGP_KEY_END:
      if (!options->key) argp_error(state, "PROCESSOR and KEY must be given");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "PROCESSOR KEY [SEQUENCE]",
    .doc =
        "Gives up the event that a key waits at since a processor's code failed at it (processor "
        "add --on-error wait), for which no good one will come: the key goes on without it, and "
        "what waited behind it follows, in order, each once. The event stays in unprocessed, "
        "with the reason. With SEQUENCE that event alone is given up; where the key waits at "
        "another one by now, nothing is. There is no way back.\v"
        "Examples:\n"
        "  holdback keys -S orders --processor totals --key ORD\n"
        "  holdback unprocessed skip totals ORD 17 -S orders\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

static void print(const struct options *options, const struct holdback_skipped *skipped) {
  if (options->common.json) {
    json_t *at = skipped->has_blocked_at ? json_integer(skipped->blocked_at) : json_null();
    (void)command_print_json(json_pack("{s:s,s:I,s:o,s:I}", "processor", options->processor,
                                       "skipped", (json_int_t)skipped->skipped, "blocked_at", at,
                                       "blocked", (json_int_t)skipped->blocked));
    return;
  }
  printf("%s: skipped %" PRId64 ", %" PRIu64 " blocked\n", options->processor, skipped->skipped,
         skipped->blocked);
  if (skipped->has_blocked_at) {
    printf("  blocked again at %" PRId64 "\n", skipped->blocked_at);
  }
}

static int skip(const struct options *options, struct holdback_bytes key) {
  struct holdback_client *client = command_connect(&options->common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  struct holdback_skipped skipped;
  int status =
      holdback_skip_blocked(client, options->common.stream, options->processor, key,
                            options->has_sequence ? &options->sequence : NULL, &skipped, &error);
  int code = status ? command_fail(&error) : EXIT_OK;
  if (!status) print(options, &skipped);
  holdback_client_destroy(client);
  return command_finish(code);
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct hb_buf decoded = {0};
  struct holdback_bytes key = {0};
  if (!command_take_key("holdback unprocessed skip", options.key, options.is_base64, &decoded,
                        &key)) {
    return EXIT_USAGE;
  }
  int code = skip(&options, key);
  hb_buf_done(&decoded);
  return code;
}

const struct command unprocessed_skip = {"skip", "let a key go on without an event", run};
