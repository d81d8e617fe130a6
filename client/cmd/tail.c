/* holdback tail: a subscription, printed. Decides where it starts and when it has seen enough. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/interrupt.h"
#include "client/cmd/output.h"
#include "client/cmd/rfc3339.h"

enum { WAIT_MS = 200, PROGRESS_MS = 200 };

struct options {
  struct common common; /* first */
  struct holdback_subscribe_options wanted;
  struct holdback_bytes *keys; /* owned */
  size_t keys_cap;
  struct holdback_bytes *prefixes; /* owned */
  size_t prefixes_cap;
  bool until_caught_up;
  bool counted;
  uint64_t count;
};

enum { KEY_UNTIL = 256, KEY_PREFIX, KEY_RECONNECT_TIMEOUT, KEY_PROCESSOR, KEY_STATUSES };

static const struct argp_option argp_options[] = {
    {"from", 'f', "start|now|N|@TIME", 0,
     "the earliest event (default), the frontier, sequence N, or the first event with an event "
     "time at or after TIME (RFC 3339)",
     1},
    {"key", 'k', "KEY", 0, "only events of this key; repeatable", 1},
    {"prefix", KEY_PREFIX, "PREFIX", 0, "only keys that begin so; repeatable", 1},
    {"processor", KEY_PROCESSOR, "NAME", 0,
     "the results of this processor instead of events; --from N is a result's position", 1},
    {"key-statuses", KEY_STATUSES, NULL, 0,
     "with --processor: the statuses that it tells of its keys, instead of results", 1},
    {"until-caught-up", KEY_UNTIL, NULL, 0, "end when everything released was printed", 1},
    {"count", 'n', "N", 0, "end after N events", 1},
    {"reconnect-timeout", KEY_RECONNECT_TIMEOUT, "TIME", 0,
     "give up after so long without a server (30s)", 1},
    {0}};

static void parse_from(const char *text, struct holdback_subscribe_options *wanted,
                       struct argp_state *state) {
  if (strcmp(text, "start") == 0) {
    wanted->start = HOLDBACK_START_EARLIEST;
  } else if (strcmp(text, "now") == 0) {
    wanted->start = HOLDBACK_START_NOW;
  } else if (text[0] == '@') {
    const char *wrong =
        rfc3339_parse(text + 1, strlen(text + 1), &wanted->time_seconds, &wanted->time_nanos);
    if (wrong) argp_error(state, "--from: '%s': %s", text, wrong);
    wanted->start = HOLDBACK_START_EVENT_TIME;
  } else {
    wanted->position = command_parse_sequence(text, "--from", state);
    wanted->start = HOLDBACK_START_POSITION;
  }
}

