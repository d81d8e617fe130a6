/* A processor that waits at a gate: see testing_gate.h. */
#include "server/engine/testing_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <pthread.h>

static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static bool gate_waiting;
static bool gate_creates;

void gate_set(bool open) {
  pthread_mutex_lock(&gate_mutex);
  gate_open = open;
  if (!open) gate_waiting = false;
  pthread_cond_broadcast(&gate_changed);
  pthread_mutex_unlock(&gate_mutex);
}

void gate_set_creates(bool wait) {
  pthread_mutex_lock(&gate_mutex);
  gate_creates = wait;
  pthread_mutex_unlock(&gate_mutex);
}

void gate_wait(void) {
  pthread_mutex_lock(&gate_mutex);
  while (!gate_waiting) pthread_cond_wait(&gate_changed, &gate_mutex);
  pthread_mutex_unlock(&gate_mutex);
}

static void pass_gate_locked(void) {
  gate_waiting = true;
  pthread_cond_broadcast(&gate_changed);
  while (!gate_open) pthread_cond_wait(&gate_changed, &gate_mutex);
}

static int gate_create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                       char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  pthread_mutex_lock(&gate_mutex);
  if (gate_creates) pass_gate_locked();
  pthread_mutex_unlock(&gate_mutex);
  return HBP_OK;
}

static int gate_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  static const struct hbp_bytes NAME = {"n", 1};
  pthread_mutex_lock(&gate_mutex);
  pass_gate_locked();
  pthread_mutex_unlock(&gate_mutex);
  struct hbp_bytes value;
  int found;
  if (host->state_get(host, NAME, &value, &found)) return HBP_FAILED;
  if (host->state_put(host, NAME, event->payload)) return HBP_FAILED;
  return host->emit(host, event->payload);
}

static const struct hbp_processor GATE = {.abi_version = HBP_ABI,
                                          .size = sizeof GATE,
                                          .name = "gate",
                                          .create = gate_create,
                                          .on_event = gate_event};

const struct hbp_processor *gate_find(const char *name) {
  return strcmp(name, "gate") == 0 ? &GATE : NULL;
}

struct hb_processor_info rig_processor_info(struct rig *rig, struct hb_stream *stream,
                                            const char *name) {
  struct hb_processor_info info;
  assert_true(hb_engine_get_processor(rig->engine, stream, name, &info));
  hb_processor_info_done(&info);
  return info;
}
