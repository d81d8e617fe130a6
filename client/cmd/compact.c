/* holdback compact: give back now what the store would give back by itself in time. */
#include <stdio.h>

#include "base/clock.h"
#include "client/cmd/command.h"
#include "client/cmd/exit.h"

static error_t parse(int key, char *arg, struct argp_state *state) {
  (void)arg;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = state->input;
  return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .parser = parse,
    .doc =
        "Rewrites the store's files so that nothing deleted or replaced takes room, and waits for "
        "it. The server goes on serving meanwhile, more slowly; it does the same by itself, little "
        "by little.\v"
        "Examples:\n"
        "  holdback compact\n"
        "  holdback compact --json\n\n" EXIT_CODES_HELP,
    .children = common_children};

static void print(const struct holdback_compaction *done, double seconds, bool json) {
  static const double mib = 1024.0 * 1024.0;
  if (json) {
    (void)command_print_json(json_pack("{s:I, s:I, s:f}", "bytes_before",
                                       (json_int_t)done->bytes_before, "bytes_after",
                                       (json_int_t)done->bytes_after, "seconds", seconds));
    return;
  }
  printf("files: %.1f MiB before, %.1f MiB after, in %.1f s\n", (double)done->bytes_before / mib,
         (double)done->bytes_after / mib, seconds);
}

static int run(const struct common *before, int argc, char **argv) {
  struct common common = *before;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &common);
  struct holdback_client *client = command_connect(&common);
  if (!client) return EXIT_OWN;
  struct holdback_compaction done;
  struct holdback_error error;
  uint64_t start_ns = hb_clock_mono_ns();
  int code = EXIT_OK;
  if (holdback_compact(client, &done, &error)) {
    code = command_fail(&error);
  } else {
    print(&done, (double)(hb_clock_mono_ns() - start_ns) / 1e9, common.json);
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command command_compact = {"compact", "rewrite the store's files", run};
