/* hb_floor --data-dir DIR --listen ADDRESS: started like holdbackd, and says like it when it is
 * ready. Decides nothing else: SIGTERM ends it, and what it wrote is of no interest then. */
#include <grpc/grpc_security.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "bench/floor/floor.h"

static const char *flag(int argc, char **argv, const char *name) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return NULL;
}

static bool serve(struct hb_floor *floor, const char *address) {
  grpc_arg sizes[] = {
      {.type = GRPC_ARG_INTEGER,
       .key = (char *)(uintptr_t)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
       .value.integer = 64 << 20},
      {.type = GRPC_ARG_INTEGER,
       .key = (char *)(uintptr_t)GRPC_ARG_ALLOW_REUSEPORT,
       .value.integer = 0},
  };
  grpc_channel_args arguments = {.num_args = sizeof sizes / sizeof sizes[0], .args = sizes};
  floor->server = grpc_server_create(&arguments, NULL);
  for (size_t i = 0; i < HB_FLOOR_PUMPS; i++) hb_floor_pump_create(floor, &floor->pumps[i]);
  grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
  int port = grpc_server_add_http2_port(floor->server, address, insecure);
  grpc_server_credentials_release(insecure);
  if (!port) return false;
  grpc_server_start(floor->server);
  for (size_t i = 0; i < HB_FLOOR_PUMPS; i++) hb_floor_pump_start(&floor->pumps[i]);
  return true;
}

int main(int argc, char **argv) {
  const char *path = flag(argc, argv, "--data-dir");
  const char *address = flag(argc, argv, "--listen");
  if (!path || !address) {
    (void)fputs("usage: hb_floor --data-dir DIR --listen ADDRESS\n", stderr);
    return 64;
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
  grpc_init();
  struct hb_floor *floor = hb_calloc(1, sizeof *floor);
  if (!hb_floor_open(floor, path) || !serve(floor, address)) return 69;
  (void)fprintf(stderr, "event=ready listen=%s\n", address);
  int number = 0;
  (void)sigwait(&ends, &number);
  _exit(0);
}
