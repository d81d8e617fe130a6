/* holdback unprocessed retry: which processors are asked, and how what came of it is told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/cmd/command.h"
#include "client/cmd/exit.h"
#include "client/cmd/output.h"

struct options {
  struct common common;  /* first */
  const char *processor; /* NULL: all that have keys that wait */
  const char *key;       /* NULL: all of them */
};

enum { KEY_PROCESSOR = 256 };

static const struct argp_option argp_options[] = {
    {"processor", KEY_PROCESSOR, "NAME", 0, "of this processor; default: of all of the stream's",
     1},
    {"key", 'k', "KEY", 0, "this key alone", 1},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &options->common;
      return 0;
    case KEY_PROCESSOR:
      options->processor = arg;
      return 0;
    case 'k':
      options->key = arg;
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
        "Tries the keys again that wait at an event at which a processor's code failed (processor "
        "add --on-error wait): with that event, which code attached anew may accept, then with the "
        "copies of its sequence that were kept. Prints one line for each processor.\v"
        "Examples:\n"
        "  holdback unprocessed retry -S orders\n"
        "  holdback unprocessed retry -S orders --processor totals --key ORD\n\n" EXIT_CODES_HELP,
    .children = common_stream_children};

/* ---- whom to ask */

struct names {
  char **items; /* owned */
  size_t count;
  size_t cap;
};

static bool add_waiting(void *context, const struct holdback_processor_config *config,
                        const struct holdback_processor_status *status) {
  struct names *names = context;
  bool runs = status->state == HOLDBACK_PROCESSOR_RUNNING;
  if (config->on_error != HOLDBACK_ON_ERROR_WAIT_KEY || !runs) return true;
  hb_reserve((void **)&names->items, &names->cap, names->count + 1, sizeof(char *));
  names->items[names->count++] = hb_strdup(config->name);
  return true;
}

static void done(struct names *names) {
  for (size_t i = 0; i < names->count; i++) free(names->items[i]);
  free(names->items);
}

/* ---- telling */

static void print(const struct options *options, const char *name,
                  const struct holdback_retried *retried) {
  if (options->common.json) {
    (void)command_print_json(json_pack("{s:s,s:I,s:I,s:I,s:s}", "processor", name, "tried",
                                       (json_int_t)retried->tried, "processed",
                                       (json_int_t)retried->processed, "blocked",
                                       (json_int_t)retried->blocked, "reason", retried->reason));
    return;
  }
  printf("%s: %" PRIu64 " tried, %" PRIu64 " processed, %" PRIu64 " blocked\n", name,
         retried->tried, retried->processed, retried->blocked);
  if (retried->reason[0]) printf("  failed again: %s\n", retried->reason);
}

static int ask(struct holdback_client *client, const struct options *options, const char *name,
               struct holdback_error *error) {
  struct holdback_bytes key = {options->key, options->key ? strlen(options->key) : 0};
  struct holdback_retried retried;
  int status = holdback_retry_blocked(client, options->common.stream, name,
                                      options->key ? &key : NULL, &retried, error);
  if (!status) print(options, name, &retried);
  return status;
}

static int ask_all(struct holdback_client *client, const struct options *options,
                   struct holdback_error *error) {
  if (options->processor) return ask(client, options, options->processor, error);
  struct names names = {0};
  int status =
      holdback_processor_list(client, options->common.stream, NULL, add_waiting, &names, error);
  for (size_t i = 0; !status && i < names.count; i++) {
    status = ask(client, options, names.items[i], error);
  }
  if (!status && names.count == 0 && !options->common.json) printf("0 tried\n");
  done(&names);
  return status;
}

static int run(const struct common *before, int argc, char **argv) {
  struct options options = {.common = *before};
  (void)argp_parse(&argp, argc, argv, 0, NULL, &options);
  struct holdback_client *client = command_connect(&options.common);
  if (!client) return EXIT_OWN;
  struct holdback_error error;
  int code = ask_all(client, &options, &error) ? command_fail(&error) : EXIT_OK;
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command unprocessed_retry = {"retry", "try again keys that wait", run};
