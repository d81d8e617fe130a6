/* Decides how exactly an open loop keeps its times: a timer of the kernel's per wait, without the
 * 50 us of slack that sleeping has. What is late all the same counts as latency. */
#include "bench/pacer.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

enum { NS = 1000000000 };

void hb_pacer_init(struct hb_pacer *pacer, uint64_t start_ns, uint64_t rate) {
  *pacer = (struct hb_pacer){.start_ns = start_ns, .rate = rate, .timer = -1};
  if (!rate) return;
  pacer->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  HB_ASSERT(pacer->timer >= 0);
}

void hb_pacer_done(struct hb_pacer *pacer) {
  if (pacer->timer >= 0) (void)close(pacer->timer);
}

uint64_t hb_pacer_due_ns(const struct hb_pacer *pacer, uint64_t i) {
  if (!pacer->rate) return pacer->start_ns;
  return pacer->start_ns + i / pacer->rate * NS + i % pacer->rate * NS / pacer->rate;
}

void hb_pacer_wait(struct hb_pacer *pacer, uint64_t i) {
  if (!pacer->rate) return;
  uint64_t due_ns = hb_pacer_due_ns(pacer, i);
  if (due_ns <= hb_clock_mono_ns()) return;
  struct itimerspec at = {
      .it_value = {.tv_sec = (time_t)(due_ns / NS), .tv_nsec = (long)(due_ns % NS)}};
  int failed = timerfd_settime(pacer->timer, TFD_TIMER_ABSTIME, &at, NULL);
  HB_ASSERT(!failed);
  uint64_t expired;
  ssize_t got = read(pacer->timer, &expired, sizeof expired);
  HB_ASSERT(got == (ssize_t)sizeof expired);
}
