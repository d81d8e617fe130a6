/* What the main thread waits for: signals, and word that the server has drained. */
#ifndef HB_SERVER_SIGNALS_H
#define HB_SERVER_SIGNALS_H

#include <stdint.h>

enum hb_wake { HB_WAKE_SIGNAL, HB_WAKE_NOTIFIED, HB_WAKE_TIMEOUT };

struct hb_signals {
  int signal_fd;
  int notify_fd;
};

/* Blocks SIGTERM and SIGINT, ignores SIGPIPE: before any thread starts, for they inherit it. */
void hb_signals_init(struct hb_signals *signals);
void hb_signals_done(struct hb_signals *signals);
/* Any thread; `context` is the struct hb_signals. */
void hb_signals_notify(void *context);
/* UINT64_MAX = for ever. *out_signal is set with HB_WAKE_SIGNAL. */
enum hb_wake hb_signals_wait(struct hb_signals *signals, uint64_t timeout_ms, int *out_signal);

#endif
