/* Decides what "well at the end" means. */
#include "tests/abuse/abused.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* The kinds of base/live.h. */
enum { LIVE_KINDS = 8, STOP_MS = 20000 };

static const char *binary_of_server;
static const char *name_of_folder;

void hba_init(const char *binary, const char *name) {
  binary_of_server = binary;
  name_of_folder = name;
}

int hba_setup(void **state) {
  struct hba_world *world = hb_calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, name_of_folder);
  hbt_server_init(&world->server, binary_of_server, &world->dir);
  *state = world;
  return 0;
}

int hba_teardown(void **state) {
  struct hba_world *world = *state;
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

bool hba_is_full(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--full") == 0) return true;
  }
  return false;
}

static const char *last_line(char *log) {
  size_t size = strlen(log);
  if (size > 0 && log[size - 1] == '\n') log[size - 1] = 0;
  const char *line = strrchr(log, '\n');
  return line ? line + 1 : log;
}

static bool is_clean(const char *line) {
  int kinds = 0;
  if (!strstr(line, "event=stopped")) return false;
  for (const char *at = line; (at = strstr(at, " live_")) != NULL; at++) {
    const char *value = strchr(at, '=');
    if (!value || strncmp(value, "=0", 2) != 0) return false;
    kinds++;
  }
  return kinds == LIVE_KINDS;
}

void hba_server_stop_clean(struct hbt_server *server) {
  int code = -1;
  hbt_child_signal(server->child, SIGTERM);
  bool ended = hbt_child_wait(server->child, STOP_MS, &code);
  char *log = hbt_child_text(server->child, HBT_ERR, NULL);
  const char *line = last_line(log);
  hbt_server_kill(server);
  if (!ended || code != 0 || !is_clean(line)) {
    fail_msg("the server ended with %d, its last line is: %s", ended ? code : -1, line);
  }
  free(log);
}

uint64_t hba_server_check_rss(const struct hbt_server *server, uint64_t max_mib) {
  uint64_t mib = hbt_server_rss_mib(server);
  assert_true(mib > 0);
  if (mib > max_mib && hbt_rss_is_own()) {
    fail_msg("RSS %llu MiB, at most %llu", (unsigned long long)mib, (unsigned long long)max_mib);
  }
  return mib;
}

struct holdback_client *hba_connect(const struct hbt_server *server) {
  struct holdback_options options = {.server = server->listen};
  struct holdback_client *client = NULL;
  struct holdback_error error = {0};
  if (holdback_client_create(&options, &client, &error)) fail_msg("connect: %s", error.message);
  return client;
}

void hba_create_stream(const struct hbt_server *server, const char *name) {
  struct holdback_client *client = hba_connect(server);
  struct holdback_stream_config config = {.name = name, .first_sequence = 1};
  struct holdback_error error = {0};
  if (holdback_stream_create(client, &config, &error)) fail_msg("create: %s", error.message);
  holdback_client_destroy(client);
}

struct holdback_stream_status hba_status(const struct hbt_server *server, const char *name) {
  struct holdback_client *client = hba_connect(server);
  struct holdback_stream_status status;
  struct holdback_error error = {0};
  if (holdback_stream_get(client, name, NULL, &status, &error)) {
    fail_msg("status: %s", error.message);
  }
  holdback_client_destroy(client);
  return status;
}
