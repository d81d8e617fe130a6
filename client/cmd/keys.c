/* holdback keys: the keys of a stream that have a released event, in byte order. */
#include <string.h>

#include "base/utf8.h"
#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"

enum { WRITE_AT = 64 << 10 };

struct options {
  struct common common; /* first */
  const char *prefix;
  const char *key;
  const char *processor;
};

enum { KEY_PREFIX = 256, KEY_PROCESSOR };

static const struct argp_option argp_options[] = {
    {"prefix", KEY_PREFIX, "PREFIX", 0, "only keys that begin so", 1},
    {"key", 'k', "KEY", 0, "with --processor: this key alone, whether it has events or not", 1},
    {"processor", KEY_PROCESSOR, "NAME", 0,
     "how each key stands with this processor, one JSON object a line", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_PREFIX:
      options->prefix = arg;
      return 0;
    case 'k':
      options->key = arg;
      return 0;
    case KEY_PROCESSOR:
      options->processor = arg;
      return 0;
    case ARGP_KEY_END:
      if (options->key && !options->processor) argp_error(state, "--key needs --processor");
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .doc =
        "Prints the keys that have a released event, one a line, in byte order.\v"
        "A key that is plain text is printed as it is; one that is not (control\n"
        "characters, no UTF-8), and every key with --json, as {\"key\":...} or\n"
        "{\"key_base64\":...}.\n"
        "\n"
        "Examples:\n"
        "  holdback keys -S flights\n"
        "  holdback keys --prefix eu/ --json\n"
        "  holdback keys --processor totals --key ORD\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

struct printing {
  struct hb_buf out;
  bool json;
  enum output_result result;
};

static bool is_plain(struct hb_slice key) {
  for (size_t i = 0; i < key.size; i++)
    if (key.data[i] < 0x20 || key.data[i] == 0x7f) return false;
  return hb_utf8_valid(key);
}

static void write_out(struct printing *printing) {
  if (printing->result == OUTPUT_WRITTEN)
    printing->result = output_write(hb_buf_view(&printing->out));
  hb_buf_clear(&printing->out);
}

static bool print_key(void *context, struct holdback_bytes bytes) {
  struct printing *printing = context;
  struct hb_slice key = hb_slice_of(bytes.data, bytes.size);
  if (printing->json || !is_plain(key)) {
    hb_buf_append_u8(&printing->out, '{');
    json_write_bytes(&printing->out, "key", key);
    hb_buf_append_u8(&printing->out, '}');
  } else {
    hb_buf_append(&printing->out, key.data, key.size);
  }
  hb_buf_append_u8(&printing->out, '\n');
  if (printing->out.size >= WRITE_AT) write_out(printing);
  return printing->result == OUTPUT_WRITTEN;
}

static bool print_status(void *context, const struct holdback_key_status *status) {
  struct printing *printing = context;
  key_status_line_write(&printing->out, status, false);
  if (printing->out.size >= WRITE_AT) write_out(printing);
  return printing->result == OUTPUT_WRITTEN;
}

static int find(struct holdback_client *client, const struct options *options,
                struct holdback_bytes prefix, struct printing *printing,
                struct holdback_error *error) {
  const char *stream = options->common.stream;
  if (!options->processor)
    return holdback_list_keys(client, stream, prefix, print_key, printing, error);
  if (!options->key)
    return holdback_list_key_statuses(client, stream, options->processor, prefix, print_status,
                                      printing, error);
  struct holdback_bytes key = {options->key, strlen(options->key)};
  struct holdback_key_status one;
  int status = holdback_key_status(client, stream, options->processor, key, &one, error);
  if (!status) (void)print_status(printing, &one);
  return status;
}

static int list(struct holdback_client *client, const struct options *options) {
  struct printing printing = {.json = options->common.json, .result = OUTPUT_WRITTEN};
  struct holdback_bytes prefix = {options->prefix, options->prefix ? strlen(options->prefix) : 0};
  struct holdback_error error;
  int status = find(client, options, prefix, &printing, &error);
  write_out(&printing);
  hb_buf_done(&printing.out);
  if (status) return command_fail(&error);
  return printing.result == OUTPUT_FAILED ? EXIT_OWN : EXIT_OK;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  int code = client ? list(client, &options) : EXIT_OWN;
  holdback_client_destroy(client);
  return code;
}

const struct command command_keys = {"keys", "the keys of a stream", run};
