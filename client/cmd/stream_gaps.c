/* holdback stream gaps: what is missing, of a stream, of a key, or which keys miss something. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cmd/describe.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"
#include "client/cmd/stream_options.h"

enum { WRITE_AT = 64 << 10 };

struct options {
  struct common common; /* first */
  const char *name;
  const char *key;
  const char *prefix;
  bool is_base64;
};

enum { KEY_BASE64 = 256, KEY_PREFIX };

static const struct argp_option argp_options[] = {
    {"key", 'k', "KEY", 0, "of this key (streams in mode PER_KEY)", 1},
    {"base64", KEY_BASE64, NULL, 0, "KEY is base64, for keys that are not text", 1},
    {"prefix", KEY_PREFIX, "PREFIX", 0, "only keys that begin so (streams in mode PER_KEY)", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case 'k':
      options->key = arg;
      return 0;
    case KEY_BASE64:
      options->is_base64 = true;
      return 0;
    case KEY_PREFIX:
      options->prefix = arg;
      return 0;
    case ARGP_KEY_END:
      if (options->key && options->prefix)
        argp_error(state, "--key and --prefix exclude each other");
      if (options->is_base64 && !options->key) argp_error(state, "--base64 needs --key");
      break;
    default:
      break;
  }
  return stream_parse_name(key, arg, state, &options->name);
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "NAME",
    .doc =
        "Lists what is missing: ranges [start, end) of sequences of which nothing has come, though "
        "higher ones have. In mode PER_KEY gaps are a key's: with --key its own, else every key "
        "that has some, one JSON object a line, in no order that means anything. "
        "\"complete_to\" is null where the event with \"initial\" is missing, so that it is not "
        "known where the key begins.\v"
        "Examples:\n"
        "  holdback stream gaps orders\n"
        "  holdback stream gaps accounts\n"
        "  holdback stream gaps accounts --key 4711 --json\n\n" EXIT_CODES_HELP,
    .children = common_children};

struct printing {
  struct hb_buf out;
  const struct options *options;
  bool per_key;
  enum output_result result;
};

static void write_out(struct printing *printing) {
  if (printing->result == OUTPUT_WRITTEN)
    printing->result = output_write(hb_buf_view(&printing->out));
  hb_buf_clear(&printing->out);
}

static bool print_line(struct printing *printing, const char *text) {
  hb_buf_append(&printing->out, text, strlen(text));
  hb_buf_append_u8(&printing->out, '\n');
  if (printing->out.size >= WRITE_AT) write_out(printing);
  return printing->result == OUTPUT_WRITTEN;
}

static bool print_gap(void *context, const struct holdback_gap *gap) {
  struct printing *printing = context;
  char line[160];
  char age[32];
  uint64_t count = (uint64_t)gap->end - (uint64_t)gap->start;
  describe_age(gap->age_ms, age, sizeof age);
  if (printing->options->common.json && printing->per_key) {
    (void)snprintf(line, sizeof line, "{\"start\":%" PRId64 ",\"end\":%" PRId64 "}", gap->start,
                   gap->end);
  } else if (printing->options->common.json) {
    (void)snprintf(line, sizeof line,
                   "{\"start\":%" PRId64 ",\"end\":%" PRId64 ",\"age_ms\":%" PRIu64 "}", gap->start,
                   gap->end, gap->age_ms);
  } else {
    (void)snprintf(line, sizeof line, "[%" PRId64 ", %" PRId64 ")  %" PRIu64 " missing%s%s",
                   gap->start, gap->end, count, printing->per_key ? "" : " for ",
                   printing->per_key ? "" : age);
  }
  return print_line(printing, line);
}

static bool print_key(void *context, const struct holdback_key_gaps *key) {
  struct printing *printing = context;
  char number[32] = "null";
  char gap[80] = "null";
  char rest[256];
  if (key->has_complete_to) (void)snprintf(number, sizeof number, "%" PRId64, key->complete_to);
  if (key->has_gap) {
    (void)snprintf(gap, sizeof gap, "{\"start\":%" PRId64 ",\"end\":%" PRId64 "}", key->gap.start,
                   key->gap.end);
  }
  (void)snprintf(rest, sizeof rest,
                 ",\"complete_to\":%s,\"highest\":%" PRId64 ",\"held_events\":%" PRIu64
                 ",\"gaps_total\":%" PRIu64 ",\"gap\":%s}",
                 number, key->highest, key->held_events, key->gaps_total, gap);
  hb_buf_append_u8(&printing->out, '{');
  json_write_bytes(&printing->out, "key", hb_slice_of(key->key.data, key->key.size));
  return print_line(printing, rest);
}

static int list(struct holdback_client *client, struct printing *printing,
                const struct holdback_bytes *key, struct holdback_error *error) {
  const struct options *options = printing->options;
  struct holdback_bytes prefix = {options->prefix, options->prefix ? strlen(options->prefix) : 0};
  bool initial_missing = false;
  bool of_keys = options->prefix != NULL; /* in GLOBAL mode the server says what is wrong */
  if (!of_keys && !key) {
    struct holdback_stream_config config;
    int status = holdback_stream_get(client, options->name, &config, NULL, error);
    if (status) return status;
    of_keys = config.mode == HOLDBACK_MODE_PER_KEY;
  }
  if (of_keys)
    return holdback_list_keys_with_gaps(client, options->name, prefix, print_key, printing, error);
  printing->per_key = key != NULL;
  int status =
      holdback_list_gaps(client, options->name, key, print_gap, printing, &initial_missing, error);
  if (!status && initial_missing) {
    (void)print_line(printing, options->common.json
                                   ? "{\"initial_missing\":true}"
                                   : "the event with \"initial\" is missing: the beginning of the "
                                     "key is not known");
  }
  return status;
}

static int print(const struct options *options, const struct holdback_bytes *key) {
  struct holdback_client *client = command_connect(&options->common);
  if (!client) return EXIT_OWN;
  struct printing printing = {.options = options, .result = OUTPUT_WRITTEN};
  struct holdback_error error;
  int status = list(client, &printing, key, &error);
  write_out(&printing);
  hb_buf_done(&printing.out);
  holdback_client_destroy(client);
  if (status) return command_fail(&error);
  return printing.result == OUTPUT_FAILED ? EXIT_OWN : EXIT_OK;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct hb_buf decoded = {0};
  struct holdback_bytes key = {0};
  if (options.key &&
      !command_take_key("holdback stream gaps", options.key, options.is_base64, &decoded, &key)) {
    return EXIT_USAGE;
  }
  int code = print(&options, options.key ? &key : NULL);
  hb_buf_done(&decoded);
  return code;
}

const struct command stream_gaps = {"gaps", "list what is missing", run};
