/* Decides how the threads of a measurement tell each other how far they are. */
#include "bench/gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

void hb_gate_init(struct hb_gate *gate) {
  *gate = (struct hb_gate){0};
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_mutex_init(&gate->mutex, NULL);
  (void)pthread_cond_init(&gate->changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

void hb_gate_done(struct hb_gate *gate) {
  (void)pthread_cond_destroy(&gate->changed);
  (void)pthread_mutex_destroy(&gate->mutex);
}

static struct hb_counts *enter(struct hb_gate *gate) {
  (void)pthread_mutex_lock(&gate->mutex);
  return &gate->counts;
}

static void leave(struct hb_gate *gate) {
  (void)pthread_cond_broadcast(&gate->changed);
  (void)pthread_mutex_unlock(&gate->mutex);
}

void hb_gate_ready(struct hb_gate *gate) {
  enter(gate)->ready++;
  leave(gate);
}

uint64_t hb_gate_first_send(struct hb_gate *gate) {
  struct hb_counts *counts = enter(gate);
  if (!counts->first_send_ns) counts->first_send_ns = hb_clock_mono_ns();
  uint64_t at_ns = counts->first_send_ns;
  leave(gate);
  return at_ns;
}

void hb_gate_answered(struct hb_gate *gate) {
  struct hb_counts *counts = enter(gate);
  counts->answered++;
  counts->last_ack_ns = hb_clock_mono_ns();
  leave(gate);
}

void hb_gate_received(struct hb_gate *gate, uint64_t events) {
  enter(gate)->received = events;
  leave(gate);
}

void hb_gate_finished(struct hb_gate *gate) {
  struct hb_counts *counts = enter(gate);
  counts->finished++;
  counts->last_receive_ns = hb_clock_mono_ns();
  leave(gate);
}

void hb_gate_stalled(struct hb_gate *gate) {
  enter(gate)->stalled++;
  leave(gate);
}

void hb_gate_stop(struct hb_gate *gate) {
  enter(gate)->stopped = true;
  leave(gate);
}

void hb_gate_fail(struct hb_gate *gate, const char *format, ...) {
  struct hb_counts *counts = enter(gate);
  if (!counts->failed) {
    va_list args;
    va_start(args, format);
    (void)fputs("holdback_bench: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
  }
  counts->failed = true;
  leave(gate);
}

struct hb_counts hb_gate_look(struct hb_gate *gate) {
  struct hb_counts counts = *enter(gate);
  (void)pthread_mutex_unlock(&gate->mutex);
  return counts;
}

void hb_gate_wait(struct hb_gate *gate, uint32_t ms) {
  uint64_t at = hb_clock_mono_ns() + (uint64_t)ms * 1000000u;
  struct timespec until = {.tv_sec = (time_t)(at / 1000000000u),
                           .tv_nsec = (long)(at % 1000000000u)};
  (void)enter(gate);
  (void)pthread_cond_timedwait(&gate->changed, &gate->mutex, &until);
  (void)pthread_mutex_unlock(&gate->mutex);
}

bool hb_gate_wait_ready(struct hb_gate *gate, uint64_t subscribers) {
  enum { LOOK_MS = 200 };
  for (;;) {
    struct hb_counts counts = hb_gate_look(gate);
    if (counts.failed || counts.stopped) return false;
    if (counts.ready >= subscribers) return true;
    hb_gate_wait(gate, LOOK_MS);
  }
}
