/* holdback send: JSON lines in, answers counted.
 *
 * Decides what ends the sending: the end of the input, a wrong line (unless they are skipped), an
 * error of the call, an interrupt. What was read before is finished in each case but the error's.
 * When the input pauses, what is collected is sent: a slow producer is not kept waiting for a
 * full batch. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cmd/command.h"
#include "client/cmd/event_json.h"
#include "client/cmd/exit.h"
#include "client/cmd/interrupt.h"
#include "client/cmd/lines.h"
#include "client/cmd/meter.h"

enum { IDLE_MS = 200, COMPLAINTS_MAX = 10 };

struct options {
  struct common common; /* first */
  const char *file;
  const char *producer;
  bool skip;
  size_t batch_events;
  size_t in_flight;
  uint32_t window_timeout_ms;
  uint32_t reconnect_timeout_ms;
};

enum { KEY_ON_ERROR = 256, KEY_WINDOW_TIMEOUT, KEY_RECONNECT_TIMEOUT, KEY_BATCH, KEY_IN_FLIGHT };

static const struct argp_option argp_options[] = {
    {"on-error", KEY_ON_ERROR, "stop|skip", 0,
     "at a wrong line: stop (default), or skip it, count it and exit with 5 at the end", 1},
    {"producer", 'p', "NAME", 0, "who sends, for the server's receipts", 1},
    {"window-timeout", KEY_WINDOW_TIMEOUT, "TIME", 0,
     "give up when the window is full and complete_to stands still for so long (30s)", 1},
    {"reconnect-timeout", KEY_RECONNECT_TIMEOUT, "TIME", 0,
     "give up after so long without a server (30s)", 1},
    {"batch", KEY_BATCH, "N", 0, "events in one batch (1000)", 1},
    {"in-flight", KEY_IN_FLIGHT, "N", 0, "unanswered batches (8)", 1},
    {0}};

