/* When to try again after a failure. Pure: the caller has the clock and the dice. */
#ifndef HB_CLIENT_BACKOFF_H
#define HB_CLIENT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed = all is well. */
struct hbc_backoff {
  uint32_t delay_ms;   /* of the last failure; 0 after a success */
  uint64_t failing_ms; /* since when nothing came from the server; 0 = something did */
};

enum { HBC_BACKOFF_MIN_MS = 50, HBC_BACKOFF_MAX_MS = 1000 };

/* An attempt begins at `now_ms`: the time without an answer counts from the first of them. */
void hbc_backoff_attempt(struct hbc_backoff *backoff, uint64_t now_ms);
/* It failed: how long to wait. `dice` is any random number; it takes up to a quarter off, so that
 * many clients of one restarted server don't come back in step. */
uint32_t hbc_backoff_failed(struct hbc_backoff *backoff, uint32_t dice);
/* Something came from the server. */
void hbc_backoff_succeeded(struct hbc_backoff *backoff);
bool hbc_backoff_is_over(const struct hbc_backoff *backoff, uint64_t now_ms, uint32_t timeout_ms);

#endif
