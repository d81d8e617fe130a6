/* holdback unprocessed ls: what is kept aside, and how that is told. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "client/cmd/base64.h"
#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"
#include "client/cmd/rfc3339.h"

enum { WRITE_AT = 64 << 10 };

struct options {
  struct common common; /* first */
  const char *processor;
  enum holdback_unprocessed_reason reason;
  const char *key;
  bool is_base64;
};

enum { KEY_PROCESSOR = 256, KEY_REASON, KEY_BASE64 };

static const struct argp_option argp_options[] = {
    {"processor", KEY_PROCESSOR, "NAME", 0, "only what the code of this processor failed at", 1},
    {"reason", KEY_REASON, "REASON", 0, "only conflict, before-first, late or exception", 1},
    {"key", 'k', "KEY", 0, "only events of this key", 1},
    {"base64", KEY_BASE64, NULL, 0, "KEY is base64, for keys that are not text", 1},
    {0}};

static const struct {
  enum holdback_unprocessed_reason reason;
  const char *option;
  const char *name;
} reasons[] = {
    {HOLDBACK_UNPROCESSED_CONFLICT, "conflict", "CONFLICT"},
    {HOLDBACK_UNPROCESSED_LATE, "late", "LATE"},
    {HOLDBACK_UNPROCESSED_BEFORE_FIRST, "before-first", "BEFORE_FIRST"},
    {HOLDBACK_UNPROCESSED_EXCEPTION, "exception", "EXCEPTION"},
};
enum { REASONS = sizeof reasons / sizeof *reasons };

static enum holdback_unprocessed_reason parse_reason(const char *arg, struct argp_state *state) {
  for (size_t i = 0; i < REASONS; i++) {
    if (strcasecmp(arg, reasons[i].option) == 0 || strcasecmp(arg, reasons[i].name) == 0) {
      return reasons[i].reason;
    }
  }
  argp_error(state, "--reason %s: must be conflict, before-first, late or exception", arg);
  return HOLDBACK_UNPROCESSED_ANY;
}