static size_t parse_count(const char *text, const char *what, struct argp_state *state) {
  int64_t value = command_parse_sequence(text, what, state);
  if (value < 1 || value > 65536) argp_error(state, "%s: '%s' is not in 1 to 65536", what, text);
  return (size_t)value;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_ON_ERROR:
      options->skip = strcmp(arg, "skip") == 0;
      if (!options->skip && strcmp(arg, "stop") != 0)
        argp_error(state, "--on-error: '%s' is neither stop nor skip", arg);
      return 0;
    case 'p':
      options->producer = arg;
      return 0;
    case KEY_WINDOW_TIMEOUT:
      options->window_timeout_ms = command_parse_duration_ms(arg, "--window-timeout", state);
      return 0;
    case KEY_RECONNECT_TIMEOUT:
      options->reconnect_timeout_ms = command_parse_duration_ms(arg, "--reconnect-timeout", state);
      return 0;
    case KEY_BATCH:
      options->batch_events = parse_count(arg, "--batch", state);
      return 0;
    case KEY_IN_FLIGHT:
      options->in_flight = parse_count(arg, "--in-flight", state);
      return 0;
    case ARGP_KEY_ARG:
      if (options->file) argp_error(state, "only one FILE can be given");
      options->file = arg;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "[FILE|-]",
    .doc =
        "Appends the events of FILE, or of standard input, one JSON object a line:\v"
        "  sequence     integer, required\n"
        "  key          string, or key_base64; none = the empty key\n"
        "  payload      a string is its UTF-8 bytes, any other value its compact\n"
        "               dump; or payload_base64\n"
        "  event_time   RFC 3339, up to nanoseconds\n"
        "  headers      [{\"name\":..., \"value\" or \"value_base64\":...}, ...],\n"
        "               or {name:value, ...}\n"
        "\n"
        "Sending the same again is safe: it is answered DUPLICATE. With --json the\n"
        "last line on standard output is {\"stored\":n,\"duplicate\":n,\"conflict\":n,\n"
        "\"late\":n,\"before_first\":n,\"out_of_range\":n,\"window_full\":n,\"frontier\":n,\n"
        "\"held\":n}, with \"skipped\":n behind it where lines were skipped.\n"
        "\n"
        "Examples:\n"
        "  holdback send events.jsonl\n"
        "  holdback tail -S orders --until-caught-up | holdback send -S copy -\n"
        "  holdback send --on-error=skip --json -S orders events.jsonl\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

/* ---- sending */

struct sending {
  const struct options *options;
  struct holdback_client *client;
  struct holdback_appender *appender;
  struct holdback_error error; /* of the appender; status 0 = none */
  uint32_t event_bytes_max;
  struct lines lines;
  struct event_line line;
  struct meter meter;
  const char *name; /* of the input, for messages */
  uint64_t wrong;   /* lines */
  uint64_t unusual; /* outcomes told; the client's thread only */
  bool failed_to_read;
};

/* On the client's thread. The index of an event is its line's number. */
static void on_result(void *context, const struct holdback_result *result) {
  struct sending *sending = context;
  if (result->outcome <= HOLDBACK_DUPLICATE || sending->unusual > COMPLAINTS_MAX) return;
  if (sending->unusual++ == COMPLAINTS_MAX) {
    fprintf(stderr, "holdback: more events were not stored; the totals count them\n");
    return;
  }
  const char *reason = holdback_reason_name(result->reason);
  fprintf(stderr, "%s:%" PRIu64 ": %s%s%s: ", sending->name, result->index,
          holdback_outcome_name(result->outcome), reason[0] ? ", " : "", reason);
  if (result->text[0]) {
    fputs(result->text, stderr);
  } else {
    fprintf(stderr, "sequence %" PRId64, result->first_sequence);
  }
  if (result->count > 1) fprintf(stderr, " (and %" PRIu32 " more like it)", result->count - 1);
  fputc('\n', stderr);
}

static void complain(struct sending *sending, const char *wrong) {
  if (sending->meter.on) fputs("\r\033[K", stderr);
  fprintf(stderr, "%s:%" PRIu64 ": %s\n", sending->name, sending->lines.number, wrong);
  sending->wrong++;
}

static bool is_blank(struct hb_slice text) {
  for (size_t i = 0; i < text.size; i++)
    if (!strchr(" \t\r", text.data[i]) || !text.data[i]) return false;
  return true;
}

/* What the server would refuse the whole batch for is found here, where the line is known. */
static bool check_event(struct sending *sending, const struct holdback_event *event, char *wrong,
                        size_t wrong_size) {
  struct holdback_error error;
  if (holdback_event_check(event, &error)) {
    (void)snprintf(wrong, wrong_size, "%.*s", (int)wrong_size - 1, error.message); /* cut is fine */
    return false;
  }
  size_t size = holdback_event_size(event);
  if (!sending->event_bytes_max || size <= sending->event_bytes_max) return true;
  (void)snprintf(wrong, wrong_size, "event: %zu bytes encoded, the stream's event_bytes_max is %u",
                 size, (unsigned)sending->event_bytes_max);
  return false;
}

/* False: the sending ends. */
static bool send_line(struct sending *sending, struct hb_slice text) {
  if (is_blank(text)) return true;
  char wrong[sizeof((struct holdback_error *)NULL)->message];
  struct holdback_event event;
  if (!event_line_read(&sending->line, text, &event, wrong, sizeof wrong) ||
      !check_event(sending, &event, wrong, sizeof wrong)) {
    complain(sending, wrong);
    return sending->options->skip;
  }
  return holdback_append(sending->appender, sending->lines.number, &event, &sending->error) ==
         HOLDBACK_OK;
}

static bool step(struct sending *sending, bool *idle) {
  struct hb_slice text;
  enum lines_result result = lines_next(&sending->lines, *idle ? IDLE_MS : 0, &text);
  *idle = result == LINES_IDLE;
  switch (result) {
    case LINES_LINE:
      return send_line(sending, text);
    case LINES_IDLE:
      return holdback_appender_push(sending->appender, &sending->error) == HOLDBACK_OK;
    case LINES_TOO_LONG: {
      char wrong[80];
      (void)snprintf(wrong, sizeof wrong, "the line is longer than %d bytes", LINE_BYTES_MAX);
      complain(sending, wrong);
      return sending->options->skip;
    }
    case LINES_FAILED:
      fprintf(stderr, "holdback: %s: %s\n", sending->name, strerror(errno));
      sending->failed_to_read = true;
      return false;
    case LINES_END:
      return false;
  }
  return false;
}

static void send_all(struct sending *sending) {
  bool idle = false;
  while (!interrupt_came() && step(sending, &idle))
    if (meter_is_due(&sending->meter))
      meter_draw(&sending->meter, sending->client, sending->options->common.stream,
                 sending->appender, sending->lines.offset);
  if (!sending->error.status) (void)holdback_appender_flush(sending->appender, &sending->error);
  meter_stop(&sending->meter);
}

/* ---- the end */

static void print_totals(const struct sending *sending, const struct holdback_append_progress *p,
                         json_t *frontier, json_t *held) {
  json_t *totals = json_pack(
      "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "stored", (json_int_t)p->stored, "duplicate",
      (json_int_t)p->duplicate, "conflict", (json_int_t)p->conflict, "late", (json_int_t)p->late,
      "before_first", (json_int_t)p->before_first, "out_of_range", (json_int_t)p->out_of_range,
      "window_full", (json_int_t)p->window_full, "frontier", frontier, "held", held);
  if (sending->options->skip && sending->wrong)
    (void)json_object_set_new(totals, "skipped", json_integer((json_int_t)sending->wrong));
  (void)command_print_json(totals);
}

static void tell_count(const char *name, uint64_t count) {
  if (count) printf(", %s %" PRIu64, name, count);
}

static void tell_totals(const struct sending *sending, const struct holdback_append_progress *p) {
  printf("stored %" PRIu64, p->stored);
  tell_count("duplicate", p->duplicate);
  tell_count("conflict", p->conflict);
  tell_count("late", p->late);
  tell_count("before first", p->before_first);
  tell_count("out of range", p->out_of_range);
  tell_count("window full", p->window_full);
  tell_count("wrong lines", sending->wrong);
}

static void report(struct sending *sending) {
  struct holdback_append_progress progress;
  struct holdback_stream_status status = {0};
  holdback_appender_progress(sending->appender, &progress);
  /* Where the server is lost, asking it again would only wait for it again. */
  bool known =
      sending->error.status != HOLDBACK_UNAVAILABLE &&
      !holdback_stream_get(sending->client, sending->options->common.stream, NULL, &status, NULL);
  bool has_frontier = known && status.has_first;
  if (sending->options->common.json) {
    print_totals(sending, &progress, has_frontier ? json_integer(status.frontier) : json_null(),
                 known ? json_integer((json_int_t)status.held_events) : json_null());
    return;
  }
  tell_totals(sending, &progress);
  if (has_frontier) printf("; frontier %" PRId64, status.frontier);
  if (known) printf(", held %" PRIu64, status.held_events);
  putchar('\n');
}

/* The worst of what happened. */
static int exit_code(const struct sending *sending) {
  struct holdback_append_progress p;
  holdback_appender_progress(sending->appender, &p);
  if (sending->error.status == HOLDBACK_RESOURCE_EXHAUSTED &&
      strcmp(sending->error.reason, "WINDOW_FULL") == 0) {
    fprintf(stderr, "holdback: window full: %s\n", sending->error.message);
    return EXIT_WINDOW;
  }
  if (sending->error.status) return command_fail(&sending->error);
  if (sending->failed_to_read) return EXIT_OWN;
  if (interrupt_came()) return EXIT_INTERRUPTED;
  if (sending->wrong) return EXIT_INPUT;
  return p.conflict || p.late || p.before_first || p.out_of_range ? EXIT_OUTCOMES : EXIT_OK;
}

/* ---- the command */

static bool open_input(struct sending *sending, const char *file) {
  bool is_stdin = !file || strcmp(file, "-") == 0;
  sending->name = is_stdin ? "-" : file;
  sending->lines.fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
  if (sending->lines.fd < 0) {
    fprintf(stderr, "holdback: %s: %s\n", file, strerror(errno));
    return false;
  }
  struct stat about;
  bool sized = fstat(sending->lines.fd, &about) == 0 && S_ISREG(about.st_mode);
  meter_start(&sending->meter, sized ? (uint64_t)about.st_size : 0);
  return true;
}

static int run_connected(struct sending *sending) {
  const struct options *options = sending->options;
  struct holdback_stream_config config;
  struct holdback_error error;
  if (holdback_stream_get(sending->client, options->common.stream, &config, NULL, &error))
    return command_fail(&error);
  sending->event_bytes_max = config.event_bytes_max;
  struct holdback_appender_options wanted = {.stream = options->common.stream,
                                             .producer = options->producer,
                                             .batch_events = options->batch_events,
                                             .window_timeout_ms = options->window_timeout_ms,
                                             .reconnect_timeout_ms = options->reconnect_timeout_ms,
                                             .on_result = on_result,
                                             .context = sending};
  if (holdback_appender_create(sending->client, &wanted, &sending->appender, &error))
    return command_fail(&error);
  interrupt_watch();
  send_all(sending);
  report(sending);
  int code = exit_code(sending);
  holdback_appender_destroy(sending->appender);
  return command_finish(code);
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct sending sending = {.options = &options};
  if (!open_input(&sending, options.file)) return EXIT_OWN;
  sending.client = command_connect_with(&options.common, options.in_flight);
  int code = sending.client ? run_connected(&sending) : EXIT_OWN;
  holdback_client_destroy(sending.client);
  event_line_done(&sending.line);
  lines_done(&sending.lines);
  if (sending.lines.fd != STDIN_FILENO) (void)close(sending.lines.fd);
  return code;
}

const struct command command_send = {"send", "append events", run};
