/* holdback key: one key's ordered list, released events first, then what is held. */
#include <stdio.h>
#include <string.h>

#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"

enum { WRITE_AT = 64 << 10 };

struct options {
  struct common common; /* first */
  const char *key;
  bool is_base64;
  bool released_only;
  bool has_from;
  int64_t from;
};

enum { KEY_BASE64 = 256, KEY_RELEASED };

static const struct argp_option argp_options[] = {
    {"base64", KEY_BASE64, NULL, 0, "KEY is base64, for keys that are not text", 1},
    {"released-only", KEY_RELEASED, NULL, 0, "leave out what is held", 1},
    {"from", 'f', "N", 0, "from position N on (default: the earliest)", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_BASE64:
      options->is_base64 = true;
      return 0;
    case KEY_RELEASED:
      options->released_only = true;
      return 0;
    case 'f':
      options->has_from = true;
      options->from = command_parse_sequence(arg, "--from", state);
      return 0;
    case ARGP_KEY_ARG:
      if (options->key) argp_error(state, "only one KEY can be given");
      options->key = arg;
      return 0;
    case ARGP_KEY_END:
      if (!options->key) argp_error(state, "KEY is missing");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "KEY",
    .doc =
        "Prints the events of one key in order, as the same lines that tail prints; a line of "
        "an event that waits for others has \"state\":\"HELD\" in addition.\v"
        "Examples:\n"
        "  holdback key ORD -S flights\n"
        "  holdback key --base64 /w== --released-only\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

struct printing {
  struct hb_buf out;
  enum output_result result;
};

static void write_out(struct printing *printing) {
  if (printing->result == OUTPUT_WRITTEN)
    printing->result = output_write(hb_buf_view(&printing->out));
  hb_buf_clear(&printing->out);
}

static bool print_entry(void *context, const struct holdback_key_entry *entry) {
  struct printing *printing = context;
  event_line_write(&printing->out, &entry->event, entry->released ? NULL : "HELD");
  if (printing->out.size >= WRITE_AT) write_out(printing);
  return printing->result == OUTPUT_WRITTEN;
}

static int read_key(struct holdback_client *client, const struct options *options,
                    struct holdback_bytes key) {
  struct printing printing = {.result = OUTPUT_WRITTEN};
  struct holdback_error error;
  int status =
      holdback_read_key(client, options->common.stream, key, options->has_from, options->from,
                        options->released_only, print_entry, &printing, &error);
  write_out(&printing);
  hb_buf_done(&printing.out);
  if (status) return command_fail(&error);
  return printing.result == OUTPUT_FAILED ? EXIT_OWN : EXIT_OK;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct hb_buf decoded = {0};
  struct holdback_bytes key = {0};
  if (!command_take_key("holdback key", options.key, options.is_base64, &decoded, &key)) {
    return EXIT_USAGE;
  }
  struct holdback_client *client = command_connect(&options.common);
  int code = client ? read_key(client, &options, key) : EXIT_OWN;
  holdback_client_destroy(client);
  hb_buf_done(&decoded);
  return code;
}

const struct command command_key = {"key", "one key's events in order", run};
