/* Decides how a command finds its server, its sub-command and its words for a failure. */
#include "client/cmd/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "client/cmd/base64.h"
#include "client/cmd/exit.h"

/* ---- common options */

static error_t parse_common(int key, char *arg, struct argp_state *state) {
  struct common *common = state->input;
  switch (key) {
    case 's':
      common->server = arg;
      return 0;
    case 'j':
      common->json = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option common_options[] = {
    {"server", 's', "ADDRESS", 0,
     "host:port or unix:path (default: $HOLDBACK_SERVER, else 127.0.0.1:4653)", 10},
    {"json", 'j', NULL, 0, "print JSON, for scripts", 10},
    {0}};
static const struct argp common_argp = {.options = common_options, .parser = parse_common};

static error_t parse_stream(int key, char *arg, struct argp_state *state) {
  struct common *common = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = common;
  if (key != 'S') return ARGP_ERR_UNKNOWN;
  common->stream = arg;
  return 0;
}

static const struct argp_option stream_options[] = {
    {"stream", 'S', "NAME", 0, "the stream (default: default)", 9}, {0}};

const struct argp_child common_children[] = {{.argp = &common_argp}, {0}};
static const struct argp stream_argp = {
    .options = stream_options, .parser = parse_stream, .children = common_children};
const struct argp_child common_stream_children[] = {{.argp = &stream_argp}, {0}};

/* ---- tables of commands */

struct dispatch {
  const struct command *const *table;
  struct common common;
  const struct command *found;
  int argc;
  char **argv;
};

static error_t parse_dispatch(int key, char *arg, struct argp_state *state) {
  struct dispatch *dispatch = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &dispatch->common;
      return 0;
    case ARGP_KEY_ARG:
      for (const struct command *const *row = dispatch->table; *row; row++)
        if (strcmp((*row)->name, arg) == 0) dispatch->found = *row;
      if (!dispatch->found) argp_error(state, "there is no command '%s'", arg);
      dispatch->argc = state->argc - state->next + 1;
      dispatch->argv = state->argv + state->next - 1;
      state->next = state->argc;
      return 0;
    case ARGP_KEY_NO_ARGS:
      argp_error(state, "a command is missing");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int command_dispatch(const struct command *const *table, const char *doc,
                     const struct common *before, int argc, char **argv) {
  struct dispatch dispatch = {.table = table, .common = *before};
  struct argp argp = {.parser = parse_dispatch,
                      .args_doc = "COMMAND [ARGUMENT...]",
                      .doc = doc,
                      .children = common_children};
  (void)argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &dispatch);
  if (!dispatch.found) return EXIT_USAGE;
  char name[64];
  (void)snprintf(name, sizeof name, "%s %s", argv[0], dispatch.found->name);
  dispatch.argv[0] = name;
  return dispatch.found->run(&dispatch.common, dispatch.argc, dispatch.argv);
}

/* ---- connecting and failing */

struct holdback_client *command_connect(const struct common *common) {
  return command_connect_with(common, 0);
}

struct holdback_client *command_connect_with(const struct common *common, size_t in_flight) {
  const char *server = common->server ? common->server : getenv("HOLDBACK_SERVER");
  struct holdback_options options = {.server = server && server[0] ? server : NULL,
                                     .in_flight_batches = in_flight};
  struct holdback_client *client;
  struct holdback_error error;
  if (holdback_client_create(&options, &client, &error) == HOLDBACK_OK) return client;
  (void)command_fail(&error);
  return NULL;
}

/* What to do about it, where this is not in the message; NULL: nothing to add. */
static const char *way_out(const struct holdback_error *error) {
  static const struct {
    int status;
    const char *reason;
    const char *text;
  } rows[] = {
      {HOLDBACK_UNAVAILABLE, "", "is holdbackd running there? -s or HOLDBACK_SERVER names another"},
      {HOLDBACK_NOT_FOUND, "STREAM_NOT_FOUND",
       "'holdback stream ls' lists what is there, 'holdback stream add' makes one"},
      {HOLDBACK_ALREADY_EXISTS, "STREAM_EXISTS",
       "'holdback stream set' changes limits and ack mode; the rest stays as it was made"},
      {HOLDBACK_OUT_OF_RANGE, "BELOW_EARLIEST", "--from start begins with the earliest"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (error->status == rows[i].status && strcmp(error->reason, rows[i].reason) == 0)
      return rows[i].text;
  return NULL;
}

int command_fail(const struct holdback_error *error) {
  const char *status = holdback_status_name(error->status);
  if (error->reason[0]) {
    fprintf(stderr, "holdback: %s, %s: %s\n", status, error->reason, error->message);
  } else {
    fprintf(stderr, "holdback: %s: %s\n", status, error->message);
  }
  const char *advice = way_out(error);
  if (advice) fprintf(stderr, "holdback: %s\n", advice);
  return EXIT_RPC + error->status;
}

bool command_print_json(json_t *owned) {
  bool written =
      json_dumpf(owned, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0 && putchar('\n') != EOF;
  json_decref(owned);
  return written;
}

int command_finish(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  if (errno == EPIPE) return code; /* whoever read it has read enough */
  fprintf(stderr, "holdback: standard output: %s\n", strerror(errno));
  return EXIT_OWN;
}

/* ---- values of options */

int64_t command_parse_sequence(const char *text, const char *what, struct argp_state *state) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || text[0] == ' ')
    argp_error(state, "%s: '%s' is no 64-bit integer", what, text);
  return value;
}

uint64_t command_parse_limit(const char *text, const char *what, struct argp_state *state) {
  uint64_t value = 0;
  struct hb_err err;
  if (hb_limits_parse(text, &value, &err) != HB_OK) argp_error(state, "%s: %s", what, err.message);
  if (value == 0) argp_error(state, "%s: 0 is no limit", what);
  return value;
}

uint32_t command_parse_duration_ms(const char *text, const char *what, struct argp_state *state) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  double unit = strcmp(end, "ms") == 0           ? 1
                : strcmp(end, "m") == 0          ? 60000
                : strcmp(end, "s") == 0 || !*end ? 1000
                                                 : 0;
  if (errno || end == text || unit == 0 || !(value * unit >= 1) || value * unit > 4e9)
    argp_error(state, "%s: '%s' is no duration such as 30, 30s, 500ms, 5m", what, text);
  return (uint32_t)(value * unit);
}

bool command_take_key(const char *command, const char *text, bool is_base64, struct hb_buf *decoded,
                      struct holdback_bytes *out) {
  size_t at = 0;
  *out = (struct holdback_bytes){text, strlen(text)};
  if (!is_base64) return true;
  if (!base64_decode(decoded, hb_slice_text(text), &at)) {
    fprintf(stderr, "%s: '%s' is not base64 at character %zu\n", command, text, at + 1);
    return false;
  }
  *out = (struct holdback_bytes){decoded->data, decoded->size};
  return true;
}
