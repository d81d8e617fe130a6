/* holdback ping: is the server there, which one is it, how far away. */
#include <inttypes.h>
#include <stdio.h>

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
        "Asks the server who it is.\v"
        "Examples:\n"
        "  holdback ping\n"
        "  holdback ping -s unix:/run/holdback.sock --json\n\n" EXIT_CODES_HELP,
    .children = common_children};

static void hex_of(const uint8_t id[16], char out[33]) {
  for (size_t i = 0; i < 16; i++) (void)snprintf(out + 2 * i, 3, "%02x", id[i]);
}

static void print(const struct holdback_server *server, bool json) {
  char id[33];
  hex_of(server->store_id, id);
  if (!json) {
    printf("holdback %s, store %s, serving for %" PRIu64 " s, answered in %.2f ms\n",
           server->version, id, server->served_ms / 1000, server->round_trip_ms);
    return;
  }
  (void)command_print_json(json_pack("{s:s, s:s, s:I, s:f}", "version", server->version, "store_id",
                                     id, "served_ms", (json_int_t)server->served_ms,
                                     "round_trip_ms", server->round_trip_ms));
}

static int run(const struct common *before, int argc, char **argv) {
  struct common common = *before;
  (void)argp_parse(&argp, argc, argv, 0, NULL, &common);
  struct holdback_client *client = command_connect(&common);
  if (!client) return EXIT_OWN;
  struct holdback_server server;
  struct holdback_error error;
  int code = EXIT_OK;
  if (holdback_ping(client, &server, &error)) {
    code = command_fail(&error);
  } else {
    print(&server, common.json);
  }
  holdback_client_destroy(client);
  return command_finish(code);
}

const struct command command_ping = {"ping", "is the server there", run};
