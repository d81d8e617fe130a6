/* Decides how signals reach the main thread: as readable descriptors, so that no handler runs. */
#include "server/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

void hb_signals_init(struct hb_signals *signals) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int failed = pthread_sigmask(SIG_BLOCK, &set, NULL);
  HB_ASSERT(!failed);
  (void)signal(SIGPIPE, SIG_IGN);
  signals->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  signals->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  HB_ASSERT(signals->signal_fd >= 0);
  HB_ASSERT(signals->notify_fd >= 0);
}

void hb_signals_done(struct hb_signals *signals) {
  close(signals->signal_fd);
  close(signals->notify_fd);
}

void hb_signals_notify(void *context) {
  struct hb_signals *signals = context;
  uint64_t one = 1;
  ssize_t written = write(signals->notify_fd, &one, sizeof one);
  (void)written; /* fails only where the count is full: then it is readable */
}

static int remaining_ms(uint64_t deadline_ms) {
  if (deadline_ms == UINT64_MAX) return -1;
  uint64_t now_ms = hb_clock_mono_ms();
  if (now_ms >= deadline_ms) return 0;
  uint64_t left_ms = deadline_ms - now_ms;
  return left_ms > 1000000 ? 1000000 : (int)left_ms; /* waits again if that was not all */
}

enum hb_wake hb_signals_wait(struct hb_signals *signals, uint64_t timeout_ms, int *out_signal) {
  uint64_t deadline_ms = timeout_ms == UINT64_MAX ? timeout_ms : hb_clock_mono_ms() + timeout_ms;
  for (;;) {
    struct pollfd fds[] = {{.fd = signals->signal_fd, .events = POLLIN},
                           {.fd = signals->notify_fd, .events = POLLIN}};
    int wait_ms = remaining_ms(deadline_ms);
    int ready = poll(fds, 2, wait_ms);
    if (ready < 0) HB_ASSERT(errno == EINTR);
    struct signalfd_siginfo info;
    if (ready > 0 && read(signals->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
      *out_signal = (int)info.ssi_signo;
      return HB_WAKE_SIGNAL;
    }
    uint64_t count;
    if (ready > 0 && read(signals->notify_fd, &count, sizeof count) == (ssize_t)sizeof count) {
      return HB_WAKE_NOTIFIED;
    }
    if (wait_ms == 0) return HB_WAKE_TIMEOUT;
  }
}
