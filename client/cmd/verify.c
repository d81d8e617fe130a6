/* holdback verify: what a server finds wrong with its store. Findings are lines on standard output
 * as they come, the picture of what was looked at is the last. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/cmd/command.h"
#include "client/cmd/describe.h"
#include "client/cmd/exit.h"
#include "client/cmd/interrupt.h"
#include "client/cmd/meter.h"

enum { BAR_WIDTH = 24, DRAW_MS = 200 };

struct options {
  struct common common; /* first */
  const char *stream;   /* NULL = all */
};

static const struct argp_option argp_options[] = {
    {"stream", 'S', "NAME", 0, "look at this stream only", 1}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case 'S':
      options->stream = arg;
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s' is one argument too many: streams are named with --stream", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .doc =
        "Lets the server read everything that it stores, while it serves, and tells what is "
        "wrong.\v"
        "Each finding is one line: stream, family of rows, positions, what is wrong.\n"
        "It goes on after a finding, and changes nothing. The last line says what was\n"
        "looked at. With --json each finding is an object (stream_id, stream, family,\n"
        "start, end, text; null where there is none), and the last one {sound,\n"
        "findings, streams, blocks, events, bundles, held_events, index_entries,\n"
        "rows, bytes, seconds}.\n"
        "Appends and deliveries come first: it takes the time that is left. One at a\n"
        "time. A store that no server has open is looked at by holdbackd --verify.\n"
        "\n"
        "Examples:\n"
        "  holdback verify\n"
        "  holdback verify -S orders --json | jq 'select(.text)'\n"
        "\n"
        "Exit codes:\n"
        "  0    everything was looked at and is as it should be\n"
        "  1    a failure of its own (the output not written)\n"
        "  2    wrong usage\n"
        "  3    something is wrong: see the lines\n"
        "  64+n the call failed with gRPC status n (69 NOT_FOUND, 78 UNAVAILABLE, 72\n"
        "       RESOURCE_EXHAUSTED: another verification is under way)\n"
        "  130  interrupted\n",
    .children = common_children};

struct verifying {
  const struct options *options;
  bool bar; /* standard error is a terminal */
  uint64_t shown_ms;
  bool stdout_gone;
};

/* ---- findings */

static json_t *position_or_null(const struct holdback_finding *finding, int64_t position) {
  return finding->has_range ? json_integer(position) : json_null();
}

static bool print_json(const struct holdback_finding *finding) {
  return command_print_json(
      json_pack("{s:I, s:o, s:s, s:o, s:o, s:s}", "stream_id", (json_int_t)finding->stream_id,
                "stream", finding->stream[0] ? json_string(finding->stream) : json_null(), "family",
                finding->family, "start", position_or_null(finding, finding->start), "end",
                position_or_null(finding, finding->end), "text", finding->text));
}

static bool print_line(const struct holdback_finding *finding) {
  if (finding->stream_id && finding->stream[0]) {
    printf("stream '%s' (id %" PRIu64 "), ", finding->stream, finding->stream_id);
  } else if (finding->stream_id) {
    printf("stream id %" PRIu64 ", ", finding->stream_id);
  }
  printf("%s", finding->family);
  if (finding->has_range) printf(" [%" PRId64 ", %" PRId64 ")", finding->start, finding->end);
  return printf(": %s\n", finding->text) > 0;
}

static void clear_bar(const struct verifying *self) {
  if (!self->bar) return;
  (void)fputs("\r\033[K", stderr);
  (void)fflush(stderr);
}

static bool on_finding(void *context, const struct holdback_finding *finding) {
  struct verifying *self = context;
  clear_bar(self);
  bool written = self->options->common.json ? print_json(finding) : print_line(finding);
  self->stdout_gone = !written || fflush(stdout);
  return !self->stdout_gone;
}

/* ---- progress */

static void draw(const struct holdback_verify_progress *progress) {
  uint64_t total = progress->total > progress->done ? progress->total : progress->done;
  double share = total ? (double)progress->done / (double)total : 0;
  char rate[16];
  char bytes[32];
  double seconds = (double)progress->elapsed_ms / 1000;
  meter_format_count(seconds > 0 ? (double)progress->done / seconds : 0, rate, sizeof rate);
  describe_bytes(progress->bytes, bytes, sizeof bytes);
  (void)fputs("\r\033[K[", stderr);
  for (int i = 0; i < BAR_WIDTH; i++) (void)fputc(i < share * BAR_WIDTH ? '#' : ' ', stderr);
  (void)fprintf(stderr, "] %3.0f%%  %s, %s/s, %" PRIu64 " findings", share * 100, bytes, rate,
                progress->findings);
  (void)fflush(stderr);
}

static bool on_progress(void *context, const struct holdback_verify_progress *progress) {
  struct verifying *self = context;
  uint64_t now_ms = hb_clock_mono_ms();
  if (self->bar && now_ms >= self->shown_ms + DRAW_MS) {
    self->shown_ms = now_ms;
    draw(progress);
  }
  return !interrupt_came();
}

/* ---- the end */

static void print_summary(const struct holdback_verify_progress *p, bool json) {
  double seconds = (double)p->elapsed_ms / 1000;
  if (json) {
    (void)command_print_json(json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "sound", p->findings == 0,
        "findings", (json_int_t)p->findings, "streams", (json_int_t)p->streams, "blocks",
        (json_int_t)p->blocks, "events", (json_int_t)p->events, "bundles", (json_int_t)p->bundles,
        "held_events", (json_int_t)p->held_events, "index_entries", (json_int_t)p->index_entries,
        "rows", (json_int_t)p->rows, "bytes", (json_int_t)p->bytes, "seconds", seconds));
    return;
  }
  char bytes[32];
  describe_bytes(p->bytes, bytes, sizeof bytes);
  if (p->findings) {
    printf("%" PRIu64 " finding%s", p->findings, p->findings == 1 ? "" : "s");
  } else {
    printf("sound");
  }
  printf(": %" PRIu64 " streams, %" PRIu64 " blocks with %" PRIu64 " events, %" PRIu64
         " bundles with %" PRIu64 " held, %" PRIu64 " index entries, %" PRIu64
         " other rows, %s in %.1f s\n",
         p->streams, p->blocks, p->events, p->bundles, p->held_events, p->index_entries, p->rows,
         bytes, seconds);
}

static int run_connected(struct holdback_client *client, const struct options *options) {
  struct verifying self = {.options = options, .bar = isatty(STDERR_FILENO) == 1};
  struct holdback_verify_options wanted = {.stream = options->stream,
                                           .on_finding = on_finding,
                                           .on_progress = on_progress,
                                           .context = &self};
  struct holdback_verify_progress progress;
  struct holdback_error error;
  interrupt_watch();
  int status = holdback_verify(client, &wanted, &progress, &error);
  clear_bar(&self);
  if (status == HOLDBACK_CANCELLED && self.stdout_gone) return EXIT_OWN;
  if (status == HOLDBACK_CANCELLED && interrupt_came()) return EXIT_INTERRUPTED;
  if (status) return command_fail(&error);
  print_summary(&progress, options->common.json);
  return progress.findings ? EXIT_OUTCOMES : EXIT_OK;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  int code = client ? run_connected(client, &options) : EXIT_OWN;
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command command_verify = {"verify", "look at the whole store", run};
