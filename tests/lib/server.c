/* Decides how a test brings a real server up and down. */
#include "tests/lib/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOP_MS = 20000, FIXED_ARGUMENTS = 5 };

void hbt_server_init(struct hbt_server *server, const char *binary, const struct hbt_tempdir *dir) {
  *server = (struct hbt_server){.binary = binary};
  char socket_path[HBT_PATH_SIZE];
  hbt_tempdir_join(dir, "data", server->data_dir);
  hbt_tempdir_join(dir, "socket", socket_path);
  (void)snprintf(server->listen, sizeof server->listen, "unix:%s", socket_path);
}

static void print_log(struct hbt_server *server, const char *what) {
  char *log = hbt_child_text(server->child, HBT_ERR, NULL);
  (void)fprintf(stderr, "%s %s:\n%s\n", server->binary, what, log);
  free(log);
}

bool hbt_server_start(struct hbt_server *server) {
  const char *arguments[FIXED_ARGUMENTS + HBT_FLAGS_MAX + 1] = {
      server->binary, "--data-dir", server->data_dir, "--listen", server->listen};
  size_t count = FIXED_ARGUMENTS;
  for (size_t i = 0; i < HBT_FLAGS_MAX && server->flags[i]; i++) {
    arguments[count++] = server->flags[i];
  }
  server->child = hbt_child_start(arguments, NULL, 0);
  if (hbt_child_wait_line(server->child, HBT_ERR, "event=ready", HBT_READY_MS, server->ready,
                          sizeof server->ready)) {
    return true;
  }
  print_log(server, "did not get ready");
  hbt_server_done(server);
  return false;
}

void hbt_allow_preload(void) {
  const char *given = getenv("ASAN_OPTIONS");
  char options[1024];
  (void)snprintf(options, sizeof options, "%s:verify_asan_link_order=0", given ? given : "");
  setenv("ASAN_OPTIONS", options, 1);
}

/* A server that is not there any more when it is to be killed has something to say. */
void hbt_server_kill(struct hbt_server *server) {
  int code = 0;
  if (server->child && hbt_child_wait(server->child, 0, &code) && code != 0) {
    print_log(server, "ended by itself");
  }
  hbt_child_destroy(server->child);
  server->child = NULL;
}

int hbt_server_stop(struct hbt_server *server) {
  int code = -1;
  hbt_child_signal(server->child, SIGTERM);
  if (!hbt_child_wait(server->child, STOP_MS, &code)) code = -1;
  hbt_server_kill(server);
  return code;
}

void hbt_server_done(struct hbt_server *server) { hbt_server_kill(server); }

static const char *find_value(const char *line, const char *name) {
  size_t size = strlen(name);
  for (const char *at = line; (at = strstr(at, name)) != NULL; at += size) {
    if ((at == line || at[-1] == ' ') && at[size] == '=') return at + size + 1;
  }
  return NULL;
}

bool hbt_log_value(const char *line, const char *name, char *out, size_t size) {
  const char *at = find_value(line, name);
  if (!at) return false;
  bool quoted = *at == '"';
  if (quoted) at++;
  size_t used = 0;
  for (; *at && *at != (quoted ? '"' : ' ') && used + 1 < size; at++) {
    if (quoted && *at == '\\' && at[1]) at++;
    out[used++] = *at;
  }
  out[used] = 0;
  return true;
}

uint64_t hbt_server_rss_mib(const struct hbt_server *server) {
  char path[64];
  unsigned long size = 0;
  unsigned long resident = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)hbt_child_pid(server->child));
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  int read = fscanf(file, "%lu %lu", &size, &resident);
  (void)fclose(file);
  return read == 2 ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) >> 20 : 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

bool hbt_rss_is_own(void) { return !SANITIZED; }