static void add(struct holdback_bytes **list, size_t *count, size_t *cap, const char *text) {
  hb_reserve((void **)list, cap, *count + 1, sizeof **list);
  (*list)[(*count)++] = (struct holdback_bytes){text, strlen(text)};
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  int64_t count;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case 'f':
      parse_from(arg, &options->wanted, state);
      return 0;
    case 'k':
      add(&options->keys, &options->wanted.keys_count, &options->keys_cap, arg);
      return 0;
    case KEY_PREFIX:
      add(&options->prefixes, &options->wanted.key_prefixes_count, &options->prefixes_cap, arg);
      return 0;
    case KEY_PROCESSOR:
      options->wanted.processor = arg;
      return 0;
    case KEY_STATUSES:
      options->wanted.key_statuses = true;
      return 0;
    case KEY_UNTIL:
      options->until_caught_up = true;
      return 0;
    case KEY_RECONNECT_TIMEOUT:
      options->wanted.reconnect_timeout_ms =
          command_parse_duration_ms(arg, "--reconnect-timeout", state);
      return 0;
    case 'n':
      count = command_parse_sequence(arg, "--count", state);
      if (count < 0) argp_error(state, "--count: '%s' is negative", arg);
      options->counted = true;
      options->count = (uint64_t)count;
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
        "Prints the events of a stream in order, each exactly when everything before it is "
        "there, one JSON object a line: what send reads.\v"
        "Without --until-caught-up or --count it goes on until it is interrupted, or the stream is "
        "sealed and at its end.\n"
        "A result of a processor is printed with its position and its cause: the position of the "
        "event that it comes from.\n"
        "A lost connection is taken up again where it ended.\n"
        "\n"
        "Examples:\n"
        "  holdback tail --until-caught-up\n"
        "  holdback tail -S flights --from @2001-01-01T12:00:00Z --key ORD\n"
        "  holdback tail -S orders --from now --prefix eu/ | jq .payload\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

/* ---- printing */

struct tailing {
  const struct options *options;
  struct hb_buf out;
  uint64_t printed;
  bool done;
  int code;
};

static void count_line(struct tailing *tailing) {
  tailing->printed++;
  tailing->done = tailing->options->counted && tailing->printed >= tailing->options->count;
}

static void write_out(struct tailing *tailing) {
  enum output_result result = output_write(hb_buf_view(&tailing->out));
  if (result == OUTPUT_WRITTEN) return;
  tailing->done = true;
  if (result == OUTPUT_FAILED) tailing->code = EXIT_OWN;
}

static void print_events(struct tailing *tailing, const struct holdback_message *message) {
  size_t cursor = 0;
  struct holdback_event event;
  hb_buf_clear(&tailing->out);
  while (!tailing->done && holdback_message_event(message, &cursor, &event, NULL)) {
    event_line_write(&tailing->out, &event, NULL);
    count_line(tailing);
  }
  write_out(tailing);
}

static void print_results(struct tailing *tailing, const struct holdback_message *message) {
  size_t cursor = 0;
  struct holdback_processor_result result;
  hb_buf_clear(&tailing->out);
  while (!tailing->done && holdback_message_result(message, &cursor, &result)) {
    result_line_write(&tailing->out, &result);
    count_line(tailing);
  }
  write_out(tailing);
}

static void print_statuses(struct tailing *tailing, const struct holdback_message *message) {
  size_t cursor = 0;
  struct holdback_key_status status;
  hb_buf_clear(&tailing->out);
  while (!tailing->done && holdback_message_status(message, &cursor, &status)) {
    key_status_line_write(&tailing->out, &status, true);
    count_line(tailing);
  }
  write_out(tailing);
}

static void take_message(struct tailing *tailing, const struct holdback_message *message) {
  struct holdback_progress progress;
  struct holdback_void nothing;
  switch (holdback_message_kind(message)) {
    case HOLDBACK_MESSAGE_EVENTS:
      print_events(tailing, message);
      return;
    case HOLDBACK_MESSAGE_RESULTS:
      print_results(tailing, message);
      return;
    case HOLDBACK_MESSAGE_STATUSES:
      print_statuses(tailing, message);
      return;
    case HOLDBACK_MESSAGE_PROGRESS:
      if (tailing->options->until_caught_up && holdback_message_progress(message, &progress))
        tailing->done = progress.caught_up;
      return;
    case HOLDBACK_MESSAGE_VOID:
      if (holdback_message_void(message, &nothing))
        fprintf(stderr, "holdback: [%" PRId64 ", %" PRId64 ") will never come: %s\n", nothing.start,
                nothing.end, nothing.reason);
      return;
    case HOLDBACK_MESSAGE_END:
      tailing->done = true;
  }
}

static void print_all(struct tailing *tailing, struct holdback_subscription *subscription) {
  tailing->done = tailing->options->counted && tailing->options->count == 0;
  while (!tailing->done) {
    const struct holdback_message *message;
    struct holdback_error error;
    if (interrupt_came()) {
      tailing->code = EXIT_INTERRUPTED;
      return;
    }
    if (holdback_next(subscription, WAIT_MS, &message, &error)) {
      tailing->code = command_fail(&error);
      return;
    }
    if (message) take_message(tailing, message);
  }
}

static int run_connected(struct holdback_client *client, const struct options *options) {
  struct holdback_subscription *subscription;
  struct holdback_error error;
  if (holdback_subscribe(client, &options->wanted, &subscription, &error))
    return command_fail(&error);
  interrupt_watch();
  struct tailing tailing = {.options = options};
  print_all(&tailing, subscription);
  holdback_subscription_destroy(subscription);
  hb_buf_done(&tailing.out);
  return tailing.code;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before, .wanted = {.start = HOLDBACK_START_EARLIEST}};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  options.wanted.stream = options.common.stream;
  options.wanted.keys = options.keys;
  options.wanted.key_prefixes = options.prefixes;
  options.wanted.progress_interval_ms = PROGRESS_MS;
  struct holdback_client *client = command_connect(&options.common);
  int code = client ? run_connected(client, &options) : EXIT_OWN;
  holdback_client_destroy(client);
  free(options.keys);
  free(options.prefixes);
  return code;
}

const struct command command_tail = {"tail", "print events in order", run};
