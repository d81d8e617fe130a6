/* Decides how the demo's server comes up, dies and is cleaned away, Ctrl-C included. */
#include "demo/stage.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

bool demo_fail(const char *what, const struct holdback_error *error) {
  (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, error->message);
  return false;
}

bool demo_expect(bool holds, const char *what) {
  if (!holds) {
    (void)fprintf(stderr, "%s: expected, and not so: %s\n", program_invocation_short_name, what);
  }
  return holds;
}

/* An interrupted demo leaves neither its server nor its folder behind. */
static void *interrupt_main(void *argument) {
  struct demo_stage *stage = argument;
  sigset_t signals;
  int which = 0;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (sigwait(&signals, &which) != 0) return NULL;
  if (stage->server.child) (void)kill(hbt_child_pid(stage->server.child), SIGKILL);
  hbt_tempdir_done(&stage->dir);
  _exit(128 + which);
}

/* Before any other thread is made: they inherit the mask. */
static void watch_interrupts(struct demo_stage *stage) {
  sigset_t signals;
  pthread_t thread;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  if (pthread_create(&thread, NULL, interrupt_main, stage) == 0) pthread_detach(thread);
}

bool demo_stage_open(struct demo_stage *stage, const char *holdbackd, const char *const *flags) {
  *stage = (struct demo_stage){0};
  watch_interrupts(stage);
  hbt_tempdir_init(&stage->dir, program_invocation_short_name);
  hbt_server_init(&stage->server, holdbackd, &stage->dir);
  for (size_t i = 0; flags && flags[i] && i < HBT_FLAGS_MAX; i++) {
    stage->server.flags[i] = flags[i];
  }
  if (!hbt_server_start(&stage->server)) return false;
  struct holdback_options options = {.server = stage->server.listen};
  struct holdback_error error = {0};
  if (holdback_client_create(&options, &stage->client, &error) != HOLDBACK_OK) {
    return demo_fail("no client", &error);
  }
  return true;
}

bool demo_stage_crash(struct demo_stage *stage) {
  char took[32] = "?";
  (void)printf("  kill -9 %d (the server)\n", (int)hbt_child_pid(stage->server.child));
  hbt_server_kill(&stage->server);
  if (!hbt_server_start(&stage->server)) return false;
  (void)hbt_log_value(stage->server.ready, "recovery_ms", took, sizeof took);
  (void)printf("  started again on the same folder: ready, recovery took %s ms\n", took);
  return true;
}

void demo_stage_close(struct demo_stage *stage) {
  holdback_client_destroy(stage->client);
  hbt_server_done(&stage->server);
  hbt_tempdir_done(&stage->dir);
}

bool demo_stage_add_stream(struct demo_stage *stage, const char *name) {
  struct holdback_stream_config config = {.name = name, .first_sequence = 1};
  struct holdback_error error = {0};
  if (holdback_stream_create(stage->client, &config, &error) != HOLDBACK_OK) {
    return demo_fail(name, &error);
  }
  return true;
}