static const char *name_of(int reason) {
  for (size_t i = 0; i < REASONS; i++) {
    if ((int)reasons[i].reason == reason) return reasons[i].name;
  }
  return "UNKNOWN";
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_PROCESSOR:
      options->processor = arg;
      return 0;
    case KEY_REASON:
      options->reason = parse_reason(arg, state);
      return 0;
    case 'k':
      options->key = arg;
      return 0;
    case KEY_BASE64:
      options->is_base64 = true;
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    case ARGP_KEY_END:
      if (options->is_base64 && !options->key) argp_error(state, "--base64 needs --key");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .doc =
        "Lists the events that are kept aside, by reason, one a line: CONFLICT (another content "
        "stands under the sequence), BEFORE_FIRST (below the first sequence), EXCEPTION (a "
        "processor's code failed at it, with what it said). With --json \"event\" is the line that "
        "tail prints and send reads.\v"
        "Examples:\n"
        "  holdback unprocessed ls -S orders\n"
        "  holdback unprocessed ls -S orders --processor totals\n"
        "  holdback unprocessed ls -S orders --reason conflict --json | jq -c "
        ".event\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

struct printing {
  struct hb_buf out;
  bool json;
  enum output_result result;
};

static void write_out(struct printing *printing) {
  if (printing->result == OUTPUT_WRITTEN)
    printing->result = output_write(hb_buf_view(&printing->out));
  hb_buf_clear(&printing->out);
}

static void put(struct hb_buf *out, const char *text) { hb_buf_append(out, text, strlen(text)); }

static void put_number(struct hb_buf *out, const char *before, int64_t number) {
  char text[24];
  (void)snprintf(text, sizeof text, "%" PRId64, number);
  put(out, before);
  put(out, text);
}

static void put_member(struct hb_buf *out, const char *name, const char *text) {
  if (!text[0]) return;
  put(out, ",\"");
  put(out, name);
  put(out, "\":");
  json_write_string(out, hb_slice_text(text));
}

static void put_time(struct hb_buf *out, int64_t ms) {
  char text[RFC3339_SIZE];
  rfc3339_format(ms / 1000, (int32_t)(ms % 1000) * 1000000, text);
  put(out, text);
}

static void print_json(struct hb_buf *out, const struct holdback_unprocessed *event) {
  put(out, "{\"reason\":\"");
  put(out, name_of(event->reason));
  put(out, "\"");
  if (event->has_position) put_number(out, ",\"position\":", event->position);
  put_member(out, "processor", event->processor);
  put_member(out, "explanation", event->explanation);
  put_number(out, ",\"count\":", (int64_t)event->count);
  put(out, ",\"first_seen\":\"");
  put_time(out, event->first_seen_ms);
  put(out, "\",\"last_seen\":\"");
  put_time(out, event->last_seen_ms);
  put(out, "\"");
  put_member(out, "producer", event->producer);
  if (event->has_event) {
    put(out, ",\"event\":");
    event_line_write(out, &event->event, NULL);
    out->size--; /* its line feed */
  }
  put(out, "}\n");
}

/* Quoted where it is text: what stands in it is not ours, and a terminal obeys what it is shown. */
static void put_key(struct hb_buf *out, struct hb_slice key) {
  if (hb_utf8_valid(key)) {
    json_write_string(out, key);
  } else {
    put(out, "base64 ");
    base64_encode(out, key);
  }
}

/* CONFLICT 17 "ORD"  12 bytes, 2 times, last 2001-01-01T00:00:00Z, from "feed-b" */
static void print_text(struct hb_buf *out, const struct holdback_unprocessed *event) {
  put(out, name_of(event->reason));
  if (event->has_event) {
    put_number(out, " ", event->event.sequence);
    put(out, " ");
    put_key(out, hb_slice_of(event->event.key.data, event->event.key.size));
    put_number(out, "  ", (int64_t)event->event.payload.size);
    put(out, " bytes");
  } else {
    put(out, " without an event");
  }
  if (event->count > 1) {
    put_number(out, ", ", (int64_t)event->count);
    put(out, " times, last at ");
  } else {
    put(out, ", once, at ");
  }
  put_time(out, event->last_seen_ms);
  if (event->producer[0]) {
    put(out, ", from ");
    json_write_string(out, hb_slice_text(event->producer));
  }
  if (event->has_position) {
    put_number(out, ", at position ", event->position);
    put(out, " of ");
    put(out, event->processor[0] ? event->processor : "a processor that is gone");
    put(out, ": ");
    json_write_string(out, hb_slice_text(event->explanation));
  }
  put(out, "\n");
}

static bool print(void *context, const struct holdback_unprocessed *event) {
  struct printing *printing = context;
  if (printing->json) {
    print_json(&printing->out, event);
  } else {
    print_text(&printing->out, event);
  }
  if (printing->out.size >= WRITE_AT) write_out(printing);
  return printing->result == OUTPUT_WRITTEN;
}

static int list(const struct options *options, const struct holdback_bytes *key) {
  struct holdback_client *client = command_connect(&options->common);
  if (!client) return EXIT_OWN;
  struct printing printing = {.json = options->common.json, .result = OUTPUT_WRITTEN};
  struct holdback_unprocessed_filter filter = {
      .processor = options->processor, .reason = options->reason, .key = key};
  struct holdback_error error;
  int status =
      holdback_list_unprocessed(client, options->common.stream, &filter, print, &printing, &error);
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
  if (options.key && !command_take_key("holdback unprocessed ls", options.key, options.is_base64,
                                       &decoded, &key)) {
    return EXIT_USAGE;
  }
  int code = list(&options, options.key ? &key : NULL);
  hb_buf_done(&decoded);
  return code;
}

const struct command unprocessed_ls = {"ls", "list what is kept aside, and why", run};
